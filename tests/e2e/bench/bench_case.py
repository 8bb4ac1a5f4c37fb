# SPDX-License-Identifier: Apache-2.0
"""What the tests of welkin bench share: tiny configurations whose data are not there, and runs of the shipped binary in a folder of their own."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

BINARY = os.environ["WELKIN_BINARY"]
SHORT = ["--windows", "2", "--window_seconds", "0.02", "--warmup_seconds", "0", "--threads", "1", "--device", "cpu"]
UNET = """
run: {model: unet3d, width: 8, scales: 2, data_size: 8, box_size: [16, 16], Nsamples: 16, Nsamples_val: 4, global_batch_size: 2, num_epochs: 8,
  lr_schedule: {scaling: none, start_lr: 2.E-4, end_lr: 0., warmup_steps: 0}, expdir: /logs, train_path: /nowhere/box.h5, val_path: /nowhere/box.h5}
"""
VIT = """
run: {model: vit, embed_dim: 32, depth: 2, num_heads: 4, patch_size: 8, img_size: [16, 32], n_in_channels: 3, n_out_channels: 3,
  global_batch_size: 2, num_iters: 30, lr: 1E-3, warmup: 1, expdir: /logs, train_data_path: /nowhere/years, valid_data_path: /nowhere/years,
  global_means_path: /nowhere/means.npy, global_stds_path: /nowhere/stds.npy}
"""


class BenchCase(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.folder = pathlib.Path(kept.name)

    def write(self, text):
        path = self.folder / "run.yaml"
        path.write_text(text)
        return path

    def welkin(self, verb, text, *flags, code=0, **environment):
        command = [BINARY, verb, "--yaml_config", self.write(text), "--config", "run", *flags]
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=300, cwd=self.folder,
                              env={**os.environ, **environment})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def bench(self, text, *flags):
        return json.loads(self.welkin("bench", text, *SHORT, "--json", "-", *flags).stdout)
