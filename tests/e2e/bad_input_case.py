# SPDX-License-Identifier: Apache-2.0
"""What the bad_input tests share: tiny data trees, tiny configurations, runs of the shipped binary, and what a refusal must look like."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

import h5py
import numpy as np
from verb_process import VerbProcess

BINARY = os.environ["WELKIN_BINARY"]
SOURCE = pathlib.Path(os.environ["WELKIN_SOURCE_DIR"])
DONE, OTHER, USAGE, DATA, COMM, CHECKPOINT, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130  # ExitCode of src/core/error.h

YEAR_STEPS, CHANNELS, HEIGHT, WIDTH = 12, 3, 8, 16
FIELDS = {
    "model": "vit", "dataset": "era5", "embed_dim": 16, "depth": 1, "num_heads": 2, "patch_size": 4, "img_size": [HEIGHT, WIDTH],
    "n_in_channels": CHANNELS, "n_out_channels": CHANNELS, "train_data_path": "/data/train", "valid_data_path": "/data/valid",
    "global_means_path": "/data/stats/global_means.npy", "global_stds_path": "/data/stats/global_stds.npy",
    "global_batch_size": 4, "num_iters": 4, "expdir": "/logs"}

EDGE = 16
BOXES = {
    "model": "unet3d", "dataset": "nbody", "scales": 2, "width": 4, "data_size": 8, "box_size": [EDGE, EDGE], "Nsamples": 4,
    "Nsamples_val": 2, "train_path": "/data/train.h5", "val_path": "/data/valid.h5", "global_batch_size": 2, "num_epochs": 1,
    "expdir": "/logs"}


def yaml_text(keys):
    """One preset `base`; lists in flow style are YAML as Python prints them."""
    return "base:\n" + "".join(f"  {key}: {value}\n" for key, value in keys.items())


def write_fields(path, fields=None, name="fields", **options):
    """A training file of one year; `fields` replaces the random values (time, channel, lat, lon)."""
    if fields is None:
        fields = np.random.default_rng(1).normal(size=(YEAR_STEPS, CHANNELS, HEIGHT, WIDTH)).astype(np.float32)
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        file.create_dataset(name, data=fields, **options)
    return path


def write_box(path, nbody=None, hydro=None):
    random = np.random.default_rng(2)
    with h5py.File(path, "w") as file:
        file["Nbody"] = random.normal(size=(4, EDGE, EDGE, EDGE)).astype(np.float32) if nbody is None else nbody
        file["Hydro"] = random.normal(size=(5, EDGE, EDGE, EDGE)).astype(np.float32) if hydro is None else hydro
    return path


def write_statistics(folder, mean=0.0, std=1.0):
    """(1, C, 1, 1) each; a number stands for all channels."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in (("global_means", mean), ("global_stds", std)):
        np.save(folder / f"{name}.npy", np.broadcast_to(np.asarray(value, np.float32), (CHANNELS,)).reshape(1, CHANNELS, 1, 1))


def truncate(path, fraction=0.5):
    os.truncate(path, int(path.stat().st_size * fraction))


def tree(folder):
    """Every path below the folder, hidden ones too."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


class BadInputCase(unittest.TestCase):
    one_process = False  # verbs run one after the other in one process, which is quicker; some tests want the shipped program

    @classmethod
    def setUpClass(cls):
        cls.verbs = VerbProcess(BINARY)
        cls.addClassCleanup(cls.verbs.close)

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="welkin-bad-input-"))
        self.addCleanup(shutil.rmtree, self.root)
        self.data, self.logs = self.root / "data", self.root / "logs"
        self.run_folder = self.logs / "base/1GPU/00"
        self.data.mkdir()

    def make_fields(self, years=("train/2000", "valid/2001")):
        for year in years:
            write_fields(self.data / f"{year}.h5")
        write_statistics(self.data / "stats")

    def make_boxes(self):
        write_box(self.data / "train.h5")
        write_box(self.data / "valid.h5")

    def write_yaml(self, text):
        path = self.root / "run.yaml"
        path.write_text(text)
        return path

    def train_command(self, keys, *arguments):
        """`keys`: a mapping, or the text of the file."""
        file = self.write_yaml(keys if isinstance(keys, str) else yaml_text(keys))
        return [BINARY, "train", "--yaml_config", str(file), "--device", "cpu", "--threads", "1", "--data_root", str(self.data), "--log_root",
                str(self.logs), *arguments]

    def run_command(self, command, **options):
        if self.one_process and command[0] == BINARY and "launch" not in command and not options:
            return self.verbs.run(*command[1:], timeout=60, cwd=self.root)
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60, cwd=self.root, **options)

    def train(self, keys, *arguments, **options):
        return self.run_command(self.train_command(keys, *arguments), **options)

    def assert_refused(self, done, code, *parts):
        """The exit code, one message that names what is wrong and what to do, and no trace of an inner failure."""
        everything = done.stdout + done.stderr
        self.assertEqual(done.returncode, code, everything)
        message = done.stderr[done.stderr.rfind("welkin: ["):].strip()
        self.assertTrue(message.startswith("welkin: ["), everything)
        self.assertTrue(message.endswith("."), message)
        for part in parts:
            self.assertIn(part, message)
        for trace in ("terminate called", "[internal]", "what():", "Exception raised from"):
            self.assertNotIn(trace, everything)
        return message

    def refuse_training(self, keys, code, *parts, arguments=()):
        """Training is refused before it begins, and nothing is written."""
        message = self.assert_refused(self.train(keys, *arguments), code, *parts)
        self.assertEqual(tree(self.logs) if self.logs.exists() else [], [])
        return message

    def start(self, command, **options):
        """A process in the background, killed at the end of the test at the latest."""
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.root,
                                   **options)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def wait_until(self, condition, process=None, seconds=40):
        """Polls; fails when the time is over or the process ends before."""
        end = time.monotonic() + seconds
        while not condition():
            if process is not None and process.poll() is not None:
                self.fail(f"the process ended too early: {process.stdout.read()}")
            if time.monotonic() > end:
                self.fail(f"not within {seconds} s")
            time.sleep(0.002)


# Runs its arguments with a tmpfs on a folder: sh -c RUN_IN_TMPFS sh OPTIONS FOLDER COMMAND...
MOUNT = 'mount -t tmpfs -o "$1" tmpfs "$2" && shift 2 && exec "$@"'


def private_mounts():
    """The prefix that gives a command mounts of its own, None where the system refuses."""
    for prefix in (["unshare", "-m"], ["unshare", "-rm"]):
        try:
            tried = subprocess.run([*prefix, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False)
        except FileNotFoundError:
            return None
        if tried.returncode == 0:
            return prefix
    return None


def on_tmpfs(prefix, options, folder, command):
    """The command, with a file system of its own (size=..., or ro) on the folder, which it alone sees."""
    folder.mkdir(parents=True, exist_ok=True)
    return [*prefix, "sh", "-c", MOUNT, "sh", options, str(folder), *command]
