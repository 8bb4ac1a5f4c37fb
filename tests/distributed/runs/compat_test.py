#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--compat on two real ranks: how the tutorials' loaders deal samples to ranks, how long their runs are, what their validation counts."""
import pathlib
import sys
import unittest

import h5py
import numpy as np

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[i]) for i in (1, 2)]
from ranks_case import VIT, RanksCase, checkpoints, log_text, losses, run_folder  # noqa: E402
from tolerance import within  # noqa: E402

STILL = ("--set", "optimizer=SGD", "--set", "lr=1e-30")  # the weights stay, so a validation loss is a function of its samples
BOXES = """
run: {{model: unet3d, width: 4, scales: 2, data_size: 8, box_size: [12, 12], Nsamples: 17, Nsamples_val: 9, data_loader_config: dali-lowmem,
  train_path_npy_data: {0}/data.npy, train_path_npy_label: {0}/label.npy, val_path_npy_data: {0}/data.npy, val_path_npy_label: {0}/label.npy,
  global_batch_size: 8, num_epochs: 2, lr_schedule: {{scaling: none, start_lr: 1.E-3, end_lr: 0., warmup_steps: 0}}, expdir: /logs}}
"""
FIELDS = """
run: {{model: vit, embed_dim: 16, depth: 1, num_heads: 2, patch_size: 4, img_size: [8, 16], n_in_channels: 2, n_out_channels: 2, data_loader_config: dali,
  train_data_path: {0}/train, valid_data_path: {0}/valid, global_means_path: {0}/means.npy, global_stds_path: {0}/stds.npy,
  global_batch_size: 8, num_iters: 6, lr: 1E-3, expdir: /logs}}
"""


class Compat(RanksCase):
    def fields(self, samples, validation):
        return VIT.replace("limit_nsamples: 20, limit_nsamples_val: 10", f"limit_nsamples: {samples}, limit_nsamples_val: {validation}")

    def validation_loss(self, name, ranks, validation, *flags):
        self.run_ranks(ranks, self.write(self.fields(16, validation)), self.folder / name, *STILL, "--num_iters", 2, *flags)
        return losses(self.folder / name)[1]

    def test_vit_loaders_pad_to_the_ranks_and_run_whole_epochs(self):
        # 15 samples: ceil(15 / 2) // 4 = 2 steps an epoch on two ranks, 15 // 8 = 1 on one. Of 5 steps asked for 4 are whole epochs.
        yaml = self.write(self.fields(15, 10))
        for ranks, flags, epochs, steps in ((2, ("--compat", "sc23"), 2, 4), (0, ("--compat", "sc23"), 5, 5), (2, (), 5, 5)):
            root = self.folder / f"{ranks}{len(flags)}"
            self.run_ranks(ranks, yaml, root, "--num_iters", 5, *flags)
            self.assertEqual(checkpoints(root)[-1], steps, root)
            self.assertEqual(log_text(root).count("Avg train loss"), epochs, root)

    def test_vit_validation_counts_repeated_samples_and_drops_short_batches(self):
        first, fifteen = self.validation_loss("first", 0, 1), self.validation_loss("fifteen", 0, 15)
        within(self.validation_loss("exact", 2, 15), fifteen, 2e-6, "a unit of the last logged digit")
        padded = self.validation_loss("padded", 2, 15, "--compat", "dl4sci25")
        within(padded, (15 * fifteen + first) / 16, 2e-6, "a unit of the last logged digit")
        self.assertGreater(abs(padded - fifteen), 1e-5, "the check does not see the defect")
        eight = self.validation_loss("eight", 0, 8)
        within(self.validation_loss("dropped", 2, 10, "--compat", "dl4sci25"), eight, 2e-6, "a unit of the last logged digit")

    def test_dali_loaders_of_boxes_cut_to_the_ranks_and_lose_the_first_batch(self):
        random = np.random.default_rng(1)
        np.save(self.folder / "data.npy", random.standard_normal((12, 12, 12, 4)).astype("f4"))
        np.save(self.folder / "label.npy", random.uniform(-1, 1, (12, 12, 12, 5)).astype("f4"))
        yaml = self.write(BOXES.format(self.folder))
        # 17 samples: 8 for each rank, 2 steps an epoch, the first of which is used up by the initial loss. Exactly: 3 steps an epoch.
        for name, flags, steps in (("old", ("--compat", "sc22"), 3), ("ours", (), 6)):
            self.run_ranks(2, yaml, self.folder / name, *flags)
            self.assertEqual(checkpoints(self.folder / name)[-1], steps)
        for line in ("shard_rule truncated", "first_batch_rule consumed", "validation_rule drawn", "augment flips", "crop_rule exclusive"):
            self.assertIn(line, log_text(self.folder / "old"))

    def test_dali_loaders_of_fields_say_how_large_their_shards_are(self):
        for part, steps in (("train", 20), ("valid", 12)):
            (self.folder / part).mkdir()
            with h5py.File(self.folder / part / "2001.h5", "w") as file:
                file["fields"] = np.random.default_rng(steps).standard_normal((steps, 2, 8, 16)).astype("f4")
        np.save(self.folder / "means.npy", np.zeros((1, 2, 1, 1), "f4"))
        np.save(self.folder / "stds.npy", np.ones((1, 2, 1, 1), "f4"))
        yaml = self.write(FIELDS.format(self.folder))
        self.run_ranks(2, yaml, self.folder / "two", "--compat", "sc23")
        self.assertEqual([line.split(" - ")[-1] for line in log_text(self.folder / "two").splitlines() if "Using shards" in line],
                         ["Using shards of size 10 per rank", "Using shards of size 6 per rank"])
        self.run_ranks(0, yaml, self.folder / "one")
        self.assertNotIn("Using shards", (run_folder(self.folder / "one") / "out.log").read_text())


if __name__ == "__main__":
    unittest.main()
