# SPDX-License-Identifier: Apache-2.0
"""Scores of forecasts whose steps are months: a lead has no hours that hold for all starts."""
import json
import unittest

import h5py

from forecast_case import STEPS, ForecastCase, epoch_seconds


class MonthlyScores(ForecastCase):
    @classmethod
    def prepare(cls, path):
        first = int(path.stem)
        with h5py.File(path, "a") as file:
            file["time"][:] = [epoch_seconds(first + step // 12, 1 + step % 12, 1) for step in range(STEPS)]

    def test_leads_are_counted(self):
        made = self.forecast("made.nc", "--split", "valid", "--from", "all", "--steps", "3")
        path = self.folder / "scores.json"
        done = self.call("evaluate", self.run_folder, "--device", "cpu", "--forecast", made, "--json", path, "--bootstrap", "0", "--plots",
                         self.folder / "plots")
        self.assertIn("lead [steps]", done.stdout)
        scores = json.loads(path.read_text())
        self.assertEqual(scores["lead_steps"], [1, 2, 3])
        self.assertEqual({row["lead_steps"] for row in scores["spectra"]}, {1, 2, 3})
        self.assertNotIn("lead_hours", path.read_text())
        self.assertIn(">lead [steps]<", (self.folder / "plots/t2m_by_lead.svg").read_text())
        self.assertIn(">3 steps<", (self.folder / "plots/scorecard.svg").read_text())
        page = self.folder / "page.html"
        self.call("report", self.run_folder, "--scores", path, "--output", page)
        self.assertIn('"steps"', page.read_text())


if __name__ == "__main__":
    unittest.main()
