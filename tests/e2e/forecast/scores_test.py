# SPDX-License-Identifier: Apache-2.0
"""The scores of `welkin evaluate` against numpy's, from the fields that `welkin predict` writes of the same samples."""
import json
import unittest

import h5py
import netCDF4
import numpy as np

from bad_input_case import BINARY, BOXES, DONE, FIELDS, HEIGHT, WIDTH, BadInputCase, write_statistics
from ingest_runner import component_is_built
from tolerance import rounds_to


def zonal(fields, weights):
    """(sample, C, H, W) -> (C, K): mean square by wavenumber along a row, over rows and samples."""
    n = fields.shape[-1]
    power = np.abs(np.fft.fft(fields)) ** 2 / n ** 2
    folded = np.stack([power[..., k] + (power[..., n - k] if 0 < k < n - k else 0) for k in range(n // 2 + 1)], -1)
    return (folded * weights[:, None]).mean((0, 2))


def radial(boxes):
    """(sample, C, D, H, W) of one edge -> (C, K): mean square by the rounded length of the wave vector."""
    n = boxes.shape[-1]
    power = np.abs(np.fft.fftn(boxes, axes=(2, 3, 4))) ** 2 / n ** 6
    wave = np.fft.fftfreq(n) * n
    length = np.rint(np.sqrt(wave[:, None, None] ** 2 + wave[:, None] ** 2 + wave ** 2)).astype(int)
    return np.stack([power[..., length == k].sum(-1) for k in range(length.max() + 1)], -1).mean(0)


class Scores(BadInputCase):
    one_process = True

    def close(self, got, wanted, scale=None):
        """Of sums of float32 values: 64 roundings of the scale."""
        rounds_to(got, wanted, 64, scale=wanted if scale is None else scale)

    def scores_and_fields(self, keys, samples):
        for command in (self.train_command(keys), [BINARY, "evaluate", self.run_folder, "--json", self.root / "scores.json"],
                        [BINARY, "predict", self.run_folder, "--output", self.root / "predictions", "--samples", samples]):
            done = self.run_command(command)
            self.assertEqual(done.returncode, DONE, done.stderr)
        with h5py.File(next((self.root / "predictions").glob("*.h5"))) as file:
            self.assertEqual(len(file["sample"]), samples)
            return json.loads((self.root / "scores.json").read_text()), file["target"][:].astype(float), file["prediction"][:].astype(float)

    def test_of_fields(self):
        self.make_fields()
        write_statistics(self.data / "stats", mean=0.5, std=2.0)
        scores, target, prediction = self.scores_and_fields(FIELDS, 11)
        weights = np.cos(np.deg2rad(np.linspace(90, -90, HEIGHT)))
        weights *= HEIGHT / weights.sum()
        error = (prediction - target) * weights[:, None]
        spectra = {"target": zonal((target - 0.5) / 2, weights), "model": zonal((prediction - 0.5) / 2, weights)}
        self.assertEqual(scores["wavenumber"], "zonal")
        self.assertEqual(scores["samples"], 11)
        for c, channel in enumerate(scores["channels"].values()):
            model = channel["model"]
            self.close(model["mae_physical"], np.abs(error[:, c]).mean())
            self.close(model["bias_physical"], error[:, c].mean(), scale=np.abs(error[:, c]).mean())
            self.close(model["rmse_physical"], np.sqrt((weights[:, None] * (prediction - target)[:, c] ** 2).mean()))
            self.close(channel["target_spectrum"], spectra["target"][c])
            self.close(model["spectrum"], spectra["model"][c], scale=spectra["target"][c])
            small = slice(target.shape[-1] // 4 + 1, None)
            self.close(model["small_scales"], spectra["model"][c][small].sum() / spectra["target"][c][small].sum(), scale=1)
            self.assertGreater(channel["persistence"]["small_scales"], 0.5)  # yesterday is as rough as today

    def test_without_a_time_mean_there_is_no_acc_and_the_output_says_why(self):
        self.make_fields()
        write_statistics(self.data / "stats", mean=0.5, std=2.0)
        done = self.run_command(self.train_command(FIELDS))
        self.assertEqual(done.returncode, DONE, done.stderr)
        for key, reason in (("", "time_means_path is not set"), ("/data/stats/none.npy", "there is no such file: time_means_path=")):
            flags = ["--set", f"time_means_path={key}"] if key else []
            done = self.run_command([BINARY, "evaluate", self.run_folder, "--json", self.root / "scores.json", *flags])
            self.assertEqual(done.returncode, DONE, done.stderr)
            self.assertIn("No ACC: anomalies are from the map of time means, and " + reason, done.stdout)
            for channel in json.loads((self.root / "scores.json").read_text())["channels"].values():
                self.assertIsNone(channel["model"]["acc"])

    def test_of_boxes(self):
        self.make_boxes()
        scores, target, prediction = self.scores_and_fields(BOXES, 2)
        self.assertEqual(scores["wavenumber"], "radial")
        spectra = {"target": radial(target), "model": radial(prediction)}
        for c, channel in enumerate(scores["channels"].values()):
            self.close(channel["target_spectrum"], spectra["target"][c])
            self.close(channel["model"]["spectrum"], spectra["model"][c], scale=spectra["target"][c])
            self.close(channel["model"]["mae_physical"], np.abs(prediction[:, c] - target[:, c]).mean())
        self.box_statistics(target, prediction)

    def box_statistics(self, target, prediction):
        file = self.root / "statistics.json"
        done = self.run_command([BINARY, "evaluate", self.run_folder, "--box_statistics", file, "--plots", self.root / "plots"])
        self.assertEqual(done.returncode, DONE, done.stderr)
        statistics = json.loads(file.read_text())
        figures = sorted((self.root / "plots").iterdir())
        self.assertEqual(len(figures), len(statistics["channels"]))
        for word in ("power", "correlation", "bispectrum, equilateral", "density", "peaks above it, per crop", "prediction", "target"):
            self.assertIn(f">{word}<", figures[0].read_text())
        self.assertEqual(statistics["crops"], 2)
        n = target.shape[-1]
        modes = {"target": np.fft.fftn(target, axes=(2, 3, 4)) / n ** 3, "prediction": np.fft.fftn(prediction, axes=(2, 3, 4)) / n ** 3}
        wave = np.fft.fftfreq(n) * n
        length = np.rint(np.sqrt(wave[:, None, None] ** 2 + wave[:, None] ** 2 + wave ** 2)).astype(int)
        for c, channel in enumerate(statistics["channels"].values()):
            for name, fields in (("target", target), ("prediction", prediction)):
                self.close(channel["power"][name], radial(fields)[c])
                self.close(channel["bispectrum"][name], [self.triangles(modes[name][:, c], length, wave, k) for k in (1, 2)],
                           scale=np.abs(channel["bispectrum"]["target"]).max() + 1e-3)
                mean, deviation = target[0, c].mean(), target[0, c].std()
                edges = np.array(channel["distribution"]["edges"])
                self.close(edges, np.linspace(-4, 14, 73) * deviation + mean, scale=14 * deviation)
                counts = np.histogram(fields[:, c], edges)[0]
                got = np.array(channel["distribution"][name]) * fields[:, c].size * np.diff(edges)
                self.assertLessEqual(np.abs(got - counts).sum(), 4.1)  # values at an edge of float32
                padded = np.pad(fields[:, c], ((0, 0), (1, 1), (1, 1), (1, 1)), constant_values=-np.inf)
                highest = np.max([padded[:, i:i + n, j:j + n, k:k + n] for i in range(3) for j in range(3) for k in range(3)], 0)
                peaks = [((fields[:, c] == highest) & (fields[:, c] > mean + above * deviation)).sum() / 2 for above in range(1, 7)]
                self.assertEqual(channel["peaks"][name], peaks)
            cross = [sum((modes["target"][i, c].conj() * modes["prediction"][i, c]).real[length == k].sum() for i in range(2)) / 2
                     for k in range(length.max() + 1)]
            power = np.array(channel["power"]["target"]) * np.array(channel["power"]["prediction"])
            self.close(channel["correlation"], np.array(cross) / np.sqrt(power), scale=1)

    @staticmethod
    def triangles(modes, length, wave, k):
        """Mean product of all triples of modes in a shell whose wave vectors add up to zero, one by one."""
        places = np.argwhere(length == k)
        vectors = wave[places]
        shell = {tuple(vector) for vector in vectors}
        found = [(a, b) for a in range(len(places)) for b in range(len(places)) if tuple(-(vectors[a] + vectors[b])) in shell]
        total = 0
        for a, b in found:
            third = tuple((-(vectors[a] + vectors[b])).astype(int))
            total += (modes[(slice(None), *places[a])] * modes[(slice(None), *places[b])] * modes[(slice(None), *third)]).real.mean()
        return total / len(found)


VARIABLES = {"t2m": 280.0, "d2m": 270.0, "sp": 9e4, "swvl1": 0.3, "tp": 1e-3, "ssrd": 1e6}
SEA_SHARE, HOURS, HELD_BACK = 0.55, 40, 10


def write_land(path):
    """Six variables of a land reanalysis: the sea is a fill value at all times. Returns the land."""
    random = np.random.default_rng(5)
    land = random.random((HEIGHT, WIDTH)) > SEA_SHARE
    with netCDF4.Dataset(path, "w") as file:
        for name, values, unit in (("time", np.arange(HOURS), "hours since 2001-01-01"), ("lat", np.linspace(60, 39, HEIGHT), "degrees_north"),
                                   ("lon", np.arange(WIDTH) * 2.0, "degrees_east")):
            file.createDimension(name, len(values))
            file.createVariable(name, "f8", (name,)).units = unit
            file[name][:] = values
        for name, mean in VARIABLES.items():
            variable = file.createVariable(name, "f4", ("time", "lat", "lon"), fill_value=-9999.0)
            variable.units = "1"
            values = mean * (1 + 0.1 * random.normal(size=(HOURS, HEIGHT, WIDTH)))
            variable[:] = np.ma.array(values, mask=np.broadcast_to(~land, values.shape))
    return land


@unittest.skipUnless(component_is_built(), "libwelkin_ingest.so is not built")
class Land(BadInputCase):
    """The sea has no weight, and no mask is predicted."""
    one_process = True

    def run_all(self, *commands):
        for command in commands:
            done = self.run_command(command)
            self.assertEqual(done.returncode, DONE, done.stderr)
        return done.stdout

    def test_of_a_land_reanalysis(self):
        land = write_land(self.root / "land.nc")
        self.data.rmdir()
        said = self.run_all([BINARY, "data", "ingest", self.root / "land.nc", "--out", self.data, "--missing", "mask", "--valid_last",
                             f"{HELD_BACK}h", "--role", "tp=diagnostic,ssrd=forcing"])
        sea = int((~land).sum())
        self.assertIn(f"mask mask: channels={' '.join(VARIABLES)}, without a value={sea} of {land.size} points at all times\n", said)
        with netCDF4.Dataset(self.root / "land.nc") as file:
            train = np.stack([file[name][:HOURS - HELD_BACK][:, land] for name in VARIABLES], 1).astype(float)
        mean, std = train.mean((0, 2)), train.std((0, 2))
        rounds_to(np.load(self.data / "stats/global_means.npy").ravel(), mean, 2)
        rounds_to(np.load(self.data / "stats/global_stds.npy").ravel(), std, 2)
        keys = {**FIELDS, "n_in_channels": 0, "n_out_channels": 0, "residual": "true", "loss": "mse"}
        table = self.run_all(self.train_command(keys), [BINARY, "predict", self.run_folder, "--output", self.root / "predictions", "--samples", 9],
                             [BINARY, "evaluate", self.run_folder, "--rollout_steps", 2],
                             [BINARY, "evaluate", self.run_folder, "--json", self.root / "scores.json"])
        log = (self.run_folder / "out.log").read_text()
        self.assertIn("prognostic: t2m d2m sp swvl1; forcing: ssrd; diagnostic: tp", log)
        self.assertIn("Static input channels: mask", log)
        self.assertIn("Conv2d(6, ", log)  # five of the files and the mask
        scores = json.loads((self.root / "scores.json").read_text())
        self.assertEqual(list(scores["channels"]), ["t2m", "d2m", "sp", "swvl1", "tp"])
        self.assertIn(f"{9 * land.sum()} of {9 * land.size}", table)
        with h5py.File(self.root / "predictions/predictions.h5") as file:
            target, prediction = file["target"][:].astype(float), file["prediction"][:].astype(float)
        self.assertTrue((np.isnan(target) == ~land).all())
        self.assertTrue((np.isnan(prediction) == ~land).all())
        weights = np.broadcast_to(np.cos(np.deg2rad(np.linspace(60, 39, HEIGHT)))[:, None], land.shape)[land]
        error = (prediction - target)[:, :, land]
        for c, channel in enumerate(scores["channels"].values()):
            self.assertEqual(channel["points"], {"with_value": 9 * land.sum(), "all": 9 * land.size})
            rmse = np.sqrt((weights * error[:, c] ** 2).sum() / (9 * weights.sum()))
            rounds_to(channel["model"]["rmse_physical"], rmse, 64, scale=np.abs(target[:, c][:, land]).max())
            rounds_to(channel["model"]["mae_physical"], (weights * np.abs(error[:, c])).sum() / (9 * weights.sum()), 64,
                      scale=np.abs(target[:, c][:, land]).max())
        self.assertIsNone(scores["channels"]["tp"]["persistence"]["rmse"])
        chosen = [0, 1, 2, 3, 4]
        normalised = error / std[chosen][:, None]
        rounds_to(scores["loss"], (normalised ** 2).mean((1, 2)).mean(), 256, scale=(np.abs(target[:, :, land]).max((0, 2)) / std[chosen]).max())


if __name__ == "__main__":
    unittest.main()
