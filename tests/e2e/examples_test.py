#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The plug-ins of examples/ through the shipped binary: each registers its row, trains, and does what its first lines promise."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

BINARY = pathlib.Path(os.environ["WELKIN_BINARY"])
SOURCE = pathlib.Path(os.environ["WELKIN_SOURCE_DIR"])


def plugin(name):
    return str(BINARY.parent / "examples" / f"lib{name}.so")


def train(logs, *arguments, plugins=("travelling_waves",)):
    """Trains on the example's waves; returns (exit code, stderr)."""
    command = [str(BINARY)]
    for name in plugins:
        command += ["--plugin", plugin(name)]
    command += ["train", "--yaml_config", str(SOURCE / "examples/travelling_waves.yaml"), "--log_root", str(logs), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stderr


def losses(log):
    """(training, validation) losses by epoch."""
    pattern = r"Avg {} loss=([0-9.]+)"
    return [[float(x) for x in re.findall(pattern.format(kind), log)] for kind in ("train", "val")]


class Examples(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.logs = pathlib.Path(self.folder.name)

    def test_waves_are_learnt_better_than_by_standing_still(self):
        code, log = train(self.logs)
        self.assertEqual(code, 0, log)
        _, valid = losses(log)
        # A wave one eighth of a period on differs by 2 sin(pi/8) = 0.765 of its norm.
        self.assertLess(valid[-1], 0.5, log)

    def test_step_schedule_falls_to_a_tenth_at_half_time(self):
        code, log = train(self.logs, "--set", "lr_schedule=step", plugins=("travelling_waves", "step_schedule"))
        self.assertEqual(code, 0, log)

    def test_huber_loss_trains(self):
        code, log = train(self.logs, "--set", "loss=huber", plugins=("travelling_waves", "huber_loss"))
        self.assertEqual(code, 0, log)
        training, _ = losses(log)
        self.assertLess(training[-1], 0.5 * training[0], log)

    def test_lion_trains_and_resumes(self):
        lion = ("--set", "optimizer=Lion", "--set", "lr=3e-4")
        code, log = train(self.logs, *lion, "--num_iters", "40", plugins=("travelling_waves", "lion_optimizer"))
        self.assertEqual(code, 0, log)
        code, log = train(self.logs, *lion, "--num_iters", "80", "--resume", plugins=("travelling_waves", "lion_optimizer"))
        self.assertEqual(code, 0, log)
        training, _ = losses(log)
        self.assertLess(training[-1], 0.8, log)

    def test_a_name_that_is_taken_is_an_error(self):
        code, log = train(self.logs, plugins=("travelling_waves", "travelling_waves"))
        self.assertEqual(code, 2, log)
        self.assertIn("travelling_waves", log)


if __name__ == "__main__":
    unittest.main()
