#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Spatial training through `welkin launch`: blocks of a box have the losses and weights of one process, alone and with data and
tensor parallelism, accumulation and activation checkpointing; a checkpoint continues in another layout; what cannot be cut is
refused before anything is written."""
import csv
import io
import pathlib
import re
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[i]) for i in (1, 2)]
from ranks_case import DONE, LOGGED, OTHER, UNET, USAGE, VIT, RanksCase, log_text, losses, run_folder  # noqa: E402
from tolerance import within  # noqa: E402

SGD = ("--set", "optimizer=SGD", "--set", "clip_norm=0.05")
FIELDS = """
run: {n_in_channels: 3, n_out_channels: 3, img_size: [16, 32], embed_dim: 16, dropout: 0.1, data_loader_config: synthetic,
  limit_nsamples: 20, limit_nsamples_val: 10, global_batch_size: 8, num_iters: 6, lr: 1E-3, expdir: /logs, %s}
"""
FIELD_MODELS = {
    "unet2d": "model: unet2d, width: 8, scales: 2",
    "afno": "model: afno, depth: 2, patch_size: 4, num_blocks: 4",
    "swin": "model: swin, depth: 2, patch_size: 2, num_heads: 4, window_size: [2, 4]",
    "sfno": "model: sfno, depth: 3, scale_factor: 2",
}
# One step takes 0.6 GiB of tensors in one process, half of them for batches that are read ahead.
LARGE_BOX = """
run: {model: unet3d, width: 8, scales: 5, data_size: 128, box_size: [128, 128], Nsamples: 2, Nsamples_val: 1, data_loader_config: synthetic,
  global_batch_size: 1, num_iters: 2, num_data_workers: 1, prefetch_depth: 1, lr_schedule: {scaling: none, start_lr: 1.E-3, end_lr: 0., warmup_steps: 0},
  expdir: /logs}
