# SPDX-License-Identifier: Apache-2.0
"""Dimensions beside time, level, latitude and longitude, as files of the Copernicus Climate Data Store and of cfgrib have them: those of
length 1 are left out, `number`, `valid_time` and levels are known, and others are refused with what to do. `welkin data stats` reads the
same files as an archive and agrees."""
import shutil
import subprocess
import unittest

import h5py
import numpy as np
import xarray

from ingest_runner import BINARY, IngestCase, component_is_built, run_all
from tolerance import rounds_to

LATITUDE, LONGITUDE = np.linspace(50.0, 43.0, 8), np.arange(0.0, 12.0)
HOURS = 6
TIMES = np.datetime64("2001-03-01T00", "ns") + np.arange(HOURS) * np.timedelta64(1, "h")
VALUES = (280 + np.arange(HOURS)[:, None, None] + 0.1 * np.arange(8)[:, None] + 0.01 * np.arange(12)).astype("f4")
START = {"standard_name": "forecast_reference_time"}
VALID = {"standard_name": "time"}
MERGED = "Merge them first, in xarray with d.isel(expver=0, drop=True).combine_first(d.isel(expver=1, drop=True))"


def leads(*hours):
    return "step", np.array(hours, "timedelta64[h]").astype("timedelta64[ns]"), {"standard_name": "forecast_period"}


