# SPDX-License-Identifier: Apache-2.0
"""Damaged copies of files of every format through the verbs that read them: none ends by a signal, none hangs, a refusal is one of the exit
codes for it and says why, and a result of a file that was cut off, or that has checksums, is that of the whole file.

usage: damaged_files_test.py [COUNT [SEED [FORMAT...]]]    COUNT damaged copies instead of those of the test, of these formats alone where some
are named; prints what became of them
"""
import collections
import concurrent.futures
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import h5py
import numpy as np
from bad_input_case import BINARY, DATA, DONE, FIELDS, CHECKPOINT, OTHER, USAGE, tree, write_statistics, yaml_text
from damaged_copies import HDF5, KINDS, copy_damaged, make_arrays, make_gridded
from verb_process import VerbProcess

COUNT, SEED = 1000, 2026
LONGEST_S, MOST_PROCESSOR_S = 30, 10  # on a machine with other work what computes for a few seconds takes longer
ONE_STEP = {**FIELDS, "num_iters": 1, "global_batch_size": 2}


MINE = threading.local()  # each thread runs verbs in a process of its own
PROCESSES = []


def run(*words):
    if not hasattr(MINE, "process"):
        MINE.process = VerbProcess(BINARY)
        PROCESSES.append(MINE.process)
    return MINE.process.run(*words, timeout=LONGEST_S)


class Sources:
    """Whole files of each format, and for each the commands that read a copy of it: (format, verb, command, result or None)."""

    def __init__(self, root):
        self.root = root
        self.whole = root / "whole"
        self.whole.mkdir()
        make_arrays(self.whole)
        if (pathlib.Path(BINARY).parent / "libwelkin_ingest.so").exists():
            make_gridded(self.whole)
        write_statistics(root / "stats")
        with h5py.File(root / "mesh.h5", "w") as file:
            file["gas"] = np.ones((8, 8, 8), np.float32)
        self.make_checkpoint()

    def make_checkpoint(self):
        """A run of one step, its checkpoint as a folder, .safetensors and .pt, and its configuration."""
        for split in ("train", "valid"):
            (self.root / split).mkdir()
            shutil.copy(self.whole / "hdf5-contiguous", self.root / split / "2000.h5")
        (self.whole / "yaml").write_text(yaml_text(ONE_STEP))
        done = run(*self.train(self.whole / "yaml", self.root, self.root / "logs"))
        assert done.returncode == DONE, done.stderr
        checkpoint = next((self.root / "logs").rglob("checkpoints/step_*"))
        shutil.copytree(checkpoint, self.whole / "checkpoint")
        for name in ("pt", "safetensors"):
            done = run("ckpt", "export", checkpoint, self.root / f"export.{name}")
            assert done.returncode == DONE, done.stderr
            (self.root / f"export.{name}").rename(self.whole / name)

    def train(self, yaml, data, logs, *flags):
        """All paths of the configuration are below --data_root."""
        return ["train", "--yaml_config", yaml, "--config", "base", "--device", "cpu", "--threads", "1", "--data_root", data, "--log_root", logs,
                *flags]

    def formats(self):
        return sorted(path.name for path in self.whole.iterdir() if not path.name.endswith(".json"))

    def verbs(self, name):
        if name in ("netcdf3", "grib"):
            return ["ingest", "inspect"]
        if name == "netcdf4":
            return ["ingest", "inspect", "stats"]
        if name in ("pt", "safetensors"):
            return ["ckpt inspect", "ckpt import"]
        if name == "genericio":
            return ["inspect", "ingest --box"]
        if name == "checkpoint":
            return ["ckpt verify", "ckpt inspect", "ckpt export"]
        if name == "yaml":
            return ["dry_run"]
        return ["inspect", "convert", "train", "stats"]

    def read(self, name, verb, place):
        """Runs the verb on the copy at `place`, in its folder; the process, and what it made (None: nothing that can be compared)."""
        folder = place.parent
        if verb == "ingest":
            done = run("data", "ingest", place, "--out", folder / "out", "--quiet")
            return done, folder / "out/train/2001.h5"
        if verb == "ingest --box":
            done = run("data", "ingest", "--box", place, self.root / "mesh.h5", "--cells", "8", "--input", "density", "--target", "gas", "--out",
                       folder / "out", "--quiet")
            return done, folder / "out/train.h5"
        if verb in ("ckpt verify", "ckpt inspect"):
            return run(*verb.split(), place), None
        if verb in ("ckpt import", "ckpt export"):
            target = folder / ("out" if verb == "ckpt import" else "out.safetensors")
            return run(*verb.split(), place, target), target
        if verb == "dry_run":
            return run(*self.train(place, self.root, folder / "logs", "--dry_run")), None
        if verb == "inspect":
            return run("data", "inspect", place), None
        if verb == "convert":
            done = run("data", "convert", place, folder / "out.h5", "--format", "hdf5")
            return done, folder / "out.h5"
        if verb == "stats":
            archive = ("--variables", "u10,t2m") if name == "netcdf4" else ()
            return run("data", "stats", folder, *archive, "--out", folder / "out"), folder / "out/global_means.npy"
        data = folder / "data"
        (data / "train").mkdir(parents=True)
        for path in list(folder.glob(place.name + "*")):
            path.rename(data / "train" / path.name)
        for link in ("valid", "stats"):
            (data / link).symlink_to(self.root / link)
        return run(*self.train(self.whole / "yaml", data, folder / "logs")), None


HDF5_NAMES = {f"hdf5-{name}" for name in HDF5}
# The copy is named so that a folder of training data takes it.
NAMES = {"yaml": "run.yaml", "pt": "model.pt", "safetensors": "model.safetensors", "checkpoint": "step_1", **{name: "2000.h5" for name in HDF5_NAMES}}


