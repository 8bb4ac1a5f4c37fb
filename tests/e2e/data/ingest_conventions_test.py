# SPDX-License-Identifier: Apache-2.0
"""`welkin data ingest` on files made with xarray and netCDF4: longitudes of two conventions, coordinates known by name or attributes, fill
values of another precision, and grids and times that cannot be used."""
import unittest

import netCDF4
import numpy as np
import xarray

from ingest_runner import IngestCase, component_is_built, run_all
from tolerance import rounds_to

LATITUDE = np.array([60.0, 20.0, -20.0, -60.0])
LONGITUDE = np.arange(0.0, 360.0, 45.0)


def values_at(times, longitude=LONGITUDE):
    """A number for every time, latitude and longitude, whatever the convention of the longitude."""
    return (np.asarray(times)[:, None, None] * 1000 + LATITUDE[:, None] + np.mod(longitude, 360) / 1000).astype(np.float32)


@unittest.skipUnless(component_is_built(), "the ingest component is not built: ecCodes or netCDF-C is not installed")
class Conventions(IngestCase):
    def setUp(self):
        super().setUp()
        self.folder = self.root / "in"
        self.folder.mkdir()

    def write(self, name, times, longitude=LONGITUDE, latitude_attributes=None, longitude_attributes=None, names=("lat", "lon"), values=None, **encoding):
        latitude_attributes = {"units": "degrees_north"} if latitude_attributes is None else latitude_attributes
        longitude_attributes = {"units": "degrees_east"} if longitude_attributes is None else longitude_attributes
        values = values_at(times, longitude) if values is None else values
        array = xarray.DataArray(values, dims=("time", *names), name="t", attrs={"units": "K"}, coords={
            "time": ("time", np.asarray(times, float), {"units": "hours since 2001-01-01", "calendar": "standard"}),
            names[0]: (names[0], LATITUDE, latitude_attributes), names[1]: (names[1], longitude, longitude_attributes)})
        array.to_dataset().to_netcdf(self.folder / name, encoding={"t": {"_FillValue": None, **encoding}, names[0]: {"_FillValue": None},
                                                                   names[1]: {"_FillValue": None}})
        return self.folder / name

    def test_two_conventions_of_longitude(self):
        west = np.arange(-180.0, 180.0, 45.0)
        first, second = self.write("a.nc", [0, 1]), self.write("b.nc", [2, 3], west)
        report = self.ingest(self.folder)
        self.assertIn("turned to the longitudes of the first file: path=b.nc, begins at -180 E, written from 0 E", report)
        np.testing.assert_array_equal(self.fields("train/2001.h5")[:, 0], values_at(range(4)))
        np.testing.assert_array_equal(self.dataset("train/2001.h5", "longitude"), LONGITUDE)
        self.out = self.root / "west"
        self.ingest(second, first)
        np.testing.assert_array_equal(self.fields("train/2001.h5")[:, 0], values_at(range(4), west))
        np.testing.assert_array_equal(self.dataset("train/2001.h5", "longitude"), west)

    def test_coordinates_are_known_by_standard_name_axis_or_name(self):
        for i, (north, east, names) in enumerate((
                ({"standard_name": "latitude"}, {"standard_name": "longitude"}, ("y", "x")),
                ({"units": "degrees", "axis": "Y"}, {"units": "degrees", "axis": "X"}, ("rows", "columns")),
                ({}, {}, ("latitude", "longitude")),
                ({"units": "degrees"}, {"units": "degrees"}, ("lat", "lon")))):
            with self.subTest(names=names):
                file = self.write("a.nc", [0, 1], latitude_attributes=north, longitude_attributes=east, names=names)
                self.out = self.root / f"out{i}"
                self.ingest(file)
                np.testing.assert_array_equal(self.fields("train/2001.h5")[:, 0], values_at([0, 1]))

    def test_units_of_one_variable_in_two_files(self):
        self.write("a.nc", [0, 1])
        other = self.write("b.nc", [2, 3])
        with netCDF4.Dataset(other, "a") as dataset:
            dataset["t"].units = "degC"
        self.assertIn("one variable has different units in its files: channel=t, units=K, units=degC. Bring the files into one unit",
                      self.refused(self.folder))
        with netCDF4.Dataset(other, "a") as dataset:
            dataset["t"].units = ""
        self.assertIn("one variable has different units in its files: channel=t, units=K, units=.", self.refused(self.folder))
        for name, unit in (("a.nc", "m s**-1"), ("b.nc", "m s-1")):  # two spellings
            with netCDF4.Dataset(self.folder / name, "a") as dataset:
                dataset["t"].units = unit
        self.ingest(self.folder)
        np.testing.assert_array_equal(self.fields("train/2001.h5")[:, 0], values_at(range(4)))

    def test_a_turned_pole_is_no_latitude(self):
        file = self.write("a.nc", [0, 1], names=("rlat", "rlon"), latitude_attributes={"standard_name": "grid_latitude", "units": "degrees", "axis": "Y"},
                          longitude_attributes={"standard_name": "grid_longitude", "units": "degrees", "axis": "X"})
        self.assertIn("Not taken: t (a.nc): it has no dimensions of latitude and longitude: rlat is neither time, member, level, latitude nor longitude "
                      "(units='degrees')", self.refused(file))

    def test_fill_values_of_another_precision(self):
        file = self.write("a.nc", [0, 1])
        with netCDF4.Dataset(file, "a") as dataset:
            dataset["t"].setncattr("missing_value", np.float64(1e20))
            dataset["t"].setncattr("valid_max", np.float64(2000.3))  # not a float32
            dataset["t"][0, 0, 0], dataset["t"][0, 0, 1] = np.float32(1e20), np.float32(2000.3)
        self.ingest(file, "--missing", "nan")
        fields = self.fields("train/2001.h5")[:, 0]
        expected = values_at([0, 1])
        expected[0, 0, :2] = np.nan, np.float32(2000.3)
        np.testing.assert_array_equal(fields, expected)

    def test_packed_by_xarray(self):
        values = values_at([0, 1])
        values[1, 2, 3] = np.nan
        file = self.write("a.nc", [0, 1], values=values, dtype="int16", scale_factor=0.05, add_offset=500.0, _FillValue=-32768)
        self.ingest(file, "--missing", "mean")
        fields = self.fields("train/2001.h5")[:, 0]
        with xarray.open_dataset(file) as dataset:
            read = dataset["t"].values
        self.assertTrue(np.isnan(read[1, 2, 3]))
        read[1, 2, 3] = fields[1, 2, 3]
        rounds_to(fields, read, 4, scale=read)
        rounds_to(fields[1, 2, 3], np.delete(read.ravel(), 32 + 2 * 8 + 3).astype(float).mean(), 4)

    def test_unsigned_bytes_by_attribute(self):
        bits = np.arange(64, dtype="u1").reshape(2, 4, 8) * 4
        for kind, word, expected in (("i1", "TRUE", bits), ("i1", "true", bits), ("u1", "false", bits.view("i1")), ("u1", "true", bits)):
            with self.subTest(kind=kind, word=word):
                path = self.write("a.nc", [0, 1], values=bits.view(kind))
                with netCDF4.Dataset(path, "a") as file:
                    file["t"].setncattr("_Unsigned", word)
                self.out = self.root / f"{kind}{word}"
                self.ingest(path)
                np.testing.assert_array_equal(self.fields("train/2001.h5")[:, 0], expected.astype("f4"))

    def test_a_curvilinear_grid_and_text(self):
        path = self.folder / "wrf.nc"
        with netCDF4.Dataset(path, "w") as file:
            for name, size in (("Time", 2), ("south_north", 4), ("west_east", 8), ("letters", 19), ("band", 2)):
                file.createDimension(name, size)
            for name, units in (("XLAT", "degree_north"), ("XLONG", "degree_east")):
                file.createVariable(name, "f4", ("south_north", "west_east")).units = units
            file.createVariable("T2", "f4", ("Time", "south_north", "west_east")).coordinates = "XLONG XLAT"
            file.createVariable("Times", "S1", ("Time", "letters"))
            file.createVariable("spectrum", "f4", ("Time", "band"))
        message = self.refused(path)
        for part in ("no field on latitude and longitude is selected. Not taken: ",
                     "T2 (wrf.nc): its latitude and longitude (XLAT, XLONG) have two dimensions: interpolate it to a regular grid first (cdo remapbil)",
                     "Times (wrf.nc): it holds text",
                     "spectrum (wrf.nc): it has no dimensions of latitude and longitude: Time has no coordinate variable, band has no coordinate variable"):
            self.assertIn(part, message)
        self.assertNotIn("XLAT (wrf.nc)", message)
        self.assertIn("a variable cannot be taken: variable=T2, path=wrf.nc", self.refused(path, "--variables", "T2"))

    def test_a_time_without_units(self):
        path = self.write("a.nc", [0, 1])
        with netCDF4.Dataset(path, "a") as file:
            file["time"].setncattr("units", "hours")
        self.assertIn("Not taken: t (a.nc): its dimension time has no units of time such as 'hours since 2001-01-01' (units='hours')", self.refused(path))

    def test_a_time_at_which_a_forecast_began(self):
        path = self.write("a.nc", [0, 24])
        with netCDF4.Dataset(path, "a") as file:
            file["time"].standard_name = "forecast_reference_time"
            step = file.createVariable("step", "f8", ())
            step.setncatts({"standard_name": "forecast_period", "units": "hours"})
            step[:] = 0
        self.ingest(path)  # an analysis
        with netCDF4.Dataset(path, "a") as file:
            file["step"][:] = 6
        self.out = self.root / "forecast"
        self.assertIn("t (a.nc): its time (time) is that at which the forecast began: add step to it (standard_name=forecast_period)",
                      self.run_ingest(path).stderr)
        self.assertFalse(self.out.exists())

    def test_a_repeated_longitude(self):
        path = self.write("a.nc", [0, 1], np.arange(0.0, 361.0, 45.0))
        self.assertIn("the last longitude of a file repeats the first: path=", self.refused(path))

    def test_levels_that_are_not_there(self):
        with netCDF4.Dataset(self.folder / "a.nc", "w") as file:
            for name, values, units in (("time", [0, 1], "hours since 2001-01-01"), ("plev", [50000, 85000], "Pa"), ("lat", LATITUDE, "degrees_north"),
                                        ("lon", LONGITUDE, "degrees_east")):
                file.createDimension(name, len(values))
                file.createVariable(name, "f8", (name,))[:] = values
                file[name].units = units
            file.createVariable("t", "f4", ("time", "plev", "lat", "lon"))[:] = np.arange(2 * 2 * 32).reshape(2, 2, 4, 8)
        message = self.refused(self.folder, "--levels", "500,850,333")
        self.assertIn("no selected variable has this level: level=333. Choose among the levels that there are: t: 500 850.", message)

    def test_folders_inside_a_folder(self):
        self.write("a.nc", [0, 1])
        (self.folder / "more").mkdir()
        self.write("more/b.nc", [2, 3])
        self.assertIn(f"warning: not looked into: folder={self.folder / 'more'} (--recursive does)", self.ingest(self.folder))
        self.out = self.root / "deep"
        self.ingest(self.folder, "--recursive")
        self.assertEqual(len(self.fields("train/2001.h5")), 4)


if __name__ == "__main__":
    run_all("__main__")
