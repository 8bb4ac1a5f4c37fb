# SPDX-License-Identifier: Apache-2.0
"""docs/guide/foreign-files.md, row by row: files as other programs write them, and what Welkin makes of each. A row ends in right numbers or
in an error that says what to do; never in exit code 0 and wrong numbers."""
import shutil
import subprocess
import unittest

import h5py
import netCDF4
import numpy as np
import xarray as xr
from ingest_runner import BINARY, IngestCase, component_is_built, run_all
from tolerance import within

HOURS = 8
ROUNDED = 2e-5  # half a unit in the last place of a float32 of 290
LAT, LON = np.linspace(50.0, 43.0, 8), np.arange(0.0, 12.0)  # north first, eastward
SINCE_1970 = {"2001-02-27T18": 983296800}


def truth():
    """(time, lat, lon): every value says where and when it is."""
    t, y, x = np.meshgrid(np.arange(HOURS), np.arange(LAT.size), np.arange(LON.size), indexing="ij")
    return (280 + t + 0.1 * y + 0.01 * x).astype(np.float32)


def dataset(values=None, lat=LAT, lon=LON, names=("latitude", "longitude"), attributes=True, variable="t2m"):
    y, x = names
    coordinates = {
        "time": ("time", np.arange(HOURS, dtype=np.int64), {"units": "hours since 2001-02-27 18:00:00", "calendar": "standard"}),
        y: (y, lat, {"units": "degrees_north", "standard_name": "latitude"} if attributes else {}),
        x: (x, lon, {"units": "degrees_east", "standard_name": "longitude"} if attributes else {})}
    return xr.Dataset({variable: (("time", y, x), truth() if values is None else values, {"units": "K"})}, coordinates)


@unittest.skipIf(not component_is_built(), "the ingest component is not built: ecCodes or netCDF-C is not installed")
class Ingested(IngestCase):
    """Fields that are ingested first."""

    def expect(self, path, *flags, values=None, first="2001-02-27T18", calendar="proleptic_gregorian"):
        report = self.ingest(path, *flags)
        self.assertIn(f"first={first}", report)
        with h5py.File(self.out / "train/2001.h5") as file:
            within(file["fields"][:, 0], truth() if values is None else values, ROUNDED, "float32 of what was packed in double")
            np.testing.assert_array_equal(file["latitude"][:], LAT)
            np.testing.assert_array_equal(file["longitude"][:], LON)
            np.testing.assert_array_equal(np.diff(file["time"][:]), 3600)
            self.assertEqual(file["time"].attrs["calendar"], calendar)
        return report

    def written(self, data, **options):
        path = self.root / "in.nc"
        data.to_netcdf(path, **options)
        return path

    def test_netcdf3(self):
        data = dataset()
        data["time"] = data["time"].astype(np.int32).assign_attrs(data["time"].attrs)  # netCDF-3 has no int64
        path = self.written(data, engine="netcdf4", format="NETCDF3_CLASSIC")
        self.expect(path)

    def test_netcdf4_with_times_that_xarray_decoded(self):
        self.expect(self.written(xr.decode_cf(dataset())))

    def test_packed_with_fill(self):
        path = self.root / "in.nc"
        with netCDF4.Dataset(path, "w") as file:
            for name, size in (("time", HOURS), ("lat", 8), ("lon", 12)):
                file.createDimension(name, size)
            for name, values, units in (("time", np.arange(HOURS), "hours since 2001-02-27 18:00"), ("lat", LAT, "degrees_north"),
                                        ("lon", LON, "degrees_east")):
                file.createVariable(name, "f8", (name,))[:] = values
                file[name].units = units
            packed = file.createVariable("t2m", "i2", ("time", "lat", "lon"), fill_value=-32767)
            packed.scale_factor, packed.add_offset, packed.units = 0.01, 280.0, "K"
            packed[:] = truth()
        steps = np.round((truth() - 280) / 0.01)
        self.expect(path, values=steps * 0.01 + 280)
        with netCDF4.Dataset(path, "a") as file:
            file["t2m"][2, 3, 4] = np.ma.masked
        shutil.rmtree(self.out)
        self.assertIn("points without a value: channel=t2m, time=2001-02-27T20:00:00, points=1 of 96", self.refused(path))

    def test_fill_of_floats(self):
        values = truth()
        values[5, 1, 1] = 1e20
        data = dataset(values)
        data["t2m"].encoding["_FillValue"] = np.float32(1e20)
        self.assertIn("points without a value: channel=t2m, time=2001-02-27T23:00:00, points=1 of 96", self.refused(self.written(data)))

    def test_calendars(self):
        for calendar, february in (("360_day", 30), ("noleap", 28)):
            data = dataset()
            data["time"] = data["time"].assign_attrs(units="days since 2001-02-01", calendar=calendar)
            data = data.assign_coords(time=("time", 26 + 0.75 + np.arange(HOURS) / 24, data["time"].attrs))
            with self.subTest(calendar=calendar):
                self.out = self.root / f"out-{calendar}"
                path = self.root / f"{calendar}.nc"
                data.to_netcdf(path)
                report = self.expect(path, calendar=calendar)
                day = 27 + (18 + HOURS - 1) // 24
                month, day = (2, day) if day <= february else (3, day - february)
                self.assertIn(f"last=2001-{month:02}-{day:02}T01:00:00", report)

    def test_south_first(self):
        self.expect(self.written(dataset(truth()[:, ::-1], lat=LAT[::-1])))

    def test_minus_180_to_180(self):
        west = dataset().isel(time=slice(0, 4)).assign_coords(longitude=LON - 6)
        east = dataset().isel(time=slice(4, 8)).assign_coords(longitude=(LON - 6) % 360)
        east = east.sortby("longitude")
        for name, data in (("west", west), ("east", east)):
            for each in ("latitude", "longitude", "time"):
                data[each].attrs = dataset()[each].attrs
            data.to_netcdf(self.root / f"{name}.nc")
        self.ingest(self.root / "west.nc", self.root / "east.nc")
        with h5py.File(self.out / "train/2001.h5") as file:
            np.testing.assert_array_equal(file["fields"][:, 0], truth())
            np.testing.assert_array_equal(np.mod(file["longitude"][:], 360), np.mod(LON - 6, 360))

    def test_lat_and_lon(self):
        self.expect(self.written(dataset(names=("lat", "lon"), attributes=False)))

    def test_curvilinear(self):
        y, x = np.meshgrid(LAT, LON, indexing="ij")
        data = xr.Dataset({"t2m": (("time", "y", "x"), truth(), {"coordinates": "lat lon"})},
                          {"time": dataset()["time"], "lat": (("y", "x"), y + 0.1 * x), "lon": (("y", "x"), x)})
        text = self.refused(self.written(data))
        self.assertIn("t2m (in.nc): its latitude and longitude (lat, lon) have two dimensions", text)

    def test_time_without_units(self):
        data = dataset()
        data["time"].attrs = {}
        text = self.refused(self.written(data))
        self.assertIn("t2m", text)
        self.assertRegex(text, "time.*units")


