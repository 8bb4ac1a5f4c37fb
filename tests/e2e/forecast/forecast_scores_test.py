# SPDX-License-Identifier: Apache-2.0
"""`welkin evaluate --forecast` against the formulas in numpy, with WeatherBench2's weights, and against the package `scores`; climatologies,
regions, seasons, intervals, pictures, refusals."""
import json
import unittest

import h5py
import numpy as np
import xarray

from bad_input_case import DATA, USAGE
from forecast_case import CHANNELS, HEIGHT, HOURS, LATITUDE, LONGITUDE, STEPS, WIDTH, ForecastCase, epoch_seconds, write_dated_fields
from tolerance import within

SAME = 1e-5  # the bound that was asked for: float32 values, sums in double


def area_weights():
    """WeatherBench2's, of rows from north to south."""
    rows = np.deg2rad(LATITUDE[::-1])
    borders = np.concatenate([[-np.pi / 2], (rows[:-1] + rows[1:]) / 2, [np.pi / 2]])
    area = np.diff(np.sin(borders))[::-1]
    return xarray.DataArray(np.tile((area / area.mean())[:, None], (1, WIDTH)), dims=("latitude", "longitude"))


def as_weatherbench2(data):
    return data.rename(init_time="time", lead_time="prediction_timedelta")