def content_of(path):
    """Of a file, or of all files of a folder. Of HDF5 the objects and attributes, without those that name the command and its source."""
    if path.is_dir():
        return [(name, (path / name).read_bytes()) for name in tree(path) if (path / name).is_file()]
    if not path.exists():
        return None
    if not h5py.is_hdf5(path):
        return path.read_bytes()
    found = {}
    with h5py.File(path) as file:
        found[""] = {name: repr(value) for name, value in file.attrs.items() if not name.startswith("converted_")}
        file.visititems(lambda name, item: found.update({name: (item[()].tobytes(), sorted((key, repr(value)) for key, value in item.attrs.items()))}))
    return found


class Damaged:
    """Runs one damaged copy; `trouble` says what must not be."""

    def __init__(self, sources, formats=()):
        self.sources, self.sound = sources, {}
        self.formats = formats or sources.formats()
        for name in self.formats:
            for verb in sources.verbs(name):
                folder = sources.root / f"sound-{name}-{verb.replace(' ', '-')}"
                folder.mkdir()
                place = folder / NAMES.get(name, "2000")
                source = sources.whole / name
                shutil.copytree(source, place) if source.is_dir() else shutil.copy(source, place)
                if pathlib.Path(f"{source}.json").exists():
                    shutil.copy(f"{source}.json", f"{place}.json")
                done, result = sources.read(name, verb, place)
                assert done.returncode == DONE, (name, verb, done.stderr)
                self.sound[name, verb] = content_of(result) if result else done.stdout

    def case(self, seed, number):
        chance = random.Random(f"{seed} {number}")
        name = chance.choice(self.formats)
        verb, kind = chance.choice(self.sources.verbs(name)), chance.choice(KINDS)
        folder = self.sources.root / f"case-{number}"
        folder.mkdir()
        place = folder / NAMES.get(name, "2000")
        copy_damaged(self.sources.whole / name, place, kind, chance)
        begin = time.monotonic()
        try:
            done, result = self.sources.read(name, verb, place)
        except subprocess.TimeoutExpired:
            return name, verb, kind, "hang", f"it took longer than {LONGEST_S} s", folder
        seconds, processor_s = time.monotonic() - begin, done.processor_s
        whole_messages = name == "grib" and place.read_bytes().endswith(b"7777")  # a cut between two of them leaves a whole file
        trouble = self.trouble(name, verb, "" if whole_messages else kind, done, result, place)
        if processor_s > MOST_PROCESSOR_S:
            trouble = f"it computed for {processor_s:.1f} s; {trouble}"
        if not trouble:
            shutil.rmtree(folder)
        return name, verb, kind, f"exit code {done.returncode}", trouble, folder, seconds, processor_s

    def trouble(self, name, verb, kind, done, result, place):
        if done.returncode == OTHER and re.search(r"\[train\] event nonfinite_(loss|gradient)", done.stderr):
            return ""  # values without a checksum: what training said of them is right
        if done.returncode not in (DONE, USAGE, DATA, CHECKPOINT):
            return f"exit code {done.returncode}: {done.stderr[-400:]}"
        if done.returncode != DONE:
            said = done.stdout + done.stderr
            return "" if "welkin: [" in done.stderr or verb == "ckpt verify" or verb == "dry_run" else f"no reason is given: {said[-400:]}"
        if verb == "ckpt verify":
            return "" if content_of(place) == content_of(self.sources.whole / name) else "a damaged checkpoint counts as whole"
        if kind != "cut":
            return ""
        if verb in ("inspect", "train", "dry_run", "ckpt inspect"):
            return ""
        made = content_of(result) if result else done.stdout
        return "" if made == self.sound[name, verb] else "exit code 0 with another result"


def run_cases(count, seed, workers, formats=()):
    """What became of how many, and the cases with trouble."""
    root = pathlib.Path(tempfile.mkdtemp(prefix="welkin-damaged-"))
    try:
        damaged = Damaged(Sources(root), formats)
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            cases = list(pool.map(lambda number: damaged.case(seed, number), range(count)))
        troubles = [case for case in cases if case[4]]
        keep = os.environ.get("WELKIN_KEEP_DAMAGED")  # a folder for the copies with trouble
        if keep:
            for number, case in enumerate(troubles):
                shutil.copytree(case[5], pathlib.Path(keep) / f"{seed}-{case[5].name}-{case[0]}-{case[1].replace(' ', '-')}", dirs_exist_ok=True)
        return cases, troubles
    finally:
        while PROCESSES:
            PROCESSES.pop().close()
        shutil.rmtree(root)


class DamagedFiles(unittest.TestCase):
    def test_damaged_copies_of_every_format(self):
        cases, troubles = run_cases(COUNT, SEED, workers=len(os.sched_getaffinity(0)))
        self.assertEqual([case[:5] for case in troubles], [])
        self.assertGreater(sum(case[3] == "exit code 3" for case in cases), COUNT // 4)


def main(count, seed, formats):
    cases, troubles = run_cases(count, seed, len(os.sched_getaffinity(0)), formats)
    table = collections.Counter((case[0], case[3]) for case in cases)
    for (name, end), number in sorted(table.items()):
        print(f"{name:18} {end:14} {number}")
    for place, what in ((6, "s"), (7, "s of processor time")):
        slowest = max((case for case in cases if len(case) > place), key=lambda case: case[place])
        print(f"most: {slowest[place]:.1f} {what},", *slowest[:4], slowest[5].name)
    print(f"longer than 10 s: {sum(case[6] > 10 for case in cases if len(case) > 6)}")
    for case in troubles:
        print("TROUBLE", *case[:5], case[5].name)
    return 1 if troubles else 0


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else SEED, sys.argv[3:]))
    unittest.main()
