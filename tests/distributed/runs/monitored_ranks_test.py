#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Early stopping, frozen parameters, first weights and the test of learning rates on several ranks: the ranks agree, and their numbers
are those of one process."""
import pathlib
import sys
import unittest

import numpy as np

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[i]) for i in (1, 2)]
from ranks_case import UNET, VIT, RanksCase, checkpoints, log_text, losses, run_folder, weights  # noqa: E402
from tolerance import rounds_to, within  # noqa: E402

LOGGED = 3e-6  # six decimals
SGD = ("--set", "optimizer=SGD")


class MonitoredRanks(RanksCase):
    def assert_same_weights(self, one, other):
        expected, found = weights(one), weights(other)
        self.assertEqual(expected.keys(), found.keys())
        for name, values in expected.items():
            rounds_to(found[name], values, 8, scale=max(1.0, np.abs(values).max()), message=name)  # a few steps of SGD

    def test_early_stopping_ends_all_ranks_at_one_step(self):
        yaml = self.write(VIT.replace("lr: 1E-3", "lr: 1E-30").replace("num_iters: 6", "num_iters: 60"))
        text = self.run_ranks(2, yaml, self.folder / "ranks", "--early_stopping", "val_loss,2")
        self.assertIn("Early stopping at step 6: val_loss has not improved in 2 validations: best ", text)
        self.assertEqual(checkpoints(self.folder / "ranks")[-1], 6)
        text = self.run_ranks(2, yaml, self.folder / "ranks", "--early_stopping", "val_loss,2", "--resume")
        self.assertIn("Early stopping had ended the run", text)

    def test_frozen_parameters_on_ranks_have_the_weights_of_one_process(self):
        cases = (("vit", VIT, "patch_embed.*,blocks.0.*", (("--disable_broadcast_buffers",), ("--tensor_parallel", "2"), ("--static_graph",))),
                 ("unet", UNET, "*.bias", ((),)))
        for model, text, pattern, layouts in cases:
            yaml = self.write(text)
            one = self.folder / model
            self.run_ranks(0, yaml, one, *SGD, "--freeze", pattern)
            for number, layout in enumerate(layouts):
                root = self.folder / f"{model}{number}"
                self.run_ranks(2, yaml, root, *SGD, "--freeze", pattern, *layout)
                within(losses(root), losses(one), LOGGED, "a unit of the last logged digit, and the sums of ranks")
                self.assert_same_weights(one, root)
                self.assertIn("Frozen: ", log_text(root))

    def test_first_weights_are_cut_for_tensor_parallel_ranks(self):
        yaml = self.write(VIT)
        self.run_ranks(0, yaml, self.folder / "source", *SGD)
        flags = ("--init_from", run_folder(self.folder / "source"), *SGD)
        self.run_ranks(0, yaml, self.folder / "one", *flags)
        for name, layout in (("tp", ("--tensor_parallel", "2")), ("dp", ())):
            self.run_ranks(2, yaml, self.folder / name, *flags, *layout)
            self.assert_same_weights(self.folder / "one", self.folder / name)

    def test_the_test_of_learning_rates_is_that_of_one_process(self):
        yaml = self.write(VIT)
        curves = []
        for ranks in (0, 2):
            root = self.folder / f"ranks{ranks}"
            self.run_ranks(ranks, yaml, root, "--find_lr=low=1e-5,high=1e-1,steps=20", *SGD)
            table = np.genfromtxt(run_folder(root) / "lr_find.csv", delimiter=",", names=True)
            curves.append(table["loss"])
            self.assertFalse((run_folder(root) / "checkpoints").exists())
        within(curves[1], curves[0], LOGGED, "the sums of ranks, and what twenty steps make of them")


if __name__ == "__main__":
    unittest.main()
