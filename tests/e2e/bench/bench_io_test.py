#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""welkin bench --mode io on both models, from files and without; welkin data stats and inspect --bench against numpy."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import h5py
import numpy as np
from tolerance import rounds_to, within

BINARY = os.environ["WELKIN_BINARY"]
SHORT = ["--windows", "2", "--window_seconds", "0.02", "--warmup_seconds", "0", "--threads", "1", "--device", "cpu"]

UNET = """
run: {{model: unet3d, width: 8, scales: 2, data_size: 8, box_size: [20, 20], Nsamples: 40, Nsamples_val: 4, global_batch_size: 4, num_epochs: 1,
  lr_schedule: {{scaling: none, start_lr: 2.E-4, end_lr: 0., warmup_steps: 0}}, expdir: /logs,
  train_path: {folder}/box.h5, val_path: {folder}/box.h5}}
"""
VIT = """
run: {{model: vit, embed_dim: 48, depth: 1, num_heads: 4, patch_size: 8, img_size: [16, 32], n_in_channels: 3, n_out_channels: 3,
  global_batch_size: 2, num_iters: 3, lr: 1E-3, warmup: 1, expdir: /logs, train_data_path: {folder}/years, valid_data_path: {folder}/years,
  global_means_path: {folder}/stats/global_means.npy, global_stds_path: {folder}/stats/global_stds.npy}}
"""


def welkin(*arguments):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=120)


class BenchIo(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.kept.cleanup)
        cls.folder = pathlib.Path(cls.kept.name)
        random = np.random.default_rng(1)
        with h5py.File(cls.folder / "box.h5", "w") as file:
            for name, channels in (("Nbody", 4), ("Hydro", 5)):
                file[name] = random.normal(size=(channels, 20, 20, 20)).astype(np.float32)
        (cls.folder / "years").mkdir()
        cls.fields = random.normal(280.0, 1e-2, size=(2, 6, 3, 16, 32)).astype(np.float32)
        for year in range(2):
            with h5py.File(cls.folder / "years" / f"{2001 + year}.h5", "w") as file:
                # One year in one piece, one in compressed chunks.
                chunked = {"chunks": (1, 2, 16, 16), "compression": "gzip", "shuffle": True} if year == 1 else {}
                file.create_dataset("fields", data=cls.fields[year], **chunked)
                file["time"] = np.arange(6) * 15 + 365 * year
                file["time"].attrs["units"] = "days since 1970-01-01"
        done = welkin("data", "stats", cls.folder / "years", "--out", cls.folder / "stats", "--climatology")
        assert done.returncode == 0, done.stderr

    def bench(self, text, *flags):
        yaml = self.folder / "run.yaml"
        yaml.write_text(text.format(folder=self.folder))
        done = welkin("bench", "--yaml_config", yaml, "--config", "run", "--json", "-", *SHORT, *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def check(self, result, sample_bytes):
        self.assertGreater(result["io_samples_per_s"], 0)
        self.assertLessEqual(result["io_samples_per_s_min"], result["io_samples_per_s"])
        self.assertGreaterEqual(result["io_samples_per_s_max"], result["io_samples_per_s"])
        self.assertEqual(len(result["io_samples_per_s_windows"]), 2)
        self.assertEqual(result["sample_bytes"], sample_bytes)
        self.assertGreater(result["first_batch_ms"], 0)
        self.assertLess(result["io_page_faults_per_batch"], 16, "buffers are used again")

    def test_boxes_ask_for_no_more_than_they_deliver(self):
        for workers in (0, 2):
            result = self.bench(UNET, "--mode", "io", "--num_data_workers", workers)
            self.check(result, 9 * 8**3 * 4)
            self.assertEqual(result["num_data_workers"], workers)
            within(result["requested_per_delivered"], 1, 0.1, "reads ahead at the end")

    def test_fields(self):
        self.check(self.bench(VIT, "--num_data_workers", 2), 2 * 3 * 16 * 32 * 4)

    def test_synthetic_opens_no_file(self):
        for text, size in ((UNET, 9 * 8**3 * 4), (VIT, 2 * 3 * 16 * 32 * 4)):
            result = self.bench(text.replace("{folder}", "/nowhere"), "--mode", "io", "--synthetic")
            self.check(result, size)
            self.assertEqual(result["requested_bytes"], 0)

    def test_resident_values_are_the_same_samples(self):
        for where in ("host", "device"):  # the device's memory is the host's here
            for text, size in ((VIT, 2 * 3 * 16 * 32 * 4), (UNET, 9 * 8**3 * 4)):
                result = self.bench(text, "--mode", "io", "--resident", where)
                self.check(result, size)
                self.assertEqual(result["requested_bytes"], 0)
                self.assertEqual(result["held_bytes"], 0, "of a device's own memory")

    def test_text_and_file(self):
        yaml = self.folder / "run.yaml"
        yaml.write_text(UNET.format(folder=self.folder))
        done = welkin("bench", "--yaml_config", yaml, "--config", "run", "--json", self.folder / "out.json", *SHORT)
        self.assertIn("IO: ", done.stdout)
        self.assertIn("bytes asked of files per byte delivered: 1", done.stdout)
        self.assertGreater(json.loads((self.folder / "out.json").read_text())["io_samples_per_s"], 0)

    def test_errors(self):
        yaml = self.folder / "run.yaml"
        yaml.write_text(UNET.format(folder=self.folder))
        done = welkin("bench", "--yaml_config", yaml, "--config", "run", "--mode", "disk")
        self.assertEqual(done.returncode, 2)
        self.assertIn("[bench] unknown mode: mode=disk. Choose one of: io", done.stderr)
        done = welkin("bench", "--yaml_config", yaml, "--config", "run", "--windows", "0")
        self.assertIn("[bench] not a usable number: --windows=0. Give a whole number from 1 to 86400.", done.stderr)

    def test_statistics_equal_numpys(self):
        stats = {path.stem: np.load(path) for path in (self.folder / "stats").glob("*.npy")}
        values = self.fields.astype(np.float64)
        everywhere = (0, 1, 3, 4)
        rounds_to(stats["global_means"].ravel(), values.mean(everywhere), 1)
        rounds_to(stats["global_stds"].ravel(), values.std(everywhere), 1)
        np.testing.assert_array_equal(stats["global_mins"].ravel(), self.fields.min(everywhere))
        np.testing.assert_array_equal(stats["global_maxs"].ravel(), self.fields.max(everywhere))
        rounds_to(stats["time_means"][0], values.mean((0, 1)), 1)
        january = values[:, :3]  # days 0, 15 and 30 of both years
        rounds_to(stats["climatology"][0], january.mean((0, 1)), 1)
        self.assertEqual(stats["climatology"].shape, (12, 3, 16, 32))

    def test_inspect_bench_says_why(self):
        done = welkin("data", "inspect", "--bench", "--crop", "8", self.folder / "box.h5", self.folder / "years" / "2002.h5")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Nbody (4, 20, 20, 20), in one piece", done.stdout)
        self.assertIn("fields (6, 3, 16, 32), chunks of (1, 2, 16, 16), shuffle, deflate", done.stdout)
        self.assertIn("values decoded per value wanted 1.33", done.stdout)


if __name__ == "__main__":
    unittest.main()
