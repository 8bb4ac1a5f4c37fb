#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a user does first, with both models on a few samples: train, resume, evaluate, predict, look at checkpoints and speed. `.ci/run asan`
runs it with the program under AddressSanitizer."""
import os
import pathlib
import subprocess
import tempfile
import unittest

BINARY = pathlib.Path(os.environ["WELKIN_BINARY"])
VIT = """base: {model: vit, data_loader_config: synthetic, embed_dim: 16, depth: 1, num_heads: 2, patch_size: 4, img_size: [16, 32], n_in_channels: 3,
  n_out_channels: 3, limit_nsamples: 8, limit_nsamples_val: 4, global_batch_size: 4, num_iters: 3, lr: 1E-3, warmup: 1, num_data_workers: 2, dropout: 0.1}
"""
UNET = """base: {model: unet3d, data_loader_config: synthetic, scales: 2, width: 8, data_size: 16, box_size: [32, 32], Nsamples: 8, Nsamples_val: 4,
  global_batch_size: 4, num_epochs: 1, num_data_workers: 2, lr_schedule: {start_lr: 1.E-3}}
"""


class Smoke(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def welkin(self, *words):
        done = subprocess.run([*map(str, (BINARY, *words))], capture_output=True, text=True, timeout=240, cwd=self.folder, check=False)
        self.assertEqual(done.returncode, 0, " ".join(map(str, words)) + "\n" + done.stdout + done.stderr)
        return done.stdout + done.stderr

    def first_hour(self, text, *further):
        """The run folder; `further`: the length of the run that is resumed."""
        (self.folder / "run.yaml").write_text(text)
        flags = ["--yaml_config", "run.yaml", "--device", "cpu", "--threads", "2"]
        self.welkin("train", *flags, "--dry_run")
        self.welkin("train", *flags, "--log_root", "logs")
        self.assertIn("Resumed at step", self.welkin("train", *flags, "--log_root", "logs", "--resume", *further))
        self.welkin("train", *flags, "--log_root", "ranks", "--amp_mode", "bf16", "--activation_checkpointing", "none")
        run = next(self.folder.glob("logs/**/checkpoints")).parent
        self.welkin("evaluate", run)
        self.welkin("predict", run)
        newest = max((run / "checkpoints").glob("step_*"), key=lambda path: int(path.name[5:]))
        self.welkin("ckpt", "verify", newest)
        self.welkin("ckpt", "export", "--format", "pt", newest, "weights.pt")
        self.assertIn("synthetic", self.welkin("bench", "step", *flags, "--windows", "1", "--window_seconds", "0.01", "--json", "-"))

    def test_fields(self):
        self.first_hour(VIT, "--num_iters", "4")
        self.welkin("launch", "-n", "2", "train", "--yaml_config", "run.yaml", "--log_root", "two", "--tensor_parallel", "2", "--device", "cpu")

    def test_boxes(self):
        self.first_hour(UNET, "--num_epochs", "2")
        self.welkin("launch", "-n", "2", "train", "--yaml_config", "run.yaml", "--log_root", "two", "--device", "cpu")


if __name__ == "__main__":
    unittest.main()