class ForecastScores(ForecastCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.ensemble = cls.root / "ensemble.zarr"
        common = ("--device", "cpu", "--from", "all", "--steps", "3", "--split", "valid")
        cls.call("forecast", cls.run_folder, *common, "--members", "5", "--perturb", "sphere:amplitude=0.3,length_km=3000", "--output", cls.ensemble)
        cls.single = cls.root / "single.nc"
        cls.call("forecast", cls.run_folder, *common, "--output", cls.single)
        # Of another year than the truth: days without a state of their own are means of their neighbours.
        whole = cls.root / "year"
        write_dated_fields(whole / "2003.h5", epoch_seconds(2003, 2, 25), steps=60, seed=5)
        cls.year = cls.root / "year.zarr"
        cls.call("data", "climatology", cls.run_folder, "--states", whole, "--window", "5", "--output", cls.year)
        cls.scores = cls.evaluate("--forecast", cls.ensemble, "--climatology", cls.year, "--second", cls.single, "--regions",
                                  "global,tropics,box=0:90:300:100")

    @classmethod
    def evaluate(cls, *flags):
        path = cls.root / "scores.json"
        done = cls.call("evaluate", cls.run_folder, "--device", "cpu", "--json", path, *flags)
        return {"out": done.stdout, **json.loads(path.read_text())}

    def setUp(self):
        super().setUp()
        data = as_weatherbench2( xarray.open_zarr(self.ensemble))
        with h5py.File(self.data / "valid/2001.h5") as file:
            fields = xarray.DataArray(file["fields"][:], dims=("valid", "channel", "latitude", "longitude"),
                                      coords={"valid": np.datetime64("2001-03-01") + np.arange(STEPS) * np.timedelta64(HOURS, "h")})
        # Leads that end beyond the file have no truth.
        self.forecast = data.to_dataarray("channel")
        valid = data.valid_time
        padded = fields.reindex(valid=np.unique(valid.values))
        self.truth = padded.sel(valid=valid).assign_coords(latitude=LATITUDE, longitude=LONGITUDE)
        climatology = xarray.open_zarr(self.year, consolidated=True).to_dataarray("channel")
        days = xarray.DataArray(valid.dt.dayofyear.values, dims=valid.dims)
        self.climate = climatology.sel(dayofyear=days, hour=xarray.DataArray(valid.dt.hour.values, dims=valid.dims))
        self.persistence = fields.sel(valid=data.time.values).rename(valid="time").assign_coords(latitude=LATITUDE, longitude=LONGITUDE)
        self.weights = area_weights().assign_coords(latitude=LATITUDE, longitude=LONGITUDE)
        self.truth = self.truth.assign_coords(channel=CHANNELS)
        self.persistence = self.persistence.assign_coords(channel=CHANNELS)

    def series(self, score, channel="t2m", forecast="forecast", region="global", season="all", table="scores"):
        found = [row for row in self.scores[table] if (row["score"], row["channel"], row["forecast"], row["region"], row["season"]) ==
                 (score, channel, forecast, region, season)]
        self.assertEqual(len(found), 1, (score, channel, forecast, region, season))
        return found[0]

    def mean(self, values, where=None):
        weights = self.weights if where is None else self.weights.where(where, 0)
        return values.weighted(weights).mean(("latitude", "longitude"))

    def same(self, wanted, score, **key):
        wanted = wanted.compute() if hasattr(wanted, "compute") else wanted
        for channel in CHANNELS:
            got = np.array(self.series(score, channel, **key)["values"], float)
            expected = wanted.sel(channel=channel).values
            within(got / np.abs(expected).max(), expected / np.abs(expected).max(), SAME, f"{score} of {channel}")

    def test_errors_of_the_mean(self):
        error = self.forecast.mean("number") - self.truth
        self.same(np.sqrt(self.mean(error ** 2).mean("time")), "rmse")
        self.same(self.mean(error).mean("time"), "bias")
        self.same(self.mean(np.abs(error)).mean("time"), "mae")
        tropics = (self.weights.latitude >= -20) & (self.weights.latitude <= 20)
        self.same(np.sqrt(self.mean(error ** 2, tropics).mean("time")), "rmse", region="tropics")
        box = (self.weights.latitude >= 0) & ((self.weights.longitude >= 300) | (self.weights.longitude <= 100))
        self.same(self.mean(error, box).mean("time"), "bias", region="box")

    def test_baselines_and_second(self):
        self.same(np.sqrt(self.mean((self.persistence - self.truth) ** 2).mean("time")), "rmse", forecast="persistence")
        self.same(np.sqrt(self.mean((self.climate - self.truth) ** 2).mean("time")), "rmse", forecast="climatology")
        single = as_weatherbench2(xarray.open_dataset(self.single)).to_dataarray("channel")
        ours, theirs = (np.sqrt(self.mean((field - self.truth) ** 2).mean("time")) for field in (self.forecast.mean("number"), single))
        self.same(theirs, "rmse", forecast="second")
        difference = self.series("rmse", "u10", forecast="forecast - second", table="differences")
        within(difference["values"], (ours - theirs).sel(channel="u10"), SAME, "a difference of two")
        self.assertTrue(all(low <= value <= high for low, value, high in zip(difference["low"], difference["values"], difference["high"])))

    def test_anomaly_correlation(self):
        forecast, truth = self.forecast.mean("number") - self.climate, self.truth - self.climate
        self.same((self.mean(forecast * truth) / np.sqrt(self.mean(forecast ** 2) * self.mean(truth ** 2))).mean("time"), "acc")

    def test_climatology_is_a_weighted_mean_of_days(self):
        with h5py.File(self.root / "year/2003.h5") as file:
            fields = file["fields"][:, 0]
        climatology = xarray.open_zarr(self.year, consolidated=False).t2m
        shares = {day: 1 - abs(day - 4) / 3 for day in range(2, 7)}  # of window 5 around the fifth day, 2003-03-01
        wanted = sum(share * fields[4 * day + 1] for day, share in shares.items()) / sum(shares.values())
        within(climatology.sel(hour=6, dayofyear=60), wanted, SAME, "the mean of five days")
        self.assertTrue(np.isnan(climatology.sel(hour=6, dayofyear=200)).all())

    def test_ensemble_scores_of_another_package(self):
        try:
            from scores.continuous import quantile_score
            from scores.probability import crps_for_ensemble
        except ImportError:
            self.skipTest("no package scores in this environment")
        crps = crps_for_ensemble(self.forecast.load(), self.truth, "number", method="fair", preserve_dims="all")
        self.same(self.mean(crps).mean("time"), "crps")
        for share, name in ((0.01, "quantile_01"), (0.05, "quantile_05"), (0.95, "quantile_95"), (0.99, "quantile_99")):
            quantile = self.forecast.quantile(share, "number").drop_vars("quantile")
            self.same(self.mean(quantile_score(quantile, self.truth, share, preserve_dims="all")).mean("time"), name)

    def test_spread_events_and_ranks(self):
        forecast = self.forecast.load()
        known = self.truth.notnull()
        variance = self.mean(forecast.var("number", ddof=1).where(known)).mean("time")
        self.same(np.sqrt(variance), "spread")
        skill = self.mean((forecast.mean("number") - self.truth) ** 2).mean("time")
        self.same(np.sqrt(6 / 5 * variance / skill), "spread_skill")
        share = (forecast > self.climate).mean("number").where(known)
        happened = (self.truth > self.climate).where(known)
        self.same(self.mean((share - happened) ** 2).mean("time"), "brier")
        below = (forecast < self.truth).sum("number").where(known)
        row = next(row for row in self.scores["rank_histograms"] if (row["channel"], row["region"], row["lead_hours"]) == ("z500", "global", 12))
        wanted = [float(self.mean((below == rank).where(known)).mean("time").sel(channel="z500")[1]) for rank in range(6)]
        within(row["shares"], wanted, SAME, "shares of ranks")
        row = next(row for row in self.scores["reliability"] if (row["channel"], row["region"], row["lead_hours"]) == ("z500", "global", 12))
        counted = [(np.rint(share * 5) == k).where(known) for k in range(6)]
        foreseen = np.array([float(self.mean(each).mean("time").sel(channel="z500")[1]) for each in counted])
        within(row["foreseen"], foreseen, SAME, "shares of forecasts")
        both = np.array([float(self.mean(each * happened).mean("time").sel(channel="z500")[1]) for each in counted])
        within(np.array(row["happened"])[foreseen > 0], (both / np.maximum(foreseen, 1e-12))[foreseen > 0], SAME, "shares of events")

    def test_spectra(self):
        row = next(row for row in self.scores["spectra"] if (row["channel"], row["lead_hours"]) == ("u10", 6))
        weights = np.maximum(np.cos(np.deg2rad(LATITUDE)), 0)
        truth = self.truth.sel(channel="u10").isel(prediction_timedelta=0).dropna("time").transpose("time", "latitude", "longitude").values
        power = np.abs(np.fft.rfft(truth)) ** 2 / WIDTH ** 2 * np.where((np.arange(WIDTH // 2 + 1) % (WIDTH // 2)) == 0, 1, 2)
        within(row["truth"], (power * (weights / weights.mean())[:, None]).mean((0, 1)), 1e-5, "power by wavenumber")
        self.assertEqual(len(row["forecast"]), WIDTH // 2 + 1)

    def test_seasons_and_intervals(self):
        spring = self.series("mae", season="MAM")
        self.assertEqual(spring["values"], self.series("mae")["values"])  # all of March
        self.assertFalse([row for row in self.scores["scores"] if row["season"] == "JJA"])
        self.assertTrue(all(low < value < high for low, value, high in zip(spring["low"], spring["values"], spring["high"])))
        self.assertEqual(self.scores["bootstrap"], {"replicates": 200, "block": 1})
        self.assertIn("spread/skill", self.scores["out"])

    def test_missing_points_do_not_count(self):
        path = self.folder / "gaps/2001.h5"
        write_dated_fields(path, epoch_seconds(2001, 3, 1), seed=2001)
        with h5py.File(path, "a") as file:
            file["fields"][:, 0, :2] = np.nan
        other = self.evaluate("--forecast", self.single, "--states", path.parent, "--bootstrap", "0")
        single = as_weatherbench2(xarray.open_dataset(self.single)).t2m
        error = (single - self.truth.sel(channel="t2m")).isel(latitude=slice(2, None))
        wanted = np.sqrt((error ** 2).isel(prediction_timedelta=0).weighted(self.weights).mean(("latitude", "longitude")))
        row = next(row for row in other["scores"] if row["score"] == "rmse" and row["channel"] == "t2m" and row["forecast"] == "forecast")
        within(row["values"][0], float(np.sqrt((wanted ** 2).mean())), SAME, "rows that are there")
        self.assertEqual(row["low"][0], None)

    def write(self, data, name):
        for variable in data.variables.values():
            variable.encoding = {}
        data.to_zarr(self.root / name, zarr_format=2, mode="w")
        return self.root / name

    def elsewhere(self, data):
        """South first, and around the globe from another meridian."""
        moved = data.isel(latitude=slice(None, None, -1)).roll(longitude=3, roll_coords=True)
        return moved.assign_coords(longitude=(moved.longitude + 180) % 360 - 180)

    def test_files_of_others_give_the_same_scores(self):
        wanted = self.evaluate("--forecast", self.single, "--climatology", self.year, "--bootstrap", "0")
        single = as_weatherbench2(xarray.open_dataset(self.single, decode_timedelta=True).load()).drop_vars("valid_time")
        levels = xarray.concat([0 * single.z500, single.z500], xarray.DataArray([850, 500], dims="level", name="level"))
        others = self.elsewhere(single.drop_vars("z500").rename(t2m="2m_temperature", u10="10m_u_component_of_wind").assign(geopotential=levels))
        others = others.transpose("time", "prediction_timedelta", "level", "longitude", "latitude")
        year = self.elsewhere(xarray.open_zarr(self.year, consolidated=False).load())
        got = self.evaluate("--forecast", self.write(others, "others.zarr"), "--climatology", self.write(year, "others_year.zarr"), "--bootstrap", "0")
        self.assertEqual(got["scores"], wanted["scores"])
        self.assertEqual(got["notes"], wanted["notes"])
        one_of_many = others.assign_coords(number=7)  # a scalar: which member of an ensemble this was
        self.assertEqual(self.evaluate("--forecast", self.write(one_of_many, "member.zarr"), "--climatology", self.year, "--bootstrap", "0")["scores"], wanted["scores"])
        got = self.evaluate("--forecast", self.write(others.drop_vars("geopotential"), "fewer.zarr"), "--bootstrap", "0")
        self.assertIn("Channels that the forecast does not hold: z500.\n", got["out"])

    def test_every_unit_of_leads(self):
        wanted = self.evaluate("--forecast", self.single, "--bootstrap", "0")
        single = xarray.open_dataset(self.single, decode_timedelta=False).load().drop_vars("valid_time")
        for number, (unit, length) in enumerate((("hour", 1.0), ("h", 1.0), ("minutes", 1 / 60), ("min", 1 / 60), ("s", 1 / 3600), ("ms", 1e-3 / 3600),
                                                 ("us", 1e-6 / 3600), ("nanoseconds", 1e-9 / 3600), ("d", 24.0), ("weeks", 168.0))):
            leads = ("lead_time", np.array([6, 12, 18]) / length, {"units": unit})
            got = self.evaluate("--forecast", self.write(single.assign_coords(lead_time=leads), f"unit{number}.zarr"), "--bootstrap", "0")
            self.assertEqual(got["lead_hours"], [6, 12, 18], unit)
            self.assertEqual(got["scores"], wanted["scores"], unit)
        for unit in ("months", "1", "fortnights"):
            other = self.write(single.assign_coords(lead_time=("lead_time", [1, 2, 3], {"units": unit})), f"{unit}.zarr")
            done = self.call("evaluate", self.run_folder, "--device", "cpu", "--forecast", other, code=DATA)
            self.assertIn(f"the leads have no unit that has a length: path={other}, dataset=lead_time, units={unit}. Give them in hours", done.stderr)
        dated = xarray.open_dataset(self.single, decode_times=False).load()
        dated.valid_time.attrs["calendar"] = "noleap"
        done = self.call("evaluate", self.run_folder, "--device", "cpu", "--forecast", self.write(dated, "dated.zarr"), code=DATA)
        self.assertIn("starts and valid times of a forecast have two calendars: path=", done.stderr)
        self.assertIn("init_time=proleptic_gregorian, valid_time=noleap", done.stderr)

    def test_files_that_are_cut_or_joined_wrongly(self):
        single = xarray.open_dataset(self.single, decode_timedelta=True).load()
        for name, data, words in (("init", single.isel(init_time=2), "a coordinate of a forecast is no axis of it: path={}, dataset=init_time, dimensions=0. "
                                   "Keep the axis where one place of it is chosen, as xarray does with isel(init_time=[0])"),
                                  ("lead", single.isel(lead_time=1), "dataset=lead_time, dimensions=0"),
                                  ("none", single.isel(init_time=slice(0, 0)), "a forecast without fields: path={}, starts=0, leads=3"),
                                  ("twice", single.isel(init_time=[3, 0, 3]), "a start occurs twice: path={}, init_time=2001-03-01T18:00:00. Leave one of them out")):
            path = self.write(data, f"cut_{name}.zarr")
            done = self.call("evaluate", self.run_folder, "--device", "cpu", "--forecast", path, code=DATA)
            self.assertIn(words.format(path), done.stderr)

    def test_a_forecast_that_is_not_finite_has_no_score(self):
        single = xarray.open_dataset(self.single, decode_timedelta=True).load()
        for value in (np.nan, np.inf):
            broken = single.copy(deep=True)
            broken.t2m[{"lead_time": 1, "init_time": slice(2, None), "latitude": 0, "longitude": 1}] = value
            got = self.evaluate("--forecast", self.write(broken, "broken.zarr"), "--second", self.single, "--bootstrap", "0")
            for row in got["scores"]:
                if row["channel"] == "t2m" and row["forecast"] == "forecast" and row["region"] == "global" and row["season"] == "all":
                    self.assertEqual([number is None for number in row["values"]], [False, True, False], row)
            starts = got["starts"]
            self.assertRegex(got["out"], rf"Not finite \(forecast\): \d+ of {starts} starts, first of t2m at {2 * HOURS} h\.")
            self.assertEqual(got["scored_starts"]["second"]["t2m"][0], starts - 1, "the last one has no truth")
            kept = [row for row in got["differences"] if (row["channel"], row["score"], row["season"]) == ("u10", "rmse", "all")]
            self.assertTrue(all(number == 0 for row in kept if row["forecast"] == "forecast - second" for number in row["values"]))

    def test_other_units_and_days_are_refused(self):
        single = xarray.open_dataset(self.single, decode_timedelta=True).load()
        year = xarray.open_zarr(self.year, consolidated=False).load()
        celsius = lambda data: data.assign(t2m=(data.t2m - 273.15).assign_attrs(units="degC"))  # noqa: E731
        for flags, words in ((("--forecast", self.write(celsius(single), "c.zarr")), "the forecast has another unit than the truth"),
                             (("--forecast", self.single, "--climatology", self.write(celsius(year), "cy.zarr")), "it has another unit than the truth"),
                             (("--forecast", self.single, "--climatology", self.write(year.isel(dayofyear=slice(100, 120)), "some.zarr")),
                              "it holds nothing of this day of the year"),
                             (("--forecast", self.single, "--climatology",
                               self.write(year.assign_coords(dayofyear=np.full(year.sizes["dayofyear"], np.nan)), "nan.zarr")),
                              "it holds nothing of this day of the year"),
                             (("--forecast", self.single, "--climatology", self.write(year.isel(dayofyear=slice(0, 0)), "none.zarr")),
                              "it holds nothing of this day of the year"),
                             (("--forecast", self.single, "--climatology",
                               self.write(year.assign_coords(longitude=year.longitude + 1), "shifted.zarr")), "another grid than the truth")):
            done = self.call("evaluate", self.run_folder, "--device", "cpu", *flags, code=DATA)
            self.assertIn(words, done.stderr)

    def test_a_climatology_with_levels_is_read_and_what_it_lacks_is_named(self):
        wanted = self.evaluate("--forecast", self.single, "--climatology", self.year, "--bootstrap", "0")
        year = self.elsewhere(xarray.open_zarr(self.year, consolidated=False).load())
        levels = xarray.concat([0 * year.z500, year.z500], xarray.DataArray([850, 500], dims="level", name="level"))
        others = year.drop_vars("z500").rename(t2m="2m_temperature").assign(geopotential=levels)
        others = others.transpose("hour", "dayofyear", "level", "longitude", "latitude")
        got = self.evaluate("--forecast", self.single, "--climatology", self.write(others, "levels.zarr"), "--bootstrap", "0")
        self.assertEqual(got["scores"], wanted["scores"])
        self.assertEqual(got["notes"], wanted["notes"])
        got = self.evaluate("--forecast", self.single, "--climatology", self.write(others.drop_vars("geopotential"), "fewer_year.zarr"),
                            "--bootstrap", "0")
        self.assertIn("Channels that the climatology does not hold: z500.\n", got["out"])

    def test_days_without_a_climatology_give_no_acc(self):
        year = xarray.open_zarr(self.year, consolidated=False).load()
        year.t2m[{"dayofyear": 60}] = np.nan  # of 2001-03-02
        got = self.evaluate("--forecast", self.single, "--climatology", self.write(year, "hole_year.zarr"), "--bootstrap", "0")
        rows = [row for row in got["scores"] if (row["forecast"], row["season"]) == ("forecast", "all")]
        self.assertFalse([row for row in rows if row["channel"] == "t2m" and row["score"] in ("acc", "brier")])
        self.assertEqual([row["channel"] for row in rows if row["score"] == "acc"], ["u10", "z500"])
        self.assertIn("t2m", [row["channel"] for row in rows if row["score"] == "rmse"])
        self.assertRegex(got["out"], r"The climatology has no value at points with a truth: 4 of \d+ starts, first of t2m at \d+ h\.")
        self.assertNotIn("Not finite", got["out"])

    def test_a_forecast_without_units_is_taken_and_said(self):
        single = xarray.open_dataset(self.single, decode_timedelta=True).load()
        wanted = self.evaluate("--forecast", self.single, "--bootstrap", "0")
        del single.t2m.attrs["units"]
        got = self.evaluate("--forecast", self.write(single, "nounit.zarr"), "--bootstrap", "0")
        self.assertEqual(got["scores"], wanted["scores"])
        self.assertIn("No units in the forecast: t2m. They are taken for those of the truth.\n", got["out"])
        self.assertNotIn("No units", wanted["out"])

    def test_baselines_are_over_the_starts_of_the_forecast(self):
        folder = self.folder / "later"  # without the states of the first two starts
        source = self.data / "valid/2001.h5"
        folder.mkdir()
        with h5py.File(source) as old, h5py.File(folder / "2001.h5", "w") as file:
            for name in old:
                file[name] = old[name][2:] if name in ("fields", "time") else old[name][:]
                file[name].attrs.update(old[name].attrs)
        got = self.evaluate("--forecast", self.single, "--states", folder, "--climatology", self.year, "--bootstrap", "0")
        whole = self.evaluate("--forecast", self.single, "--climatology", self.year, "--bootstrap", "0")
        counts = {name: got["scored_starts"][name]["t2m"] for name in ("forecast", "persistence", "climatology")}
        self.assertEqual(counts["forecast"], counts["persistence"])
        self.assertEqual(counts["forecast"], counts["climatology"])
        self.assertEqual([a - b for a, b in zip(whole["scored_starts"]["forecast"]["t2m"], counts["forecast"])], [2, 2, 2])
        self.assertIn("No state for persistence: 1 of", got["out"])
        single = as_weatherbench2(xarray.open_dataset(self.single)).t2m
        square = self.mean((single - self.truth.sel(channel="t2m")) ** 2).isel(time=slice(2, None))
        row = next(row for row in got["scores"] if (row["score"], row["channel"], row["forecast"], row["season"]) == ("rmse", "t2m", "forecast", "all"))
        within(row["values"], np.sqrt(square.mean("time")), SAME, "over the starts of all")
        self.assertRegex(got["out"], rf"t2m \[K\] +{HOURS} +{counts['forecast'][0]} ")

    def test_a_second_forecast_of_fewer_starts_and_leads(self):
        """Scores of all are over the starts of both; where the second has no lead, they are over all starts."""
        data = xarray.open_dataset(self.single, decode_timedelta=True).load()
        second = self.write(data.isel(init_time=slice(3, 9), lead_time=slice(0, 2)), "fewer.zarr")
        got = self.evaluate("--forecast", self.single, "--second", second, "--bootstrap", "50")
        whole = self.evaluate("--forecast", self.single, "--bootstrap", "0")
        for name in ("forecast", "persistence"):
            self.assertEqual(got["scored_starts"][name]["t2m"], [6, 6, whole["scored_starts"][name]["t2m"][2]])
        self.assertEqual(got["scored_starts"]["second"]["t2m"], [6, 6, 0])
        self.assertIn(f"Not in the second forecast: {whole['scored_starts']['forecast']['t2m'][0] - 6} of 16 starts, first of t2m at 6 h. ", got["out"])
        row = {row["forecast"]: row["values"] for row in got["scores"] if (row["score"], row["channel"], row["season"]) == ("rmse", "t2m", "all")}
        square = self.mean((as_weatherbench2(xarray.open_dataset(self.single)).t2m - self.truth.sel(channel="t2m")) ** 2)
        wanted = np.sqrt(square.isel(time=slice(3, 9)).mean("time")).values
        within(row["forecast"][:2], wanted[:2], SAME, "over the starts of both")
        within(row["forecast"][2], np.sqrt(square.mean("time")).values[2], SAME, "over all")
        self.assertEqual(row["second"], [*row["forecast"][:2], None])
        paired = next(row for row in got["differences"] if (row["score"], row["channel"], row["season"], row["forecast"]) ==
                      ("rmse", "t2m", "all", "forecast - second"))
        self.assertEqual([paired[key][:2] for key in ("values", "low", "high")], [[0, 0]] * 3)

    def test_a_climatology_of_another_calendar(self):
        year = xarray.open_zarr(self.year).load()
        self.assertEqual(year.dayofyear.attrs["calendar"], "proleptic_gregorian")
        year.dayofyear.attrs["calendar"] = "360_day"
        done = self.call("evaluate", self.run_folder, "--device", "cpu", "--forecast", self.single, "--climatology", self.write(year, "short_year.zarr"),
                         code=DATA)
        self.assertIn("it has another calendar than the data", done.stderr)
        self.assertIn("calendar=360_day, data=proleptic_gregorian. Make it of the run's own data", done.stderr)

    def test_points_are_counted_where_holes_move(self):
        path = self.folder / "moving/2001.h5"
        write_dated_fields(path, epoch_seconds(2001, 3, 1), seed=2001)
        with h5py.File(path, "a") as file:
            for step in range(STEPS):
                file["fields"][step, 0, :, step % WIDTH] = np.nan
        got = self.evaluate("--forecast", self.single, "--states", path.parent, "--bootstrap", "0")
        counted = {row["channel"]: row for row in got["points"]}
        starts = got["scored_starts"]["forecast"]["t2m"]
        # A column of the truth, and another one of the start.
        self.assertEqual(counted["t2m"]["with_value"], [n * HEIGHT * (WIDTH - 2) for n in starts])
        self.assertEqual(counted["t2m"]["all"], [n * HEIGHT * WIDTH for n in starts])
        self.assertEqual(counted["u10"]["with_value"], counted["u10"]["all"])
        self.assertIn(f"{starts[0] * HEIGHT * (WIDTH - 2)} of {starts[0] * HEIGHT * WIDTH}", got["out"])

    def test_plots(self):
        plots = self.folder / "plots"
        done = self.call("evaluate", self.run_folder, "--device", "cpu", "--forecast", self.ensemble, "--climatology", self.year, "--plots", plots,
                         "--bootstrap", "20")
        names = {path.name for path in plots.iterdir()}
        self.assertEqual(names, {"scorecard.svg", *(f"{name}_by_lead.svg" for name in CHANNELS), *(f"{name}_error.png" for name in CHANNELS),
                                 *(f"{name}_distributions.svg" for name in CHANNELS)})
        self.assertIn("persistence", (plots / "t2m_by_lead.svg").read_text())
        self.assertIn(str(plots / "scorecard.svg"), done.stdout)
        shown = (plots / "t2m_distributions.svg").read_text()
        for word in ("zonal wavenumber", "members below the truth", "share of members above the climatology", "truth, 18 h", "of a perfect ensemble"):
            self.assertIn(f">{word}<", shown)
        card = (plots / "scorecard.svg").read_text()
        for word in (*CHANNELS, "global", "RMSE below that of persistence [%]", "6 h"):
            self.assertIn(f">{word}<", card)

    def test_refusals(self):
        def refused(code, *flags, parts=()):
            done = self.call("evaluate", self.run_folder, "--device", "cpu", *flags, code=code)
            for part in parts:
                self.assertIn(part, done.stderr)
        refused(USAGE, "--regions", "tropics", parts=["belongs to --forecast: --regions"])
        done = self.call("launch", "-n", "2", "--", "evaluate", self.run_folder, "--device", "cpu", "--forecast", self.single, code=USAGE)
        self.assertIn("one process runs this verb: ranks=2", done.stderr)
        for words in (("predict", self.run_folder), ("data", "climatology", self.run_folder, "--output", self.folder / "two.zarr")):
            done = self.call("launch", "-n", "2", "--", *words, code=USAGE)
            self.assertIn("one process runs this verb: ranks=2", done.stderr)
        done = self.call("data", "climatology", self.run_folder, "--window", "4", "--output", self.folder / "even.nc", code=USAGE)
        self.assertIn("as many days before a day as behind it: --window=4. Give an odd number, such as 5", done.stderr)
        refused(USAGE, "--forecast", self.single, "--regions", "moon", parts=["--regions moon", "europe=35:75"])
        refused(USAGE, "--forecast", self.single, "--regions", "pole=89:90:0:20", parts=[
            "no point of the grid lies in the region: region=pole, latitudes=89 to 90, longitudes=0 to 20, grid=87.5 to -87.5 and 0 to 337.5"])
        for flag in (("--rollout_steps", "2"), ("--box_statistics", "x.json"), ("--checkpoint", "newest"), ("--ema",)):
            refused(USAGE, "--forecast", self.single, *flag, parts=[f"the scores of a file need no model: --forecast, {flag[0]}. Leave one of them out"])
        for regions in ("nh,nh", "a=0:50:0:90,a=10:40:0:90", "nh,global,nh=20:90:0:360"):
            refused(USAGE, "--forecast", self.single, "--regions", regions, parts=[f"two regions have one name: --regions {regions}, name="])
        refused(DATA, "--forecast", self.folder / "none.zarr", parts=["there is no such file"])
        refused(DATA, "--forecast", self.data / "valid/2001.h5", parts=["this is no forecast"])
        refused(DATA, "--forecast", self.single, "--split", "test", parts=["there is no truth at any time"])
        other = self.forecast_file("--split", "test", "--from", "2002-06-02,2002-06-03")
        refused(DATA, "--forecast", self.single, "--second", other, parts=[
            "two forecasts without a common start cannot be paired", "first=2001-03-01T00:00:00, last=2001-03-04T18:00:00",
            "first=2002-06-02T00:00:00, last=2002-06-03T00:00:00"])
        stretched = xarray.open_dataset(self.single, decode_timedelta=True).load()
        stretched = stretched.assign_coords(lead_time=2 * stretched.lead_time).drop_vars("valid_time")
        refused(DATA, "--forecast", self.single, "--second", self.write(stretched, "stretched.zarr"), parts=[
            "two forecasts of other leads cannot be paired", "start=2001-03-01T00:00:00, lead=6 h, valid=2001-03-01T06:00:00 and 2001-03-01T12:00:00"])
        refused(DATA, "--forecast", self.single, "--climatology", self.single, parts=["this is no climatology"])

    def forecast_file(self, *flags):
        output = self.folder / "other.nc"
        self.call("forecast", self.run_folder, "--device", "cpu", "--output", output, *flags)
        return output


if __name__ == "__main__":
    unittest.main()
