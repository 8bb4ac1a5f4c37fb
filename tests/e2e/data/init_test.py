# SPDX-License-Identifier: Apache-2.0
"""`welkin init`: from files that nobody has looked at to a first training step in two commands, the second being the first that it prints."""
import re
import shlex
import unittest

import h5py
import netCDF4
import numpy as np
from bad_input_case import BINARY, DATA, DONE, USAGE, BadInputCase, tree
from ingest_runner import DATA as SHARED
from ingest_runner import component_is_built

ROWS, COLUMNS = 17, 32


def write_netcdf(path, times, units, calendar="standard", levels=0, rows=ROWS, name="t2m", missing=False):
    with netCDF4.Dataset(path, "w") as file:
        scales = [("time", times, units), ("lat", np.linspace(80, -80, rows), "degrees_north"),
                  ("lon", np.arange(COLUMNS) * 360 / COLUMNS, "degrees_east")]
        if levels:
            scales.insert(1, ("plev", np.linspace(100, 1000, levels), "hPa"))
        for scale, values, unit in scales:
            file.createDimension(scale, len(values))
            file.createVariable(scale, "f8", (scale,)).units = unit
            file[scale][:] = values
        file["time"].calendar = calendar
        names = [scale for scale, *_ in scales]
        values = 280 + np.random.default_rng(3).normal(size=[len(scale[1]) for scale in scales]).astype(np.float32)
        if missing:
            values[:, 0, 0] = np.nan
        file.createVariable(name, "f4", names).units = "K"
        file[name][:] = values


def write_box(path, **fields):
    with h5py.File(path, "w") as file:
        for name, edge in fields.items():
            file[name] = np.random.default_rng(4).normal(size=(edge, edge, edge)).astype(np.float32)


class InitCase(BadInputCase):
    one_process = True

    def setUp(self):
        super().setUp()
        self.input, self.out = self.root / "in", self.root / "out"
        self.input.mkdir()

    def init(self, *arguments):
        return self.run_command([BINARY, "init", *arguments, "--out", self.out])

    def made(self, *arguments):
        done = self.init(*arguments)
        self.assertEqual(done.returncode, DONE, done.stderr)
        return done.stdout

    def first_step(self, said):
        """The first command that was printed."""
        command = shlex.split(re.search(r"^next:\n  welkin (train .*)$", said, re.MULTILINE).group(1))
        done = self.run_command([BINARY, *command, "--device", "cpu"])
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertRegex(done.stdout + done.stderr, r"train loss\D*\d")

    def all_steps(self, said, iterations):
        """The commands that were printed, one after the other; training for so many iterations."""
        commands = re.search(r"^next:\n((?:  welkin .*\n?)+)", said, re.MULTILINE).group(1).strip().splitlines()
        self.assertEqual(len(commands), 3, said)
        for number, line in enumerate(commands):
            command = shlex.split(line)[1:]
            command += ["--device", "cpu"] if command[0] == "train" else []
            command += ["--num_iters", iterations] if number == 1 else []
            done = self.run_command([BINARY, *command])
            self.assertEqual(done.returncode, DONE, done.stderr)
        return done.stdout

    def preset(self, name="forecast.yaml"):
        text = (self.out / name).read_text()
        return text, {key: value.strip() for key, value in re.findall(r"^  (\w+): ([^#\n]*)", text, re.MULTILINE)}

    def refused(self, code, *parts, arguments=()):
        self.assert_refused(self.init(self.input, *arguments), code, *parts)
        self.assertEqual([path.name for path in self.root.iterdir() if path.name.startswith("out")], [])


