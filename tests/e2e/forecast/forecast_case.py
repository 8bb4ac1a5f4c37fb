# SPDX-License-Identifier: Apache-2.0
"""What the tests of forecasts share: a tiny trained run on fields with times and places."""
import datetime
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import h5py
import numpy as np

from bad_input_case import BINARY, DONE, write_statistics, yaml_text

CHANNELS, UNITS = ["t2m", "u10", "z500"], ["K", "m s-1", "m2 s-2"]
HEIGHT, WIDTH, STEPS, HOURS = 8, 16, 16, 6
LATITUDE, LONGITUDE = np.linspace(87.5, -87.5, HEIGHT), np.arange(WIDTH) * 360.0 / WIDTH
MEAN, STD = 0.5, 2.0
KEYS = {
    "model": "vit", "dataset": "era5", "embed_dim": 16, "depth": 1, "num_heads": 2, "patch_size": 4, "img_size": [HEIGHT, WIDTH],
    "n_in_channels": 3, "n_out_channels": 3, "forcing": ["solar"], "train_data_path": "/data/train", "valid_data_path": "/data/valid",
    "inf_data_path": "/data/test", "global_means_path": "/data/stats/global_means.npy", "global_stds_path": "/data/stats/global_stds.npy",
    "global_batch_size": 4, "num_iters": 4, "dropout": 0.1, "expdir": "/logs"}


def epoch_seconds(year, month, day, hour=0):
    return int(datetime.datetime(year, month, day, hour, tzinfo=datetime.timezone.utc).timestamp())


def write_dated_fields(path, first, steps=STEPS, seed=1):
    """Smooth waves that travel, and a little noise."""
    random = np.random.default_rng(seed)
    times = first + np.arange(steps) * HOURS * 3600
    phase = times[:, None, None, None] / 86400.0
    lat, lon = np.deg2rad(LATITUDE)[None, None, :, None], np.deg2rad(LONGITUDE)[None, None, None, :]
    wave = np.arange(1, 4)[None, :, None, None]
    fields = MEAN + STD * (np.cos(lat) * np.sin(wave * lon + phase) + 0.1 * random.normal(size=(steps, 3, HEIGHT, WIDTH)))
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        file["fields"] = fields.astype(np.float32)
        file["fields"].attrs["channels"], file["fields"].attrs["units"] = CHANNELS, UNITS
        file["latitude"], file["longitude"] = LATITUDE, LONGITUDE
        file["time"] = times
        file["time"].attrs["units"] = "seconds since 1970-01-01"
        file["time"].attrs["calendar"] = "proleptic_gregorian"
    return path


class ForecastCase(unittest.TestCase):
    keys = KEYS

    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp(prefix="welkin-forecast-"))
        cls.addClassCleanup(shutil.rmtree, cls.root)
        cls.data = cls.root / "data"
        for part, first in (("train", (2000, 1, 1)), ("valid", (2001, 3, 1)), ("test", (2002, 6, 1))):
            cls.prepare(write_dated_fields(cls.data / part / f"{first[0]}.h5", epoch_seconds(*first), seed=first[0]))
        write_statistics(cls.data / "stats", mean=MEAN, std=STD)
        cls.run_folder = cls.root / "logs/base/1GPU/00"
        (cls.root / "run.yaml").write_text(yaml_text(cls.keys))
        cls.call("train", "--yaml_config", cls.root / "run.yaml", "--data_root", cls.data, "--log_root", cls.root / "logs", "--device", "cpu",
                 "--threads", "1")

    @classmethod
    def prepare(cls, path):
        """Changes a file of the run's data before the run is trained."""

    @classmethod
    def call(cls, *words, code=DONE):
        done = subprocess.run([BINARY, *map(str, words)], capture_output=True, text=True, timeout=120, cwd=cls.root)
        if done.returncode != code:
            raise AssertionError(f"{words}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=self.root))

    def forecast(self, name, *flags, ranks=0, code=DONE):
        """Runs the verb; returns the path of its output."""
        output = self.folder / name
        launcher = ["launch", "-n", str(ranks), "--bind", "off", "--"] if ranks else []
        self.call(*launcher, "forecast", self.run_folder, "--device", "cpu", "--output", output, *flags, code=code)
        return output

    def refused(self, code, *flags, parts=()):
        done = self.call("forecast", self.run_folder, "--device", "cpu", *flags, code=code)
        message = done.stderr[done.stderr.rfind("welkin: ["):].strip()
        for part in parts:
            self.assertIn(part, message)
        self.assertNotIn("[internal]", message)
