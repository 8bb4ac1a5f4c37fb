#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`welkin launch ... train --pipeline_parallel --multistep`: on weather with forcing and fields that do not change, the curve, the weights and
the scores of one process, also where the number of steps grows, in a run that is cut off, and in other layouts."""
import json
import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[i]) for i in (1, 2)]
from ranks_case import BINARY, LOGGED, USAGE, VIT, RanksCase, checkpoints, clean_environment, log_text, run_folder  # noqa: E402

# 20 channels of the files, of which one is known in advance as the sun is, and the other 19 are predicted.
WEATHER = """
run: {model: vit, embed_dim: 16, depth: 4, num_heads: 2, patch_size: 4, img_size: [16, 32], n_in_channels: 20, n_out_channels: 19, dropout: 0.1, residual: true,
  train_data_path: /data/train, valid_data_path: /data/valid, inf_data_path: /data/test, global_means_path: /data/stats/global_means.npy,
  global_stds_path: /data/stats/global_stds.npy, forcing: [solar], roles: [tcwv=forcing], loss: mse, latitude_weights: true, optimizer: SGD, lr_schedule: constant,
  global_batch_size: 8, limit_nsamples: 26, num_iters: 6, lr: 1E-2, clip_norm: 0.05, expdir: /logs}
"""
CURRICULUM = ("--multistep", "[1, 2, 3]", "--set", "multistep_iters=[2, 2]", "--set", "input_noise=0.05")
TWO = ("--pp", "2", "--micro_batch_size", "2")


class PipelineRollouts(RanksCase):
    def setUp(self):
        super().setUp()
        self.data = self.folder / "fields"
        words = ["--grid", "16x32", "--truncation", "10", "--years", "1", "--years_test", "1", "--steps", "32", "--spin_up_days", "1", "--quiet"]
        done = subprocess.run([BINARY, "data", "simulate", "weather", "--out", self.data, *words], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.yaml = self.write(WEATHER)

    def train(self, ranks, name, *flags, code=0):
        return self.run_ranks(ranks, self.yaml, self.folder / name, "--data_root", self.data, *CURRICULUM, *flags, code=code)

    def scores(self, run, ranks, *flags):
        path = self.folder / "scores.json"
        launcher = ["launch", "-n", str(ranks), "--bind", "off", "--"] if ranks else []
        command = [BINARY, *launcher, "evaluate", run, "--device", "cpu", "--json", path, *flags]
        done = subprocess.run(command, capture_output=True, text=True, env=clean_environment(), check=False, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(path.read_text())

    def test_a_curriculum_has_the_curve_of_one_process(self):
        self.train(0, "one")
        self.assertIn("From step 5 on a sample is trained for 3 steps of the model", log_text(self.folder / "one"))
        for ranks, flags in ((2, ()), (2, ("--pipeline_schedule", "gpipe", "--multistep_recompute")), (2, ("--pipeline_schedule", "interleaved")),
                             (2, ("--pipeline_schedule", "zero_bubble", "--amp_mode", "none")),
                             (4, ("--tensor_parallel", "2", "--sequence_parallel")), (4, ("--shard", "full", "--pipeline_schedule", "gpipe")),
                             (4, ("--shard", "optimizer", "--multistep_recompute")), (4, ("--context_parallel", "2"))):
            with self.subTest(flags=flags):
                name = "-".join(("piped", str(ranks), *(flag.lstrip("-") for flag in flags)))
                self.train(ranks, name, *TWO, *flags)
                self.assert_close_training(self.folder / "one", self.folder / name, LOGGED)

    def test_the_gradient_of_the_last_step_alone(self):
        last = ("--set", "multistep_gradient=last")
        self.train(0, "one", *last)
        for ranks, flags in ((2, TWO), (4, ("--pp", "4", "--micro_batch_size", "1", "--pipeline_schedule", "gpipe"))):
            self.train(ranks, f"last{ranks}", *flags, *last)
            self.assert_close_training(self.folder / "one", self.folder / f"last{ranks}", LOGGED)

    def test_a_run_that_is_cut_off_goes_on_in_another_layout_and_is_evaluated(self):
        flags = ("--set", "folder_rule=mp", "--set", "ema_decay=0.5")
        self.train(0, "one", *flags)
        cut = self.folder / "cut"
        flags = (*flags, "--checkpoint_interval", "1", "--keep_checkpoints", "9", "--resume")
        for begins_at, ranks, layout in ((0, 2, TWO), (3, 2, (*TWO, "--pipeline_schedule", "gpipe")), (5, 4, (*TWO, "--shard", "full"))):
            for step in checkpoints(cut) if begins_at else ():
                if step > begins_at:  # as if the run had been cut off there
                    shutil.rmtree(run_folder(cut) / "checkpoints" / f"step_{step}")
            said = self.train(ranks, "cut", *flags, *layout)
            if begins_at:
                self.assertIn(f"From step {begins_at + 1} on a sample is trained for {2 if begins_at == 3 else 3} steps of the model", said)
        self.assert_close_weights(self.folder / "one", cut)
        run = run_folder(cut)
        for more in ((), ("--rollout_steps", "2")):
            self.assertEqual(self.scores(run, 2, "--pp", "2", *more), self.scores(run, 0, *more))

    def test_what_cannot_be_is_refused_before_anything_starts(self):
        for flags, wanted in (
                (("--pipeline_schedule", "zero_bubble", "--multistep_recompute"),
                 "pipeline_schedule: zero_bubble, multistep_recompute. Leave multistep_recompute out, or take pipeline_schedule: 1f1b, gpipe or interleaved"),
                (("--offload", "activations", "--offload_path", self.folder), "what leaves the memory is read back for one step of the model")):
            self.assertIn(wanted, self.train(2, "refused", *TWO, *flags, code=USAGE))
            self.assertFalse((self.folder / "refused" / "run").exists(), flags)


if __name__ == "__main__":
    unittest.main()
