# SPDX-License-Identifier: Apache-2.0
"""Amplitudes of `--perturb` are fractions of a channel's standard deviation, however it is normalised: of a model that predicts persistence,
whose forecast is the state that a member begins with."""
import unittest

import h5py
import numpy as np

from bad_input_case import yaml_text
from forecast_case import CHANNELS, KEYS, LATITUDE, ForecastCase
from forecast_test import opened
from tolerance import rounds_to

STDS, AMPLITUDE, EPS = np.array([2.0, 0.5, 3.0]), 0.1, 0.5
NORMALIZATIONS = {"standard": [], "others": ["t2m=minmax", "u10=none", f"z500=log:{EPS}"]}
START = ("--split", "valid", "--from", "2001-03-02T06", "--members", "3", "--control")


def zeroed(path, target):
    """The safetensors file with zeros for all weights: beside `residual` the model then adds nothing."""
    raw = path.read_bytes()
    begin = 8 + int.from_bytes(raw[:8], "little")
    target.write_bytes(raw[:begin] + bytes(len(raw) - begin))
    return target


class Amplitudes(ForecastCase):
    keys = KEYS | {"residual": True}

    @classmethod
    def prepare(cls, path):
        with h5py.File(path, "r+") as file:  # one channel has a logarithm
            file["fields"][:, 2] = np.abs(file["fields"][:, 2]) + 1

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        stats = cls.data / "ranges"
        stats.mkdir()
        for name, values in (("means", [0.5, 0.5, 2]), ("stds", STDS), ("mins", [-4, -5, 0]), ("maxs", [6, 3, 9])):
            np.save(stats / f"global_{name}.npy", np.array(values, np.float64).reshape(1, 3, 1, 1))
        checkpoint = next((cls.run_folder / "checkpoints").glob("step_*"))
        start = zeroed(checkpoint / "model.safetensors", cls.root / "zeros.safetensors")
        for name, entries in NORMALIZATIONS.items():
            keys = cls.keys | {"normalization": entries, "global_means_path": "/data/ranges/global_means.npy",
                               "global_stds_path": "/data/ranges/global_stds.npy", "lr": 1e-30, "num_iters": 1, "warmup": 0}
            (cls.root / f"{name}.yaml").write_text(yaml_text(keys))
            cls.call("train", "--yaml_config", cls.root / f"{name}.yaml", "--data_root", cls.data, "--log_root", cls.root / name, "--device", "cpu",
                     "--threads", "1", "--init_from", start)

    def states(self, name, how):
        """(member, channel, row, column): what members begin with."""
        self.run_folder = self.root / name / "base/1GPU/00"
        kind = how.split(":")[0]
        data = opened(self.forecast(f"{name}-{kind}.nc", *START, "--perturb", how))
        return np.stack([data[channel].values[0, :, 0].astype(np.float64) for channel in CHANNELS], 1)

    def both(self, how):
        plain, others = self.states("standard", how), self.states("others", how)
        rounds_to(others[0], plain[0], 16, scale=np.abs(plain).max(), message="the control is the state")
        return plain, others

    def draws(self, states, logarithm):
        """What was added, in standard deviations times the amplitude; of z500 in those of its logarithm where it has one, which are taken as 1."""
        added = (states[1:] - states[:1]) / STDS[None, :, None, None]
        if logarithm:
            log = np.log1p(states[:, 2] / EPS)
            added[:, 2] = log[1:] - log[:1]
        return added / AMPLITUDE

    def test_noise(self):
        for how in (f"gaussian:amplitude={AMPLITUDE}", f"sphere:amplitude={AMPLITUDE},length_km=3000"):
            plain, others = self.both(how)
            expected, found = self.draws(plain, False), self.draws(others, True)
            rounds_to(found, expected, 64, scale=np.abs(plain).max() / AMPLITUDE / STDS.min(), message=how)
            self.assertGreater(np.abs(expected).max(), 1)

    def test_noise_is_that_of_the_run(self):
        spread = self.draws(self.states("others", f"gaussian:amplitude={AMPLITUDE}"), True).std((0, 2, 3))
        self.assertTrue((np.abs(spread - 1) < 4 / np.sqrt(2 * 2 * LATITUDE.size * 16)).all(), f"four standard errors of a deviation: {spread}")

    def test_what_is_bred_has_the_amplitude_over_all_channels(self):
        area = np.cos(np.deg2rad(LATITUDE))[None, None, :, None]
        for states, logarithm in zip(self.both(f"bred:amplitude={AMPLITUDE},cycles=2"), (False, True)):
            size = np.sqrt((self.draws(states, logarithm) ** 2 * area / area.mean()).mean((1, 2, 3)))
            rounds_to(size, np.ones(2), 64, scale=np.abs(states).max() / AMPLITUDE / STDS.min())


if __name__ == "__main__":
    unittest.main()
