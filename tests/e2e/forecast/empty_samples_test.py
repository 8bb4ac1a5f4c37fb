# SPDX-License-Identifier: Apache-2.0
"""Samples without any point with a value: in the loss of validation and evaluation they count not at all, and parts that consist of them are refused."""
import csv
import json
import unittest

import h5py
import numpy as np

from bad_input_case import BINARY, CHANNELS, DATA, DONE, FIELDS, HEIGHT, WIDTH, BadInputCase
from tolerance import rounds_to

KEYS = {**FIELDS, "loss": "mse", "lr": 0.0, "optimizer": "SGD", "num_iters": 2, "nan_policy": "hole"}
STEPS = 9
SUMS = 64  # roundings of means in other orders


class EmptySamples(BadInputCase):
    def write(self, part, empty_from):
        """Values in the times before `empty_from` alone."""
        fields = np.random.default_rng(3).normal(size=(STEPS, CHANNELS, HEIGHT, WIDTH)).astype(np.float32)
        fields[empty_from:] = np.nan
        path = self.data / f"{part}.h5"
        path.unlink()
        with h5py.File(path, "w") as file:
            file["fields"] = fields
            file["fields"].attrs["missing"] = "hole"

    def prepare(self, train, valid):
        self.make_fields()
        self.write("train/2000", train)
        self.write("valid/2001", valid)

    def scores(self):
        done = self.run_command([BINARY, "evaluate", self.run_folder, "--device", "cpu", "--json", self.root / "scores.json"])
        self.assertEqual(done.returncode, DONE, done.stderr)
        return done.stdout, json.loads((self.root / "scores.json").read_text())

    @staticmethod
    def logged(run):
        with open(run / "metrics.csv") as file:
            return [float(row["Loss/valid"]) for row in csv.DictReader(file) if row["Loss/valid"]][-1]

    def test_every_layout_has_the_same_loss(self):
        self.prepare(STEPS, 5)
        self.assertEqual(self.train(KEYS, "--csv").returncode, DONE)
        wanted = self.logged(self.run_folder)
        for number, flags in enumerate((["--context_parallel", "2"], ["--micro_batch_size", "1"], ["--rank_invariant", "--set", "global_batch_size=8"])):
            self.logs = self.root / f"logs{number}"
            command = self.train_command(KEYS, "--csv", *flags)
            done = self.run_command([command[0], "launch", "-n", "2", "--bind", "off", "--", *command[1:]])
            self.assertEqual(done.returncode, DONE, done.stdout + done.stderr)
            run, = (path.parent for path in self.logs.rglob("metrics.csv"))
            rounds_to(self.logged(run), wanted, SUMS, message=str(flags))

    def test_the_loss_is_that_of_the_samples_with_points(self):
        self.prepare(STEPS, 5)  # of the 8 samples of validation the first 4 have a target
        self.assertEqual(self.train(KEYS, "--csv").returncode, DONE)
        logged = self.logged(self.run_folder)
        text, scores = self.scores()
        self.assertIn("over 4 samples that have points, of 8", text)
        rounds_to(scores["loss"], logged, SUMS)
        # The same part cut out by hand: files that end there.
        self.write("valid/2001", STEPS)
        path = self.data / "valid/2001.h5"
        with h5py.File(path) as file:
            whole = file["fields"][:5]
        path.unlink()
        with h5py.File(path, "w") as file:
            file["fields"] = whole
        rounds_to(self.scores()[1]["loss"], logged, SUMS)

    def test_a_validation_without_points_has_no_best(self):
        self.prepare(STEPS, 0)
        self.assert_refused(self.train(KEYS), DATA, "no point of the validation's targets has a value")
        self.assertEqual(list(self.run_folder.rglob("best*")), [])

    def test_an_epoch_without_points_is_refused(self):
        self.prepare(0, STEPS)
        self.assert_refused(self.train(KEYS), DATA, "no point of the training's targets has a value")

    def test_an_evaluation_without_points_is_refused(self):
        self.prepare(STEPS, STEPS)
        self.assertEqual(self.train(KEYS).returncode, DONE)
        self.write("valid/2001", 0)
        done = self.run_command([BINARY, "evaluate", self.run_folder, "--device", "cpu"])
        self.assert_refused(done, DATA, "no point of the targets has a value: samples=8")


if __name__ == "__main__":
    unittest.main()
