# SPDX-License-Identifier: Apache-2.0
"""Units of boxes from ingest to the outputs: `ingest --box --log`, then train, evaluate and predict."""
import json
import unittest

import h5py
import numpy as np

from bad_input_case import BINARY, BOXES, DONE, BadInputCase
from png_picture import panels, texts
from tolerance import rounds_to, within

EDGE = 16


class BoxUnits(BadInputCase):
    one_process = True

    def make_simulation(self):
        """A matter field, and a gas density over six orders of magnitude with some zeros."""
        random = np.random.default_rng(3)
        self.matter = random.normal(3, 2, (EDGE, EDGE, EDGE)).astype(np.float32)
        self.gas = 10 ** random.normal(-29, 1.5, (EDGE, EDGE, EDGE)).astype(np.float32)
        self.gas[0, 0, :7] = 0
        with h5py.File(self.root / "simulation.h5", "w") as file:
            file["matter"], file["gas"] = self.matter, self.gas
            file["matter"].attrs["units"], file["gas"].attrs["units"] = "km s-1", "g cm-3"

    def run_well(self, *command):
        done = self.run_command(command)
        self.assertEqual(done.returncode, DONE, done.stderr)
        return done.stdout

    def test_a_logarithm_is_followed_to_every_output(self):
        self.make_simulation()
        self.data.rmdir()
        report = self.run_well(BINARY, "data", "ingest", "--box", self.root / "simulation.h5", "--out", self.data, "--input", "matter",
                               "--target", "gas,matter:flow", "--log", "gas", "--target_deviations", 5, "--valid_fraction", 0.5)
        self.assertIn(f"zeros have no logarithm and became the smallest positive value: channel=gas, cells=7 of {EDGE ** 3}, value=", report)
        with h5py.File(self.data / "train.h5") as file:
            self.assertIn("channel=gas, cells=7", str(file.attrs["provenance"]))
        self.run_well(*self.train_command({**BOXES, "N_in_channels": 1, "N_out_channels": 2}))
        table = self.run_well(BINARY, "evaluate", self.run_folder, "--json", self.root / "scores.json")
        self.assertIn("gas [log10(g cm-3)]", table)
        self.assertIn("flow [km s-1]", table)
        self.run_well(BINARY, "predict", self.run_folder, "--output", self.root / "predictions", "--samples", 2, "--channels", "gas,flow")
        self.check_predictions(json.loads((self.root / "scores.json").read_text())["channels"])

    def check_pictures(self, channel, unit, truth, forecast):
        """What is lettered on a picture: label, unit, and the ends of the colours in that unit, of the plane in the middle."""
        drawn = (self.root / f"predictions/sample_0_{channel}.png").read_bytes()
        ends = panels(drawn)
        self.assertEqual(texts(drawn)[0], f"sample 0, {channel} [{unit}]")
        self.assertIn("input: matter [km s-1]", ends)
        middle = truth.shape[0] // 2
        shown, error = truth[middle], (forecast - truth)[middle]
        digits = 10.0 ** (np.floor(np.log10(np.abs(shown).max())) - 3)
        for title in "target", "prediction":
            within(ends[title], [shown.min(), shown.max()], digits, "four digits, as a colour bar has them")
        within(ends["prediction - target"], [-np.abs(error).max(), np.abs(error).max()], digits, "four digits, as a colour bar has them")

    def check_predictions(self, scores):
        with h5py.File(self.root / "predictions/predictions.h5") as file, h5py.File(self.data / "valid.h5") as valid:
            target, prediction = file["target"], file["prediction"]
            for attribute in "offset", "scale":
                np.testing.assert_array_equal(target.attrs[attribute], valid["Hydro"].attrs[attribute].astype(float))
                np.testing.assert_array_equal(prediction.attrs[attribute], target.attrs[attribute])
            self.assertEqual([str(text) for text in target.attrs["transform"].astype(str)], ["log10", "identity"])
            self.assertEqual([str(text) for text in target.attrs["units"].astype(str)], ["log10(g cm-3)", "km s-1"])
            np.testing.assert_array_equal(target.attrs["mean"], [0, 0])
            np.testing.assert_array_equal(target.attrs["std"], [1, 1])
            scale, offset = (np.asarray(target.attrs[name]).reshape(1, 2, 1, 1, 1) for name in ("scale", "offset"))
            truth, forecast = target[:] * scale + offset, prediction[:] * scale + offset
        # The truth is a crop of what was ingested, in its unit.
        gas = np.log10(np.maximum(self.gas, self.gas[self.gas > 0].min()).astype(float))[EDGE // 2:]
        crops = [gas[:, y:y + 8, x:x + 8] for y in range(9) for x in range(9)]
        rounds_to(truth[0, 0], min(crops, key=lambda crop: np.abs(crop - truth[0, 0]).max()), 8)
        for c, channel in enumerate(("gas", "flow")):
            error = forecast[:, c] - truth[:, c]
            rounds_to(scores[channel]["model"]["rmse_physical"], np.sqrt((error ** 2).mean()), 64)
            rounds_to(scores[channel]["model"]["mae_physical"], np.abs(error).mean(), 64)
        for c, (channel, unit) in enumerate((("gas", "log10(g cm-3)"), ("flow", "km s-1"))):
            self.check_pictures(channel, unit, truth[0, c], forecast[0, c])


if __name__ == "__main__":
    unittest.main()
