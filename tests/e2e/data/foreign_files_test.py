#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training on the files of others: what xarray, netCDF4 and h5py write is read as they mean it, or refused."""
import json
import unittest
import warnings

import h5py
import netCDF4
import numpy as np
import xarray

from tolerance import rounds_to

from bad_input_case import BINARY, CHANNELS, DATA, DONE, FIELDS, HEIGHT, WIDTH, YEAR_STEPS, BadInputCase, write_statistics

warnings.filterwarnings("ignore")
SHAPE = (YEAR_STEPS, CHANNELS, HEIGHT, WIDTH)
VALUES = np.random.default_rng(7).normal(size=SHAPE).astype(np.float32)
LATITUDE = np.linspace(-35, 35, HEIGHT)  # the south comes first
LONGITUDE = np.arange(WIDTH) * 360 / WIDTH
TIMES = np.datetime64("2017-06-01T00:00:00", "ns") + np.arange(YEAR_STEPS) * np.timedelta64(6, "h").astype("timedelta64[ns]")
SECONDS = TIMES.astype("datetime64[s]").astype(np.int64)
NAMES = ["t2m", "u10", "v10"]
ASSUMED = ("The files hold nothing but fields: scores weight the rows as equally spaced from pole to pole. "
           "An array latitude of one value for each row, in degrees, sets them")
SOLAR = {**FIELDS, "forcing": "[solar, coordinates]"}


def dataset(values=VALUES, names=("lat", "lon")):
    coordinates = {"time": TIMES, "channel": NAMES, names[0]: LATITUDE, names[1]: LONGITUDE}
    return xarray.Dataset({"fields": (("time", "channel", *names), values)}, coordinates)


def write_own(path, time=SECONDS, units="seconds since 1970-01-01", values=VALUES, places=("latitude", "longitude"), **attributes):
    """As welkin writes its files, or nearly so."""
    with h5py.File(path, "w") as file:
        file["fields"] = values
        file["fields"].attrs["channels"] = NAMES
        file["fields"].attrs.update(attributes)
        for name, axis in zip(places, (LATITUDE, LONGITUDE)):
            file[name] = axis
        if time is not None:
            file["time"] = time
            if units is not None:
                file["time"].attrs["units"] = units


