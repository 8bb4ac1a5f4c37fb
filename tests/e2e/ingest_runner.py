# SPDX-License-Identifier: Apache-2.0
"""Runs `welkin data ingest` for the ingest tests and reads what it wrote."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy as np

BINARY = pathlib.Path(os.environ["WELKIN_BINARY"])
SOURCE = pathlib.Path(os.environ["WELKIN_SOURCE_DIR"])
DATA = pathlib.Path(os.environ.get("WELKIN_SHARED", SOURCE.parent / "shared")) / "data"
SKIPPED = 77  # the exit code that CTest takes for a skip; the last line printed is its reason


def component_is_built():
    return (BINARY.parent / "libwelkin_ingest.so").exists()


class IngestCase(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        self.out = self.root / "out"

    def run_ingest(self, *arguments):
        command = [BINARY, "data", "ingest", *arguments, "--out", self.out]
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)

    def ingest(self, *arguments):
        """Runs, expects success, returns the report."""
        done = self.run_ingest(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def refused(self, *arguments):
        """Runs, expects bad data, returns the message; nothing may be left behind."""
        done = self.run_ingest(*arguments)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertEqual([path.name for path in self.root.iterdir() if path.name.startswith("out")], [])
        return done.stderr

    def fields(self, name):
        with h5py.File(self.out / name) as file:
            return file["fields"][:]

    def channels(self, name):
        with h5py.File(self.out / name) as file:
            return [str(text) for text in file["fields"].attrs["channels"].astype(str)]

    def dataset(self, name, dataset):
        with h5py.File(self.out / name) as file:
            return file[dataset][:]

    def statistics(self, name):
        return np.load(self.out / "stats" / f"{name}.npy")


def run_all(name):
    """unittest.main for CTest: exit code 77 when not one test ran."""
    result = unittest.main(module=name, exit=False).result
    reasons = sorted({reason for _, reason in result.skipped})
    for reason in reasons:
        print(f"skipped: {reason}")
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(SKIPPED if result.testsRun == len(result.skipped) else 0)
