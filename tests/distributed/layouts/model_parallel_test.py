#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tensor, sequence and context parallel training through `welkin launch`: every layout has the losses and weights of one process,
with dropout, clipping and short last steps, and a checkpoint of one layout continues in another."""
import pathlib
import re
import sys
import unittest

import numpy as np

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[i]) for i in (1, 2)]
from ranks_case import USAGE, VIT, RanksCase, log_text, losses, run_folder  # noqa: E402
from read_events import read  # noqa: E402
from tolerance import rounds_to, within  # noqa: E402

FOUR_HEADS = VIT.replace("num_heads: 2", "num_heads: 4")
SGD = ("--set", "optimizer=SGD", "--set", "clip_norm=0.05")  # Adam hides wrong scales; the norm is above 0.05, so clipping acts


def events_of(root):
    return read(str(run_folder(root) / "logs"))


class ModelParallel(RanksCase):
    def test_every_kind_of_layout_has_the_curve_of_one_process(self):
        yaml = self.write(FOUR_HEADS)
        one = self.folder / "one"
        self.run_ranks(0, yaml, one, *SGD)
        for ranks, flags in ((2, ("--tensor_parallel", 2)),
                             (4, ("--tensor_parallel", 2, "--context_parallel", 2, "--sequence_parallel", "--context_mode", "all_to_all")),
                             (4, ("--context_parallel", 2, "--replica_check_interval", 1)),
                             (4, ("--context_parallel", 2, "--context_io", "gathered"))):
            root = self.folder / "-".join(str(flag).lstrip("-") for flag in flags)
            self.run_ranks(ranks, yaml, root, *SGD, *flags)
            self.assert_close_training(one, root)
        self.assertIn("dp: [0, 2] [1, 3]", log_text(root))
        self.assertRegex(log_text(root), r"Scaffolding memory high watermark: 0\.\d+ GB\.")
        self.assertEqual(len(re.findall(r" -  Memory usage after forward pass: 0\.\d+ GB\.", log_text(root))), 3)  # once an epoch
        self.assertNotIn("Scaffolding", log_text(one))

    def test_a_ring_with_dropout_has_the_curve_of_one_process(self):
        yaml = self.write(FOUR_HEADS)
        self.run_ranks(0, yaml, self.folder / "one", *SGD, "--set", "qkv=joint")
        self.run_ranks(4, yaml, self.folder / "ring", *SGD, "--set", "qkv=joint", "--tensor_parallel", 2, "--context_parallel", 2,
                       "--context_mode", "ring")
        self.assert_close_training(self.folder / "one", self.folder / "ring")

    def test_ranks_of_a_sample_read_their_own_rows(self):
        # 4 rows of 8 patches over 3 ranks: 11, 11 and 10 tokens, in 2, 3 and 2 rows. Loss, RMSE and picture are those of the whole.
        yaml = self.write(FOUR_HEADS)
        self.run_ranks(0, yaml, self.folder / "one", *SGD)
        for io in ("sharded", "gathered"):
            self.run_ranks(3, yaml, self.folder / io, *SGD, "--context_parallel", 3, "--context_io", io)
            self.assert_close_training(self.folder / "one", self.folder / io)
            one, other = events_of(self.folder / "one"), events_of(self.folder / io)
            tag = next(tag for tag in one["scalars"] if tag.startswith("RMSE"))
            values = [np.array(events["scalars"][tag]) for events in (other, one)]
            rounds_to(*values, 64, message="RMSE after some steps, summed in other pieces")
            self.assertEqual(other["images"], one["images"])
        buffers = {io: re.search(r"Reading: .* into (\S+) (\S+) of host buffers", log_text(self.folder / io)).groups()
                   for io in ("sharded", "gathered")}
        self.assertEqual(buffers["sharded"][1], buffers["gathered"][1])
        within(float(buffers["sharded"][0]) / float(buffers["gathered"][0]), 0.5, 0.01, "the digits that are logged")

    def test_a_checkpoint_of_one_layout_continues_in_another(self):
        yaml = self.write(FOUR_HEADS.replace("lr: 1E-3", "lr: 1E-3, lr_schedule: constant"))
        flags = ("--set", "folder_rule=mp", "--set", "qkv=joint")
        whole, parts = self.folder / "whole", self.folder / "parts"
        self.run_ranks(0, yaml, whole, *flags)
        self.run_ranks(2, yaml, parts, *flags, "--num_iters", 2, "--tensor_parallel", 2)
        self.run_ranks(2, yaml, parts, *flags, "--num_iters", 4, "--context_parallel", 2, "--resume")
        self.run_ranks(0, yaml, parts, *flags, "--num_iters", 6, "--resume")
        within(losses(parts)[-1], losses(whole)[-1], 1e-4, "what Adam makes of gradients that are rounding noise")

    def test_what_does_not_divide_is_refused_before_anything_is_written(self):
        yaml = self.write(FOUR_HEADS)
        text = self.run_ranks(8, yaml, self.folder / "no", "--tensor_parallel", 4, "--context_parallel", 2, "--context_mode",
                              "all_to_all", code=USAGE)
        self.assertIn("the attention heads cannot be split: num_heads=4, tp=4, cp=2, context_mode=all_to_all", text)
        self.assertFalse((self.folder / "no").exists())

    def test_an_overflow_in_one_shard_is_skipped_by_all(self):
        """From a scale that is far too large down to one that fits: on the way some overflow is in one rank's shard alone."""
        yaml = self.write(FOUR_HEADS.replace("num_iters: 6", "num_iters: 24"))
        flags = ("--set", "optimizer=SGD", "--amp_mode", "fp16", "--set", "loss_scale=16777216", "--threads", 1)
        logs = []
        for ranks, more in ((0, ()), (2, ("--tensor_parallel", 2, "--replica_check_interval", 1))):
            root = self.folder / f"ranks{ranks}"
            self.run_ranks(ranks, yaml, root, *flags, *more)
            logs.append(re.findall(r"Skipped updates=(\d+)", log_text(root)))
        self.assertTrue(logs[0])
        self.assertEqual(logs[1], logs[0])


if __name__ == "__main__":
    unittest.main()
