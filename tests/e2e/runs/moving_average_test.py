# SPDX-License-Identifier: Apache-2.0
"""The moving average of weights in the shipped program: kept over a resume, evaluated, predicted with, exported; and told where there is none."""
import json
import unittest

import numpy as np
from safetensors.numpy import load_file

from bad_input_case import BINARY, CHECKPOINT, DONE, FIELDS, BadInputCase

RUN = {**FIELDS, "optimizer": "AdamW", "lr": 0.01, "checkpoint_interval": 1, "keep_checkpoints": 9}
DECAY = 0.5


class MovingAverage(BadInputCase):
    def setUp(self):
        super().setUp()
        self.make_fields()

    def done(self, *command):
        done = self.run_command([str(word) for word in command])
        self.assertEqual(done.returncode, DONE, done.stderr)
        return done

    def weights(self, step, group):
        return load_file(self.run_folder / f"checkpoints/step_{step}/{group}.safetensors")

    def loss(self, checkpoint, *flags):
        scores = self.root / "scores.json"
        self.done(BINARY, "evaluate", self.run_folder, "--checkpoint", checkpoint, "--json", scores, *flags)
        return json.loads(scores.read_text())["loss"]

    def test_is_kept_resumed_evaluated_and_exported(self):
        keys = {**RUN, "ema_decay": DECAY}
        self.done(*self.train_command({**keys, "num_iters": 2, "lr_schedule": "constant"}))
        self.done(*self.train_command({**keys, "num_iters": 4, "lr_schedule": "constant"}, "--resume"))
        # After the first update it is between the weights; then each step is the rule on what the checkpoints hold.
        for t in (2, 3, 4):
            before, after, weights = self.weights(t - 1, "ema"), self.weights(t, "ema"), self.weights(t, "model")
            decay = min(DECAY, (1 + t) / (10 + t))
            for name, weight in weights.items():
                wanted = decay * before[f"ema.{name}"].astype(float) + (1 - decay) * weight
                bound = 4 * 2.0 ** -24 * (np.abs(before[f"ema.{name}"]) + np.abs(weight))
                self.assertTrue((np.abs(after[f"ema.{name}"] - wanted) <= bound).all(), f"{name} at update {t}")
        self.assertEqual(after["ema.updates"], 4)
        self.done(BINARY, "ckpt", "export", self.run_folder / "checkpoints/step_4", self.root / "average.safetensors", "--ema")
        exported = load_file(self.root / "average.safetensors")
        self.assertEqual(set(exported), set(weights))
        for name, value in exported.items():
            self.assertTrue((value == after[f"ema.{name}"]).all(), name)
        average = self.loss("newest", "--ema")
        self.assertNotEqual(average, self.loss("newest"))
        self.assertEqual(average, self.loss(self.root / "average.safetensors"))
        self.done(BINARY, "predict", self.run_folder, "--ema", "--samples", 1, "--output", self.root / "predictions")

    def test_there_is_none(self):
        self.done(*self.train_command(RUN))
        for command in (["evaluate", self.run_folder, "--ema"], ["ckpt", "export", self.run_folder, self.root / "none.pt", "--ema"]):
            refused = self.run_command([BINARY, *map(str, command)])
            self.assertEqual(refused.returncode, CHECKPOINT, refused.stderr)
            self.assertIn("it holds no moving average of weights", refused.stderr)


if __name__ == "__main__":
    unittest.main()
