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


def welkin(plugins, *words):
    """Runs the binary with these plug-ins; returns (exit code, stdout, stderr)."""
    command = [str(BINARY)]
    for name in plugins:
        command += ["--plugin", plugin(name)]
    done = subprocess.run(command + [str(word) for word in words], capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


# What each example needs to run: its plug-ins, and the keys that choose it. Boxes and waves are computed, so no files are read.
WAVES = SOURCE / "examples/travelling_waves.yaml"
BOXES = ["dataset=nbody", "data_loader_config=synthetic", "data_size=8", "box_size=[16,16]", "Nsamples=8", "Nsamples_val=4",
         "N_in_channels=2", "N_out_channels=1", "global_batch_size=4", "augment=none"]
CASES = {
    "travelling_waves": (["travelling_waves"], WAVES, ["num_iters=4"]),
    "parallel_model": (["travelling_waves", "parallel_model"], WAVES, ["model=parallel_model", "num_iters=4"]),
    "signum_optimizer": (["travelling_waves", "signum_optimizer"], WAVES, ["optimizer=Signum", "num_iters=4"]),
    "log_cosh_loss": (["travelling_waves", "log_cosh_loss"], WAVES, ["loss=log_cosh", "num_iters=4"]),
    "step_schedule": (["travelling_waves", "step_schedule"], WAVES, ["lr_schedule=step", "num_iters=4"]),
    "linear_stencil": (["linear_stencil"], None, ["model=linear_stencil", "num_epochs=1", *BOXES]),
}


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

    def test_log_cosh_loss_trains(self):
        code, log = train(self.logs, "--set", "loss=log_cosh", plugins=("travelling_waves", "log_cosh_loss"))
        self.assertEqual(code, 0, log)
        training, _ = losses(log)
        self.assertLess(training[-1], 0.5 * training[0], log)

    def test_signum_trains_and_resumes(self):
        signum = ("--set", "optimizer=Signum", "--set", "lr=3e-4")
        code, log = train(self.logs, *signum, "--num_iters", "40", plugins=("travelling_waves", "signum_optimizer"))
        self.assertEqual(code, 0, log)
        code, log = train(self.logs, *signum, "--num_iters", "80", "--resume", plugins=("travelling_waves", "signum_optimizer"))
        self.assertEqual(code, 0, log)
        training, _ = losses(log)
        self.assertLess(training[-1], 0.8, log)

    def test_a_shorter_last_batch_is_trained_on(self):
        code, log = train(self.logs, "--set", "global_batch_size=24", "--num_epochs", "1")
        self.assertEqual(code, 0, log)
        checkpoints = [path.name for path in self.logs.rglob("checkpoints/step_*")]
        self.assertEqual(checkpoints, ["step_11"], "256 samples are ten batches of 24 and one of 16")

    def test_every_example_goes_through_every_verb_as_a_built_in_does(self):
        for name, (plugins, yaml, keys) in CASES.items():
            with self.subTest(name):
                self.every_verb(self.logs / name, plugins, yaml, keys)

    def every_verb(self, logs, plugins, yaml, keys):
        def run(*words):
            code, out, err = welkin(plugins, *words)
            self.assertEqual(code, 0, " ".join(map(str, words)) + "\n" + out + err)
            return out + err

        logs.mkdir()
        settings = [word for key in [*keys, f"log_root={logs}"] for word in ("--set", key)]
        if yaml:
            settings = ["--yaml_config", yaml, *settings]
        quick = ["--windows", "1", "--window_seconds", "0.01", "--warmup_seconds", "0"]
        run("train", *settings)
        folder = next(logs.rglob("checkpoints")).parent
        newest = next((folder / "checkpoints").glob("step_*"))
        run("evaluate", folder)
        run("predict", folder)
        for mode in ("io", "synthetic", "full"):
            run("bench", "--mode", mode, *settings, *quick)
        self.assertIn("FLOP", run("bench", "--layers", *settings, *quick))
        run("bench", "--memory", *settings)
        run("bench", "--explore", *settings, *quick)
        estimate = run("plan", "estimate", *settings)
        self.assertRegex(estimate, r"samples of the run +\d")
        run("ckpt", "inspect", newest)
        run("ckpt", "verify", newest)
        run("ckpt", "diff", newest, newest)
        run("ckpt", "export", "--format", "safetensors", newest, logs / "weights.safetensors")
        run("report", folder)

    def test_a_name_that_is_taken_is_an_error(self):
        code, log = train(self.logs, plugins=("travelling_waves", "travelling_waves"))
        self.assertEqual(code, 2, log)
        self.assertIn("travelling_waves", log)


if __name__ == "__main__":
    unittest.main()