class ForeignFiles(BadInputCase):
    one_process = True

    def setUp(self):
        super().setUp()
        write_statistics(self.data / "stats")
        for folder in ("train", "valid"):
            (self.data / folder).mkdir()

    def write(self, write):
        """The same file for training and validation."""
        for folder in ("train", "valid"):
            for old in (self.data / folder).iterdir():
                old.unlink()
            write(self.data / folder / "2017.nc")

    def run_of(self, write, keys=SOLAR, number="00"):
        """Trains and predicts; the log, and the first input with its channels' names, and the scores."""
        self.write(write)
        done = self.train(keys, "--run_num", number)
        self.assertEqual(done.returncode, DONE, done.stderr)
        run = self.logs / "base/1GPU" / number
        out = self.root / f"predictions-{number}"
        done = self.run_command([BINARY, "predict", run, "--output", out, "--samples", "1"])
        self.assertEqual(done.returncode, DONE, done.stderr)
        scores = self.root / f"scores-{number}.json"
        done = self.run_command([BINARY, "evaluate", run, "--json", scores])
        self.assertEqual(done.returncode, DONE, done.stderr)
        with h5py.File(next(out.rglob("*.h5"))) as file:
            names = [name.decode() if isinstance(name, bytes) else name for name in file["input"].attrs["channels"]]
            return (run / "out.log").read_text(), dict(zip(names, file["input"][0])), json.loads(scores.read_text())

    def test_times_and_places_of_other_makers_are_those_of_ours(self):
        _, wanted, scores = self.run_of(write_own, number="own")
        self.assertEqual(list(wanted)[:4], [*NAMES, "solar"])
        hours = {"time": {"units": "hours since 1900-01-01", "dtype": "int64"}}
        writers = {
            "xarray": lambda path: dataset().to_netcdf(path, format="NETCDF4", engine="netcdf4", encoding=hours),
            "days": lambda path: dataset(names=("nav_lat", "nav_lon")).to_netcdf(
                path, engine="netcdf4", encoding={"time": {"units": "days since 2017-01-01", "dtype": "float64"}}),
            "bytes": lambda path: write_own(path, np.int32(SECONDS // 3600), np.bytes_("hours since 1970-01-01"), places=("lat", "lon")),
            "one": lambda path: write_own(path, ((SECONDS - SECONDS[0]) / 60).astype(np.float32),
                                          np.array(["minutes since 2017-06-01"], object)),
        }
        for name, writer in writers.items():
            with self.subTest(name):
                log, found, other = self.run_of(writer, number=name)
                self.assertEqual(list(found), list(wanted))
                for channel in wanted:
                    np.testing.assert_array_equal(found[channel], wanted[channel], err_msg=channel)
                self.assertEqual(other["channels"], scores["channels"])
                self.assertNotIn("do not say the latitudes", log)

    def test_latitudes_that_no_file_says_are_an_assumption_that_is_told(self):
        """Of files with nothing but `fields`, as the tutorials have them: one calm line wherever rows weigh by latitude."""
        def alone(path):
            with h5py.File(path, "w") as file:
                file["fields"] = VALUES
        self.write(alone)
        done = self.train(FIELDS, "--run_num", "alone")
        self.assertEqual(done.returncode, DONE, done.stderr)
        run = self.logs / "base/1GPU/alone"
        log = (run / "out.log").read_text()
        self.assertEqual(log.count(ASSUMED), 1, log)
        self.assertIn(f"INFO - {ASSUMED}", log)
        scored = self.run_command([BINARY, "evaluate", run])
        self.assertEqual(scored.returncode, DONE, scored.stderr)
        self.assertEqual((scored.stdout + scored.stderr).count(ASSUMED), 1, scored.stderr)
        self.assertIn(f"note: {ASSUMED}", scored.stderr)
        checked = self.train(FIELDS, "--dry_run", "--check_data")
        self.assertEqual(checked.stderr.count(f"note: {ASSUMED}"), 1, checked.stderr)
        for name in ("2017.nc", "2017.zarr"):
            if name == "2017.zarr":
                xarray.Dataset({"fields": (("a", "b", "c", "d"), VALUES)}).to_zarr(self.root / name, zarr_format=2)
            path = self.data / "train" / name if name == "2017.nc" else self.root / name
            shown = self.run_command([BINARY, "data", "inspect", path])
            self.assertEqual(shown.stdout.count("no latitudes: "), 1, shown.stdout)
            self.assertIn("an array latitude of one value for each row, in degrees, sets them", shown.stdout)
        self.write(write_own)
        for command in ([BINARY, "data", "inspect", self.data / "train/2017.nc"], [BINARY, "evaluate", run]):
            told = self.run_command(command)
            self.assertNotIn("latitudes: ", told.stdout)
            self.assertNotIn(ASSUMED, told.stderr)

    def test_another_order_of_dimensions(self):
        turned = dataset().transpose("time", "lat", "lon", "channel")
        _, wanted, _ = self.run_of(write_own, number="own")
        _, found, _ = self.run_of(lambda path: turned.to_netcdf(path, engine="netcdf4"), number="turned")
        np.testing.assert_array_equal(found["u10"], wanted["u10"])
        np.testing.assert_array_equal(found["solar"], wanted["solar"])

    def test_times_without_units(self):
        bare = lambda path: write_own(path, SECONDS // 3600, None)  # noqa: E731
        self.write(bare)
        self.refuse_training(SOLAR, DATA, f"the times of a file have no units: path={self.data}/train/2017.nc, dataset=time, needed_by=forcing",
                             "set time_units")
        done = self.train({**FIELDS, "num_iters": 1})
        self.assertEqual(done.returncode, DONE, done.stderr)
        _, wanted, _ = self.run_of(write_own, number="own")
        _, found, _ = self.run_of(bare, {**SOLAR, "time_units": "hours since 1970-01-01"}, number="key")
        np.testing.assert_array_equal(found["solar"], wanted["solar"])

    def test_times_that_cannot_be_read(self):
        self.write(lambda path: write_own(path, units="moons since 1900-01-01"))
        self.refuse_training(FIELDS, DATA, "the times of a file cannot be read", "units=moons since 1900-01-01")
        self.write(lambda path: write_own(path, SECONDS[::-1]))
        self.refuse_training(FIELDS, DATA, "the times of a file do not increase", "Sort the file by time")

    def test_calendars_without_leap_days(self):
        for calendar, first in (("360_day", "2016-02-30"), ("noleap", "2016-02-27")):
            def write(path, calendar=calendar, first=first):
                write_own(path, np.arange(YEAR_STEPS), f"days since {first}")
                with h5py.File(path, "a") as file:
                    file["time"].attrs["calendar"] = calendar
            self.write(write)
            done = self.run_command([BINARY, "data", "inspect", self.data / "train/2017.nc"])
            self.assertIn(f"from {first}T00:00:00 to 2016-03-{'11' if calendar == '360_day' else '10'}T00:00:00", done.stdout)
            self.assertIn(f"calendar {calendar}", done.stdout)

    def test_missing_values_end_a_run_unless_they_are_masked(self):
        values = VALUES.copy()
        values[:, 0, 2, 3:6] = 1e20
        fills = {"_FillValue": 1e20}
        self.write(lambda path: write_own(path, values=values, **fills))
        log = self.train(FIELDS)
        self.assert_refused(log, DATA, "values that are not finite", "(t2m), values=3", "set nan_policy to mask")
        masked = {**FIELDS, "nan_policy": "mask"}
        log, found, _ = self.run_of(lambda path: write_own(path, values=values, **fills), masked, number="mask")
        self.assertEqual(log.count("The files declare missing values. They are NaN and handled by nan_policy"), 1)
        self.assertEqual(found["t2m"][2, 4], 0)
        done = self.run_command([BINARY, "data", "stats", self.data / "train", "--out", self.root / "stats"])
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertIn(f"missing values left out: channel=t2m, values={3 * YEAR_STEPS} of {VALUES[:, 0].size}", done.stdout)
        wanted = np.where(values == np.float32(1e20), np.nan, values)
        rounds_to(np.load(self.root / "stats/global_means.npy").ravel(), np.nanmean(wanted.astype("f8"), (0, 2, 3)), 1)

    def test_packed_netcdf_and_zarr(self):
        data = dataset(np.where(np.arange(VALUES.size).reshape(SHAPE) % 17 == 0, np.nan, VALUES))
        packed = {"fields": {"dtype": "int16", "scale_factor": 0.001, "add_offset": 1.0, "_FillValue": -32767}}
        with netCDF4.Dataset(self.root / "range.nc", "w") as file:
            for name, size in zip(("time", "channel", "lat", "lon"), SHAPE):
                file.createDimension(name, size)
            variable = file.createVariable("fields", "i2", ("time", "channel", "lat", "lon"), fill_value=-32768)
            variable.setncatts({"scale_factor": 0.01, "valid_range": np.array([-100, 100], "i2")})
            variable.set_auto_maskandscale(False)
            variable[:] = (np.arange(VALUES.size) % 250 - 125).reshape(SHAPE)
        data.to_netcdf(self.root / "packed.nc", engine="netcdf4", encoding=packed)
        data.to_netcdf(self.root / "fill.nc", engine="netcdf4", encoding={"fields": {"_FillValue": 1e20}})
        for version in (2, 3):
            data.to_zarr(self.root / f"packed{version}.zarr", encoding=packed, zarr_format=version)
            data.to_zarr(self.root / f"fill{version}.zarr", encoding={"fields": {"_FillValue": -999.0}}, zarr_format=version)
        for path in sorted([*self.root.glob("*.nc"), *self.root.glob("*.zarr")]):
            with self.subTest(path.name):
                open_ = xarray.open_zarr if path.suffix == ".zarr" else xarray.open_dataset
                wanted = open_(path)["fields"].values
                if path.name == "range.nc":
                    wanted = np.where(np.abs(wanted) > 1.0001, np.nan, wanted)
                done = self.run_command([BINARY, "data", "convert", path, self.root / f"{path.name}.npy", "--format", "npy", "--array", "fields"])
                self.assertEqual(done.returncode, DONE, done.stderr)
                found = np.load(self.root / f"{path.name}.npy")
                self.assertGreater(np.isnan(wanted).sum(), 0)
                np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
                rounds_to(found, wanted, 4, scale=wanted[~np.isnan(wanted)])  # xarray scales in float32: factor, product, sum

    def test_inspect(self):
        data = dataset()
        data["fields"].attrs["long_name"] = "Gr\u00f6\u00dfe in \u00b0"
        data.to_netcdf(self.root / "a.nc", engine="netcdf4", encoding={"time": {"units": "hours since 1900-01-01", "dtype": "int64"}})
        with netCDF4.Dataset(self.root / "a.nc", "a") as file:
            file.createDimension("bnds", 2)
            file.createVariable("bounds", "f8", ("time", "bnds"))
        data.to_zarr(self.root / "a.zarr", zarr_format=2)
        for name in ("a.nc", "a.zarr"):
            done = self.run_command([BINARY, "data", "inspect", self.root / name])
            self.assertEqual(done.returncode, DONE, done.stderr)
            self.assertIn("from 2017-06-01T00:00:00 to 2017-06-03T18:00:00, first step 21600 s", done.stdout)
            self.assertIn("Gr\u00f6\u00dfe in \u00b0", done.stdout)
            self.assertIn("axes time, channel, lat, lon", done.stdout)
            self.assertIn("from -35 to 35", done.stdout)
            self.assertIn("texts: t2m, u10, v10", done.stdout)
            for plumbing in ("DIMENSION_LIST", "REFERENCE_LIST", "CLASS", "NAME", "_Netcdf4Dimid", "_NCProperties", "_ARRAY_DIMENSIONS", "bnds\n"):
                self.assertNotIn(plumbing, done.stdout)
            self.assertNotIn("  bnds  (", done.stdout)

    def test_zarr_names_of_any_length(self):
        names = ["t2m", "", "Gr\u00f6\u00dfe"]
        data = xarray.Dataset({"fields": (("time", "channel", "lat", "lon"), np.zeros((2, 3, 2, 2), "f4"))},
                              coords={"channel": np.array(names, dtype=object)})
        for version in (2, 3):
            path = self.root / f"{version}.zarr"
            data.to_zarr(path, zarr_format=version, consolidated=False)
            done = self.run_command([BINARY, "data", "inspect", path])
            self.assertEqual(done.returncode, DONE, done.stderr)
            self.assertIn("texts: t2m, , Gr\u00f6\u00dfe", done.stdout)


if __name__ == "__main__":
    unittest.main()
