# SPDX-License-Identifier: Apache-2.0
"""Which data a configuration takes, and which part of them: what it leaves out is said, channels are chosen by name, a crop has a place;
archives of variables equal the files that are ingested of them, and several data sets are drawn by weight."""
import json
import unittest
import warnings

import h5py
import numpy as np

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import xarray

from bad_input_case import BINARY, BOXES, DATA, DONE, FIELDS, USAGE, BadInputCase, write_box, write_fields, write_statistics
from ingest_runner import DATA as REAL, component_is_built
from tolerance import rounds_to

warnings.filterwarnings("ignore", module="zarr|numcodecs")

NAMES = ["t2m", "u10", "v10", "z500", "q700"]
STEPS, ROWS, COLUMNS = 12, 10, 18


def write_year(path, seed):
    path.parent.mkdir(parents=True, exist_ok=True)
    fields = np.random.default_rng(seed).normal(size=(STEPS, len(NAMES), ROWS, COLUMNS)).astype(np.float32)
    fields += np.arange(len(NAMES), dtype=np.float32)[:, None, None]  # every channel has a mean of its own
    with h5py.File(path, "w") as file:
        file["fields"] = fields
        file["fields"].attrs["channels"] = NAMES
        file["latitude"] = np.linspace(45, -45, ROWS)
        file["longitude"] = np.arange(COLUMNS) * 20.0
    return fields


