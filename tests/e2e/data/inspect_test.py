# SPDX-License-Identifier: Apache-2.0
"""`welkin data inspect` of netCDF-3, GRIB, folders, and its pictures."""
import base64
import pathlib
import re
import struct
import subprocess
import unittest
import zlib

import h5py
import netCDF4
import numpy as np

from ingest_runner import BINARY, IngestCase, component_is_built, run_all

try:
    import eccodes
except ImportError:
    eccodes = None

LATITUDE, LONGITUDE = np.array([-10.0, 0.0, 10.0]), np.array([0.0, 5.0, 10.0, 15.0])


def write_netcdf3(path, times, calendar="standard", name="t"):
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as file:
        for dimension, values, units in (("time", times, "hours since 2001-01-01"), ("lat", LATITUDE, "degrees_north"), ("lon", LONGITUDE, "degrees_east")):
            file.createDimension(dimension, len(values))
            file.createVariable(dimension, "f8", (dimension,))[:] = values
            file[dimension].units = units
        file["time"].calendar = calendar
        file.createVariable(name, "f4", ("time", "lat", "lon"))[:] = np.arange(len(times) * 12).reshape(-1, 3, 4)
        file[name].setncatts({"units": "K", "long_name": "a temperature"})
        file.createVariable("station", "f4", ("time",))[:] = times
    return path


def png_pixels(data):
    """(height, width, 3) of an 8-bit RGB PNG of any row filters."""
    width, height = struct.unpack(">2I", data[16:24])
    body, at = b"", 8
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body += data[at + 8:at + 8 + length] if kind == b"IDAT" else b""
        at += 12 + length
    return width, height, len(set(zlib.decompress(body)))


