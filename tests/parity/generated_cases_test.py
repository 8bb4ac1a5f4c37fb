# SPDX-License-Identifier: Apache-2.0
"""`welkin verify` on cases that no one has seen: other sizes, names, optimizers and ways of storing, computed in float64 numpy."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import case_tables
from case_writer import write_model_case
from numpy_models import Unet, Vit

BINARY = os.environ["WELKIN_BINARY"]


def verify(*arguments):
    return subprocess.run([BINARY, "verify", *map(str, arguments)], capture_output=True, text=True, timeout=300)


class GeneratedCases(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="welkin-cases-"))
        self.addCleanup(shutil.rmtree, self.root)

    def report(self, *folders, arguments=()):
        done = verify("--case", *folders, "--json", "-", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout[-3000:])
        report = json.loads(done.stdout)
        self.assertTrue(report["passed"])
        return report["cases"]

    def tensors(self, case):
        return {row["tensor"]: row for row in case["rows"]}

    def test_vit_with_joint_qkv_and_sgd(self):
        model = Vit((2, 3), (12, 20), 4, 24, 1, 3, joint=True)
        folder = write_model_case(self.root / "joint", model, 1, {"name": "SGD", "lr": 0.02, "momentum": 0.8}, steps=3, with_acts=False)
        rows = self.tensors(self.report(folder)[0])
        for name in ("output", "loss", "blocks.0.attn.qkv.weight", "input", "trajectory.loss[3]", "final.blocks.0.mlp.fc1.weight"):
            self.assertEqual(rows[name]["verdict"], "pass")

    def test_vit_by_samples_with_decay_and_rates(self):
        model = Vit((3, 2), (10, 15), 5, 30, 2, 5, joint=False, mlp_ratio=2)
        optimizer = {"name": "AdamW", "lr": 1.0, "betas": [0.9, 0.99], "weight_decay": 0.1}
        folder = write_model_case(self.root / "decayed", model, 3, optimizer, steps=3, lr=[1e-3, 5e-4, 2e-4], by_samples=True, with_metrics=True)
        rows = self.tensors(self.report(folder)[0])
        for name in ("act.block1.attn", "metric.weighted_rmse", "final.head.weight"):
            self.assertEqual(rows[name]["verdict"], "pass")
        order = [row["tensor"] for row in self.report(folder)[0]["rows"] if row["part"] == "forward"]
        self.assertEqual(order[:4], ["act.patch_embed", "act.tokens", "act.block0.norm1", "act.block0.attn"])
        self.assertEqual(order[-1], "output")

    def test_vit_by_formula_without_steps(self):
        model = Vit((1, 1), (8, 12), 2, 16, 2, 2, joint=False)
        folder = write_model_case(self.root / "formula", model, 2, {"name": "Adam", "lr": 1e-3}, by_formula=True)
        self.assertEqual(self.tensors(self.report(folder)[0])["trajectory"]["verdict"], "skipped")

    def test_unet_of_other_width_and_channels(self):
        folder = write_model_case(self.root / "unet", Unet((2, 3), 3, 0.02), 2, {"lr": 1e-4, "betas": [0.9, 0.999]}, steps=2, by_samples=True,
                                  piecewise=True, grid=(32, 32, 64))
        forward = [row["tensor"] for row in self.report(folder)[0]["rows"] if row["part"] == "forward"]
        self.assertEqual(forward, [f"act.conv_down{s}" for s in range(1, 6)] + [f"act.conv_up{s}" for s in range(5, 1, -1)] + ["act.conv_last", "output"])

    def test_tables_of_other_values(self):
        for write in case_tables.ALL:
            write(self.root / write.__name__)
        cases = self.report(self.root)
        self.assertEqual(sorted(case["name"] for case in cases), sorted(write.__name__ for write in case_tables.ALL))
        for case in cases:
            self.assertGreater(sum(row["verdict"] == "pass" for row in case["rows"]), 1, case["name"])

    def test_lower_precision_by_choice_has_derived_bounds(self):
        model = Vit((2, 2), (16, 16), 4, 32, 2, 4, joint=False)
        folder = write_model_case(self.root / "chosen", model, 2, {"lr": 1e-3}, steps=1)
        rows = self.tensors(self.report(folder, arguments=("--amp_mode", "bf16", "--threads", "1"))[0])
        self.assertGreater(rows["output against float32"]["rel_l2"], 2.0 ** -10)

    def test_table_on_the_console_has_a_row_per_tensor(self):
        folder = case_tables.splits(self.root / "splits")
        done = verify("--case", folder, self.root / "splits/meta.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("tutorial 11 over 6", done.stdout)
        self.assertIn("all 2 cases pass", done.stdout)


if __name__ == "__main__":
    unittest.main()
