#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that do not belong together, and values that nobody declares: what would go through with exit code 0 and wrong numbers is refused or
said. The parts of a data set must be alike in channels, units, grid and time; missing values are known by what netCDF does not say, too."""
import unittest
import warnings

import h5py
import netCDF4
import numpy as np
from bad_input_case import BINARY, DATA, DONE, FIELDS, OTHER, USAGE, BadInputCase, write_statistics
from tolerance import rounds_to

warnings.filterwarnings("ignore")
TIMES, CHANNELS, ROWS, COLUMNS = 12, 3, 8, 16
LATITUDE, LONGITUDE = np.linspace(70, -70, ROWS), np.arange(COLUMNS) * 360 / COLUMNS
VALUES = np.random.default_rng(7).normal(size=(TIMES, CHANNELS, ROWS, COLUMNS)).astype(np.float32)
NETCDF = ("NETCDF4", "NETCDF4_CLASSIC")  # netCDF-3 is not read for training


def write_file(path, values=VALUES, names=("a", "b", "c"), units=("K", "m s**-1", "m s**-1"), latitude=LATITUDE, longitude=LONGITUDE, hours=6):
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        file["fields"] = values
        file["fields"].attrs["channels"] = list(names)
        file["fields"].attrs["units"] = list(units)
        file["latitude"], file["longitude"] = latitude, longitude
        file["time"] = np.arange(TIMES) * hours
        file["time"].attrs["units"] = "hours since 2017-06-01"


def write_netcdf(path, values, kind):
    """A file that says nothing of missing values; netCDF4 writes 9.97e36 for masked ones."""
    for old in path.parent.iterdir():
        old.unlink()
    with netCDF4.Dataset(path, "w", format=kind) as file:
        for name, size in zip(("time", "channel", "lat", "lon"), VALUES.shape):
            file.createDimension(name, size)
        file.createVariable("fields", "f4", ("time", "channel", "lat", "lon"))[:] = values


class UnlikeFiles(BadInputCase):
    one_process = True

    def setUp(self):
        super().setUp()
        write_statistics(self.data / "stats")
        write_file(self.data / "train/2017.h5")

    def test_parts_that_differ_are_refused_in_training_and_in_evaluation(self):
        write_file(self.data / "valid/2018.h5", units=("K", "m s-1", "m s^-1"))  # another spelling
        done = self.train({**FIELDS, "num_iters": 1})
        self.assertEqual(done.returncode, DONE, done.stderr)
        for changes, difference in (({"names": ("c", "b", "a")}, "channels: a b c and c b a"),
                                    ({"units": ("degC", "m s**-1", "m s**-1")}, "units of a: K and degC"),
                                    ({"latitude": LATITUDE[::-1]}, "latitudes: 70 to -70 and -70 to 70"),
                                    ({"longitude": LONGITUDE - 180}, "longitudes: 0 to 337.5 and -180 to 157.5"),
                                    ({"hours": 24}, "hours between steps: 6 and 24")):
            with self.subTest(difference):
                write_file(self.data / "valid/2018.h5", **changes)
                parts = (f"these files differ from those of training: path={self.data}/valid/2018.h5, training={self.data}/train/2017.h5",
                         f"difference in {difference}. Make both alike")
                self.assert_refused(self.train(FIELDS, "--run_num", "no"), DATA, *parts)
                self.assertFalse((self.logs / "base/1GPU/no").exists())
                self.assert_refused(self.run_command([BINARY, "evaluate", self.run_folder]), DATA, *parts)

    def test_a_run_knows_its_data_where_the_training_files_are_gone(self):
        write_file(self.data / "valid/2018.h5")
        done = self.train({**FIELDS, "num_iters": 1})
        self.assertEqual(done.returncode, DONE, done.stderr)
        packed = self.run_command([BINARY, "ckpt", "package", self.run_folder, self.root / "package"])
        self.assertEqual(packed.returncode, DONE, packed.stderr)
        (self.data / "train").rename(self.data / "elsewhere")
        evaluate = [BINARY, "evaluate", self.run_folder]
        self.assertEqual(self.run_command(evaluate).returncode, DONE)
        for changes, difference in (({"names": ("c", "b", "a")}, "input channels: a b c and c b a"),
                                    ({"units": ("degC", "m s-1", "m s-1")}, "units of a: K and degC"),
                                    ({"latitude": LATITUDE[::-1]}, "latitudes: 70 to -70 and -70 to 70"),
                                    ({"longitude": LONGITUDE - 180}, "longitudes: 0 to 337.5 and -180 to 157.5"),
                                    ({"hours": 24}, "hours between input and target: 6 and 24")):
            write_file(self.data / "valid/2018.h5", **changes)
            for folder, code, whose in ((self.run_folder, DATA, f"those that the run was trained on: run={self.run_folder}, difference in "),
                                        (self.root / "package", USAGE, f"those that this model takes: path={self.root}/package, ")):
                self.assert_refused(self.run_command([BINARY, "evaluate", folder, "--set", f"valid_data_path={self.data}/valid"]), code, whose + difference)
        forecast = [BINARY, "forecast", self.run_folder, "--from", "newest", "--steps", "1", "--output", self.root / "f.zarr"]
        write_file(self.data / "states/2018.h5")
        self.assert_refused(self.run_command([*forecast, "--states", self.data / "valid"]), DATA,
                            "difference in hours between input and target: 6 and 24")
        self.assert_refused(self.run_command([*forecast, "--states", self.data / "states", "--time_step", "1h"]), USAGE,
                            "the data have another step: --time_step=1h, step=6 h")
        (self.run_folder / "data.json").write_text("{")
        self.assert_refused(self.run_command(evaluate), DATA, f"the specification of the data is damaged: path={self.run_folder}/data.json",
                            "Restore it from a copy of the run")

    def test_sets_of_a_mixture_have_one_lead(self):
        write_file(self.data / "valid/2018.h5")
        for part in ("train", "valid"):
            write_file(self.root / "daily" / part / "2017.h5", hours=24)
        self.refuse_training({**FIELDS, "datasets": [str(self.data), str(self.root / "daily")]}, DATA, "hours between input and target: 6 and 24")

    def test_files_of_one_folder_that_differ_are_refused_by_training_and_statistics(self):
        for changes, difference in (({"names": ("c", "b", "a")}, "channels: a b c and c b a"),
                                    ({"units": ("degC", "m s**-1", "m s**-1")}, "units of a: K and degC"),
                                    ({"latitude": LATITUDE[::-1]}, "latitudes: 70 to -70 and -70 to 70")):
            write_file(self.data / "train/2018.h5", **changes)
            write_file(self.data / "valid/2019.h5")
            parts = (f"files of one folder differ: path={self.data}/train/2018.h5", f"difference in {difference}. Put files of one kind")
            self.refuse_training(FIELDS, DATA, *parts)
            self.assert_refused(self.run_command([BINARY, "data", "stats", self.data / "train", "--out", self.root / "stats"]), DATA, *parts)
        write_file(self.data / "train/2018.h5", hours=24)
        self.refuse_training(FIELDS, DATA, "difference in hours between steps: 6 and 24")

    def test_files_of_one_variable_that_differ_name_the_difference(self):
        """Of an archive, which is read as it is."""
        folder = self.root / "archive"
        folder.mkdir()

        def write(name, first, units, level=None):
            with netCDF4.Dataset(folder / name, "w") as file:
                for axis, values, unit in (("time", first + np.arange(2), "days since 2001-01-01"), ("lat", LATITUDE, "degrees_north"),
                                           ("lon", LONGITUDE, "degrees_east"), *([("plev", [level], "hPa")] if level else [])):
                    file.createDimension(axis, len(values))
                    file.createVariable(axis, "f8", (axis,))[:] = values
                    file[axis].units = unit
                axes = ("time", *(["plev"] if level else []), "lat", "lon")
                file.createVariable("t", "f4", axes)[:] = VALUES[:2, 0].reshape([file.dimensions[axis].size for axis in axes])
                file["t"].units = units

        def statistics(code):
            out = self.root / "statistics"
            done = self.run_command([BINARY, "data", "stats", folder, "--variables", "t", "--out", out])
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
            return done.stderr

        for level in (None, 500):
            write("a.nc", 0, "K", level)
            write("b.nc", 2, "degC", level)
            self.assertIn(f"files of one variable differ: variable=t, in=units: K and degC, path={folder / 'a.nc'}, path={folder / 'b.nc'}",
                          statistics(DATA))
        write("b.nc", 2, "K", 850)
        self.assertIn("variable=t, in=levels: 500 and 850", statistics(DATA))
        write("a.nc", 0, "m s**-1")
        write("b.nc", 2, "m s-1")  # another spelling
        statistics(DONE)

    def test_validation_data_far_from_the_statistics_are_refused(self):
        write_file(self.data / "valid/2018.h5", VALUES + 280)
        self.refuse_training(FIELDS, DATA, "the input is not normalised by these statistics: channel=a")
        done = self.train({**FIELDS, "num_iters": 1, "allow_unnormalized": "true"})
        self.assertEqual(done.returncode, DONE, done.stderr)

    def test_what_netcdf_leaves_unwritten_is_missing(self):
        masked = np.ma.masked_array(VALUES, mask=np.zeros(VALUES.shape, bool))
        masked[:, 0, 2, 3:6] = np.ma.masked
        (self.data / "valid").mkdir()
        for kind in NETCDF:
            with self.subTest(kind):
                for part in ("train", "valid"):
                    write_netcdf(self.data / part / "2017.nc", masked, kind)
                self.assertNotIn("_FillValue", h5py.File(self.data / "train/2017.nc")["fields"].attrs)
                done = self.run_command([BINARY, "data", "stats", self.data / "train", "--out", self.root / "stats"])
                self.assertEqual(done.returncode, DONE, done.stderr)
                rounds_to(np.load(self.root / "stats/global_means.npy").ravel(), masked.astype("f8").mean((0, 2, 3)), 1)
                self.assert_refused(self.train(FIELDS, "--run_num", "no"), DATA, "values that are not finite", "values=3", "set nan_policy to mask")
                done = self.train({**FIELDS, "num_iters": 1, "nan_policy": "mask"}, "--run_num", kind)
                self.assertEqual(done.returncode, DONE, done.stderr)
                done = self.run_command([BINARY, "data", "inspect", self.data / "train/2017.nc"])
                self.assertNotIn("e+36", done.stdout)

    def test_netcdf_that_has_no_missing_values_declares_none(self):
        (self.data / "valid").mkdir()
        for kind in NETCDF:
            with self.subTest(kind):
                for part in ("train", "valid"):
                    write_netcdf(self.data / part / "2017.nc", VALUES, kind)
                done = self.train({**FIELDS, "num_iters": 1}, "--run_num", kind)
                self.assertEqual(done.returncode, DONE, done.stderr)
                self.assertNotIn("declare missing values", done.stdout + done.stderr)

    def test_a_fill_value_that_is_written_as_text(self):
        values = VALUES.copy()
        values[:, 1, 0, 0] = 1e20
        write_file(self.data / "train/2017.h5", values)
        with h5py.File(self.data / "train/2017.h5", "a") as file:
            file["fields"].attrs["_FillValue"] = "1e20"
        done = self.run_command([BINARY, "data", "stats", self.data / "train", "--out", self.root / "stats"])
        self.assertIn(f"missing values left out: channel=b, values={TIMES}", done.stdout)

    def test_a_value_that_looks_like_a_fill_is_said(self):
        values = VALUES.copy()
        values[0, 1, 0, 0] = -9999
        write_file(self.data / "train/2017.h5", values)
        done = self.run_command([BINARY, "data", "stats", self.data / "train", "--out", self.root / "stats"])
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertIn("warning: this value usually stands for a missing one, and no attribute declares it: channel=b, value=-9999", done.stderr)

    def test_a_value_that_is_not_finite_is_named_with_its_date(self):
        values = VALUES.copy()
        values[:, 0, 5, 7] = np.inf
        write_file(self.data / "train/2017.h5", values)
        write_file(self.data / "valid/2018.h5")
        self.assert_refused(self.train(FIELDS), OTHER, "not finite in the data", "time=2017-06-0")

    def test_boxes_leave_out_what_their_attributes_exclude(self):
        for name, attributes in (("valid_range", {"valid_range": np.float32([-100, 100])}), ("valid_max", {"valid_max": np.float32(100)}),
                                 ("text", {"_FillValue": "1e20"})):
            with self.subTest(name):
                folder = self.root / name
                folder.mkdir()
                values = np.random.default_rng(1).normal(size=(16, 16, 16)).astype(np.float32)
                values[3, 4, 5] = 1e20
                with h5py.File(folder / "box.h5", "w") as file:
                    file["density"] = values
                    file["density"].attrs.update(attributes)
                    file["mass"] = np.ones((16, 16, 16), np.float32) * values.clip(-1, 1)
                done = self.run_command([BINARY, "data", "ingest", "--box", folder, "--out", self.root / "out", "--input", "mass", "--target", "density"])
                self.assert_refused(done, DATA, "values that are not finite: field=density, cells=1")

    def test_boxes_without_a_field_that_can_be_one(self):
        with h5py.File(self.root / "packed.h5", "w") as file:
            file["field"] = np.ones((8, 8, 8), np.int16)
        done = self.run_command([BINARY, "data", "ingest", "--box", self.root / "packed.h5", "--out", self.root / "out", "--input", "a", "--target", "b"])
        self.assert_refused(done, DATA, "No data set of these files can be read as a box")


if __name__ == "__main__":
    unittest.main()
