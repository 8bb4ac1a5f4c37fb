# SPDX-License-Identifier: Apache-2.0
"""Runs that would go wrong quietly: rates and statistics that do not fit, NaN in the data, and what follows a Ctrl-C."""
import os
import signal
import subprocess
import unittest

import h5py
import numpy as np

from bad_input_case import BINARY, DATA, DONE, FIELDS, INTERRUPTED, OTHER, BadInputCase, write_statistics


class DoubtfulStart(BadInputCase):
    one_process = True

    def setUp(self):
        super().setUp()
        self.make_fields()

    def test_rates_are_warned_of(self):
        done = self.train({**FIELDS, "lr": 50, "warmup": 1000, "lr_schedule": "cosine"}, "--set", "lr_schedule.end_lr=60")
        for text in ("the learning rate looks too large: lr=50, optimizer=Adam, usual=at most 0.1",
                     "the warm-up does not end within the run: warmup=1000, steps=4", "the learning rate rises to its end: end_lr=60, lr=50"):
            self.assertEqual(done.stderr.count(f"WARNING - {text}"), 1, done.stderr)
        self.assertNotIn("WARNING", self.train(FIELDS, "--run_num", "01").stderr)

    def test_statistics_of_other_data_are_an_error(self):
        for part in ("train/2000.h5", "valid/2001.h5"):
            with h5py.File(self.data / part, "r+") as file:
                file["fields"][:, 1] += 280
        self.assert_refused(self.train(FIELDS), DATA, "the input is not normalised by these statistics: channel=channel1, mean distance in standard "
                            "deviations=2", "mean=0, std=1", "welkin data stats", "set allow_unnormalized to true")
        done = self.train({**FIELDS, "allow_unnormalized": "true"}, "--run_num", "01")
        self.assertEqual(done.returncode, DONE, done.stderr)
        write_statistics(self.data / "stats", mean=[0, 280, 0])
        self.assertEqual(self.train(FIELDS, "--run_num", "02").returncode, DONE)

    def spoil(self, value, steps):
        with h5py.File(self.data / "train/2000.h5", "r+") as file:
            file["fields"][steps, 2, 5, 7] = value
            file["latitude"] = np.linspace(70, -70, 8)
            file["longitude"] = np.arange(16) * 22.5
        with h5py.File(self.data / "valid/2001.h5", "r+") as file:
            file["latitude"] = np.linspace(70, -70, 8)
            file["longitude"] = np.arange(16) * 22.5

    def test_a_loss_that_is_not_finite_names_the_value_in_the_data(self):
        self.spoil(np.inf, slice(None))
        message = self.assert_refused(self.train(FIELDS), OTHER, f"not finite in the data: path={self.data}/train/2000.h5, dataset=fields, step=",
                                      "input_channel=2 (channel2), row=5, column=7, latitude=-30, longitude=157.5, value=inf. Fill these values")
        self.assertNotIn("lower the rate", message)
        done = self.train({**FIELDS, "on_nonfinite": "skip"}, "--run_num", "01")
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertIn("value=inf, action=skip", done.stderr)

    def test_every_rank_knows_what_one_of_them_has_read(self):
        self.spoil(np.nan, 3)
        done = self.run_command([BINARY, "launch", "-n", "2", "--", *self.train_command(FIELDS)[1:]])
        self.assertEqual(done.returncode, OTHER, done.stderr)
        for rank in "01":
            self.assertRegex(done.stderr, rf"\[{rank}\] .*event nonfinite_loss: .*not finite in the data: .*_channel=2 \(channel2\), row=5, column=7")

    def test_only_finite_data_are_an_occasion_to_speak_of_rates(self):
        message = self.assert_refused(self.train({**FIELDS, "lr": 1e38, "num_iters": 40}), OTHER, "The data of this step are finite: lower the rate")
        self.assertNotIn("not finite in the data", message)

    def test_masked_values_are_summed_up(self):
        self.spoil(np.nan, slice(None))
        done = self.train({**FIELDS, "nan_policy": "mask", "num_iters": 4})
        self.assertEqual(done.returncode, DONE, done.stderr)
        first = [line for line in done.stderr.splitlines() if "values that are not finite" in line]
        self.assertEqual(len(first), 1, done.stderr)
        self.assertIn("input_channel=2 (channel2), values=1, masked with the channel's mean; what follows is counted until the epoch ends", first[0])
        sums = [line for line in done.stderr.splitlines() if "masked with the channels' means in epoch" in line]
        self.assertEqual(len(sums), 2, done.stderr)  # of two epochs
        self.assertIn("in epoch 1: values=16, samples=8, channels=[input channel2, target channel2]", sums[0])