class Selection(BadInputCase):
    one_process = True

    def setUp(self):
        super().setUp()
        write_year(self.data / "train/2000.h5", 1)
        self.valid = write_year(self.data / "valid/2001.h5", 2)
        stats = self.data / "stats"
        stats.mkdir()
        np.save(stats / "global_means.npy", np.arange(5, dtype=np.float32).reshape(1, 5, 1, 1))
        np.save(stats / "global_stds.npy", (1 + np.arange(5, dtype=np.float32)).reshape(1, 5, 1, 1))
        np.save(stats / "time_means.npy", self.valid.mean(0, keepdims=True))
        self.keys = {**FIELDS, "time_means_path": "/data/stats/time_means.npy"}

    def said(self, done):
        self.assertEqual(done.returncode, DONE, done.stderr)
        return done.stdout + done.stderr

    LEFT_OUT = ("part of the data is left out: rows=2 of 10 (8 to 9, latitude -35 to -45), columns=2 of 18 (16 to 17, longitude 320 to 340), "
                "channels=2 of 5 (z500, q700). To choose: img_size and crop, n_in_channels and n_out_channels, or in_channels and out_channels")

    def test_what_is_left_out_is_named_once(self):
        log = self.said(self.train(self.keys))
        self.assertEqual(log.count(self.LEFT_OUT), 1, log)
        self.assertIn(f"WARNING - {self.LEFT_OUT}", (self.run_folder / "out.log").read_text())
        self.assertIn(f"warning: {self.LEFT_OUT}", self.said(self.run_command([BINARY, "evaluate", self.run_folder])))

    def test_a_dry_run_that_looks_at_the_data_says_it_too(self):
        self.assertIn(f"warning: {self.LEFT_OUT}", self.said(self.train(self.keys, "--dry_run", "--check_data")))
        self.assertNotIn("left out", self.said(self.train(self.keys, "--dry_run")))
        self.assertFalse(self.logs.exists())
        self.assert_refused(self.train({**self.keys, "img_size": [12, 16]}, "--dry_run", "--check_data"), DATA, "the grid is smaller than img_size")

    def chosen(self, **keys):
        keys = {**{key: value for key, value in self.keys.items() if not key.startswith("n_")}, "crop": [1, 2], **keys}
        return self.train(keys)

    def fields_of(self, *arguments):
        """What predict writes, and the scores of evaluate."""
        self.said(self.run_command([BINARY, "predict", self.run_folder, "--output", self.root / "out", "--samples", "11", *arguments]))
        self.said(self.run_command([BINARY, "evaluate", self.run_folder, "--json", self.root / "scores.json", *arguments]))
        with h5py.File(self.root / "out/predictions.h5") as file:
            return {name: file[name][:] for name in file}, json.loads((self.root / "scores.json").read_text())

    def test_channels_by_name_of_a_crop(self):
        log = self.said(self.chosen(in_channels=["z500", "t2m"], out_channels=["t2m", "v10"], history=2))
        self.assertNotIn("left out", log)
        self.assertIn("Chosen of the data: rows 1 to 8, latitude 35 to -35; columns 2 to 17, longitude 40 to 340; input channels z500, t2m; "
                      "target channels t2m, v10", log)
        fields, scores = self.fields_of()
        np.testing.assert_array_equal(fields["latitude"], np.linspace(45, -45, ROWS)[1:9])
        np.testing.assert_array_equal(fields["longitude"], np.arange(2, 18) * 20.0)
        target = fields["target"]
        self.assertEqual(target.shape, (10, 2, 8, 16))
        rounds_to(target, self.valid[2:, [0, 2], 1:9, 2:18], 8, scale=float(np.abs(self.valid).max()))  # normalised and back
        self.assertEqual(list(scores["channels"]), ["t2m", "v10"])
        self.assertIsNone(scores["channels"]["v10"]["persistence"]["rmse"])  # it is no input
        self.assertIsNotNone(scores["channels"]["t2m"]["persistence"]["rmse"])
        self.assertIsNone(scores["channels"]["t2m"]["time mean"]["acc"])
        weights = np.cos(np.deg2rad(np.linspace(45, -45, ROWS)[1:9]))
        weights *= len(weights) / weights.sum()
        error = (self.valid.mean(0)[2, 1:9, 2:18] - target[:, 1]) ** 2 * weights[:, None]
        rounds_to(scores["channels"]["v10"]["time mean"]["rmse_physical"], float(np.sqrt(error.mean())), 64)

    def test_a_rollout_puts_the_prediction_in_the_order_of_the_input(self):
        self.said(self.chosen(in_channels=["z500", "t2m"], out_channels=["t2m", "z500"]))
        fields, scores = self.fields_of("--rollout_steps", "2")
        weights = np.cos(np.deg2rad(np.linspace(45, -45, ROWS)[1:9]))
        weights *= len(weights) / weights.sum()
        error = (self.valid[0:10, 3, 1:9, 2:18] - self.valid[2:12, 3, 1:9, 2:18]) ** 2 * weights[:, None]
        rounds_to(scores["leads"][1]["channels"]["z500"]["persistence"]["rmse_physical"], float(np.sqrt(error.mean())), 64)
        # The second step starts from the first one's prediction, z500 first: a model fed in the wrong order gives other numbers.
        one = fields["prediction"][0, 0]
        with h5py.File(self.data / "valid/2001.h5", "r+") as file:
            file["fields"][1, [0, 3], 1:9, 2:18] = one
        self.said(self.run_command([BINARY, "predict", self.run_folder, "--output", self.root / "again", "--samples", "11"]))
        with h5py.File(self.root / "again/predictions.h5") as file:
            again = file["prediction"][1]
        rounds_to(again, fields["prediction"][0, 1], 256, scale=float(np.abs(again).max()))  # the model's input was rounded twice more

    def test_input_channels_alone_are_predicted_too(self):
        log = self.said(self.chosen(in_channels=["v10"]))
        self.assertIn("target channels v10", log)
        self.assertIn("Image Shape: 8 x 16 x 1", log)

    def test_channels_are_normalised_each_in_its_way_and_back(self):
        for name, values in (("mins", self.valid.min((0, 2, 3))), ("maxs", self.valid.max((0, 2, 3)))):
            np.save(self.data / f"stats/global_{name}.npy", values.reshape(1, 5, 1, 1))
        self.said(self.chosen(in_channels=NAMES, normalization=["u10=minmax", "v10=none", "z*=log:100"], crop=[1, 2]))
        fields, scores = self.fields_of()
        rounds_to(fields["target"], self.valid[1:, :, 1:9, 2:18], 64, scale=100)  # what the logarithm of 1 + x / 100 keeps
        self.assertEqual([channel["unit"] for channel in scores["channels"].values()], ["", "", "", "ln(1 + value in the file / 100)", ""])
        target = self.valid[1:, :, 1:9, 2:18].astype(float)
        low, high = (float(np.load(self.data / f"stats/global_{name}.npy").ravel()[1]) for name in ("mins", "maxs"))
        for channel, seen in (("u10", (target[:, 1] - low) / (high - low)), ("v10", target[:, 2]), ("z500", np.log1p(target[:, 3] / 100))):
            weights = np.cos(np.deg2rad(np.linspace(45, -45, ROWS)[1:9]))[:, None]
            square = (seen ** 2 * weights).mean() / weights.mean()
            rounds_to(sum(scores["channels"][channel]["target_spectrum"]), square, 256)

    def test_misfits(self):
        self.assert_refused(self.chosen(in_channels=["msl"]), USAGE, "the file has no such channel: in_channels=msl, path=",
                            "Choose from: t2m, u10, v10, z500, q700.")
        self.assert_refused(self.chosen(in_channels=["t2m", "t2m"]), USAGE, "a channel is named twice: channel=t2m")
        self.assert_refused(self.chosen(crop=[3, 0]), DATA, "the crop leaves the grid", "crop=[3, 0], img_size=8 x 16. Set crop to at most [2, 2]")
        self.assert_refused(self.chosen(in_channels=["t2m", "u10"], n_in_channels=3), USAGE, "two keys contradict each other: in_channels=")
        self.assert_refused(self.chosen(in_channels=["t2m", "u10"], out_channels=["q700"], residual="true"), USAGE,
                            "residual prediction needs a predicted channel that is an input too: residual=true, predicted=q700")
        self.assert_refused(self.chosen(roles=["t2m=fixed"]), USAGE, "no role of a channel: key=roles, channel=t2m, role=fixed")
        self.assert_refused(self.chosen(in_channels=["t2m"], out_channels=["t2m"], roles=["t2m=static"]), USAGE,
                            "chosen channels contradict their roles: target t2m is static")
        self.assert_refused(self.chosen(roles=["u10=forcing"], n_in_channels=4, n_out_channels=4), USAGE,
                            "a number of channels contradicts their roles: n_in_channels=4, by the roles=5 (prognostic: t2m v10 z500 q700; forcing: u10)")
        self.assert_refused(self.chosen(in_channels=["t2m"], normalization=["t2m=sqrt"]), USAGE, "no kind of normalization: channel=t2m, normalization=sqrt")
        self.assert_refused(self.chosen(channel_weights=["t2m"]), USAGE, "an entry is not channel=value: entry=t2m")


