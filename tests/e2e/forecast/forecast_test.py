# SPDX-License-Identifier: Apache-2.0
"""`welkin forecast`: files as xarray and a checker of the CF conventions see them, what they hold, ranks, kills, refusals."""
import os
import shutil
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

    def test_files_say_that_nan_is_no_value(self):
        for name in ("said.nc", "said.zarr"):
            with opened(self.forecast(name)) as data:
                for channel in CHANNELS:
                    fill = data[channel].encoding["_FillValue"]
                    self.assertTrue(np.isnan(fill) and fill.dtype == np.float32, f"{name}: {fill!r}")

    def test_leads_become_an_animation(self):
        """APNG: a control chunk for each of three leads."""
        self.forecast("moving.zarr", "--split", "valid", "--from", "2001-03-02T06", "--steps", "3", "--members", "2", "--perturb", "gaussian:amplitude=0.05",
                      "--animate", "apng", "--channels", "t2m,u10")
        predict = ("predict", self.run_folder, "--device", "cpu", "--samples", "1", "--output", self.folder / "moving")
        self.call(*predict, "--rollout_steps", "3", "--animate", "apng")
        for path in ("moving_t2m.apng", "moving_u10.apng", "moving/sample_0_t2m.apng"):
            data = (self.folder / path).read_bytes()
            self.assertEqual((data[:8], data.count(b"fcTL")), (b"\x89PNG\r\n\x1a\n", 3), path)
        self.assertIn("Give --rollout_steps of 2 or more", self.call(*predict, "--animate", "apng", code=USAGE).stderr)
        self.assertIn("Choose apng, gif or mp4", self.call(*predict, "--animate", "avi", code=USAGE).stderr)
        self.assertIn("there is no such channel: channel=q", self.call("forecast", self.run_folder, "--output", self.folder / "q.zarr", "--split", "valid", "--animate", "apng",
                                                                       "--channels", "q", code=USAGE).stderr)
        self.assertFalse((self.folder / "q.zarr").exists())

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
        for name, seed in (("again", ()), ("same", ("--ensemble_seed", 0)), ("other", ("--ensemble_seed", 1))):
            drawn = opened(self.forecast(f"{name}.nc", "--members", "2", "--with_dropout", *seed)).u10.values
            self.assertEqual(name == "other", bool((drawn != dropped.u10.values).any()), name)
        step = self.run_folder / "checkpoints"
        last = sorted(step.iterdir())[-1]
        self.refused(USAGE, "--output", self.folder / "x.nc", "--members", "2", "--checkpoints", f"{last.name.removeprefix('step_')},newest",
                     parts=["two of the checkpoints are one"])
        shutil.copytree(last, step / "step_999")
        self.addCleanup(shutil.rmtree, step / "step_999")
        two = opened(self.forecast("two.nc", "--members", "2", "--checkpoints", f"{last.name.removeprefix('step_')},999"))
        np.testing.assert_array_equal(two.u10.values[0, 0], two.u10.values[0, 1])
        self.refused(USAGE, "--output", self.folder / "x.nc", "--members", "2", "--with_dropout", "--set", "dropout=0",
                     parts=["members of a model without dropout do not differ by it"])

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
        self.refused(USAGE, "--output", output, *flags, "--time_step", "6h", parts=["another forecast was begun there"])
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
        self.refused(USAGE, *new, "--time_step", "7h", parts=["the data have another step: --time_step=7h, step=6 h. Leave it out"])
        write_dated_fields(self.folder / "now/state.h5", epoch_seconds(2024, 2, 28, 18), steps=1)
        self.refused(USAGE, *new, "--states", self.folder / "now", "--time_step", "7h", parts=["the data have another step: --time_step=7h, step=6 h"])
        for member in (0, 3):
            path = write_dated_fields(self.folder / f"several/member{member}.h5", epoch_seconds(2024, 2, 28, 18), steps=2)
            with h5py.File(path, "a") as file:
                file.attrs["member"] = member
        self.refused(DATA, *new, "--states", self.folder / "several", parts=["the files of a folder are of several members of an ensemble: folder=",
                                                                             "member=0, other=3. Give a folder with the files of one member: --states FOLDER"])
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
        self.refused(USAGE, *new, "--forcings", self.data / "test", parts=["the model takes no forcing from files"])
        self.refused(USAGE, *new, "--checkpoints", "best,newest", parts=["more checkpoints than members"])
        noise, several = ("--perturb", "gaussian:amplitude=0.1"), ("--members", "2")
        for flags, parts in (
                (("--control",), ["no perturbation that member 0 could do without: --control", "Give --perturb gaussian, sphere or bred"]),
                (("--control", *several, "--perturb", "lagged"), ["no perturbation that member 0 could do without: --control"]),
                (("--control", *several, "--with_dropout"), ["no perturbation that member 0 could do without: --control"]),
                (("--control", *noise), ["the only member is not perturbed: members=1, --perturb=gaussian:amplitude=0.1, --control",
                                         "Ask for more --members"]),
                (("--perturb", "lagged"), ["the only member is not perturbed: members=1, --perturb=lagged"]),
                (("--ensemble_seed", "3"), ["nothing is drawn at random: --ensemble_seed", "or --with_dropout"]),
                (("--ensemble_seed", "3", *several, "--perturb", "lagged"), ["nothing is drawn at random: --ensemble_seed"]),
                (("--channels", "t2m"), ["the channels of an animation: --channels", "Give --animate FORMAT"]),
                (("--checkpoint", "newest", "--checkpoints", "newest"), ["two flags name checkpoints", "Give only one of them"])):
            self.refused(USAGE, *new, *flags, parts=parts)
        self.assertEqual(list(self.folder.glob("new.nc*")), [])
        self.refused(DATA, *new, "--members", "1000000", "--steps", "1000000", "--perturb", "gaussian:amplitude=0.1",
                     parts=["the forecast does not fit on its disk", "starts=1, leads=1000000, members=1000000, channels=3", ".zarr"])


