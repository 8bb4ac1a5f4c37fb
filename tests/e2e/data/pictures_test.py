# SPDX-License-Identifier: Apache-2.0
"""Pictures of files with values that stand for missing ones: such values set no colour range, and their cells are drawn as missing."""
import unittest

import h5py
import netCDF4
import numpy as np
import xarray
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from bad_input_case import BINARY, CHANNELS, DONE, FIELDS, HEIGHT, WIDTH, YEAR_STEPS, BadInputCase, write_statistics
from ingest_runner import component_is_built
from png_picture import MISSING_GRAY, panels, pixels, share_of
from tolerance import within

FILL = np.float32(1e20)
LATITUDE, LONGITUDE = np.linspace(70, -70, HEIGHT), np.arange(WIDTH) * 360 / WIDTH
SHOWN = 2  # the channel of a training picture
ROWS, COLUMNS = slice(2, 6), slice(4, 12)  # a quarter of the field has no value


def true_values():
    return np.random.default_rng(5).normal(size=(YEAR_STEPS, CHANNELS, HEIGHT, WIDTH)).astype(np.float32)


def with_fills(values):
    values = values.copy()
    values[:, SHOWN, ROWS, COLUMNS] = FILL
    return values


class Pictures(BadInputCase):
    one_process = True

    def run_well(self, *command):
        done = self.run_command(command)
        self.assertEqual(done.returncode, DONE, done.stderr)
        return done.stdout

    def check_ends(self, ends, values):
        within(ends, [values.min(), values.max()], 5e-4, "half of the last of the four digits that a colour bar has")

    def plot(self, path, *flags):
        picture = self.root / "picture.png"
        told = self.run_well(BINARY, "data", "inspect", path, "--plot", picture, *flags)
        return told, picture.read_bytes()

    def check_plot(self, path, values, *flags):
        """`values` are those that there are of the plane."""
        told, data = self.plot(path, *flags)
        self.assertTrue(told.endswith(" 32\n"), told)  # missing, or not finite
        self.assertGreater(share_of(pixels(data), MISSING_GRAY), 0.17)
        (_, ends), = panels(data).items()
        self.check_ends(ends, values)

    def test_of_inspect(self):
        values, fills = true_values(), with_fills(true_values())
        there = np.delete(values[3, SHOWN].ravel(), np.flatnonzero(fills[3, SHOWN].ravel() == FILL))
        with h5py.File(self.root / "2001.h5", "w") as file:
            file["fields"] = fills
            file["fields"].attrs["_FillValue"] = FILL
        self.check_plot(self.root / "2001.h5", there, "--channel", str(SHOWN), "--time", "3")
        with h5py.File(self.root / "box.h5", "w") as file:
            file["Nbody"] = fills[:, SHOWN]
            file["Nbody"].attrs["missing_value"] = FILL
        self.check_plot(self.root / "box.h5", there, "--time", "3")
        data = xarray.Dataset({"fields": (("time", "channel", "lat", "lon"), fills, {"valid_range": np.array([-10, 10], "f4")})})
        data.to_zarr(self.root / "2001.zarr", zarr_format=2, consolidated=False)
        self.check_plot(self.root / "2001.zarr", there, "--channel", str(SHOWN), "--time", "3")

    @unittest.skipUnless(component_is_built(), "the ingest component is not built: ecCodes or netCDF-C is not installed")
    def test_of_inspect_of_netcdf(self):
        values, fills = true_values(), with_fills(true_values())
        there = np.delete(values[3, SHOWN].ravel(), np.flatnonzero(fills[3, SHOWN].ravel() == FILL))
        for form in ("NETCDF4", "NETCDF3_CLASSIC"):
            path = self.root / f"{form}.nc"
            with netCDF4.Dataset(path, "w", format=form) as file:
                for name, axis, units in (("time", np.arange(YEAR_STEPS), "hours since 2001-01-01"), ("lat", LATITUDE, "degrees_north"),
                                          ("lon", LONGITUDE, "degrees_east")):
                    file.createDimension(name, axis.size)
                    file.createVariable(name, "f8", (name,))[:] = axis
                    file[name].units = units
                variable = file.createVariable("t", "f4", ("time", "lat", "lon"), fill_value=FILL)
                variable.set_auto_maskandscale(False)
                variable[:] = fills[:, SHOWN]
            self.check_plot(path, there, "--time", "3")

    def test_of_predictions_and_of_training(self):
        write_statistics(self.data / "stats")
        for folder in ("train", "valid"):
            (self.data / folder).mkdir()
            with h5py.File(self.data / folder / "2001.h5", "w") as file:
                file["fields"] = with_fills(true_values())
                file["fields"].attrs["_FillValue"] = FILL
                file["fields"].attrs["channels"] = ["u10", "v10", "t2m"]
        for policy in "hole", "mask":
            with self.subTest(policy):
                done = self.train({**FIELDS, "nan_policy": policy, "num_iters": 8}, "--run_num", policy)
                self.assertEqual(done.returncode, DONE, done.stderr)
                run = self.logs / "base/1GPU" / policy
                self.run_well(BINARY, "predict", run, "--output", self.root / policy, "--samples", "1", "--channels", "t2m,u10")
                self.check_predictions(self.root / policy, holes=policy == "hole")
                drawn = self.training_picture(run)
                ends = panels(drawn)["ERA5 target"]
                self.assertLess(max(np.abs(ends)), np.abs(true_values()).max() + 0.001)
                if policy == "hole":
                    self.assertGreater(share_of(pixels(drawn), MISSING_GRAY), 0.1, "both panels")

    def check_predictions(self, folder, holes):
        with h5py.File(folder / "predictions.h5") as file:
            target, prediction = file["target"][0, SHOWN], file["prediction"][0, SHOWN]
        for values in target, prediction:
            self.assertEqual(np.isnan(values).sum(), 32 if holes else 0)
        drawn = (folder / "sample_0_t2m.png").read_bytes()
        ends = panels(drawn)
        for title in "input", "target", "prediction":
            self.check_ends(ends[title], target[np.isfinite(target)])
        widest = np.nanmax(np.abs(prediction - target))
        self.check_ends(ends["prediction - target"], np.array([-widest, widest]))
        if holes:  # masked values are the channel's mean, and are drawn so
            self.assertGreater(share_of(pixels(drawn), MISSING_GRAY), 0.09, "all four panels")
            self.assertLess(share_of(pixels((folder / "sample_0_u10.png").read_bytes()), MISSING_GRAY), 0.01)

    def training_picture(self, run):
        folder = next(path.parent for path in run.rglob("events.out.tfevents*"))
        events = EventAccumulator(str(folder), size_guidance={"images": 0})
        events.Reload()
        tag, = events.Tags()["images"]
        self.assertEqual(tag, "Visualization, t2m")
        return events.Images(tag)[-1].encoded_image_string


if __name__ == "__main__":
    unittest.main()
