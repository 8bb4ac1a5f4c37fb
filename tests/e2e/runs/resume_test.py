#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A run that is really killed with SIGTERM in the middle of an epoch and resumed equals one that was not, bit for bit: weights, optimizer,
loss scale, loader position, running means and every logged value but times. Then evaluate and predict on what it left."""
import json
import math
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from tolerance import rounds_to

BINARY = os.environ["WELKIN_BINARY"]
READ_EVENTS = pathlib.Path(os.environ["WELKIN_SOURCE_DIR"]) / "tests/read_events.py"
TIMES = {"Avg iters per sec", "Avg samples per sec"}

VIT = """
run: {model: vit, embed_dim: 48, depth: 3, num_heads: 4, patch_size: 8, img_size: [64, 128], n_in_channels: 4, n_out_channels: 4, dropout: 0.1,
  data_loader_config: synthetic, limit_nsamples: 72, limit_nsamples_val: 10, global_batch_size: 8, num_iters: 23, lr: 1E-3, warmup: 3, expdir: /logs}
"""
UNET = """
run: {model: unet3d, width: 8, scales: 4, data_size: 32, box_size: [48, 48], Nsamples: 70, Nsamples_val: 10, data_loader_config: synthetic,
  global_batch_size: 8, num_epochs: 3, lr_schedule: {scaling: none, start_lr: 2.E-4, end_lr: 0., warmup_steps: 0}, expdir: /logs}
"""


def command(yaml, root, *flags):
    return [BINARY, "train", "--yaml_config", str(yaml), "--config", "run", "--log_root", str(root), "--threads", "2", "--device", "cpu",
            "--checkpoint_interval", "4", *flags]


def run_folder(root):
    return root / "run" / "1GPU" / "00"


def tensor_files(root):
    """Bytes of the newest checkpoint's tensors, by file."""
    newest = max((run_folder(root) / "checkpoints").glob("step_*"), key=lambda path: int(path.name[5:]))
    return newest.name, {path.name: path.read_bytes() for path in sorted(newest.glob("*.safetensors"))}


def logged(root):
    """Scalars and images as TensorBoard reads them, without the times."""
    done = subprocess.run([sys.executable, str(READ_EVENTS), str(run_folder(root) / "logs")], capture_output=True, text=True)
    if done.returncode == 77:
        raise unittest.SkipTest("the tensorboard package is not installed")
    events = json.loads(done.stdout)
    return {tag: values for tag, values in events["scalars"].items() if tag not in TIMES}, events["images"]