class Direct(IngestCase):
    """Files in the training layout, read as they are."""

    def inspect(self, path):
        done = subprocess.run([BINARY, "data", "inspect", path], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def check(self, folder, *flags, dry=True):
        """A dry run with the data checked, or one of a step."""
        for name, value in (("means", truth().mean()), ("stds", truth().std())):
            np.save(self.root / f"global_{name}.npy", np.full((1, 1, 1, 1), value, np.float32))
        yaml = self.root / "run.yaml"
        yaml.write_text("run: {model: vit, embed_dim: 16, depth: 1, num_heads: 2, patch_size: 4, img_size: [8, 12], n_in_channels: 1, n_out_channels: 1,\n"
                        f"  train_data_path: {folder}, valid_data_path: {folder}, global_means_path: {self.root}/global_means.npy,\n"
                        f"  global_stds_path: {self.root}/global_stds.npy, global_batch_size: 2, num_iters: 1, lr: 1E-3, warmup: 0, expdir: {self.root}}}\n")
        kind = ("--dry_run", "--check_data") if dry else ()
        return subprocess.run([BINARY, "train", "--yaml_config", yaml, "--config", "run", *kind, *flags], capture_output=True, text=True, timeout=60)

    def fields(self):
        data = dataset(variable="fields")
        return data.assign(fields=data["fields"].expand_dims({"channel": ["t2m"]}, axis=1))

    def test_hdf5_with_hours_since_1900(self):
        folder = self.root / "train"
        folder.mkdir()
        with h5py.File(folder / "2001.h5", "w") as file:
            file["fields"] = truth()[:, None]
            file["latitude"], file["longitude"] = LAT, LON
            file["time"] = (SINCE_1970["2001-02-27T18"] + 2208988800) // 3600 + np.arange(HOURS)
            file["time"].attrs["units"] = "hours since 1900-01-01"
        self.assertIn("2001-02-27T18:00:00", self.inspect(folder / "2001.h5"))
        done = self.check(folder, "--set", "forcing=[solar]")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_zarr_of_xarray(self):
        """Its values, grid, times and channels, through what reads them: inspect, convert, training and prediction."""
        folder = self.root / "train"
        folder.mkdir()
        for version in (2, 3):
            with self.subTest(zarr_format=version):
                store = folder / "2001.zarr"
                shutil.rmtree(store, ignore_errors=True)
                self.fields().to_zarr(store, zarr_format=version, consolidated=False)
                text = self.inspect(store)
                self.assertIn("from 2001-02-27T18:00:00 to 2001-02-28T01:00:00, first step 3600 s", text)
                self.assertIn(f"from {LAT[0]:g} to {LAT[-1]:g}", text)
                self.assertIn(f"from {LON[0]:g} to {LON[-1]:g}", text)
                self.assertIn("texts: t2m", text)
                self.check_predicted(folder, f"run{version}")
                converted = self.root / f"{version}.h5"
                done = subprocess.run([BINARY, "data", "convert", store, converted, "--format", "hdf5"], capture_output=True, text=True, timeout=60)
                self.assertEqual(done.returncode, 0, done.stderr)
                with h5py.File(converted) as file:
                    np.testing.assert_array_equal(file["fields"][:, 0], truth())
                    np.testing.assert_array_equal(file["latitude"][:], LAT)
                    np.testing.assert_array_equal(file["longitude"][:], LON)

    def test_zarr_whose_first_time_is_zero(self):
        """zarr-python 3 leaves a chunk of zeros out, and xarray gives whole numbers of version 2 no fill value."""
        folder = self.root / "train"
        folder.mkdir()
        store = folder / "2001.zarr"
        self.fields().to_zarr(store, zarr_format=2, consolidated=False, encoding={"time": {"chunks": (1,)}})
        self.assertFalse((store / "time/0").exists())
        self.assertIn("from 2001-02-27T18:00:00 to 2001-02-28T01:00:00, first step 3600 s", self.inspect(store))
        (store / "time/3").unlink()
        self.assertIn("not increasing after 2001-02-27T20:00:00", self.inspect(store))  # a time that is lost

    def check_predicted(self, folder, name):
        """A run of one step, and what the model was given: the values of the file where and when they belong, under their names."""
        done = self.check(folder, "--run_num", name, "--device", "cpu", dry=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        run, = self.root.glob(f"run/*/{name}")
        done = subprocess.run([BINARY, "predict", run, "--output", self.root / name, "--samples", "7"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        with h5py.File(self.root / name / "predictions.h5") as file:
            for array, hour in (("input", 0), ("target", 1)):
                self.assertEqual([str(text) for text in file[array].attrs["channels"].astype(str)], ["t2m"])
                self.assertEqual([str(text) for text in file[array].attrs["units"].astype(str)], ["K"])
                within(file[array][:, 0], truth()[file["sample"][:] + hour], ROUNDED, "float32 of what was normalised and is not any more")
            np.testing.assert_array_equal(file["sample"][:], np.arange(HOURS - 1))
            np.testing.assert_array_equal(file["latitude"][:], LAT)
            np.testing.assert_array_equal(file["longitude"][:], LON)

    def test_zarr_of_separate_variables(self):
        folder = self.root / "train"
        folder.mkdir()
        dataset().to_zarr(folder / "2001.zarr", zarr_format=2, consolidated=False)
        done = self.check(folder)
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertIn("fields", done.stderr)
        self.assertIn("t2m", done.stderr)

    def test_fills_are_no_data(self):
        folder = self.root / "train"
        folder.mkdir()
        values = truth()[:, None]
        values[3, 0, 2, 2] = 1e20
        with h5py.File(folder / "2001.h5", "w") as file:
            file["fields"] = values
            file["fields"].attrs["_FillValue"] = np.float32(1e20)
        text = self.inspect(folder / "2001.h5")
        self.assertIn("max 287.8", text)
        self.assertIn("missing 1", text)
        done = subprocess.run([BINARY, "data", "stats", folder, "--out", self.root / "stats"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        mean = np.load(self.root / "stats/global_means.npy").ravel()[0]
        within(mean, np.delete(truth().astype(np.float64).ravel(), 3 * 96 + 2 * 12 + 2).mean(), ROUNDED, "float32 of a mean in double")


if __name__ == "__main__":
    run_all(__name__)