"""


class SpatialParallel(RanksCase):
    def test_every_cut_has_the_curve_of_one_process(self):
        yaml = self.write(UNET)
        one = self.folder / "one"
        self.run_ranks(0, yaml, one, *SGD)
        for ranks, flags in ((2, ("--spatial", "1x1x2")),
                             (3, ("--spatial", "3x1x1", "--micro_batch_size", 3)),
                             (4, ("--spatial", "1x1x2", "--activation_checkpointing", "pattern:levels.2|conv_last")),
                             (4, ("--spatial", "1x2x1", "--tensor_parallel", 2, "--replica_check_interval", 1)),
                             (4, ("--spatial", "1x1x2", "--shard", "full")),
                             (8, ("--spatial", "2x2x2"))):
            root = self.folder / "-".join(str(flag).strip("-").replace("|", "_").replace(":", "_") for flag in flags)
            self.run_ranks(ranks, yaml, root, *SGD, *flags)
            self.assert_close_training(one, root)
        self.assertIn("spatial: [0, 1, 2, 3, 4, 5, 6, 7]", log_text(root))

    def test_few_channels_along_depth(self):
        """Two or three channels on a rank, whose transposed convolutions torch computes: oneDNN's backward pass once wrote out of bounds."""
        for name, change, layouts in (("two", ("width: 4", "width: 8, N_out_channels: 2"), ((2, ("--spatial", "2x1x1")),)),
                                      ("four", ("width: 4", "width: 4, N_out_channels: 4"), ((4, ("--spatial", "2x1x1", "--tensor_parallel", 2)),))):
            yaml = self.write(UNET.replace(*change), f"{name}.yaml")
            one = self.folder / f"{name}-one"
            self.run_ranks(0, yaml, one, *SGD)
            for ranks, flags in layouts:
                root = self.folder / f"{name}-{ranks}"
                self.run_ranks(ranks, yaml, root, *SGD, *flags)
                self.assert_close_training(one, root)

    def test_blocks_of_fields_hand_over_to_context_parallelism(self):
        yaml = self.write(VIT)
        self.run_ranks(0, yaml, self.folder / "one", *SGD)
        for ranks, flags in ((2, ("--spatial", "1x2x1")), (3, ("--spatial", "1x1x3", "--context_mode", "ring", "--set", "dropout=0")),
                             (4, ("--spatial", "1x2x2", "--context_mode", "auto", "--set", "num_heads=4")),
                             (4, ("--spatial", "1x2x1", "--context_parallel", 2)),
                             (4, ("--spatial", "1x2x1", "--tensor_parallel", 2, "--context_mode", "ring"))):
            one = self.folder / "one"
            if "--set" in flags:
                one = self.folder / flags[-1]
                self.run_ranks(0, yaml, one, *SGD, *flags[-2:])
            root = self.folder / "-".join(map(str, (ranks, *flags[1:])))
            self.run_ranks(ranks, yaml, root, *SGD, *flags)
            self.assert_close_training(one, root)
        self.assertIn("spatial: [0, 2]", log_text(root))

    def test_the_models_of_fields_share_samples(self):
        for model, layouts in (("unet2d", ((4, ("--spatial", "1x2x2")), (3, ("--spatial", "1x1x3")))),
                               ("afno", ((2, ("--spatial", "1x2x1")), (4, ("--spatial", "1x2x2")), (4, ("--context_parallel", 2, "--tensor_parallel", 2, "--sequence_parallel")))),
                               ("swin", ((2, ("--context_parallel", 2, "--context_io", "gathered")), (4, ("--spatial", "1x1x2", "--context_parallel", 2)))),
                               ("sfno", ((4, ("--spatial", "1x2x2")), (2, ("--spatial", "1x1x2")), (4, ("--spatial", "1x2x1", "--tensor_parallel", 2))))):
            yaml = self.write(FIELDS % FIELD_MODELS[model], f"{model}.yaml")
            one = self.folder / f"{model}-one"
            self.run_ranks(0, yaml, one, *SGD, "--csv")
            for ranks, flags in layouts:
                with self.subTest(model=model, flags=flags):
                    root = self.folder / f"{model}-{ranks}{flags[1]}"
                    self.run_ranks(ranks, yaml, root, *SGD, "--csv", *flags)
                    self.assert_close_training(one, root)
                    self.assert_close_scores(one, root)
        self.assertIn("context_mode: all_to_all, the only one of model=afno", log_text(self.folder / "afno-42"))

    def assert_close_scores(self, one, other):
        """The RMSE that is logged, which ranks add up over their points."""
        rows = [list(csv.DictReader(io.StringIO((run_folder(root) / "metrics.csv").read_text()))) for root in (one, other)]
        names = [name for name in rows[0][0] if name.startswith("RMSE")]
        self.assertTrue(names)
        for row, wanted in zip(rows[1], rows[0], strict=True):
            for name in names:
                if wanted[name]:
                    within(float(row[name]), float(wanted[name]), 1e-5, "sums of float32 values in another order")

    def test_a_rank_reads_its_block_alone(self):
        yaml = self.write(UNET)
        shares = []
        for ranks, flags in ((0, ()), (2, ("--spatial", "1x1x2"))):
            root = self.folder / str(ranks)
            self.run_ranks(ranks, yaml, root, *SGD, *flags)
            size, unit = re.search(r"Reading: .* into (\S+) (\S+) of host buffers", log_text(root)).groups()
            shares.append((float(size), unit))
        self.assertEqual(shares[0][1], shares[1][1])
        within(shares[1][0] / shares[0][0], 0.5, 0.01, "the digits that are logged")

    def test_a_box_that_does_not_fit_one_rank_trains_on_more(self):
        yaml = self.write(LARGE_BOX)
        for ranks, cut, limit, fits in ((0, "1x1x1", 0.45, False), (2, "2x1x1", 0.45, True), (2, "2x1x1", 0.24, False), (4, "2x2x1", 0.24, True),
                                        (8, "2x2x2", 0.24, True)):
            with self.subTest(ranks=ranks, limit=limit):
                root = self.folder / f"{ranks}-{limit}"
                text = self.run_ranks(ranks, yaml, root, "--spatial", cut, "--memory_limit_gib", limit, code=DONE if fits else OTHER)
                self.assertIn("DONE ---- rank 0" if fits else "more memory than the limit allows", text)

    def test_deep_scales_gather_onto_fewer_ranks_and_say_so(self):
        yaml = self.write(UNET)
        self.run_ranks(0, yaml, self.folder / "one", *SGD)
        self.run_ranks(4, yaml, self.folder / "four", *SGD, "--spatial", "1x1x4")
        self.assert_close_training(self.folder / "one", self.folder / "four")
        self.assertIn("gather onto fewer of them: along w from scale 2 on (2 of 4 ranks have cells there", log_text(self.folder / "four"))

    def test_a_checkpoint_of_blocks_continues_in_one_process(self):
        yaml = self.write(UNET.replace("lr_schedule: {", "schedule: constant, lr_schedule: {"))
        whole, parts = self.folder / "whole", self.folder / "parts"
        flags = ("--set", "folder_rule=mp", *SGD)
        self.run_ranks(0, yaml, whole, *flags, "--num_epochs", 2)
        self.run_ranks(2, yaml, parts, *flags, "--num_epochs", 1, "--spatial", "2x1x1")
        self.run_ranks(0, yaml, parts, *flags, "--num_epochs", 2, "--resume")
        within(losses(parts)[-1], losses(whole)[-1], LOGGED, "a unit of the last logged digit, and the sums of ranks")

    def test_bf16_follows_one_process(self):
        yaml = self.write(UNET)
        for ranks, flags in ((0, ()), (2, ("--spatial", "1x2x1"))):
            self.run_ranks(ranks, yaml, self.folder / str(ranks), *SGD, "--amp_mode", "bf16", *flags)
        within(losses(self.folder / "2"), losses(self.folder / "0"), 2**-8, "bfloat16 rounds so")

    def test_what_cannot_be_cut_is_refused_before_anything_is_written(self):
        unet, vit = self.write(UNET), self.write(VIT, "vit.yaml")
        afno, sfno = (self.write(FIELDS % FIELD_MODELS[name], f"{name}.yaml") for name in ("afno", "sfno"))
        for ranks, yaml, flags, message in (
                (8, unet, ("--spatial", "1x1x8", "--set", "data_size=4"),
                 "an edge of the box has fewer cells than ranks: axis=w, cells=4, ranks=8. Take at most 4 ranks along this axis"),
                (2, vit, ("--spatial", "2x1x1"), "the plan of the model does not split it over this axis: model=vit, d=2"),
                (9, vit, ("--spatial", "1x1x9"), "fewer columns of patches than ranks to share them: columns=8, w=9. Take at most 8 ranks along w"),
                (2, vit, ("--spatial", "1x1x2", "--context_mode", "ring"), "dropout needs whole rows of tokens: dropout=0.1"),
                (4, vit, ("--spatial", "1x1x2", "--tensor_parallel", 2, "--sequence_parallel"), "sequence_parallel with dropout needs fields that are cut"),
                (3, afno, ("--context_parallel", "3"),
                 "the channels cannot be split: num_blocks=4, tp=1, ranks that share a sample=3. Products of these that work: 1, 2, 4."),
                (2, sfno, ("--spatial", "2x1x1"), "the plan of the model does not split it over this axis: model=sfno, d=2"),
                (2, unet, ("--spatial", "1x1x2", "--rank_invariant"), "spatial does not go with this: spatial=1x1x2"),
                (3, unet, ("--spatial", "1x1x2"), "times the ranks of spatial does not divide the number of processes"),
                (2, unet, ("--spatial", "2"), "wants ranks along depth, height and width as DxHxW")):
            text = self.run_ranks(ranks, yaml, self.folder / "no", *flags, code=USAGE)
            self.assertIn(message, text)
            self.assertFalse((self.folder / "no").exists())


if __name__ == "__main__":
    unittest.main()
