# SPDX-License-Identifier: Apache-2.0
"""`welkin data ingest` on netCDF-4 files made here with h5py (a netCDF-4 file is an HDF5 file with dimension scales): order of dimensions,
packing, missing values, calendars, members, levels, and files that are bad."""
import unittest

import h5py
import numpy as np
from ingest_runner import IngestCase, component_is_built, run_all
from tolerance import rounds_to, within

LATITUDE, LONGITUDE = np.array([-10.0, 0.0, 10.0]), np.array([350.0, 355.0, 0.0, 5.0])


@unittest.skipUnless(component_is_built(), "the ingest component is not built: ecCodes or netCDF-C is not installed")
class Netcdf(IngestCase):
    def write(self, name, variables, dimensions=(), times=range(4), calendar="standard", units="hours since 2001-01-01 00:00:00"):
        """variables: name -> (dimension names, values, attributes)."""
        folder = self.root / "in"
        folder.mkdir(exist_ok=True)
        scales = {"time": (np.asarray(times, np.float64), {"units": units, "calendar": calendar}),
                  "lat": (LATITUDE, {"units": "degrees_north"}), "lon": (LONGITUDE, {"units": "degrees_east"}), **dict(dimensions)}
        with h5py.File(folder / name, "w") as file:
            for dimension, (values, attributes) in scales.items():
                file[dimension] = values
                file[dimension].make_scale(dimension)
                for key, value in attributes.items():
                    file[dimension].attrs[key] = np.bytes_(value)
            for variable, (names, values, attributes) in variables.items():
                file[variable] = values
                for i, dimension in enumerate(names):
                    file[variable].dims[i].attach_scale(file[dimension])
                for key, value in attributes.items():
                    file[variable].attrs[key] = np.bytes_(value) if isinstance(value, str) else value
        return folder

    def test_any_order_of_dimensions_and_longitudes_across_greenwich(self):
        values = np.arange(4 * 3 * 4, dtype=np.float32).reshape(4, 3, 4)
        folder = self.write("a.nc", {"t": (("time", "lat", "lon"), values, {"units": "K"}),
                                     "u": (("lon", "time", "lat"), values.transpose(2, 0, 1).copy(), {"units": "m s-1"})})
        self.ingest(folder, "--variables", "t,u")
        fields = self.fields("train/2001.h5")
        np.testing.assert_array_equal(fields[:, 0], values[:, ::-1])
        np.testing.assert_array_equal(fields[:, 1], values[:, ::-1])
        np.testing.assert_array_equal(self.dataset("train/2001.h5", "latitude"), LATITUDE[::-1])
        np.testing.assert_array_equal(self.dataset("train/2001.h5", "longitude"), [-10, -5, 0, 5])

    def test_two_grids_on_a_new_one_and_a_field_without_a_time(self):
        """Area-weighted means stay; what has no time is static, and stands once in a file."""
        random = np.random.default_rng(6)
        with_poles = {"lat": (np.linspace(-90, 90, 19), {"units": "degrees_north"}), "lon": (np.arange(36) * 10.0, {"units": "degrees_east"})}
        coarse = {"lat": (np.linspace(80, -80, 9), {"units": "degrees_north"}), "lon": (np.arange(-180, 180, 20.0), {"units": "degrees_east"})}
        fields = {"t": random.normal(size=(4, 19, 36)).astype(np.float32), "u": random.normal(size=(4, 9, 18)).astype(np.float32)}
        land = (random.random((19, 36)) > 0.5).astype(np.float32)
        folder = self.write("a.nc", {"t": (("time", "lat", "lon"), fields["t"], {"units": "K"}), "lsm": (("lat", "lon"), land, {"units": "1"})}, with_poles)
        self.write("b.nc", {"u": (("time", "lat", "lon"), fields["u"], {"units": "m s-1"})}, coarse)
        self.assertIn("the channels lie on different grids", self.refused(folder, "--variables", "t,u"))
        self.ingest(folder, "--variables", "t,u,lsm", "--grid", "8x16")
        self.assertEqual(self.channels("train/2001.h5"), ["t", "u"])
        latitude = self.dataset("train/2001.h5", "latitude")
        np.testing.assert_array_equal(latitude, 90 - (np.arange(8) + 0.5) * 22.5)
        np.testing.assert_array_equal(self.dataset("train/2001.h5", "longitude"), np.arange(16) * 22.5)

        def mean(values, latitudes):  # over the globe; cells end halfway between rows, and at the poles
            bounds = np.concatenate([[np.sign(latitudes[0]) * 90], (latitudes[1:] + latitudes[:-1]) / 2, [np.sign(latitudes[-1]) * 90]])
            area = np.abs(np.diff(np.sin(np.deg2rad(bounds))))
            return (values.astype(float).mean(-1) * area).sum(-1) / area.sum()

        out = self.fields("train/2001.h5")
        within(mean(out[:, 0], latitude), mean(fields["t"], with_poles["lat"][0]), 1e-6, "what float32 keeps of a mean")
        within(mean(out[:, 1], latitude), mean(fields["u"], coarse["lat"][0]), 1e-6, "what float32 keeps of a mean")
        static = self.dataset("train/2001.h5", "static")
        self.assertEqual(static.shape, (1, 8, 16))
        within(mean(static[0], latitude), mean(land, with_poles["lat"][0]), 1e-6, "what float32 keeps of a mean")

    def test_angles_are_regridded_as_sine_and_cosine(self):
        """The mean of 350 and 10 degrees is 0, not 180; cells of the new grid hold two rows and parts of three columns."""
        globe = {"lat": (np.array([67.5, 22.5, -22.5, -67.5]), {"units": "degrees_north"}), "lon": (np.arange(8) * 45.0, {"units": "degrees_east"})}
        angles = np.random.default_rng(8).uniform(0, 360, (4, 4, 8)).astype(np.float32)
        angles[0] = np.where(np.arange(8) % 2 == 0, 350, 10)
        folder = self.write("a.nc", {"wd": (("time", "lat", "lon"), angles, {"units": "degrees"})}, globe)
        self.ingest(folder, "--circular", "wd", "--grid", "2x4")
        area = np.diff(np.sin(np.deg2rad([-90, -45, 0])))  # of the two rows of a half of the globe, from its pole on

        def regridded(values):
            rows = np.stack([np.tensordot(values[:, :2], area / area.sum(), (1, 0)), np.tensordot(values[:, 2:], area[::-1] / area.sum(), (1, 0))], 1)
            return 0.5 * rows[..., ::2] + 0.25 * (rows[..., 1::2] + np.roll(rows[..., 1::2], 1, -1))

        out, radians = self.fields("train/2001.h5"), np.deg2rad(angles.astype(float))
        self.assertEqual(self.channels("train/2001.h5"), ["wd_sin", "wd_cos"])
        within(out[:, 0], regridded(np.sin(radians)), 1e-6, "what float32 keeps of a mean")
        within(out[:, 1], regridded(np.cos(radians)), 1e-6, "what float32 keeps of a mean")
        self.out = self.root / "bilinear"
        self.ingest(folder, "--circular", "wd", "--grid", "2x4", "--bilinear")
        out = self.fields("train/2001.h5")
        within(out[0, 1], np.full((2, 4), np.cos(np.deg2rad(10))), 1e-6, "what float32 keeps of a mean")
        self.assertTrue((out[0, 0] < 0).all())  # points of the new grid lie on those of 350 degrees

    def test_a_step_that_no_time_fits(self):
        folder = self.write("a.nc", {"t": (("time", "lat", "lon"), np.ones((4, 3, 4), np.float32), {})}, times=[3, 9, 15, 21])
        self.assertIn("no time is a multiple of the step: --step=6 h, first time=2001-01-01T03:00:00, step of the files=6 h. Leave --step out, or "
                      "give one of which some times are multiples", self.refused(folder, "--step", "6h"))

    def test_flags_of_the_other_kind_are_refused(self):
        folder = self.write("a.nc", {"t": (("time", "lat", "lon"), np.ones((4, 3, 4), np.float32), {})})
        for flags, message in ((("--log", "t", "--periodic"), "fields in time take no flags of a box: flags=--log --periodic. Leave them out, or give --box."),
                               (("--box", "--input", "t", "--target", "t", "--step", "6h", "--missing", "nan"),
                                "a box takes no flags of fields in time: flags=--step --missing. Leave them out, or drop --box.")):
            done = self.run_ingest(folder, *flags)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(message, done.stderr)
            self.assertFalse(self.out.exists())

    def test_packing_and_missing_values(self):
        raw = np.arange(48, dtype=np.int16).reshape(4, 3, 4)
        raw[0, 2, 0], raw[1, 2, 1], raw[2, 2, 2] = -1, -3, 200
        folder = self.write("a.nc", {
            "fill": (("time", "lat", "lon"), raw, {"scale_factor": 0.5, "add_offset": 100.0, "_FillValue": np.int16(-1)}),
            "sign": (("time", "lat", "lon"), raw.astype(np.int8), {"_Unsigned": "true", "scale_factor": 2.0}),
            "range": (("time", "lat", "lon"), raw, {"valid_range": np.array([-1, 100], np.int16), "scale_factor": 0.1}),
            "plain": (("time", "lat", "lon"), np.where(raw == 200, 9.969209968386869e36, raw).astype(np.float32), {}),
            "unpacked": (("time", "lat", "lon"), raw, {"valid_max": np.float64(50.0), "scale_factor": 0.5})})
        self.ingest(folder, "--missing", "nan")
        fields, channels = self.fields("train/2001.h5"), self.channels("train/2001.h5")
        field = {name: fields[:, channels.index(name)][:, ::-1] for name in channels}
        values = raw.astype(np.float64)
        rounds_to(field["fill"], np.where(raw == -1, np.nan, 0.5 * values + 100), 4)
        np.testing.assert_array_equal(field["sign"], 2.0 * raw.astype(np.int8).view(np.uint8))
        rounds_to(field["range"], np.where((raw < -1) | (raw > 100), np.nan, 0.1 * values), 4)
        np.testing.assert_array_equal(field["plain"], np.where(raw == 200, np.nan, values))  # netCDF's default fill value
        np.testing.assert_array_equal(field["unpacked"], np.where(0.5 * values > 50, np.nan, 0.5 * values))
        self.out = self.root / "again"
        self.assertIn("points without a value: channel=fill, time=2001-01-01T00:00:00, points=1 of 12", self.run_ingest(folder, "--variables", "fill").stderr)

    def test_calendars_and_months(self):
        values = np.random.default_rng(0).normal(size=(24, 3, 4)).astype(np.float32)
        middles = np.cumsum([0] + [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] * 2)[:-1] + 14.5
        folder = self.write("a.nc", {"tas": (("time", "lat", "lon"), values, {"units": "K"})}, times=middles, calendar="noleap",
                            units="days since 1850-01-01")
        report = self.ingest(folder, "--valid_fraction", "0.25")
        self.assertIn("first=1850-01-15T12:00:00, last=1851-12-15T12:00:00, step=1 month, calendar=noleap", report)
        self.assertEqual(len(self.fields("train/1850.h5")), 18)
        with h5py.File(self.out / "train/1850.h5") as file:
            self.assertEqual(file["time"].attrs["calendar"], "noleap")
            self.assertEqual(file["time"][0], ((1850 - 1970) * 365 + 14) * 86400 + 43200)

    def test_360_day_calendar(self):
        values = np.random.default_rng(0).normal(size=(4, 3, 4)).astype(np.float32)
        folder = self.write("a.nc", {"tas": (("time", "lat", "lon"), values, {})}, times=[0, 1, 2, 3], calendar="360_day", units="months since 2000-01-30")
        report = self.ingest(folder)
        self.assertIn("first=2000-01-30T00:00:00, last=2000-04-30T00:00:00, step=720 h, calendar=360_day", report)

    def test_members_and_levels(self):
        values = np.arange(4 * 2 * 3 * 12, dtype=np.float32).reshape(4, 2, 3, 3, 4)
        folder = self.write("a.nc", {"ta": (("time", "number", "plev", "lat", "lon"), values, {"units": "K"})},
                            {"number": (np.array([0, 5]), {"long_name": "member"}), "plev": (np.array([100000.0, 85000.0, 50000.0]), {"units": "Pa", "axis": "Z"})})
        self.ingest(folder, "--levels", "500,850")
        self.assertEqual(self.channels("train/member005_2001.h5"), ["ta850", "ta500"])
        np.testing.assert_array_equal(self.fields("train/member005_2001.h5"), values[:, 1, 1:][:, :, ::-1])

    def test_what_is_not_on_latitude_and_longitude_is_left_out_and_said(self):
        values = np.ones((4, 2, 3, 4), np.float32)
        folder = self.write("a.nc", {"odd": (("time", "band", "lat", "lon"), values, {}), "t": (("time", "lat", "lon"), values[:, 0] * np.arange(4), {})},
                            {"band": (np.array([1.0, 2.0]), {})})
        report = self.ingest(folder)
        self.assertIn("left out: variable=odd, path=a.nc, reason=its dimension band is neither time, member, level, latitude nor longitude", report)

    def test_gaps_and_repeated_times(self):
        values = np.random.default_rng(0).normal(size=(4, 3, 4)).astype(np.float32)
        self.write("a.nc", {"t": (("time", "lat", "lon"), values, {})}, times=[0, 1, 2, 3])
        folder = self.write("b.nc", {"t": (("time", "lat", "lon"), values, {})}, times=[6, 7, 8, 9])
        self.assertIn("the times have gaps: gaps=1, step=1 h", self.refused(folder, "--gaps", "error"))
        self.ingest(folder)
        self.assertEqual(sorted(path.name for path in (self.out / "train").iterdir()), ["segment0000_2001.h5", "segment0001_2001.h5"])
        self.write("c.nc", {"t": (("time", "lat", "lon"), values, {})}, times=[3, 4, 5, 6])
        self.out = self.root / "out2"
        self.assertIn("one field occurs twice: channel=t, time=2001-01-01T03:00:00", self.run_ingest(folder).stderr)

    def test_bad_files(self):
        folder = self.write("a.nc", {"t": (("time", "lat", "lon"), np.ones((4, 3, 4), np.float32), {})})
        whole = (folder / "a.nc").read_bytes()
        (folder / "a.nc").write_bytes(whole[: len(whole) // 2])
        self.assertIn("cannot open a file: path=", self.refused(folder))
        (folder / "a.nc").write_bytes(b"CDF\x01" + b"\xff" * 64)
        self.assertIn("Check that the file is complete", self.refused(folder))
        (folder / "a.nc").write_bytes(b"not a file of fields")
        self.assertIn("nothing to read", self.refused(folder))
        self.assertIn("neither GRIB nor netCDF nor HDF5", self.refused(folder / "a.nc"))
        self.assertIn("there is no such file or folder", self.refused(folder / "b.nc"))
        self.write("a.nc", {"t": (("time", "lat", "lon"), np.ones((4, 3, 4), np.float32), {})}, units="fortnights since 2001-01-01")
        self.assertIn("cannot read the units of time: units=fortnights since 2001-01-01", self.refused(folder))


if __name__ == "__main__":
    run_all("__main__")