@unittest.skipUnless(component_is_built(), "the ingest component is not built: ecCodes or netCDF-C is not installed")
class Dimensions(IngestCase):
    def write(self, dims, values, name="t2m", **coordinates):
        places = {"latitude": ("latitude", LATITUDE, {"units": "degrees_north"}), "longitude": ("longitude", LONGITUDE, {"units": "degrees_east"})}
        path = self.root / "in" / "a.nc"
        path.parent.mkdir(exist_ok=True)
        xarray.Dataset({name: (dims, values, {"units": "K"})}, {**places, **coordinates}).to_netcdf(path)
        return path

    def stats(self, path, variable="t2m"):
        command = [BINARY, "data", "stats", path.parent, "--variables", variable, "--out", self.root / "stats", "--allow-constant"]
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)

    def expect(self, path, values=VALUES, variable="t2m", first="2001-03-01T00:00:00"):
        shutil.rmtree(self.out, ignore_errors=True)
        self.assertIn(f"first={first}", self.ingest(path))
        np.testing.assert_array_equal(self.fields("train/2001.h5"), values.reshape(HOURS, -1, 8, 12))
        done = self.stats(path, variable)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"{HOURS} steps of 1 files", done.stdout)
        expected = values.reshape(HOURS, -1, 8, 12).mean(axis=0, dtype="f8")
        rounds_to(np.load(self.root / "stats/time_means.npy")[0], expected, 1, scale=expected)

    def expect_refused(self, path, *words, variable="t2m"):
        shutil.rmtree(self.out, ignore_errors=True)
        message, done = self.refused(path), self.stats(path, variable)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        for word in words:
            self.assertIn(word, message)
            self.assertIn(word, done.stderr)

    def test_single_places_are_left_out(self):
        one = dict(number=[0], surface=[0.0], expver=[1], heightAboveGround=("heightAboveGround", [2.0], {"units": "m", "positive": "up"}), time=TIMES)
        self.expect(self.write(("number", "time", "surface", "expver", "heightAboveGround", "latitude", "longitude"), VALUES[None, :, None, None, None], **one))

    def test_a_single_height_beside_levels(self):
        values = np.stack([VALUES, VALUES + 1, VALUES + 2], 1)
        path = self.write(("time", "heightAboveGround", "isobaricInhPa", "latitude", "longitude"), values[:, None], "t", time=TIMES, heightAboveGround=[2.0],
                          isobaricInhPa=("isobaricInhPa", [1000.0, 850.0, 500.0], {"units": "hPa", "positive": "down"}))
        self.expect(path, values, "t")
        self.assertEqual(self.channels("train/2001.h5"), ["t1000", "t850", "t500"])

    def test_the_new_form_of_the_store(self):
        self.expect(self.write(("valid_time", "latitude", "longitude"), VALUES, valid_time=("valid_time", TIMES, VALID), number=0,
                               expver=("valid_time", ["0001"] * 4 + ["0005"] * 2)))

    def test_two_versions_are_merged_by_the_user(self):
        values = np.full((HOURS, 2, 8, 12), np.nan, "f4")
        values[:4, 0], values[4:, 1] = VALUES[:4], VALUES[4:]
        path = self.write(("time", "expver", "latitude", "longitude"), values, time=TIMES, expver=[1, 5])
        self.expect_refused(path, "expver", MERGED)
        with xarray.open_dataset(path) as data:
            merged = data.isel(expver=0, drop=True).combine_first(data.isel(expver=1, drop=True)).load()
        merged.to_netcdf(path)
        self.expect(path)

    def test_leads(self):
        values = np.stack([VALUES, VALUES + 100], 1)
        dims, time = ("time", "step", "latitude", "longitude"), ("time", TIMES, START)
        valid = lambda *hours: (("time", "step"), TIMES[:, None] + leads(*hours)[1], VALID)
        path = self.write(dims, values, time=time, step=leads(0, 6), valid_time=valid(0, 6))
        self.expect_refused(path, "Choose one lead first, in xarray with d.isel(step=0, drop=True).swap_dims(time='valid_time')")
        with xarray.open_dataset(path) as data:
            chosen = data.isel(step=1, drop=True).swap_dims(time="valid_time").load()
        chosen.to_netcdf(path)
        self.expect(path, VALUES + 100, first="2001-03-01T06:00:00")
        self.expect(self.write(dims, values[:, :1], time=time, step=leads(0), valid_time=valid(0)))
        self.expect_refused(self.write(dims, values[:, 1:], time=time, step=leads(6), valid_time=valid(6)), "is that at which the forecast began")
        # Without standard names: a lead that is not zero still says that this is no valid time.
        self.expect_refused(self.write(dims, values[:, 1:], time=TIMES, step=("step", leads(6)[1])), "is that at which the forecast began")
        self.expect(self.write(dims, values[:, 1:], time=("time", TIMES, VALID), step=("step", leads(6)[1])), VALUES + 100)

    def test_valid_times_come_before_starts(self):
        self.expect(self.write(("step", "latitude", "longitude"), VALUES, time=((), TIMES[0], START), step=leads(*range(HOURS)),
                               valid_time=("step", TIMES, VALID)))
        early = TIMES - np.timedelta64(6, "h")
        self.expect(self.write(("time", "latitude", "longitude"), VALUES, time=("time", early, START), step=((), np.timedelta64(6, "h").astype("m8[ns]"), leads()[2]),
                               valid_time=("time", TIMES, VALID)))

    def test_a_box_with_dimensions(self):
        """As xarray and `welkin data convert` write it: not on levels, latitudes and longitudes."""
        values = np.random.default_rng(1).standard_normal((8, 6, 6)).astype("f4")
        path = self.root / "box.nc"
        xarray.Dataset({"density": (("z", "y", "x"), values), "gas": (("z", "y", "x"), 2 * values)}, {"z": np.arange(8.0)}).to_netcdf(path)
        self.ingest("--box", path, "--input", "density", "--target", "gas")
        with h5py.File(self.out / "train.h5") as file:
            offset, scale = (float(file["Nbody"].attrs[key][0]) for key in ("offset", "scale"))
            rounds_to(file["Nbody"][0] * scale + offset, values, 4, scale=values)

    def test_members_without_numbers_and_unknown_axes(self):
        path = self.write(("number", "time", "latitude", "longitude"), np.stack([VALUES, VALUES + 1]), time=TIMES)
        self.assertIn("members=2", self.ingest(path))
        np.testing.assert_array_equal(self.fields("train/member001_2001.h5")[:, 0], VALUES + 1)
        shutil.rmtree(self.out)
        path = self.write(("time", "soil", "latitude", "longitude"), np.stack([VALUES, VALUES], 1), time=TIMES)
        self.assertIn("its dimension soil has no coordinate variable: choose one place along it first, as with ncks -d soil,0 IN.nc OUT.nc", self.refused(path))


if __name__ == "__main__":
    run_all(__name__)
