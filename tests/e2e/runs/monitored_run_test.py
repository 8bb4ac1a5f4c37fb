#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What users of other trainers look for in `welkin train`: metrics.csv, early stopping, the best checkpoint by a metric, the learning rate
finder, freezing and fine-tuning, a peak that is kept."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import pandas
import torch

BINARY = os.environ["WELKIN_BINARY"]
READ_EVENTS = pathlib.Path(os.environ["WELKIN_SOURCE_DIR"]) / "tests/read_events.py"
VIT = """
run: &run {model: vit, embed_dim: 16, depth: 2, num_heads: 2, patch_size: 4, img_size: [16, 32], n_in_channels: 3, n_out_channels: 3,
  data_loader_config: synthetic, limit_nsamples: 16, limit_nsamples_val: 8, global_batch_size: 8, num_iters: 6, lr: 1E-3, expdir: /logs}
wide: {<<: *run, n_in_channels: 4}
fine: {<<: *run, freeze: ['patch_embed.*', 'blocks.0.*'], lr: 1.E-4}
"""


class MonitoredRun(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "run.yaml").write_text(VIT)

    def welkin(self, *words, code=0, **environment):
        done = subprocess.run([BINARY, *map(str, words)], capture_output=True, text=True, timeout=120, cwd=self.folder,
                              env={**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache"), **environment})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def train(self, *flags, config="run", code=0, **environment):
        return self.welkin("train", "--yaml_config", "run.yaml", "--config", config, "--log_root", "logs", "--device", "cpu", "--threads", "1",
                           *flags, code=code, **environment)

    def folder_of(self, config="run", number="00"):
        return self.folder / "logs" / config / "1GPU" / number

    def test_csv_has_the_scalars_of_tensorboard(self):
        self.train("--csv", "--log_every_n_steps", "2")
        table = pandas.read_csv(self.folder_of() / "metrics.csv")
        self.assertEqual(list(table["step"]), [0, 2, 4, 6])
        self.assertEqual(list(table["epoch"]), [0, 1, 2, 3])
        events = json.loads(subprocess.run([os.sys.executable, str(READ_EVENTS), str(self.folder_of() / "logs")],
                                           capture_output=True, text=True, check=True).stdout)["scalars"]
        self.assertEqual(set(table.columns) - {"step", "epoch"}, set(events))
        self.assertLessEqual({"Loss/train_step", "Gradient norm", "Memory [GiB]"}, set(events))
        self.assertGreater(table["Gradient norm"].dropna().min(), 0)
        self.assertGreater(table["Memory [GiB]"].dropna().min(), 0.01)
        for tag, rows in events.items():
            stored = table[["step", tag]].dropna()
            self.assertEqual(list(stored["step"]), [step for step, _ in rows], tag)
            for value, (_, other) in zip(stored[tag], rows):
                self.assertEqual(float(torch.tensor(value, dtype=torch.float32)), other, tag)
        self.train("--csv", "--log_every_n_steps", "2", "--resume", "--num_iters", "10")
        self.assertEqual(list(pandas.read_csv(self.folder_of() / "metrics.csv")["step"]), [0, 2, 4, 6, 8, 10])

    def test_early_stopping_by_a_channel(self):
        done = self.train("--set", "lr=1e-30", "--num_iters", "100", "--early_stopping", "val_rmse_channel2,3", "--best_metric", "val_rmse_channel1")
        self.assertIn("Early stopping at step 8: val_rmse_channel2 has not improved in 3 validations: best ", done.stderr)
        best = json.loads((self.folder_of() / "checkpoints" / "best.json").read_text())
        self.assertEqual((best["step"], best["metric"]), (2, "val_rmse_channel1"))
        self.assertIn("best val_rmse_channel1 of the run", self.welkin("ckpt", "inspect", self.folder_of()).stdout)

    def test_an_unknown_metric_is_an_error_with_the_names(self):
        for flag in ("--best_metric=val_rmse_t2m", "--early_stopping=val_rmse_t2m,3"):
            done = self.train(flag, code=2)
            self.assertIn("=val_rmse_t2m", done.stderr)
            self.assertIn("A validation of these data reports val_loss, val_rmse_channel0, val_rmse_channel1, val_rmse_channel2.", done.stderr)
        self.assertFalse((self.folder / "logs").exists())

    def test_find_lr_prints_a_rate_and_leaves_the_folder_to_the_run(self):
        done = self.train("--find_lr", "steps=60")
        rate = float(done.stdout)
        self.assertGreater(rate, 1e-7)
        self.assertIn("the loss falls fastest at ", done.stderr)
        self.assertEqual(sorted(path.name for path in self.folder_of().iterdir() if path.name != "lock"), ["logs", "lr_find.csv", "lr_find.svg", "out.log"])
        table = pandas.read_csv(self.folder_of() / "lr_find.csv")
        self.assertEqual(list(table.columns), ["step", "lr", "loss", "smoothed_loss"])
        self.assertTrue(table["lr"].is_monotonic_increasing)
        self.assertIn("<svg", (self.folder_of() / "lr_find.svg").read_text())
        self.train("--set", f"lr={rate}")
        self.assertIn("cannot be combined with --resume", self.train("--find_lr", "--resume", code=2).stderr)

    def test_fine_tuning_as_the_guide_has_it(self):
        self.train()
        self.welkin("ckpt", "export", "--format", "pt", self.folder_of(), "weights.pt")
        state = torch.load(self.folder / "weights.pt", weights_only=True)
        torch.save({name.replace("blocks.", "encoder."): value for name, value in state.items()} | {"extra": torch.zeros(2)}, self.folder / "other.pt")
        done = self.train("--init_from", "other.pt", config="fine", code=5)
        self.assertIn("A run may begin with what fits: --init_partial, and --init_map for other names.", done.stderr)
        done = self.train("--init_from", "other.pt", "--init_partial", "--init_map", "encoder.*=blocks.*", config="wide")
        count = len(state)
        self.assertRegex(done.stderr, rf"Weights of {count - 1} of {count} tensors are those of other.pt \(torch\), the others keep their initial values")
        self.assertRegex(done.stderr, r"of another shape: patch_embed\S* \(16,3,4,4\) for \(16,4,4,4\)")
        self.assertIn("  unused: extra", done.stderr)
        done = self.train("--init_from", self.folder_of(), config="fine")
        self.assertRegex(done.stderr, r"Frozen: \d+ of \d+ tensors with \d+ of \d+ parameters \(patch_embed\.\*: 2, blocks\.0\.\*: \d+\)")
        self.welkin("ckpt", "export", "--format", "pt", "--optimizer", self.folder_of("fine"), "fine.pt")
        tuned = torch.load(self.folder / "fine.pt", weights_only=True)["model_state"]
        for name, value in state.items():
            self.assertEqual(torch.equal(tuned[name], value), name.startswith(("patch_embed.", "blocks.0.")), name)
        self.assertIn("there are no weights to begin with: --init_partial", self.train("--init_partial", code=2).stderr)

    def test_the_peak_is_kept_and_measured_again_on_demand(self):
        first = self.train("--run_num", "a")
        file = self.folder / "cache" / "welkin" / "peaks.json"
        self.assertIn(f"kept for later runs in {file} (", first.stderr)
        self.assertIn("TFLOP/s, measured)", first.stderr)
        kept = json.loads(file.read_text())
        self.assertEqual([(row["threads"], row["dtype"]) for row in kept], [(1, "fp32")])
        self.assertRegex(self.train("--run_num", "b").stderr, r"TFLOP/s, kept from \d{4}-\d\d-\d\d\)")
        self.assertEqual(json.loads(file.read_text()), kept)
        kept[0]["gflops"] = 1e-6
        file.write_text(json.dumps(kept))
        self.assertIn("are more than the kept peak of 0 GFLOP/s", self.train("--run_num", "c").stderr)
        self.assertGreater(json.loads(file.read_text())[0]["gflops"], 1e-3)
        self.assertIn("TFLOP/s, measured)", self.train("--run_num", "d", "--measure_peak").stderr)

    def test_an_estimate_of_a_small_model_has_digits(self):
        text = self.welkin("plan", "estimate", "--yaml_config", "run.yaml", "--config", "run").stdout
        self.assertTrue(re.search(r"forward pass of a sample +[1-9]\d*\.\d +[kM]FLOP", text), text)
        self.assertNotRegex(text, r" 0\.0+ +(GFLOP|TFLOP|PFLOP|GiB)")


if __name__ == "__main__":
    unittest.main()
