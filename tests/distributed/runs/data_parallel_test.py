#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real processes through `welkin launch`: any number of ranks has the loss curve and the weights of one process, with and without
accumulation, with short last steps, for both models; checkpoints move between numbers of ranks."""
import pathlib
import signal
import sys
import time
import unittest

import numpy as np

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[i]) for i in (1, 2)]
from ranks_case import UNET, USAGE, VIT, RanksCase, checkpoints, log_text, losses, run_folder, weights  # noqa: E402
from tolerance import rounds_to, within  # noqa: E402

LOGGED = 3e-6  # six decimals

SGD = ("--set", "optimizer=SGD")  # Adam divides by its own noise where a gradient is all but zero


class DataParallel(RanksCase):
    def assert_same_curve(self, one, other):
        self.assertGreaterEqual(len(losses(one)), 4)
        within(losses(other), losses(one), LOGGED, "a unit of the last logged digit, and the sums of ranks")

    def assert_same_weights(self, one, other):
        expected, found = weights(one), weights(other)
        self.assertEqual(expected.keys(), found.keys())
        for name, values in expected.items():
            rounds_to(found[name], values, 8, scale=max(1.0, np.abs(values).max()), message=name)  # a few steps of SGD

    def compare(self, text, *flags):
        yaml = self.write(text)
        one = self.folder / "one"
        self.run_ranks(0, yaml, one, *flags)
        for ranks, more in ((2, ()), (4, ("--micro_batch_size", "1"))):
            root = self.folder / f"ranks{ranks}"
            self.run_ranks(ranks, yaml, root, *flags, *more)
            self.assertEqual(run_folder(root).parent.name, f"{ranks}GPU")
            self.assert_same_curve(one, root)
            self.assert_same_weights(one, root)

    def test_vit_has_one_curve_on_1_2_and_4_ranks(self):
        self.compare(VIT, *SGD)

    def test_unet_has_one_curve_on_1_2_and_4_ranks(self):
        self.compare(UNET, *SGD)

    def test_adam_clipping_and_views_have_the_curve_of_one_process(self):
        yaml = self.write(VIT)
        flags = ("--set", "clip_norm=0.5")
        self.run_ranks(0, yaml, self.folder / "one", *flags)
        for name, more in (("plain", ()), ("views", ("--disable_broadcast_buffers", "--micro_batch_size", "2")), ("static", ("--static_graph",))):
            self.run_ranks(2, yaml, self.folder / name, *flags, *more)
            within(losses(self.folder / name), losses(self.folder / "one"), 1e-4, "what Adam makes of gradients that are rounding noise")

    def test_ranks_save_at_the_interval_that_the_first_one_chooses(self):
        yaml = self.write(VIT.replace("num_iters: 6", "num_iters: 60"))
        for name, flags in (("whole", ()), ("pieces", ("--shard", "full"))):
            root = self.folder / name
            self.run_ranks(2, yaml, root, "--checkpoint_interval", "auto", "--mtbf", "0.002", "--keep_checkpoints", "99", *flags)
            self.assertRegex(log_text(root), r"Checkpoint interval: \d+ steps? \(\S+ s\)\. A checkpoint holds training for \S+ s, a failure comes every 7\.2 s")
            self.assertLessEqual(checkpoints(root)[0], 10)
            self.run_ranks(2, yaml, root, "--checkpoint_interval", "auto", "--mtbf", "0.002", *flags, "--resume", "--num_iters", "70")
            self.assertIn("Resumed at step 60 ", log_text(root))

    def test_compressed_gradients_are_near_and_no_exchange_is_not(self):
        yaml = self.write(VIT)
        plain = self.folder / "plain"
        self.run_ranks(2, yaml, plain, *SGD, "--set", "lr=0.1")
        self.assertIn("Gradients are exchanged in 1 bucket: 0.0 MiB", log_text(plain))
        for name, flags, difference in (("bf16", ("--compress_gradients", "bf16"), (0, 2e-2)), ("fp16", ("--compress_gradients", "fp16"), (0, 2e-3)),
                                        ("noddp", ("--noddp",), (1e-3, 1))):
            root = self.folder / name
            self.run_ranks(2, yaml, root, *SGD, "--set", "lr=0.1", *flags)
            apart = max(np.abs(weights(root)[key] - values).max() for key, values in weights(plain).items())
            scale = max(np.abs(values).max() for values in weights(plain).values())
            self.assertGreaterEqual(apart / scale, difference[0], name)
            self.assertLessEqual(apart / scale, difference[1], name)
        self.assertIn("Gradients are not exchanged (noddp)", log_text(self.folder / "noddp"))

    def test_rank_invariant_runs_have_the_same_bits(self):
        cases = ((VIT.replace("limit_nsamples_val: 10", "limit_nsamples_val: 16"), "vit", "none", (1, 2, 4, 8)),
                 (UNET.replace("Nsamples: 18, Nsamples_val: 10", "Nsamples: 16, Nsamples_val: 8"), "unet", "none", (1, 4)),
                 (UNET.replace("Nsamples: 18, Nsamples_val: 10", "Nsamples: 16, Nsamples_val: 8"), "unet", "bf16", (1, 2)),
                 (VIT.replace("limit_nsamples_val: 10", "limit_nsamples_val: 16"), "vit", "bf16", (1, 4)))
        for text, model, mode, sizes in cases:
            yaml = self.write(text)
            roots = [self.folder / f"{model}-{mode}-{size}" for size in sizes]
            for size, root in zip(sizes, roots):
                self.run_ranks(size, yaml, root, "--rank_invariant", "--amp_mode", mode, "--threads", "1")
                self.assertEqual(losses(root), losses(roots[0]), root.name)
                for name, values in weights(roots[0]).items():
                    self.assertTrue((weights(root)[name] == values).all(), f"{root.name}: {name}")

    def test_rank_invariant_refuses_batches_that_are_not_whole(self):
        text = self.run_ranks(2, self.write(UNET), self.folder / "root", "--rank_invariant", code=USAGE)
        self.assertIn("ranks=2, global_batch_size=8, training samples=18, validation samples=10", text)

    def test_a_signal_saves_one_checkpoint_that_another_number_of_ranks_continues(self):
        yaml = self.write(VIT.replace("num_iters: 6", "num_iters: 60"))
        flags = ("--set", "folder_rule=mp", "--checkpoint_interval", "2", *SGD)
        whole, parts = self.folder / "whole", self.folder / "parts"
        self.run_ranks(0, yaml, whole, *flags)
        process = self.launch(2, yaml, parts, *flags)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not list(parts.glob("run/1MP/00/checkpoints/step_*")):
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        text = self.finish(process)
        self.assertEqual(text.count("Interrupted by SIGTERM at step"), 1, text)
        stopped_at = checkpoints(parts)[-1]
        self.assertLess(stopped_at, 60)
        self.run_ranks(4, yaml, parts, *flags, "--resume")
        self.assertEqual(checkpoints(parts)[-1], 60)
        self.assert_same_weights(whole, parts)
        within(losses(parts)[-1], losses(whole)[-1], LOGGED, "a unit of the last logged digit, and the sums of ranks")

    def test_d33_the_logged_training_loss_is_that_of_all_ranks(self):
        def first_loss(ranks, batch):
            root = self.folder / f"{ranks}-{batch}"
            self.run_ranks(ranks, self.write(VIT.replace("dropout: 0.1", "dropout: 0.0").replace("global_batch_size: 8", f"global_batch_size: {batch}")),
                           root, *SGD, "--num_iters", 1)
            return losses(root)[0]
        of_all, of_rank_0 = first_loss(0, 8), first_loss(0, 4)  # rank 0 of two reads the first half of each batch
        within(first_loss(2, 8), of_all, LOGGED, "a unit of the last logged digit")
        self.assertGreater(abs(of_rank_0 - of_all), 100 * LOGGED, "the check does not see the defect")


if __name__ == "__main__":
    unittest.main()