class Inspect(IngestCase):
    def inspect(self, *arguments, code=0):
        done = subprocess.run([str(word) for word in (BINARY, "data", "inspect", *arguments)], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stderr

    @unittest.skipUnless(component_is_built(), "the ingest component is not built: ecCodes or netCDF-C is not installed")
    def test_netcdf3(self):
        text = self.inspect(write_netcdf3(self.root / "a.nc", [0, 6, 12, 24], "noleap"))
        for part in ("netCDF-3, ", "1 variables, 4 fields, read with ecCodes ", "t [K]  a temperature", "grid 3x4, 10 to -10 N, 0 to 15 E",
                     "times 4, 2001-01-01T00:00:00 to 2001-01-02T00:00:00, step 6 h, calendar noleap, gaps 1 (first after 2001-01-01T12:00:00, missing 1)",
                     "values min 0, max 47", "station  no field: it has no dimensions of latitude and longitude"):
            self.assertIn(part, text)

    @unittest.skipUnless(component_is_built() and eccodes, "the ingest component or the Python package eccodes is not installed")
    def test_grib(self):
        path = self.root / "levels"
        with open(path, "wb") as file:
            for hour in range(2):
                for level in 850, 500:
                    handle = eccodes.codes_grib_new_from_samples("regular_ll_pl_grib2")
                    for key, value in {"shortName": "t", "level": level, "dataDate": 20010101, "dataTime": hour * 100}.items():
                        eccodes.codes_set(handle, key, value)
                    eccodes.codes_set_values(handle, np.full(eccodes.codes_get_size(handle, "values"), 250.0 + hour))
                    eccodes.codes_write(handle, file)
        text = self.inspect(path)
        for part in ("GRIB, ", "1 variables, 4 fields", "t [K]  Temperature", "levels isobaricInhPa: 850 500 hPa",
                     "times 2, 2001-01-01T00:00:00 to 2001-01-01T01:00:00, step 1 h, no gaps", "values min 250, max 251"):
            self.assertIn(part, text)

    @unittest.skipUnless(component_is_built(), "the ingest component is not built: ecCodes or netCDF-C is not installed")
    def test_a_folder(self):
        folder = self.root / "in"
        folder.mkdir()
        write_netcdf3(folder / "a.nc", [0, 1, 2])
        write_netcdf3(folder / "c.nc", [5, 6])
        (folder / "b.nc").write_bytes((folder / "a.nc").read_bytes()[:60])
        (folder / "notes.txt").write_text("hello")
        np.save(folder / "d.npy", np.zeros((2, 3)))
        text = self.inspect(folder)
        self.assertRegex(text, r"a\.nc +netCDF-3 +.* t +3, 2001-01-01T00:00:00 to 2001-01-01T02:00:00, step 1 h, no gaps")
        self.assertRegex(text, r"b\.nc .*cannot be read: ")
        self.assertRegex(text, r"d\.npy +npy +.*\(2, 3\)")
        self.assertIn("folder, 4 files of data, 1 other entries", text)
        self.assertIn("times of all files: 5, 2001-01-01T00:00:00 to 2001-01-01T06:00:00, step 1 h, gaps 1 (first after 2001-01-01T02:00:00, missing 2)", text)

    @unittest.skipUnless(component_is_built(), "the ingest component is not built: ecCodes or netCDF-C is not installed")
    def test_a_folder_of_training_files(self):
        write_netcdf3(self.root / "a.nc", range(8))
        self.ingest(self.root / "a.nc")
        text = self.inspect(self.out / "train")
        self.assertRegex(text, r"2001\.h5 +training file .* t +8, 2001-01-01T00:00:00 to 2001-01-01T07:00:00, step 1 h, no gaps")

    @unittest.skipUnless(component_is_built(), "the ingest component is not built: ecCodes or netCDF-C is not installed")
    def test_pictures_of_fields(self):
        file, picture = write_netcdf3(self.root / "a.nc", [0, 6, 12]), self.root / "a.png"
        text = self.inspect(file, "--plot", picture, "--channel", "t", "--time", "2001-01-01T06:00")
        self.assertIn(f"wrote {picture}: t [K], 2001-01-01T06:00:00, 3x4, min 12, max 23, mean 17.5, std 3.45", text)
        width, height, colours = png_pixels(picture.read_bytes())
        self.assertEqual((width, height), (900, 600))
        self.assertGreater(colours, 12)
        self.assertIn("2001-01-01T12:00:00, 3x4, min 24", self.inspect(file, "--plot", picture, "--time", "-1"))
        drawing = self.root / "a.svg"
        self.inspect(file, "--plot", drawing, "--time", "1")
        svg = drawing.read_text()
        self.assertIn("<title>t [K], 2001-01-01T06:00:00</title>", svg)
        self.assertEqual(png_pixels(base64.b64decode(re.search(r"base64,([^\"]+)", svg)[1]))[:2], (900, 600))
        self.assertIn("there is no such time: time=2001-02-01, first=2001-01-01T00:00:00, last=2001-01-01T12:00:00. Give one of the 3 times",
                      self.inspect(file, "--plot", picture, "--time", "2001-02-01", code=2))
        self.assertIn("there is no such time: time=3, count=3. Give a number from 0 to 2.", self.inspect(file, "--plot", picture, "--time", "3", code=2))
        self.assertIn("no field of this name and these levels: variable=u", self.inspect(file, "--plot", picture, "--channel", "u", code=3))
        self.assertIn("neither PNG nor SVG: plot=a.jpg. Let the name end in .png or .svg.", self.inspect(file, "--plot", "a.jpg", code=2))
        self.assertIn("one picture of several files: files=2", self.inspect(file, file, "--plot", picture, code=2))

    def test_pictures_of_arrays(self):
        picture = self.root / "a.png"
        with h5py.File(self.root / "box.h5", "w") as file:
            file["Nbody"] = np.arange(2 * 4 * 4 * 4, dtype=np.float32).reshape(2, 4, 4, 4)
            file["Nbody"].attrs["channels"] = ["density", "speed"]
            file["line"] = np.arange(4.0)
        self.assertIn("Nbody, speed, plane 2, 4x4, min 96, max 111", self.inspect(self.root / "box.h5", "--plot", picture, "--channel", "speed"))
        self.assertIn("Nbody, density, plane 0, 4x4, min 0, max 15", self.inspect(self.root / "box.h5", "--plot", picture, "--time", "0"))
        self.assertIn("there is nothing to draw: ", self.inspect(self.root / "box.h5", "--plot", picture, "--channel", "mass", code=2))
        with h5py.File(self.root / "2001.h5", "w") as file:
            file["fields"] = np.arange(3 * 2 * 4 * 5, dtype=np.float32).reshape(3, 2, 4, 5)
        self.assertIn("channel 1, step 2, 4x5, min 100, max 119", self.inspect(self.root / "2001.h5", "--plot", picture, "--channel", "1", "--time", "2"))
        self.assertTrue(pathlib.Path(picture).exists())


if __name__ == "__main__":
    run_all("__main__")