@unittest.skipUnless(component_is_built(), "the ingest component is not built: ecCodes or netCDF-C is not installed")
class Init(InitCase):
    def test_years_of_months(self):
        write_netcdf(self.input / "a.nc", np.arange(60) * 30.0 + 15, "days since 2001-01-01", calendar="360_day")
        said = self.made(self.input)
        self.assertIn("assumed: validation: the years from 2005 on, 1 of 5 (--valid_from chooses)\n", said)
        self.assertIn("assumed: patch: 1, of 17x32 points 17x32 are taken, 544 tokens (--patch and --crop choose)\n", said)
        self.assertRegex(said, r"assumed: batch: 8, by the planner [\d.]+ [KMG]iB of [\d.]+ [KMG]iB of memory \(global_batch_size in forecast.yaml\)\n")
        text, keys = self.preset()
        self.assertIn("#   0 t2m [K]\n", text)
        self.assertEqual((keys["img_size"], keys["patch_size"], keys["n_in_channels"], keys["n_out_channels"]), ("[17, 32]", "1", "1", "1"))
        self.assertIn("in steps of 720 h\n", text)
        self.all_steps(said, 2)
        for folder in ("train", "valid", "stats"):
            self.assertTrue(list((self.out / "data" / folder).iterdir()))

    def test_hours_with_gaps_in_space(self):
        self.out.mkdir()  # empty
        write_netcdf(self.input / "a.nc", np.arange(40), "hours since 2001-01-01", missing=True)
        said = self.made(self.input, "--patch", "4")
        self.assertIn("assumed: validation: the last 0.2 of the times (--valid_fraction, --valid_last or --valid_from choose)\n", said)
        keys = self.preset()[1]
        self.assertEqual((keys["n_in_channels"], keys["n_out_channels"], keys["patch_size"]), ("1", "1", "4"))
        self.first_step(said)

    def test_what_only_the_user_knows(self):
        write_netcdf(self.input / "a.nc", np.arange(40), "hours since 2001-01-01", levels=10, name="t")
        self.refused(DATA, "[init] which levels are wanted: variable=t, levels=100,200,300,400,500,600,700,800,900,1000. "
                           "Choose with --levels, or single ones with --variables.")
        said = self.made(self.input, "--levels", "500,900")
        self.assertIn("#   1 t900 [K]\n", self.preset()[0])
        self.first_step(said)

    def test_two_grids(self):
        write_netcdf(self.input / "a.nc", np.arange(40), "hours since 2001-01-01")
        write_netcdf(self.input / "b.nc", np.arange(40), "hours since 2001-01-01", rows=9, name="sst")
        self.refused(DATA, "the channels lie on different grids: ", "Choose channels of one grid with --variables")

    def test_too_few_times(self):
        write_netcdf(self.input / "a.nc", np.arange(5), "hours since 2001-01-01")
        self.refused(DATA, "[init] too few times for a training and a validation part: times=5, needed=10. Give more files.")

    def test_an_output_that_exists(self):
        self.out.mkdir()
        (self.out / "mine").write_text("kept")
        write_netcdf(self.input / "a.nc", np.arange(40), "hours since 2001-01-01")
        self.assert_refused(self.init(self.input), DATA, "the output exists already: out=")
        self.assertEqual(tree(self.out), ["mine"])

    def test_an_empty_output_folder_stays_where_nothing_comes_of_it(self):
        self.out.mkdir()
        self.assert_refused(self.init(self.input), DATA, "nothing to read")
        self.assertEqual(tree(self.out), [])

    def test_a_damaged_file(self):
        write_netcdf(self.input / "a.nc", np.arange(40), "hours since 2001-01-01")
        data = (self.input / "a.nc").read_bytes()
        (self.input / "a.nc").write_bytes(data[:len(data) // 2])
        self.refused(DATA, f"path={self.input / 'a.nc'}")

    def test_boxes(self):
        write_box(self.input / "a.h5", density=32, velocity=32)
        said = self.made(self.input, "--task", "box")
        self.assertIn("assumed: input: density, target: velocity (--input and --target choose)\n", said)
        self.assertIn("assumed: validation: the last 0.25 of axis 0 (--valid_fraction and --valid_axis choose)\n", said)
        text, keys = self.preset("box.yaml")
        self.assertEqual((keys["N_in_channels"], keys["N_out_channels"], keys["data_size"]), ("1", "1", "8"))
        self.assertIn("#   0 density\n", text)
        self.first_step(said)

    def test_boxes_of_which_only_the_user_knows_the_target(self):
        write_box(self.input / "a.h5", density=32, velocity=32, energy=32)
        self.refused(USAGE, "[init] which fields are the input and which the target: fields=density,energy,velocity. "
                            "Choose with --input and --target, as in --input a,b --target c.", arguments=("--task", "box"))
        self.made(self.input, "--task", "box", "--input", "density,energy", "--target", "velocity")

    def test_flags_of_the_other_task_are_refused(self):
        write_box(self.input / "a.h5", density=16)
        self.refused(USAGE, "[welkin init] a box takes no flags of fields in time: flags=--levels --crop. Leave them out, or give --task forecast.",
                     arguments=("--task", "box", "--levels", "500", "--crop", "8x8"))
        self.refused(USAGE, "[welkin init] fields in time take no flags of a box: flags=--log. Leave them out, or give --task box.",
                     arguments=("--log", "density"))

    def test_a_box_that_is_too_thin(self):
        write_box(self.input / "a.h5", density=16, velocity=16)
        self.refused(DATA, "[init] a box that is too thin for the U-Net: cells=4, needed=8. Hold back another axis with --valid_axis, or less "
                           "with --valid_fraction.", arguments=("--task", "box"))


@unittest.skipUnless(component_is_built(), "the ingest component is not built: ecCodes or netCDF-C is not installed")
@unittest.skipUnless(SHARED.is_dir(), f"no real data: {SHARED} is not there")
class RealData(InitCase):
    def train(self, name, *arguments):
        self.first_step(self.made(SHARED / name, *arguments))
        return self.preset()[1]

    def test_era5_of_the_uk(self):
        self.assertEqual(self.train("era5-uk-t2m-hourly")["n_in_channels"], "1")

    def test_cmip6(self):
        self.assertEqual(self.train("cmip6-picontrol-monthly")["n_out_channels"], "4")

    def test_an_ensemble(self):
        self.train("era5-global-ensemble-12h", "--valid_fraction", "0.3")


if __name__ == "__main__":
    unittest.main()