class Archives(BadInputCase):
    """Training of an archive equals training of the files that `welkin data ingest` makes of it, to the bit."""
    one_process = True
    VARIABLES = ["2m_temperature", "geopotential@500", "geopotential@850", "land_sea_mask"]
    TIMES = {"train_times": ["1999-12-20", "2000-01-03"], "valid_times": ["2000-01-04", 2000]}

    def keys(self, **keys):
        kept = {key: value for key, value in FIELDS.items() if not key.startswith("n_")}
        return {**kept, "forcing": ["solar"], **keys}

    def dataset(self):
        """Six-hourly across a year's end on a grid of 8 x 16 from the south, levels as ERA5 has them."""
        random, steps = np.random.default_rng(3), 72
        times = np.datetime64("1999-12-20", "ns") + np.arange(steps) * np.timedelta64(6, "h")
        dims = ("time", "level", "longitude", "latitude")
        field = lambda *shape: (280 + random.normal(size=shape)).astype(np.float32)  # noqa: E731
        data = xarray.Dataset(
            {"2m_temperature": (("time", "longitude", "latitude"), field(steps, 16, 8)), "geopotential": (dims, field(steps, 3, 16, 8)),
             "land_sea_mask": (("longitude", "latitude"), random.integers(0, 2, size=(16, 8)).astype(np.float32))},
            {"time": times, "level": ("level", np.array([500, 700, 850], np.int32), {"units": "hPa"}),
             "longitude": ("longitude", np.arange(16) * 22.5, {"units": "degrees_east"}),
             "latitude": ("latitude", np.linspace(-78.75, 78.75, 8), {"units": "degrees_north"})})
        data["2m_temperature"].attrs["units"] = "K"
        return data

    def run_words(self, *words):
        done = self.run_command([BINARY, *words])
        self.assertEqual(done.returncode, DONE, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def trained(self, name, keys, *flags):
        """The bytes of all weights after training, and the run's folder."""
        self.logs = self.root / f"logs_{name}"
        done = self.train(keys, *flags)
        self.assertEqual(done.returncode, DONE, done.stdout + done.stderr)
        run = self.logs / "base/1GPU/00"
        newest = sorted(run.glob("checkpoints/step_*"))[-1]
        return {str(path.relative_to(newest)): path.read_bytes() for path in sorted(newest.rglob("*.safetensors"))}, run

    def compare(self, archive, keys, ingest):
        """Statistics, weights and forecasts of the archive against those of its ingested files."""
        self.run_words("data", "ingest", *ingest, "--out", self.data / "made")
        self.run_words("data", "stats", archive, "--variables", ",".join(keys["variables"]), "--times", ",".join(map(str, keys["train_times"])),
                       "--out", self.data / "stats")
        for kind in ("means", "stds", "mins", "maxs"):
            rounds_to(np.load(self.data / f"stats/global_{kind}.npy"), np.load(self.data / f"made/stats/global_{kind}.npy"), 2)
        own = {key: value for key, value in keys.items() if key not in ("variables", "train_times", "valid_times")}
        files = {**own, "n_in_channels": 0, "n_out_channels": 0, "train_data_path": "/data/made/train", "valid_data_path": "/data/made/valid"}
        direct = {**keys, "train_data_path": str(archive)}
        direct.pop("valid_data_path")
        expected, _ = self.trained("files", files)
        found, run = self.trained("archive", direct)
        self.assertEqual(list(found), list(expected))
        self.assertTrue(found == expected, "weights differ from those of the ingested files")
        return direct, run

    def test_weatherbench_stores(self):
        if not component_is_built():
            self.skipTest("the ingest component is not built: ecCodes or netCDF-C is not installed")
        data = self.dataset()
        data.to_netcdf(self.data / "source.nc")
        store = self.data / "store.zarr"
        chunks = {"2m_temperature": (1, 16, 8), "geopotential": (1, 3, 16, 8), "land_sea_mask": (16, 8)}
        data.to_zarr(store, zarr_format=2, encoding={name: {"chunks": chunk} for name, chunk in chunks.items()})
        keys = self.keys(variables=self.VARIABLES, **self.TIMES)
        ingest = [self.data / "source.nc", "--variables", "2m_temperature,geopotential500,geopotential850,land_sea_mask", "--valid_from", "2000-01-04"]
        direct, run = self.compare(store, keys, ingest)
        # The same store in Zarr 3, and threads.
        data.to_zarr(self.data / "three.zarr", zarr_format=3)
        three = {**direct, "train_data_path": str(self.data / "three.zarr"), "num_data_workers": 2}
        self.assertTrue(self.trained("three", three)[0] == self.trained("again", direct)[0])
        log = (run / "out.log").read_text()
        self.assertIn("Static input channels: land_sea_mask", log)
        self.assertIn("geopotential500", self.run_words("evaluate", run))
        self.run_words("forecast", run, "--steps", "3", "--output", self.root / "next.nc", "--device", "cpu")
        with xarray.open_dataset(self.root / "next.nc", decode_timedelta=True) as made:
            self.assertEqual(sorted(set(made.data_vars) - {"valid_time"}), ["geopotential500", "geopotential850", "v2m_temperature"])  # a name of CF begins with a letter
            self.assertEqual(made.init_time.values[0], data.time.values[-1])
        self.logs = self.root / "refused"
        said = self.assert_refused(self.train({**direct, "variables": ["2m_temperatur"]}), USAGE, "the archive has no such variable")
        self.assertIn("Did you mean: 2m_temperature", said)
        self.assert_refused(self.train({**direct, "valid_times": ["2000-01-03T18", 2000]}), USAGE, "two parts of one archive have times in common",
                            "train_times=[1999-12-20, 2000-01-03]", "valid_times=[2000-01-03T18, 2000]")
        self.assert_refused(self.train({key: value for key, value in direct.items() if key != "train_times"}), USAGE,
                            "two parts of one archive have times in common: train_times=all, valid_times=")
        self.assert_refused(self.train({**direct, "test_times": ["2000-01-01", 2001]}), USAGE, "two parts of one archive have times in common", "test_times=[2000-01-01, 2001]")
        self.assert_refused(self.train({**direct, "valid_times": [2010, 2011]}), USAGE, "the archive has none of these times", "last=2000-01-06T18:00:00")
        done = self.train({**direct, "global_means_path": "/nowhere/means.npy"}, "--dry_run", "--check_data")
        self.assertNotEqual(done.returncode, DONE)
        self.assertIn(f"welkin data stats {store} --variables {','.join(self.VARIABLES)} --times 1999-12-20,2000-01-03 --out", done.stderr)
        np.save(store / "2m_temperature/.extra.npy", np.zeros(1))  # the run's data have changed
        self.logs = self.root / "logs_archive"
        self.assert_refused(self.train(direct, "--resume", "--num_iters", "8"), DATA, "store.zarr")

    def test_files_by_period(self):
        """Several files of each variable, whose times lie in chunks: the unlimited dimension of CMIP6."""
        if not component_is_built():
            self.skipTest("the ingest component is not built: ecCodes or netCDF-C is not installed")
        data, folder = self.dataset(), self.data / "cmip"
        folder.mkdir()
        for name in ("2m_temperature", "geopotential"):
            for first in range(0, 72, 12):
                part = data[[name]].isel(time=slice(first, first + 12))
                part.to_netcdf(folder / f"{name}_{first:02}.nc", unlimited_dims=["time"], encoding={"time": {"units": "hours since 1850-01-01"}})
        keys = self.keys(variables=self.VARIABLES[:3], **self.TIMES)
        self.compare(folder, keys, [folder, "--variables", "2m_temperature,geopotential500,geopotential850", "--valid_from", "2000-01-04"])

    def test_cmip6_folders(self):
        folder = REAL / "cmip6-picontrol-monthly"
        if not component_is_built() or not folder.is_dir():
            self.skipTest("no ingest component, or no folder cmip6-picontrol-monthly in the shared data")
        keys = self.keys(variables=["tas", "rsut", "areacella"], train_times=["0101", "0120"], valid_times=["0121", "0125"], img_size=[16, 36])
        self.compare(folder, keys, [folder, "--variables", "tas,rsut,areacella", "--valid_from", "0121-01-01"])

    def test_archives_in_a_mixture(self):
        """One of them is what it is alone, to the bit; several may name a variable otherwise, and have steps as any data set."""
        data = self.dataset()
        other = data.rename({"2m_temperature": "tas", "geopotential": "zg"}).isel(time=slice(8, None))
        for name, store in (("one", data), ("two", other)):
            store.to_zarr(self.data / f"{name}.zarr", zarr_format=2)
        keys = self.keys(variables=["2m_temperature|tas", "geopotential|zg@500", "land_sea_mask"], num_iters=9, **self.TIMES)
        keys.pop("valid_data_path")
        self.run_words("data", "stats", self.data / "one.zarr", "--variables", ",".join(keys["variables"]), "--out", self.data / "stats")
        alone, _ = self.trained("alone", {**keys, "train_data_path": "/data/one.zarr"})
        keys.pop("train_data_path")
        self.assertTrue(self.trained("of_one", {**keys, "datasets": ["/data/one.zarr"]})[0] == alone)
        both = {**keys, "datasets": ["/data/one.zarr=1", "/data/two.zarr=2"]}
        _, run = self.trained("both", both, "--multistep", "3")
        log = (run / "out.log").read_text()
        # Of 48 + 12 steps of two years 45 + 9 samples have three steps of truth, of 40 + 12 steps 37 + 9.
        self.assertRegex(log, r"Data set one\.zarr: \d+ of \d+ samples of an epoch, has 54\n")
        self.assertRegex(log, r"Data set two\.zarr: \d+ of \d+ samples of an epoch, has 46\n")
        self.run_words("forecast", run, "--steps", "2", "--output", self.root / "next.nc", "--device", "cpu")
        self.logs = self.root / "refused"
        without = {key: value for key, value in both.items() if key != "valid_times"}
        self.assert_refused(self.train(without), USAGE, "nothing says which times of an archive are of this split: key=valid_times, archive=")
        (self.data / "two.zarr/train").mkdir()
        (self.data / "one.zarr/train").mkdir()
        self.assert_refused(self.train(both), USAGE, "none of the data sets is an archive, of which variables could be chosen")


class Mixtures(BadInputCase):
    one_process = True

    def test_several_data_sets_are_drawn_by_weight(self):
        for name, seed, years in (("one", 1, 1), ("run=2", 2, 3)):
            for part in ("train", "valid"):
                for year in range(years if part == "train" else 1):
                    fields = np.random.default_rng(10 * seed + year).normal(size=(12, 3, 8, 16)).astype(np.float32)
                    write_fields(self.data / name / part / f"{2000 + year}.h5", fields)
        write_statistics(self.data / "stats")
        keys = {key: value for key, value in FIELDS.items() if not key.endswith("data_path")}
        keys["datasets"] = ["/data/one=3", "/data/run=2=1"]
        keys["num_iters"], keys["schedule"] = 22, "constant"
        whole = self.train(keys)
        self.assertEqual(whole.returncode, DONE, whole.stdout + whole.stderr)
        self.assertIn("Data set one: 33 of 44 samples of an epoch, has 11", whole.stdout + whole.stderr)
        self.assertIn("Data set run=2: 11 of 44 samples of an epoch, has 33", whole.stdout + whole.stderr)
        newest = sorted(self.run_folder.glob("checkpoints/step_*"))[-1]
        expected = {path.name: path.read_bytes() for path in newest.rglob("*.safetensors")}
        # Broken off within the second epoch, gone on with two threads: the same samples.
        self.logs = self.root / "again"
        self.assertEqual(self.train(keys, "--num_iters", "15").returncode, DONE)
        done = self.train(keys, "--resume", "--num_data_workers", "2")
        self.assertEqual(done.returncode, DONE, done.stdout + done.stderr)
        newest = sorted((self.logs / "base/1GPU/00").glob("checkpoints/step_*"))[-1]
        self.assertTrue({path.name: path.read_bytes() for path in newest.rglob("*.safetensors")} == expected)
        # The scores of one of them.
        scores = self.run_command([BINARY, "evaluate", self.run_folder, "--set", "datasets=[/data/run=2=1]", "--json", self.root / "scores.json"])
        self.assertEqual(scores.returncode, DONE, scores.stdout + scores.stderr)
        self.assertEqual(json.loads((self.root / "scores.json").read_text())["samples"], 11)
        with h5py.File(self.data / "run=2/train/2000.h5", "a") as file:
            file["fields"].attrs["channels"] = ["a", "b", "c"]
        self.logs = self.root / "other"
        self.assert_refused(self.train(keys), DATA, "files of one folder differ: path=", "difference in channels: names and none")


class BoxEdges(BadInputCase):
    one_process = True

    def test_another_edge_than_the_files(self):
        self.make_boxes()
        message = self.refuse_training({**BOXES, "box_size": [16, 32]}, DATA, "box_size contradicts the file: box_size=[16, 32], validation "
                                       "box=16 x 16 x 16, path=")
        self.assertIn("Set box_size to the edges of the training and the validation box", message)

    def test_channels_of_a_box_that_are_left_out(self):
        write_box(self.data / "train.h5")
        write_box(self.data / "valid.h5")
        done = self.train({**BOXES, "N_in_channels": 3, "N_out_channels": 2})
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertIn("part of the data is left out: input channels=1 of 4 (input3), target channels=3 of 5 (target2, target3, target4)", done.stderr)


if __name__ == "__main__":
    unittest.main()
