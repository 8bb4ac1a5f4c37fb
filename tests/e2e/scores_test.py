# SPDX-License-Identifier: Apache-2.0
"""The scores of `welkin evaluate` against numpy's, from the fields that `welkin predict` writes of the same samples."""
import json
import unittest

import h5py
import numpy as np

from bad_input_case import BINARY, BOXES, DONE, FIELDS, HEIGHT, BadInputCase, write_statistics
from tolerance import rounds_to


def zonal(fields, weights):
    """(sample, C, H, W) -> (C, K): mean square by wavenumber along a row, over rows and samples."""
    n = fields.shape[-1]
    power = np.abs(np.fft.fft(fields)) ** 2 / n ** 2
    folded = np.stack([power[..., k] + (power[..., n - k] if 0 < k < n - k else 0) for k in range(n // 2 + 1)], -1)
    return (folded * weights[:, None]).mean((0, 2))


def radial(boxes):
    """(sample, C, D, H, W) of one edge -> (C, K): mean square by the rounded length of the wave vector."""
    n = boxes.shape[-1]
    power = np.abs(np.fft.fftn(boxes, axes=(2, 3, 4))) ** 2 / n ** 6
    wave = np.fft.fftfreq(n) * n
    length = np.rint(np.sqrt(wave[:, None, None] ** 2 + wave[:, None] ** 2 + wave ** 2)).astype(int)
    return np.stack([power[..., length == k].sum(-1) for k in range(length.max() + 1)], -1).mean(0)


class Scores(BadInputCase):
    one_process = True

    def close(self, got, wanted, scale=None):
        """Of sums of float32 values: 64 roundings of the scale."""
        rounds_to(got, wanted, 64, scale=wanted if scale is None else scale)

    def scores_and_fields(self, keys, samples):
        for command in (self.train_command(keys), [BINARY, "evaluate", self.run_folder, "--json", self.root / "scores.json"],
                        [BINARY, "predict", self.run_folder, "--output", self.root / "predictions", "--samples", samples]):
            done = self.run_command(command)
            self.assertEqual(done.returncode, DONE, done.stderr)
        with h5py.File(next((self.root / "predictions").glob("*.h5"))) as file:
            self.assertEqual(len(file["sample"]), samples)
            return json.loads((self.root / "scores.json").read_text()), file["target"][:].astype(float), file["prediction"][:].astype(float)

    def test_of_fields(self):
        self.make_fields()
        write_statistics(self.data / "stats", mean=0.5, std=2.0)
        scores, target, prediction = self.scores_and_fields(FIELDS, 11)
        weights = np.cos(np.deg2rad(np.linspace(90, -90, HEIGHT)))
        weights *= HEIGHT / weights.sum()
        error = (prediction - target) * weights[:, None]
        spectra = {"target": zonal((target - 0.5) / 2, weights), "model": zonal((prediction - 0.5) / 2, weights)}
        self.assertEqual(scores["wavenumber"], "zonal")
        self.assertEqual(scores["samples"], 11)
        for c, channel in enumerate(scores["channels"].values()):
            model = channel["model"]
            self.close(model["mae_physical"], np.abs(error[:, c]).mean())
            self.close(model["bias_physical"], error[:, c].mean(), scale=np.abs(error[:, c]).mean())
            self.close(model["rmse_physical"], np.sqrt((weights[:, None] * (prediction - target)[:, c] ** 2).mean()))
            self.close(channel["target_spectrum"], spectra["target"][c])
            self.close(model["spectrum"], spectra["model"][c], scale=spectra["target"][c])
            small = slice(target.shape[-1] // 4 + 1, None)
            self.close(model["small_scales"], spectra["model"][c][small].sum() / spectra["target"][c][small].sum(), scale=1)
            self.assertGreater(channel["persistence"]["small_scales"], 0.5)  # yesterday is as rough as today

    def test_of_boxes(self):
        self.make_boxes()
        scores, target, prediction = self.scores_and_fields(BOXES, 2)
        self.assertEqual(scores["wavenumber"], "radial")
        spectra = {"target": radial(target), "model": radial(prediction)}
        for c, channel in enumerate(scores["channels"].values()):
            self.close(channel["target_spectrum"], spectra["target"][c])
            self.close(channel["model"]["spectrum"], spectra["model"][c], scale=spectra["target"][c])
            self.close(channel["model"]["mae_physical"], np.abs(prediction[:, c] - target[:, c]).mean())


if __name__ == "__main__":
    unittest.main()