class Roles(ForecastCase):
    """t2m is prognostic and has no value over land, u10 is forcing, z500 diagnostic, the mask static; two steps of input."""
    keys = {**ForecastCase.keys, "n_in_channels": 0, "n_out_channels": 0, "history": 2}
    LAND = np.random.default_rng(9).random((HEIGHT, WIDTH)) < 0.3
    FUTURE = [f"2001-03-{1 + step // 4:02}T{6 * (step % 4):02}" for step in range(1, STEPS - 3)]  # three steps later there is a truth

    @classmethod
    def prepare(cls, path):
        with h5py.File(path, "a") as file:
            fields = file["fields"]
            fields[:, 0] = np.where(cls.LAND, np.nan, fields[:, 0])
            fields.attrs["roles"], fields.attrs["missing"] = ["prognostic", "forcing", "diagnostic"], "hole"
            file["static"] = cls.LAND[None].astype(np.float32)
            file["static"].attrs["channels"] = ["land"]
        return path

    def rollout(self, steps):
        self.call("predict", self.run_folder, "--device", "cpu", "--samples", STEPS - 1 - steps, "--rollout_steps", steps, "--output",
                  self.folder / "predictions")
        with h5py.File(next((self.folder / "predictions").glob("*.h5"))) as file:
            return file["prediction"][:], file["sample"][:]

    def test_is_the_rollout_of_the_model(self):
        data = opened(self.forecast("some.nc", "--from", ",".join(self.FUTURE), "--steps", "3", "--split", "valid"))
        self.assertEqual(sorted(set(data.data_vars) - {"valid_time"}), ["t2m", "z500"])
        made = np.stack([data[name].values for name in ("t2m", "z500")], 2)
        expected, samples = self.rollout(3)
        made = made[samples]
        np.testing.assert_array_equal(np.isnan(made), np.broadcast_to(np.stack([self.LAND, 0 * self.LAND]).astype(bool), made.shape))
        shown = np.where(np.isnan(made), np.nan, expected)  # predict writes what the model says at such points too, or NaN
        rounds_to(np.nan_to_num(made), np.nan_to_num(shown), 256, scale=np.nanmax(np.abs(expected)))

    def test_forcing_of_later_times(self):
        new = ("--output", self.folder / "new.nc")
        self.refused(DATA, *new, "--steps", "2", parts=["no file has the forcing of a time that the forecast goes through: time=2001-03-05T00:00:00",
                                                        "channel=u10", "--forcings FOLDER"])
        some = self.folder / "some.nc"
        self.refused(DATA, "--output", some, "--steps", "3", "--from", self.FUTURE[0] + ",2001-03-04T18",
                     parts=["no file has the forcing of a time that the forecast goes through: time=2001-03-05T00:00:00"])
        self.assertEqual([path.name for path in self.folder.glob("some.nc*")], [], "refused before a forecast is made")
        every = opened(self.forecast("every.nc", "--from", "all", "--steps", "3"))
        self.assertEqual(every.sizes["init_time"], STEPS - 3, "the first has no step before it, the last two no forcing")
        self.forecast("one.nc", "--steps", "1")
        wanted = opened(self.forecast("wanted.nc", "--from", self.FUTURE[0], "--steps", "4"))
        with h5py.File(self.data / "valid/2001.h5") as file:  # the forcing alone, of the same times
            (self.folder / "later").mkdir()
            with h5py.File(self.folder / "later/u10.h5", "w") as alone:
                alone["fields"] = file["fields"][:, 1:2]
                alone["fields"].attrs["channels"] = ["u10"]
                for name in ("latitude", "longitude", "time"):
                    file.copy(name, alone)
        (self.folder / "start").mkdir()
        with h5py.File(self.data / "valid/2001.h5") as file, h5py.File(self.folder / "start/state.h5", "w") as start:
            for name in ("latitude", "longitude", "static"):
                file.copy(name, start)
            start["fields"], start["time"] = file["fields"][:2], file["time"][:2]
            for name in ("fields", "time"):
                start[name].attrs.update(file[name].attrs)
        made = opened(self.forecast("made.nc", "--states", self.folder / "start", "--forcings", self.folder / "later", "--steps", "4"))
        np.testing.assert_array_equal(made.t2m.values, wanted.t2m.values)
        np.testing.assert_array_equal(made.z500.values, wanted.z500.values)

    def test_members_and_scores(self):
        path = self.forecast("members.nc", "--from", self.FUTURE[3], "--steps", "3", "--members", "3", "--control", "--perturb",
                             "gaussian:amplitude=0.2")
        data = opened(path)
        plain = opened(self.forecast("plain.nc", "--from", self.FUTURE[3], "--steps", "3"))
        rounds_to(np.nan_to_num(data.t2m.values[0, 0]), np.nan_to_num(plain.t2m.values[0]), 256, scale=10.0)
        self.assertGreater(np.nanmax(np.abs(data.t2m.values[0, 1] - data.t2m.values[0, 2])), 1e-3)
        self.assertTrue((np.isnan(data.t2m.values) == self.LAND).all())
        self.assertTrue(np.isfinite(data.z500.values).all())
        bred = opened(self.forecast("bred.nc", "--from", self.FUTURE[6], "--members", "2", "--perturb", "bred:amplitude=0.1,cycles=2"))
        self.assertTrue((np.isnan(bred.t2m.values) == self.LAND).all())
        scores = self.call("evaluate", self.run_folder, "--forecast", path, "--split", "valid").stdout
        self.assertIn("t2m", scores)


class OneStep(ForecastCase):
    keys = {**ForecastCase.keys, "n_out_channels": 2}

    def test_channels_that_are_not_predicted(self):
        self.forecast("one.nc")
        self.refused(USAGE, "--output", self.folder / "two.nc", "--steps", "2", parts=["channel=z500", "Ask for one step"])


if __name__ == "__main__":
    unittest.main()
