# SPDX-License-Identifier: Apache-2.0
"""Which part of the data a configuration takes: what it leaves out is said, channels are chosen by name, a crop has a place."""
import json
import unittest

import h5py
import numpy as np

from bad_input_case import BINARY, BOXES, DATA, DONE, FIELDS, USAGE, BadInputCase, write_box
from tolerance import rounds_to

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
