#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`welkin plan estimate` tells the calls and bytes of the model's own collectives that `welkin bench` counts on real ranks."""
import json
import pathlib
import subprocess
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[i]) for i in (1, 2)]
from ranks_case import BINARY, DONE, RanksCase, clean_environment  # noqa: E402

FIELDS = """
run: {model: MODEL, embed_dim: 32, depth: 3, num_heads: 4, num_blocks: 4, patch_size: 4, img_size: [32, 64], n_in_channels: 3, n_out_channels: 2,
  window_size: [4, 4], width: 8, scale_factor: 2, global_batch_size: 8, num_iters: 30, lr: 1E-3, warmup: 1, expdir: /logs,
  train_data_path: /nowhere/years, valid_data_path: /nowhere/years, global_means_path: /nowhere/means.npy, global_stds_path: /nowhere/stds.npy}
"""
BOXES = """
run: {model: unet3d, width: 8, scales: 3, data_size: 32, box_size: [64, 64], Nsamples: 16, Nsamples_val: 4, global_batch_size: 4, num_epochs: 8,
  lr_schedule: {scaling: none, start_lr: 2.E-4, end_lr: 0., warmup_steps: 0}, expdir: /logs, train_path: /nowhere/box.h5, val_path: /nowhere/box.h5}
"""
# What is no part of a pass: norms and votes of the optimizer step are single numbers.
SMALL = 2048


class PlanTraffic(RanksCase):
    def planned(self, ranks, yaml, flags):
        done = subprocess.run([BINARY, "plan", "estimate", "--yaml_config", yaml, "--config", "run", "--devices", str(ranks), "--device", "cpu", "--json", "-",
                               *flags], capture_output=True, text=True, timeout=60, env=clean_environment())
        self.assertEqual(done.returncode, DONE, done.stderr)
        rows = json.loads(done.stdout).get("collectives of the model", {})
        return {name: row["value"] * 1e6 for name, row in rows.items()}

    def counted(self, ranks, yaml, flags):
        file = self.folder / "bench.json"
        done = subprocess.run([BINARY, "launch", "-n", str(ranks), "--bind", "off", "--", "bench", "synthetic", "--yaml_config", yaml, "--config", "run",
                               "--device", "cpu", "--threads", "1", "--windows", "1", "--window_seconds", "0.01", "--warmup_seconds", "0", "--json", file, *flags],
                              capture_output=True, text=True, timeout=120, env=clean_environment())
        self.assertEqual(done.returncode, DONE, done.stderr)
        return json.loads(file.read_text())["communication"]

    def check(self, ranks, text, *flags):
        yaml = self.write(text)
        planned, counted = self.planned(ranks, yaml, flags), self.counted(ranks, yaml, flags)
        found = {}
        for call in counted["calls"]:
            name = f"{call['collective']} over {call['group'].split()[0]}"
            found[name] = call["bytes_per_step"]
        with self.subTest(flags=flags, text=text[:40]):
            for name, wanted in planned.items():
                self.assertLessEqual(abs(found.get(name, 0) - wanted), SMALL + 1e-3 * wanted, name)

    def test_tokens(self):
        usual = ((2, "--tensor_parallel", "2", "--sequence_parallel"), (4, "--tensor_parallel", "2", "--context_parallel", "2"), (2, "--spatial", "1x2x1"),
                 (4, "--spatial", "1x2x1", "--context_parallel", "2"))
        for model in ("vit", "swin", "afno"):
            for ranks, *flags in usual:
                self.check(ranks, FIELDS.replace("MODEL", model), *flags)
        self.check(2, FIELDS.replace("MODEL", "vit"), "--tensor_parallel", "2", "--activation_checkpointing", "blocks")
        for mode in ("all_gather", "ring", "all_to_all"):
            self.check(4, FIELDS.replace("MODEL", "vit"), "--context_parallel", "4", "--context_mode", mode)

    def test_mixed_precision_and_micro_batches(self):
        for flags in (("--tensor_parallel", "2", "--sequence_parallel"), ("--context_parallel", "2", "--context_mode", "ring")):
            self.check(2, FIELDS.replace("MODEL", "vit"), "--amp_mode", "bf16", "--set", "micro_batch_size=2", *flags)
        self.check(2, BOXES, "--amp_mode", "bf16", "--spatial", "2x1x1", "--set", "micro_batch_size=1")

    def test_points(self):
        for model in ("sfno", "unet2d"):
            for ranks, *flags in ((2, "--spatial", "1x2x1"), (4, "--spatial", "1x2x2"), (4, "--tensor_parallel", "2", "--spatial", "1x2x1")):
                self.check(ranks, FIELDS.replace("MODEL", model), *flags)

    def test_boxes(self):
        for ranks, *flags in ((4, "--spatial", "1x2x2"), (4, "--tensor_parallel", "2", "--spatial", "2x1x1")):
            self.check(ranks, BOXES, *flags)


if __name__ == "__main__":
    unittest.main()
