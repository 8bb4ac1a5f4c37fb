# SPDX-License-Identifier: Apache-2.0
"""`welkin calibrate`: members against the formula in numpy, scores of what it writes, holes, bounds, a run that was ended, refusals."""
import json
import signal
import subprocess
import time
import unittest

import numpy as np
import xarray

from bad_input_case import BINARY, DATA, DONE, USAGE
from forecast_case import CHANNELS, ForecastCase
from tolerance import rounds_to, within

HOLE = (slice(2, 4), slice(3, 6))  # of u10


class Calibrate(ForecastCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.ensemble = cls.root / "ensemble.zarr"
        cls.call("forecast", cls.run_folder, "--device", "cpu", "--split", "valid", "--from", "all", "--steps", "3", "--members", "5", "--perturb",
                 "sphere:amplitude=0.1,length_km=3000", "--output", cls.ensemble)
        shifted = xarray.open_zarr(cls.ensemble).load()
        shifted["z500"] = shifted.z500 + 2.5  # a channel with a large bias
        cls.ensemble = cls.write(shifted, "shifted.zarr")
        cls.scores = cls.root / "scores.json"
        cls.score(cls.ensemble, cls.scores)

    @classmethod
    def write(cls, data, name):
        path = cls.root / name
        data.drop_encoding().to_zarr(path, zarr_format=2, consolidated=True)
        return path

    @classmethod
    def score(cls, forecast, path, *flags):
        cls.call("evaluate", cls.run_folder, "--device", "cpu", "--split", "valid", "--forecast", forecast, "--json", path, *flags)
        rows = json.loads(path.read_text())["scores"]
        return {(row["score"], row["channel"]): np.array(row["values"], float) for row in rows if row["forecast"] == "forecast" and
                (row["region"], row["season"]) == ("global", "all")}

    def calibrate(self, forecast, name, *flags, code=DONE):
        output = self.folder / name
        done = self.call("calibrate", forecast, "--scores", self.scores, "--output", output, *flags, code=code)
        return output, done

    def test_spread_equals_error_and_the_mean_stays(self):
        before = self.score(self.ensemble, self.folder / "before.json")
        for name in ("calibrated.zarr", "calibrated.nc"):
            output, done = self.calibrate(self.ensemble, name)
            self.assertEqual(done.stdout, f"16 starts, 3 leads, 5 members\n{output}\n")
            after = self.score(output, self.folder / "after.json")
            for channel in CHANNELS:
                self.assertGreater(np.abs(before["spread_skill", channel] - 1).max(), 0.1)  # there was something to calibrate
                rounds_to(after["spread_skill", channel], np.ones(3), 64)
                rounds_to(after["rmse", channel], before["rmse", channel], 64)

    def test_without_bias(self):
        output, _ = self.calibrate(self.ensemble, "unbiased.zarr", "--remove_bias")
        before, after = self.score(self.ensemble, self.folder / "before.json"), self.score(output, self.folder / "after.json")
        for channel in CHANNELS:
            rounds_to(after["bias", channel], np.zeros(3), 64, scale=before["rmse", channel])
            rounds_to(after["spread_skill", channel], np.ones(3), 64)
        self.assertLess(after["rmse", "z500"].max(), before["rmse", "z500"].min())

    def test_members_are_those_of_the_formula(self):
        """A later forecast of another part, by the scores of this one; with points that are missing."""
        later = xarray.open_zarr(self.forecast("later.zarr", "--split", "test", "--from", "all", "--steps", "2", "--members", "4", "--perturb",
                                               "gaussian:amplitude=0.2")).load()
        later["u10"][(..., *HOLE)] = np.nan
        later["unknown"] = later.t2m * 3
        output, done = self.calibrate(self.write(later, f"holes-{self.folder.name}.zarr"), "later-calibrated.zarr", "--remove_bias")
        self.assertIn("unchanged, without scores: unknown\n", done.stdout)
        got, known = xarray.open_zarr(output).load(), self.score(self.ensemble, self.folder / "known.json")
        for channel in CHANNELS:
            rmse, bias, ratio = (xarray.DataArray(known[score, channel][:2], dims="lead_time") for score in ("rmse", "bias", "spread_skill"))
            field = later[channel].astype(float)
            mean = field.mean("number")
            wanted = mean - bias + np.sqrt(1 - (bias / rmse) ** 2) / ratio * (field - mean)
            wanted = wanted.transpose(*got[channel].dims)
            rounds_to(got[channel], wanted, 16, scale=np.nanmax(np.abs(wanted)))  # NaN where NaN is wanted, too
        self.assertTrue(np.isnan(got.u10.values[(..., *HOLE)]).all())
        np.testing.assert_array_equal(got.unknown.transpose(*later.unknown.dims), later.unknown)
        for name in ("init_time", "lead_time", "valid_time", "latitude", "longitude", "number"):
            np.testing.assert_array_equal(got[name], later[name])
        self.assertEqual(got.t2m.attrs["units"], later.t2m.attrs["units"])

    def test_a_file_with_other_names_and_another_order_of_axes(self):
        own = xarray.open_zarr(self.calibrate(self.ensemble, "own.zarr")[0]).load()
        other = xarray.open_zarr(self.ensemble).load().rename(init_time="time", lead_time="prediction_timedelta", number="realization", t2m="2m_temperature")
        other = other.transpose("time", "realization", "prediction_timedelta", "latitude", "longitude")
        output, done = self.calibrate(self.write(other, f"other-{self.folder.name}.zarr"), "other.zarr")
        self.assertNotIn("unchanged", done.stdout)
        got = xarray.open_zarr(output).load()
        for channel in CHANNELS:
            np.testing.assert_array_equal(got[channel].transpose(*own[channel].dims), own[channel])

    def test_members_keep_their_numbers(self):
        other = xarray.open_zarr(self.ensemble).load().assign_coords(number=[1, 2, 3, 4, 6])
        output, _ = self.calibrate(self.write(other, f"numbers-{self.folder.name}.zarr"), "numbers.nc")
        self.assertEqual(xarray.open_dataset(output).number.values.tolist(), [1, 2, 3, 4, 6])

    def test_smallest_values(self):
        output, _ = self.calibrate(self.ensemble, "bounded.zarr", "--at_least", "t2m=0.5,u10=-1")
        got, free = xarray.open_zarr(output).load(), xarray.open_zarr(self.calibrate(self.ensemble, "free.zarr")[0]).load()
        self.assertLess(free.t2m.min(), 0.5)
        np.testing.assert_array_equal(got.t2m, np.maximum(free.t2m, 0.5))
        np.testing.assert_array_equal(got.u10, np.maximum(free.u10, -1))
        np.testing.assert_array_equal(got.z500, free.z500)

    def test_regions(self):
        several = self.folder / "several.json"
        self.score(self.ensemble, several, "--regions", "global,tropics")
        scores = json.loads(several.read_text())["scores"]
        ratio = {row["region"]: row["values"][0] for row in scores if (row["score"], row["channel"], row["season"]) == ("spread_skill", "t2m", "all")
                 and row["forecast"] == "forecast"}
        raw, spreads = xarray.open_zarr(self.ensemble).t2m[:, 0].std("number"), {}
        for region in ratio:
            output = self.folder / f"{region}.zarr"
            self.call("calibrate", self.ensemble, "--scores", several, "--output", output, "--region", region)
            spreads[region] = float((xarray.open_zarr(output).t2m[:, 0].std("number") / raw).median())
        for region in ratio:
            within(spreads[region] * ratio[region], 1, 1e-4, "the rounding of members close to each other")
        done = self.call("calibrate", self.ensemble, "--scores", several, "--output", self.folder / "moon.zarr", "--region", "moon", code=USAGE)
        self.assertIn("region=moon", done.stderr)
        self.assertIn("Give --region one of global, tropics", done.stderr)

    def test_goes_on_where_it_was_ended(self):
        whole, _ = self.calibrate(self.ensemble, "whole.zarr")
        output = self.folder / "ended.zarr"
        words = [BINARY, "calibrate", str(self.ensemble), "--scores", str(self.scores), "--output", str(output)]
        for _ in range(20):  # until it is ended between its first start and its last
            process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            journal = output.with_name("ended.zarr.unfinished") / "done.0"
            while process.poll() is None and not journal.exists():
                time.sleep(0.001)
            process.send_signal(signal.SIGKILL)
            if process.wait() != 0:
                break
            self.call("data", "inspect", output)
            subprocess.run(["rm", "-r", str(output)], check=True)
        self.assertFalse(output.exists())
        other = self.call("calibrate", self.ensemble, "--scores", self.scores, "--output", output, "--remove_bias", code=USAGE)
        self.assertIn("another forecast was begun there", other.stderr)
        self.assertEqual(subprocess.run(words, stdout=subprocess.DEVNULL).returncode, 0)
        xarray.testing.assert_identical(xarray.open_zarr(output).load(), xarray.open_zarr(whole).load())

    def test_refusals(self):
        def refused(code, forecast, *flags, parts=(), scores=self.scores):
            output = self.folder / "refused.zarr"
            done = self.call("calibrate", forecast, "--scores", scores, "--output", output, *flags, code=code)
            for part in parts:
                self.assertIn(part, done.stderr)
            self.assertFalse(output.exists())
            self.assertFalse(output.with_name("refused.zarr.unfinished").exists())

        single = self.forecast("single.nc", "--split", "valid", "--from", "all", "--steps", "3")
        refused(USAGE, single, parts=["a forecast of one member has no spread", "--members M"])
        longer = self.forecast("longer.zarr", "--split", "valid", "--from", "newest", "--steps", "4", "--members", "2", "--perturb",
                               "gaussian:amplitude=0.1")
        refused(DATA, longer, parts=["the scores have no such lead: variable=t2m, lead=24 h", "Score forecasts that reach as far"])
        text = self.folder / "text.json"
        text.write_text("[1, 2]")
        refused(DATA, self.ensemble, scores=text, parts=["no spread of an ensemble in this file"])
        of_single = self.folder / "single.json"
        self.score(single, of_single)
        refused(DATA, self.ensemble, scores=of_single, parts=["no spread of an ensemble in this file"])
        alike = self.folder / "alike.json"
        scores = json.loads(self.scores.read_text())
        for row in scores["scores"]:
            if row["score"] == "spread_skill":
                row["values"][1] = None
        alike.write_text(json.dumps(scores))
        refused(DATA, self.ensemble, scores=alike, parts=["the scores say nothing of the spread at this lead: variable=t2m, lead=12 h"])
        refused(USAGE, self.ensemble, "--at_least", "tp=0", parts=["no such variable: --at_least tp=0", "Name one of t2m, u10, z500"])
        refused(USAGE, self.ensemble, "--at_least", "t2m", parts=["Write it as tp=0"])
        refused(USAGE, self.ensemble, "--at_least", "t2m=nan", parts=["Write it as tp=0"])
        refused(DATA, self.folder / "none.zarr", parts=["there is no such file"])
        refused(DATA, self.data / "valid/2001.h5", parts=["this is no forecast"])
        renamed = self.write(xarray.open_zarr(self.ensemble).load().rename(t2m="a", u10="b", z500="c"), f"renamed-{self.folder.name}.zarr")
        refused(USAGE, renamed, parts=["no variable of the forecast has a score: variables=a, b, c"])
        done = self.call("calibrate", self.ensemble, "--scores", self.scores, "--output", self.ensemble, code=USAGE)
        self.assertIn("the output is there already", done.stderr)
        done = self.call("calibrate", self.ensemble, "--scores", self.scores, "--output", self.folder / "fields.h5", code=USAGE)
        self.assertIn("Name it .zarr or .nc", done.stderr)


if __name__ == "__main__":
    unittest.main()
