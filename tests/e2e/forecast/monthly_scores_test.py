# SPDX-License-Identifier: Apache-2.0
"""Forecasts whose steps are months: a lead has no hours that hold for all starts, so files number it in steps, and all verbs by these numbers."""
import json
import unittest

import h5py
import numpy as np
import xarray

from bad_input_case import DATA, USAGE
from forecast_case import CHANNELS, STEPS, ForecastCase, epoch_seconds
from tolerance import rounds_to


def opened(path):
    return xarray.open_zarr(path, decode_timedelta=False).load()


class MonthlyScores(ForecastCase):
    @classmethod
    def prepare(cls, path):
        first = int(path.stem)
        with h5py.File(path, "a") as file:
            file["time"][:] = [epoch_seconds(first + step // 12, 1 + step % 12, 1) for step in range(STEPS)]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.ensemble = cls.root / "ensemble.zarr"
        cls.call("forecast", cls.run_folder, "--device", "cpu", "--split", "valid", "--from", "all", "--steps", "3", "--members", "4", "--perturb",
                 "gaussian:amplitude=0.1", "--output", cls.ensemble)
        cls.later = cls.root / "later.zarr"  # without the first lead
        opened(cls.ensemble).isel(lead_time=[1, 2]).drop_encoding().to_zarr(cls.later, zarr_format=2, consolidated=True)

    def scores(self, forecast, *flags):
        path = self.folder / "scores.json"
        done = self.call("evaluate", self.run_folder, "--device", "cpu", "--forecast", forecast, "--json", path, "--bootstrap", "0", *flags)
        return path, json.loads(path.read_text()), done.stdout

    def test_leads_are_counted(self):
        path, scores, text = self.scores(self.ensemble, "--plots", self.folder / "plots")
        self.assertIn("lead [steps]", text)
        self.assertEqual(scores["lead_steps"], [1, 2, 3])
        self.assertEqual({row["lead_steps"] for row in scores["spectra"]}, {1, 2, 3})
        self.assertNotIn("lead_hours", path.read_text())
        self.assertIn(">lead [steps]<", (self.folder / "plots/t2m_by_lead.svg").read_text())
        self.assertIn(">3 steps<", (self.folder / "plots/scorecard.svg").read_text())
        page = self.folder / "page.html"
        self.call("report", self.run_folder, "--scores", path, "--output", page)
        self.assertIn('"steps"', page.read_text())

    def test_the_unit_of_leads_does_not_depend_on_the_starts(self):
        """Hours of the leads are the same for one start, and for two Januaries."""
        for starts in ("2001-05-01", "2001-01-01,2002-01-01"):
            one = self.forecast(f"{starts}.zarr", "--split", "valid", "--from", starts, "--steps", "2")
            leads = opened(one).lead_time
            self.assertEqual(([1, 2], "1"), (leads.values.tolist(), leads.attrs["units"]), starts)
            _, scores, _ = self.scores(one)
            self.assertEqual(scores["lead_steps"], [1, 2], starts)
        self.scores(self.ensemble, "--second", one)

    def test_months_of_a_few_states_are_those_of_the_training_files(self):
        for first, count in ((1, 1), (1, 2), (6, 2)):  # February alone; February and March, 28 days apart; July and August
            folder = self.folder / f"{first}-{count}"
            folder.mkdir()
            with h5py.File(self.data / "valid/2001.h5") as whole, h5py.File(folder / "state.h5", "w") as part:
                for name in whole:
                    part[name] = whole[name][first:first + count] if name in ("fields", "time") else whole[name][:]
                    part[name].attrs.update(whole[name].attrs)
            made = self.forecast(f"{first}-{count}.zarr", "--states", folder, "--steps", "2")
            newest = first + count  # the number of its month
            wanted = [np.datetime64(f"2001-{newest + lead:02}-01") for lead in (1, 2)]
            np.testing.assert_array_equal(xarray.open_zarr(made).valid_time.values.ravel(), wanted)
            self.refused(USAGE, "--states", folder, "--output", self.folder / "none.nc", "--time_step", "30d",
                         parts=["the data have another step: --time_step=30d, step=1 month. Leave it out"])

    def test_scores_have_the_numbers_of_the_file(self):
        _, whole, _ = self.scores(self.ensemble)
        _, scores, text = self.scores(self.later)
        self.assertEqual(scores["lead_steps"], [2, 3])
        self.assertEqual({row["lead_steps"] for row in scores["rank_histograms"]}, {2, 3})
        self.assertRegex(text, r"t2m \[K\] +2 +\d+ ")
        rows = {tuple(row[key] for key in ("forecast", "channel", "season", "score")): row["values"] for row in whole["scores"]}
        for row in scores["scores"]:
            if row["season"] == "all":
                self.assertEqual(row["values"], rows[row["forecast"], row["channel"], "all", row["score"]][1:], row)

    def test_calibrated_by_the_scores_of_the_same_lead(self):
        path, scores, _ = self.scores(self.ensemble)
        ratio = {row["channel"]: row["values"][1:] for row in scores["scores"] if (row["forecast"], row["season"], row["score"]) ==
                 ("forecast", "all", "spread_skill")}
        output = self.folder / "calibrated.zarr"
        self.call("calibrate", self.later, "--scores", path, "--output", output)
        got, before = opened(output), opened(self.later)
        self.assertEqual(got.lead_time.values.tolist(), [2, 3])
        self.assertEqual(got.lead_time.attrs["units"], "1")
        np.testing.assert_array_equal(got.valid_time, before.valid_time)
        for channel in CHANNELS:
            field, mean = before[channel].astype(float), before[channel].astype(float).mean("number")
            wanted = mean + (field - mean) / xarray.DataArray(ratio[channel], dims="lead_time")
            wanted = wanted.transpose(*got[channel].dims)
            rounds_to(got[channel], wanted, 16, scale=np.abs(wanted).max())
        done = self.call("calibrate", self.ensemble, "--scores", self.scores(self.later)[0], "--output", self.folder / "none.zarr", code=DATA)
        self.assertIn("the scores have no such lead: variable=t2m, lead=1 step, path=", done.stderr)

    def test_hours_and_steps_do_not_mix(self):
        hours = opened(self.ensemble).isel(init_time=[0])
        hours = hours.assign_coords(lead_time=("lead_time", [744.0, 1416.0, 2160.0], {"units": "hours"}))
        path = self.folder / "hours.zarr"
        hours.drop_encoding().to_zarr(path, zarr_format=2, consolidated=True, encoding={"init_time": {"units": "hours since 1970-01-01"}})
        _, scores, _ = self.scores(path)
        self.assertEqual(scores["lead_hours"], [744, 1416, 2160])
        done = self.call("calibrate", path, "--scores", self.scores(self.ensemble)[0], "--output", self.folder / "none.zarr", code=DATA)
        self.assertIn("number leads in two units", done.stderr)
        self.assertIn("leads=hours, scores=steps", done.stderr)


if __name__ == "__main__":
    unittest.main()