class Interrupts(BadInputCase):
    one_process = True

    def interrupted(self, number, *launcher):
        self.make_fields()
        command = self.train_command({**FIELDS, "num_iters": 1000000, "checkpoint_interval": 20})
        process = self.start([BINARY, *launcher, *command[1:]])
        self.wait_until(lambda: list(self.logs.glob("base/*/00/checkpoints/step_*")), process)
        process.send_signal(number)
        log = process.communicate(timeout=60)[0]
        self.assertEqual(log.count(f"Interrupted by {number.name} at step"), 1, log)
        self.assertEqual(log.count("Continue with: welkin "), 1, log)
        return process.returncode, log

    def test_ctrl_c_is_130_though_a_checkpoint_is_saved(self):
        self.assertEqual(self.interrupted(signal.SIGINT)[0], INTERRUPTED)

    def test_signals_of_schedulers_are_0(self):
        self.assertEqual(self.interrupted(signal.SIGTERM)[0], DONE)

    def test_sigusr1_is_one_of_these(self):
        self.assertEqual(self.interrupted(signal.SIGUSR1)[0], DONE)

    def test_ctrl_c_of_several_ranks(self):
        code, log = self.interrupted(signal.SIGINT, "launch", "-n", "2", "--")
        self.assertEqual(code, INTERRUPTED, log)
        self.assertNotIn("[launch]", log)

    def test_sigterm_of_several_ranks(self):
        self.assertEqual(self.interrupted(signal.SIGTERM, "launch", "-n", "2", "--")[0], DONE)


# Sends SIGUSR1 to the run that asks how much time it has left: a signal at a known moment of the start.
SQUEUE = """#!/bin/sh
run=$PPID
until tr '\\0' ' ' </proc/$run/cmdline | grep -q ' train '; do run=$(cut -d ' ' -f 4 /proc/$run/stat); done
kill -USR1 $run
echo 10:00:00
"""


class SignalsBeforeTheFirstStep(BadInputCase):
    def start_as_job(self, *flags, launcher=()):
        self.make_fields()
        tools = self.root / "bin"
        tools.mkdir(exist_ok=True)
        for name, text in (("squeue", SQUEUE), ("scontrol", f"#!/bin/sh\necho $* >>{self.root}/calls\n")):
            (tools / name).write_text(text)
            (tools / name).chmod(0o755)
        command = self.train_command({**FIELDS, "num_iters": 40}, "--resume", "--requeue", *flags)
        job = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "SLURM_JOB_ID": "12"}
        done = subprocess.run([BINARY, *launcher, *map(str, command[1:])], capture_output=True, text=True, timeout=120, cwd=self.root, env=job)
        return done.returncode, done.stdout + done.stderr

    def assert_queued_again(self, log):
        self.assertIn("Queueing the job again with: scontrol requeue 12", log)
        self.assertEqual((self.root / "calls").read_text(), "requeue 12\n")

    def test_a_job_is_queued_again_though_it_has_not_done_a_step(self):
        code, log = self.start_as_job()
        self.assertEqual(code, DONE, log)
        self.assertIn("Interrupted by SIGUSR1 at step 0: saved ", log)
        self.assert_queued_again(log)

    def test_so_is_one_whose_files_are_being_staged(self):
        code, log = self.start_as_job("--stage", self.root / "node")
        self.assertEqual(code, INTERRUPTED, log)
        self.assertIn("interrupted while the data were staged, before training: signal=10. Start it again: it goes on with the copies", log)
        self.assert_queued_again(log)

    def test_and_one_of_several_ranks(self):
        # The rank that asks may only wait for the other's copies: on a busy machine they are there before its signal is.
        code, log = self.start_as_job("--stage", self.root / "node", launcher=("launch", "-n", "2", "--"))
        told = {INTERRUPTED: "interrupted while the data were staged, before training: signal=10", DONE: "Interrupted by SIGUSR1 at step 0: saved "}
        self.assertIn(told[code], log)
        self.assert_queued_again(log)


if __name__ == "__main__":
    unittest.main()
