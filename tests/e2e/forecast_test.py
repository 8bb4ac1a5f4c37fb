# SPDX-License-Identifier: Apache-2.0
"""`welkin forecast`: files as xarray and a checker of the CF conventions see them, what they hold, ranks, kills, refusals."""
import os
import signal
import subprocess
import sys
import time
import unittest

import h5py
import numpy as np
import xarray

from bad_input_case import BINARY, DATA, USAGE
from forecast_case import CHANNELS, HEIGHT, HOURS, LATITUDE, STEPS, UNITS, WIDTH, ForecastCase, epoch_seconds, write_dated_fields
from tolerance import rounds_to


def opened(path):
    """With (init_time, number, lead_time, latitude, longitude)."""
    data = xarray.open_zarr(path, decode_timedelta=True) if path.suffix == ".zarr" else xarray.open_dataset(path, decode_timedelta=True)
    return data.transpose("init_time", "number", "lead_time", "latitude", "longitude", missing_dims="ignore")


def tree_bytes(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class Forecast(ForecastCase):
    def test_newest_needs_no_truth(self):
        """A folder of one state: the start is in the file, every lead beyond it."""
        write_dated_fields(self.folder / "now/state.h5", epoch_seconds(2024, 2, 28, 18), steps=1)
        for name in ("a.zarr", "a.nc"):
            path = self.forecast(name, "--states", self.folder / "now", "--time_step", "6h", "--steps", "3")
            data = opened(path)
            self.assertEqual(list(data.data_vars), CHANNELS)
            self.assertEqual(dict(data.sizes), {"init_time": 1, "lead_time": 3, "latitude": HEIGHT, "longitude": WIDTH})
            self.assertEqual(data.init_time.values[0], np.datetime64("2024-02-28T18"))
            np.testing.assert_array_equal(data.valid_time.values[0],
                                          np.array(["2024-02-29T00", "2024-02-29T06", "2024-02-29T12"], "datetime64[ns]"))
            self.assertEqual(data.init_time.attrs["standard_name"], "forecast_reference_time")
            self.assertEqual(data.valid_time.attrs["standard_name"], "time")
            self.assertEqual([data[name].attrs["units"] for name in CHANNELS], UNITS)
            self.assertEqual(data.t2m.attrs["standard_name"], "air_temperature")
            np.testing.assert_array_equal(data.latitude, LATITUDE)
            self.assertTrue(np.isfinite(data.to_dataarray().values).all())
            self.assertFalse((self.folder / (name + ".unfinished")).exists())
        np.testing.assert_array_equal(opened(self.folder / "a.zarr").to_dataarray(), opened(self.folder / "a.nc").to_dataarray())
        write_dated_fields(self.folder / "now/state.h5", epoch_seconds(2024, 2, 28, 18), steps=1)
        self.refused(USAGE, "--states", self.folder / "now", "--output", self.folder / "b.zarr", parts=["--time_step 6h"])

    def test_is_the_rollout_of_the_model(self):
        """Of starts with a truth behind them `welkin predict` makes the same fields."""
        path = self.forecast("all.zarr", "--from", "all", "--steps", "3", "--split", "valid")
        self.call("predict", self.run_folder, "--device", "cpu", "--samples", STEPS - 3, "--rollout_steps", "3", "--output", self.folder / "predictions")
        with h5py.File(next((self.folder / "predictions").glob("*.h5"))) as file:
            expected, samples = file["prediction"][:], file["sample"][:]
        data = opened(path)
        self.assertEqual(data.sizes["init_time"], STEPS)
        made = np.stack([data[name].values for name in CHANNELS], 2)
        rounds_to(made[samples], expected, 256, scale=np.abs(expected).max())
        self.assertEqual(data.lead_time.values[0], np.timedelta64(HOURS, "h"))

    def test_cf_checker(self):
        try:
            import compliance_checker  # noqa: F401
        except ImportError:
            self.skipTest("no package compliance-checker in this environment")
        path = self.forecast("cf.nc", "--steps", "2", "--members", "2", "--perturb", "gaussian:amplitude=0.1")
        done = subprocess.run([os.path.join(os.path.dirname(sys.executable), "compliance-checker"), "--test", "cf:1.10", "--criteria", "strict", path],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("All tests passed!", done.stdout)

    def test_members_do_not_depend_on_ranks(self):
        flags = ("--from", "2001-03-02,2001-03-03", "--steps", "2", "--members", "6", "--perturb", "sphere:amplitude=0.2,length_km=2000",
                 "--control", "--local_batch_size", "2")
        one, two = self.forecast("one.zarr", *flags), self.forecast("two.zarr", *flags, ranks=2)
        self.assertEqual(tree_bytes(one), tree_bytes(two))
        data = opened(one)
        self.assertEqual(list(data.number.values), [0, 1, 2, 3, 4, 5])
        alone = opened(self.forecast("alone.nc", "--from", "2001-03-03", "--steps", "2", "--members", "6", "--perturb",
                                     "sphere:amplitude=0.2,length_km=2000", "--control", "--local_batch_size", "2"))
        np.testing.assert_array_equal(data.t2m.values[1], alone.t2m.values[0])
        plain = opened(self.forecast("plain.nc", "--from", "2001-03-03", "--steps", "2"))
        rounds_to(data.t2m.values[1, 0], plain.t2m.values[0], 256, scale=np.abs(plain.t2m.values).max())
        self.assertGreater(np.abs(data.t2m.values[1, 1] - data.t2m.values[1, 2]).max(), 1e-3)

    def test_lagged_bred_dropout_and_checkpoints(self):
        lagged = opened(self.forecast("lagged.nc", "--from", "2001-03-03", "--steps", "2", "--members", "3", "--perturb", "lagged"))
        earlier = opened(self.forecast("earlier.nc", "--from", "2001-03-02T18", "--steps", "3"))
        rounds_to(lagged.u10.values[0, 1], earlier.u10.values[0, 1:], 256, scale=np.abs(earlier.u10.values).max())
        bred = opened(self.forecast("bred.nc", "--from", "2001-03-03", "--members", "3", "--perturb", "bred:amplitude=0.1,cycles=3", "--control"))
        spread = np.abs(bred.u10.values[0, 1:] - bred.u10.values[0, :1]).max((1, 2, 3))
        self.assertTrue((spread > 1e-5).all() and (spread < 10).all(), spread)
        dropped = opened(self.forecast("dropout.nc", "--members", "2", "--with_dropout"))
        self.assertGreater(np.abs(np.diff(dropped.u10.values[0], axis=0)).max(), 1e-5)
        step = self.run_folder / "checkpoints"
        last = sorted(step.iterdir())[-1].name.removeprefix("step_")
        two = opened(self.forecast("two.nc", "--members", "2", "--checkpoints", f"{last},newest"))
        np.testing.assert_array_equal(two.u10.values[0, 0], two.u10.values[0, 1])

    def test_goes_on_after_a_kill(self):
        flags = ["--from", "all", "--steps", "40", "--split", "valid"]
        whole = self.forecast("whole.zarr", *flags)
        output = self.folder / "killed.zarr"
        journal = self.folder / "killed.zarr.unfinished/done.0"
        command = [BINARY, "forecast", self.run_folder, "--device", "cpu", "--output", output, *flags]
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.root)
        self.addCleanup(process.kill)
        end = time.monotonic() + 60
        while not (journal.exists() and journal.read_text().count("\n") >= 2):
            self.assertIsNone(process.poll(), "it ended before it was killed")
            self.assertLess(time.monotonic(), end)
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.assertFalse(output.exists())
        written = {path: path.stat().st_mtime_ns for path in (self.folder / "killed.zarr.unfinished/data.zarr/t2m").glob("*.0.0.0")}
        self.assertEqual(len(written), 40)
        self.refused(USAGE, "--output", output, "--steps", "5", parts=["another forecast was begun there", "steps 40"])
        # The rest by two ranks: nothing of the first start is written again.
        self.forecast("killed.zarr", *flags, ranks=2)
        self.assertEqual(tree_bytes(output), tree_bytes(whole))
        for path, stamp in written.items():
            self.assertEqual((output / "t2m" / path.name).stat().st_mtime_ns, stamp)

    def test_refusals(self):
        there = self.forecast("there.nc")
        self.refused(USAGE, "--output", there, parts=["the output is there already"])
        self.refused(USAGE, parts=["--output"])
        self.refused(USAGE, "--output", self.folder / "x.grib", parts=[".zarr or .nc"])
        new = ("--output", self.folder / "new.nc")
        self.refused(DATA, *new, "--from", "1999-01-01", parts=["there is no state of that time", "1999-01-01T00:00:00", "newest=2001-03-04T18:00:00"])
        self.refused(USAGE, *new, "--from", "soon", parts=["soon"])
        self.refused(USAGE, *new, "--members", "4", parts=["nothing makes the members differ"])
        self.refused(USAGE, *new, "--perturb", "white", parts=["--perturb=white", "gaussian:amplitude"])
        self.refused(DATA, *new, "--perturb", "lagged", "--members", "40", parts=["there is no state of that time"])
        for name, values in (("latitude", LATITUDE + 1), ("calendar", "noleap")):
            path = write_dated_fields(self.folder / name / "state.h5", epoch_seconds(2024, 1, 1), steps=2)
            with h5py.File(path, "a") as file:
                if name == "latitude":
                    file[name][:] = np.clip(values, -90, 90)
                else:
                    file["time"].attrs[name] = values
            self.refused(DATA, *new, "--states", path.parent, parts=["another grid" if name == "latitude" else "another calendar"])
        path = write_dated_fields(self.folder / "holes" / "state.h5", epoch_seconds(2024, 1, 1), steps=2)
        with h5py.File(path, "a") as file:
            file["fields"].attrs["missing"] = "hole"
        self.refused(USAGE, *new, "--states", path.parent, parts=["points without a value are not filled by a forecast yet"])
        self.refused(USAGE, *new, "--checkpoints", "best,newest", parts=["more checkpoints than members"])


class OneStep(ForecastCase):
    keys = {**ForecastCase.keys, "n_out_channels": 2}

    def test_channels_that_are_not_predicted(self):
        self.forecast("one.nc")
        self.refused(USAGE, "--output", self.folder / "two.nc", "--steps", "2", parts=["channel=z500", "Ask for one step"])


if __name__ == "__main__":
    unittest.main()