def interrupt(yaml, root, flags):
    """Sends SIGTERM soon after the first checkpoint; returns what the run said, or None where it was done before."""
    process = subprocess.Popen(command(yaml, root, *flags), stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if list((run_folder(root) / "checkpoints").glob("step_*")):
            process.send_signal(signal.SIGTERM)
            break
        time.sleep(0.001)
    log = process.communicate(timeout=120)[1]
    assert process.returncode == 0, log
    return None if "DONE" in log else log


class Resume(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, text):
        path = self.folder / "run.yaml"
        path.write_text(text)
        return path

    def run_to_end(self, yaml, root, *flags):
        done = subprocess.run(command(yaml, root, *flags), capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def test_two_runs_in_one_folder_are_noticed(self):
        yaml, root = self.write(VIT), self.folder / "twice"
        first = subprocess.Popen(command(yaml, root, "--set", "num_iters=100000"), stderr=subprocess.PIPE, text=True)
        try:
            deadline = time.monotonic() + 60
            while not list((run_folder(root) / "checkpoints").glob("step_*")) and time.monotonic() < deadline:
                time.sleep(0.05)
            for flags in ([], ["--resume"]):
                second = subprocess.run(command(yaml, root, "--set", "num_iters=100000", *flags), capture_output=True, text=True, timeout=60)
                self.assertEqual(second.returncode, 2, second.stderr)
                self.assertIn(f"another run works in the run folder: path={run_folder(root)}, by=process {first.pid} on ", second.stderr)
            self.assertEqual(list(run_folder(root).glob("checkpoints.old*")), [])
        finally:
            first.kill()
            first.communicate()
        self.assertEqual(first.returncode, -signal.SIGKILL)
        self.run_to_end(yaml, root, "--resume", "--set", "num_iters=8")  # the kernel has given the lock back

    def expect_equal(self, text, *flags, resumed_with=()):
        yaml = self.write(text)
        self.run_to_end(yaml, self.folder / "whole", *flags)
        for attempt in range(5):
            cut = self.folder / f"cut{attempt}"
            log = interrupt(yaml, cut, flags)
            if log is not None:
                break
        else:
            self.fail("the run was always done before the signal came")
        self.assertIn("Interrupted by SIGTERM at step", log)
        self.assertRegex(log, r"Continue with: .*train .*--resume")
        self.assertIn("Resumed at step", self.run_to_end(yaml, cut, *flags, *resumed_with, "--resume"))
        self.assertEqual(tensor_files(cut), tensor_files(self.folder / "whole"))
        self.assertEqual(logged(cut), logged(self.folder / "whole"))

    def continued(self, prefix):
        """The line of an interrupted run that says how to go on, as words of a shell."""
        yaml, root = self.write(VIT), self.folder / "my logs"
        process = subprocess.Popen([BINARY, *prefix, *command(yaml, root)[1:], "--num_iters", "1000000"], stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        while process.poll() is None and not list(root.glob("**/checkpoints/step_*")):
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        log = process.communicate(timeout=120)[1]
        self.assertIn("Continue with: ", log)
        words = shlex.split(log.partition("Continue with: ")[2].splitlines()[0])
        self.assertEqual(words[0], "welkin")
        return words[1:]

    def test_the_line_to_continue_with_is_what_was_typed(self):
        verb = [*command(self.folder / "run.yaml", self.folder / "my logs")[1:], "--num_iters", "1000000", "--resume"]
        for prefix in ["--bind", "off"], ["--bind", "off", "launch", "-n", "2", "--"]:
            self.assertEqual(self.continued(prefix), [*prefix, *verb])
            shutil.rmtree(self.folder / "my logs")

    def test_ranks_of_another_launcher_do_not_know_its_words(self):
        yaml, root = self.write(VIT), self.folder / "logs"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        place = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        ranks = [subprocess.Popen(command(yaml, root, "--num_iters", "1000000"), stderr=subprocess.PIPE, text=True,
                                  env={**os.environ, **place, "RANK": rank, "LOCAL_RANK": rank}) for rank in "01"]
        for process in ranks:
            self.addCleanup(process.kill)
        while ranks[0].poll() is None and not list(root.glob("**/checkpoints/step_*")):
            time.sleep(0.01)
        for process in ranks:
            process.send_signal(signal.SIGTERM)
        log = ranks[0].communicate(timeout=120)[1] + ranks[1].communicate(timeout=120)[1]
        self.assertIn("Start it as before with --resume", log)
        self.assertNotIn("Continue with", log)

    def test_vit(self):
        self.expect_equal(VIT)

    def test_vit_bf16_accumulating_with_reading_threads(self):
        self.expect_equal(VIT, "--amp_mode", "bf16", "--micro_batch_size", "3", "--num_data_workers", "2")

    def test_vit_whose_resumed_part_makes_its_activations_again(self):
        self.expect_equal(VIT, "--amp_mode", "bf16", resumed_with=("--activation_checkpointing", "blocks"))

    def test_vit_whose_steps_of_the_model_grow_on_noisy_input(self):
        """9 steps an epoch: cut off in whatever part."""
        self.expect_equal(VIT, "--multistep", "[1, 2, 3]", "--set", "multistep_iters=[5, 8]", "--set", "input_noise=0.1", "--num_data_workers", "2",
                          resumed_with=("--multistep_recompute",))

    def test_vit_with_a_replay_buffer(self):
        """9 steps an epoch, 3 states for each sample of the batch: cut off when they are in use."""
        self.expect_equal(VIT, "--set", "replay_buffer=3", "--set", "replay_steps=4", "--num_data_workers", "2")

    def test_unet(self):
        self.expect_equal(UNET)

    def test_unet_bf16_accumulating(self):
        self.expect_equal(UNET, "--amp_mode", "bf16", "--micro_batch_size", "3")

    def test_vit_whose_steps_wait_for_the_files(self):
        """The same files as those that are written beside training."""
        yaml = self.write(VIT)
        waits, beside = self.folder / "waits", self.folder / "beside"
        self.assertNotIn("written beside training", self.run_to_end(yaml, waits, "--checkpoint_async=false", "--keep_checkpoints", "9"))
        self.assertIn("Checkpoints written beside training: ", self.run_to_end(yaml, beside, "--keep_checkpoints", "9"))
        steps = sorted(path.name for path in (run_folder(waits) / "checkpoints").glob("step_*"))
        self.assertGreaterEqual(len(steps), 6)
        for step in steps:
            for file in sorted((run_folder(waits) / "checkpoints" / step).glob("*.safetensors")):
                self.assertEqual(file.read_bytes(), (run_folder(beside) / "checkpoints" / step / file.name).read_bytes(), file)

    def signalled(self, root, line, number, *flags, **environment):
        """A run that is sent a signal when it logs such a line; returns its log."""
        process = subprocess.Popen(command(self.write(VIT), root, *flags), stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})
        self.addCleanup(process.kill)
        log = ""
        while line not in log and (more := process.stderr.readline()):
            log += more
        process.send_signal(number)
        log += process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 0, log)
        return log

    def test_a_signal_while_the_run_starts(self):
        root = self.folder / "logs"
        log = self.signalled(root, "begin data loader init", signal.SIGUSR1, "--num_iters", "1000000")
        self.assertRegex(log, "Interrupted by SIGUSR1 at step [0-9]+: saved ")
        self.assertIn("Resumed at step ", self.run_to_end(self.write(VIT), root, "--resume"))

    def test_a_signal_during_validation(self):
        """The epoch's end is done after a resume."""
        root, flags = self.folder / "logs", ("--num_iters", "9", "--set", "limit_nsamples_val=6000")
        log = self.signalled(root, "Avg train loss", signal.SIGTERM, *flags)
        self.assertIn("Interrupted by SIGTERM at step 9: saved ", log)
        self.assertNotIn("Avg val loss", log.partition("Avg train loss")[2])
        again = self.run_to_end(self.write(VIT), root, "--resume", *flags)
        self.assertIn("Resumed at step 9 ", again)
        self.assertIn("Avg val loss", again)

    def start_seconds(self):
        """What a start takes here, with one step and its checkpoint."""
        started = time.monotonic()
        self.run_to_end(self.write(VIT), self.folder / "start", "--num_iters", "1")
        return time.monotonic() - started

    def out_of_time(self, root, *flags, said, code=0, how="is near: [0-9]+ s are left by", **environment):
        """A run that its time limit ends."""
        started = time.monotonic()
        done = subprocess.run(command(self.write(VIT), root, "--num_iters", "1000000", *flags), capture_output=True, text=True, timeout=300,
                              env={**os.environ, **environment})
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn("Interrupted by the time limit at step ", done.stderr)
        self.assertRegex(done.stderr, f"The time limit {how} {said}")
        self.assertIn("Continue with: welkin ", done.stderr)
        return done.stderr, time.monotonic() - started

    def test_a_time_limit_ends_the_run_with_a_checkpoint(self):
        root = self.folder / "logs"
        start = self.start_seconds()
        # Room for a start and steps, and a margin for the last step, the checkpoint and the end of the process.
        limit, margin = 8 + math.ceil(4 * start), 5 + math.ceil(start)
        log, seconds = self.out_of_time(root, "--time_limit", f"{limit // 60}:{limit % 60:02}", "--time_limit_margin", str(margin), said="--time_limit")
        self.assertLess(seconds, limit)
        step = int(tensor_files(root)[0][5:])
        self.assertIn(f"Interrupted by the time limit at step {step}: saved ", log)
        self.assertIn(f"Resumed at step {step} ", self.run_to_end(self.write(VIT), root, "--resume", "--num_iters", str(step + 3)))

    def test_a_time_limit_that_is_over(self):
        ended = str(int(time.time()) - 100)
        self.out_of_time(self.folder / "logs", said="Slurm", how="is over: by 1[0-9][0-9] s of", SLURM_JOB_ID="12", SLURM_JOB_END_TIME=ended)

    def fake(self, name, text):
        """A command of a batch system that says what it was called with in `calls`."""
        folder = self.folder / "bin"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\necho {name} $* >>{self.folder}/calls\n{text}\n")
        (folder / name).chmod(0o755)
        return {"PATH": f"{folder}:{os.environ['PATH']}"}

    def test_the_time_that_batch_systems_leave(self):
        cases = {"Slurm": ("squeue", "echo 1:00", {"SLURM_JOB_ID": "12"}, "squeue --noheader --format=%L --job=12"),
                 "Flux": ("flux", "echo 60", {"FLUX_JOB_ID": "f3"}, "flux job timeleft f3"),
                 "LSF": ("bjobs", "echo '0:1 L'", {"LSB_JOBID": "7"}, "bjobs -noheader -o time_left 7"),
                 "PBS": ("qstat", "echo ' Resource_List.walltime = 00:01:00'", {"PBS_JOBID": "9.head"}, "qstat -f 9.head")}
        for system, (name, text, variables, called) in cases.items():
            with self.subTest(system):
                path = self.fake(name, text)
                self.out_of_time(self.folder / system, "--time_limit_margin", "57", said=system, **path, **variables)
                self.assertIn(called, (self.folder / "calls").read_text())

    def test_a_job_is_queued_again(self):
        path = {**self.fake("squeue", "echo 1:00"), **self.fake("scontrol", ""), "SLURM_JOB_ID": "12"}
        flags = ("--time_limit_margin", str(57 - math.ceil(2 * self.start_seconds())), "--resume", "--requeue")  # a start and a step fit before it
        log, _ = self.out_of_time(self.folder / "logs", *flags, said="Slurm", **path)
        self.assertIn("Queueing the job again with: scontrol requeue 12", log)
        self.assertIn("scontrol requeue 12", (self.folder / "calls").read_text())
        fails = {**path, **self.fake("scontrol", "exit 1")}
        log, _ = self.out_of_time(self.folder / "fails", *flags, said="Slurm", code=2, **fails)
        self.assertIn("the batch system refuses to queue the job again: command=scontrol requeue 12", log)
        self.assertNotIn("Queued again", log)
        self.fake("scontrol", "")
        (self.folder / "calls").unlink()
        done = subprocess.run(command(self.write(VIT), self.folder / "logs", *flags, "--time_limit_margin", "70"), capture_output=True, text=True,
                              timeout=120, env={**os.environ, **path})
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("the job is not queued again, for it has not done a step: its time was over before", done.stderr)
        self.assertNotIn("scontrol", (self.folder / "calls").read_text())

    def test_sigusr1_queues_the_job_again_in_every_phase(self):
        """While the run is set up, trains and validates."""
        path = {**self.fake("squeue", "echo 10:00:00"), **self.fake("scontrol", ""), "SLURM_JOB_ID": "12"}
        flags = ("--resume", "--requeue", "--num_iters", "9", "--set", "limit_nsamples_val=6000")
        phases = {"set-up": ("begin data loader init", ()), "training": ("Starting Training Loop", ("--inject", "slow:step=1,seconds=0.5")),
                  "validation": ("Avg train loss", ())}
        for phase, (line, more) in phases.items():
            with self.subTest(phase):
                log = self.signalled(self.folder / phase, line, signal.SIGUSR1, *flags, *more, **path)
                self.assertRegex(log, r"Interrupted by SIGUSR1 at step \d+: saved ")
                self.assertIn("Queueing the job again with: scontrol requeue 12", log)

    def test_sigusr1_while_a_checkpoint_is_written(self):
        path = {**self.fake("squeue", "echo 10:00:00"), **self.fake("scontrol", ""), "SLURM_JOB_ID": "12"}
        root = self.folder / "logs"
        flags = ("--resume", "--requeue", "--num_iters", "100000", "--checkpoint_interval", "1")
        process = subprocess.Popen(command(self.write(VIT), root, *flags), stderr=subprocess.PIPE, text=True, env={**os.environ, **path})
        self.addCleanup(process.kill)
        while process.poll() is None and not list(root.glob("run/1GPU/00/checkpoints/.step_*.partial*")):
            time.sleep(0.0002)
        process.send_signal(signal.SIGUSR1)
        log = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 0, log)
        step = int(tensor_files(root)[0][5:])
        self.assertIn(f"Interrupted by SIGUSR1 at step {step}: saved ", log)
        self.assertIn("Queueing the job again with: scontrol requeue 12", log)

    def test_requeue_wants_a_job_and_resume(self):
        for flags, message in ((("--requeue",), "a job that is queued again begins with --resume: requeue=true, resume=false"),
                               (("--requeue", "--resume"), "this is no job of a batch system: requeue=true"),
                               (("--time_limit", "soon"), "this is no duration: "),
                               (("--checkpoint_interval", "auto"), "the best interval follows from how often nodes fail, which is not said: "),
                               (("--checkpoint_dirs", "fast"), "checkpoint_dirs cannot be read, it is a name, an absolute path, numbers of at least 1")):
            done = subprocess.run(command(self.write(VIT), self.folder / "logs", *flags), capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(message, done.stderr)

    def test_several_places(self):
        """Each with its own interval and count; the newest whole one of all counts, and the damaged ones are named."""
        yaml, root, fast = self.write(VIT), self.folder / "logs", self.folder / "fast"
        flags = ("--checkpoint_dirs", f"fast:{fast}:3:2", "--keep_every", "8", "--keep_checkpoints", "1")
        self.run_to_end(yaml, root, *flags)
        def steps(folder):
            return sorted(int(path.name[5:]) for path in folder.glob("step_*"))
        place = fast / "run" / "1GPU" / "00"
        self.assertEqual(steps(place), [18, 21])
        best = json.loads((run_folder(root) / "checkpoints/best.json").read_text())["step"]
        self.assertEqual(steps(run_folder(root) / "checkpoints"), sorted({8, 16, 23, best}))
        whole = tensor_files(root)
        shutil.rmtree(run_folder(root) / "checkpoints" / "step_23")
        (place / "step_21" / "model.safetensors").write_bytes(b"x")
        log = self.run_to_end(yaml, root, *flags, "--resume")
        self.assertIn(f"{place}/step_21", log.partition("Resumed at step")[0])
        self.assertIn(f"Resumed at step 18 from {run_folder(root) / 'checkpoints' if best == 18 else place}/step_18", log)
        self.assertEqual(tensor_files(root), whole)

    def test_the_interval_that_a_run_chooses(self):
        """From what the first checkpoints cost; the run that goes on begins with what was measured."""
        yaml, root = self.write(VIT), self.folder / "logs"
        flags = ("--checkpoint_interval", "auto", "--mtbf", "0.01", "--keep_checkpoints", "100")
        log = self.run_to_end(yaml, root, *flags, "--num_iters", "60")
        said = re.search(r"Checkpoint interval: (\d+) steps? \(.* a failure comes every 36 s, expected goodput ([0-9.]+) %", log)
        self.assertIsNotNone(said, log)
        status = json.loads((run_folder(root) / "status.json").read_text())
        self.assertGreater(status["checkpoint_interval"], 0)
        self.assertTrue(0 < status["expected_goodput"] < 1, status)
        steps = sorted(int(path.name[5:]) for path in (run_folder(root) / "checkpoints").glob("step_*"))
        self.assertLessEqual(steps[0], 10)  # the first one, that is measured; earlier where one is the best so far
        times = json.loads((run_folder(root) / "checkpoint_times.json").read_text())
        self.assertTrue(all(value > 0 for value in times.values()), times)
        before = self.run_to_end(yaml, root, *flags, "--num_iters", "70", "--resume").partition("Resumed at step 60")[0]
        self.assertRegex(before, r"Checkpoint interval: \d+ step")

    def test_evaluate_and_predict_what_was_trained(self):
        yaml = self.write(VIT)
        log = self.run_to_end(yaml, self.folder / "logs")
        run = run_folder(self.folder / "logs")
        best = json.loads((run / "checkpoints/best.json").read_text())
        scores = self.folder / "scores.json"
        done = subprocess.run([BINARY, "evaluate", str(run), "--json", str(scores)], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        rounds_to(json.loads(scores.read_text())["loss"], best["validation_loss"], 64, message=log)
        self.assertIn(f"step {best['step']}", done.stdout)
        done = subprocess.run([BINARY, "predict", str(run), "--samples", "2", "--checkpoint", "newest"], capture_output=True, text=True,
                              timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((run / "predictions/predictions.h5").exists())
        self.assertEqual(len(list((run / "predictions").glob("sample_*.png"))), 2)

    def test_a_checkpoint_that_is_not_there_names_those_that_are(self):
        yaml = self.write(VIT)
        self.run_to_end(yaml, self.folder / "logs", "--num_iters", "2")
        done = subprocess.run([BINARY, "evaluate", str(run_folder(self.folder / "logs")), "--checkpoint", "7"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 5)
        self.assertIn("Choose best, newest, or a step: 2", done.stderr)


if __name__ == "__main__":
    unittest.main()
