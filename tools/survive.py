#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether training survives being ended at any instant: small runs are killed at random, resumed until they are done, and compared bit for bit
with an undisturbed run.

A third of the kills hit the writing of a checkpoint (`--inject kill:phase=write` and its like), a third a phase of a step, and a third come from
outside at any time, so also while a run starts or resumes. After each: the newest checkpoint is not older than before, at most one interval
behind the step that was reached, and the next start resumes from exactly it. With --faults all some runs are ended in another way: a full disk
and then a kill, an exception, connections that go away, a checkpoint that is damaged before the kill, from which the next start falls back to the
one before. Exit code 0: no checkpoint was lost or damaged by what ended a run, all last weights are equal.
"""
import argparse
import collections
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

CONFIG = """
run: {model: vit, embed_dim: 16, depth: 2, num_heads: 2, patch_size: 4, img_size: [16, 32], n_in_channels: 3, n_out_channels: 3, dropout: 0.1,
  data_loader_config: synthetic, limit_nsamples: 40, limit_nsamples_val: 4, global_batch_size: 4, num_iters: 36, lr: 1E-3, warmup: 3,
  num_data_workers: 1, expdir: /logs}
"""
LAYOUTS = {  # ranks and flags
    "one": (1, []),
    "dp2": (2, []),
    "tp2": (2, ["--tensor_parallel", "2"]),
    "full2": (2, ["--shard", "full"]),
    "tp2dp2": (4, ["--tensor_parallel", "2"]),
}
INTERVAL = 3
STEP_PHASES = ("step", "fetch", "forward", "backward", "reduce", "optimizer")
WRITE_PHASES = ("create", "write", "sync", "rename")


class Lost(Exception):
    """A checkpoint, or the equality with the undisturbed run."""


class Run:
    """One run in a folder of its own, started as often as it takes."""

    def __init__(self, options, layout, root):
        self.options, self.layout, self.root = options, layout, root
        self.ranks, self.flags = LAYOUTS[layout]
        self.yaml = root / "run.yaml"
        self.is_damaged = False  # its newest checkpoint, on purpose
        root.mkdir(parents=True)
        self.yaml.write_text(CONFIG)

    def command(self, *more):
        launcher = ["launch", "-n", str(self.ranks), "--bind", "off", "--grace", "2", "--"] if self.ranks > 1 else []
        return [self.options.binary, *launcher, "train", "--yaml_config", str(self.yaml), "--config", "run", "--log_root", str(self.root / "logs"),
                "--device", "cpu", "--threads", "1", "--comm_timeout_s", "20", "--checkpoint_interval", str(INTERVAL), "--resume", *self.flags, *more]

    def start(self, *more):
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(self.command(*more), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)

    def checkpoints(self):
        """Steps, the newest first."""
        found = (self.root / "logs").glob("run/*/00/checkpoints/step_*")
        return sorted((int(path.name[5:]) for path in found if re.fullmatch(r"step_\d+", path.name)), reverse=True)

    def newest(self):
        return next(iter(self.checkpoints()), 0)

    def newest_good(self):
        """What a start has to continue from: behind a damaged one the one before."""
        return next(iter(self.checkpoints()[1 if self.is_damaged else 0:]), 0)

    def tensors(self):
        """Bytes of the newest checkpoint's tensors, by file."""
        folder = next((self.root / "logs").glob(f"run/*/00/checkpoints/step_{self.newest()}"))
        return {path.name: path.read_bytes() for path in sorted(folder.glob("*.safetensors"))}

    def finish(self, *more):
        """To the end, undisturbed."""
        process = self.start(*more)
        said = process.communicate(timeout=self.options.limit)[1]
        if process.returncode != 0:
            raise Lost(f"{self.layout}: a run that nobody disturbs ends with exit code {process.returncode}:\n{said}")
        return said


def wait_for(process, limit):
    """What it said; a run that does not end by itself has lost."""
    try:
        return process.communicate(timeout=limit)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[1] + f"\nsurvive: it did not end within {limit} s"


def children_of(process):
    try:
        return [int(word) for word in pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
    except OSError:
        return []


def kill_from_outside(run, process, rng, seconds):
    """After a random time: the process, its launcher, or one of the ranks. False where it was done before."""
    deadline = time.monotonic() + rng.uniform(0, seconds)
    while time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.001)
    if process.poll() is not None:
        return False
    try:
        os.kill(rng.choice([process.pid, *children_of(process)]), signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def other_fault(run, rng, step, rank):
    """What ends a run in another way than a kill alone."""
    ways = [f"write_error:step={step},error=ENOSPC,phase={rng.choice(WRITE_PHASES)};kill:step={step + INTERVAL + 1}", f"exception:step={step},rank={rank}"]
    if len(run.checkpoints()) > 1:
        ways += [f"{name}:step={step};kill:step={step}" for name in ("truncate_checkpoint", "flip_checkpoint")]
    if run.ranks > 1:
        ways.append(f"drop_connection:step={step},rank={rank},phase={rng.choice(STEP_PHASES)}")
    return rng.choice(ways)


def injected(run, rng):
    """A fault for --inject, and its kind."""
    step = run.newest() + rng.randint(1, 2 * INTERVAL)
    rank = rng.randrange(run.ranks)
    if run.options.faults == "all" and rng.random() < 0.3:
        return other_fault(run, rng, step, rank), "in another way"
    if rng.random() < 0.5:
        return f"kill:step={step},rank={rank},phase={rng.choice(STEP_PHASES)}", "in a step"
    writer = rank if run.layout.startswith("full") else 0
    return f"kill:step={step},rank={writer},phase={rng.choice(WRITE_PHASES)},after={rng.randrange(24)}", "while a checkpoint is written"


def check_resumed(run, said, before):
    """The start continued from the newest checkpoint there was, and found none damaged."""
    if run.is_damaged:
        if "Resumed at step" in said or "no checkpoint of the run is whole" in said:
            run.is_damaged = False
        return
    if "damaged" in said.lower() or "cannot be read" in said:
        raise Lost(f"{run.layout}: a kill has damaged a checkpoint:\n{said}")
    resumed = re.search(r"Resumed at step (\d+)", said)
    if resumed and int(resumed.group(1)) != before:
        raise Lost(f"{run.layout}: resumed at step {resumed.group(1)}, and the newest checkpoint was of step {before}:\n{said}")


def check_progress(run, said, before):
    """At most one interval is lost."""
    if run.newest() < before:
        raise Lost(f"{run.layout}: the newest checkpoint was of step {before}, now it is of step {run.newest()}:\n{said}")
    run.is_damaged = run.is_damaged or re.search(r"Fault injected: (truncate|flip)_checkpoint.*path=", said) is not None
    reached = None if "write_error" in said else re.search(r"Fault injected: .*, at step (\d+)", said)
    if reached and run.newest() < (int(reached.group(1)) - 1) // INTERVAL * INTERVAL - INTERVAL:
        raise Lost(f"{run.layout}: killed at step {reached.group(1)}, and the newest checkpoint is of step {run.newest()}:\n{said}")


def disturb(run, rng, seconds, counts):
    """Starts the run once and ends it at a random instant. True where it came to its end before."""
    before = run.newest_good()
    fault, kind = (None, "from outside") if rng.random() < 1 / 3 else injected(run, rng)
    process = run.start(*(["--inject", fault] if fault else []))
    hit = kill_from_outside(run, process, rng, seconds) if fault is None else None
    said = wait_for(process, run.options.limit)
    done = process.returncode == 0
    if hit is None:
        hit = "Fault injected" in said
    check_resumed(run, said, before)
    if not done:
        if not hit:
            raise Lost(f"{run.layout}: it ended by itself with exit code {process.returncode}:\n{said}")
        counts[kind] += 1
        check_progress(run, said, before)
    if run.options.verbose:
        print(f"{run.layout}: from step {before}, {fault or kind}, {'done' if done else 'killed'}, newest step {run.newest()}", flush=True)
    return done


def survive_one(options, layout, folder, rng, reference, seconds, counts):
    """Kills one run until it is done; the number of kills."""
    run = Run(options, layout, folder)
    killed = sum(counts.values())
    while not disturb(run, rng, seconds, counts):
        if sum(counts.values()) >= options.kills:
            run.finish()
            break
    if run.tensors() != reference:
        raise Lost(f"{layout}: after {sum(counts.values()) - killed} kills the last weights are not those of the undisturbed run: {folder}")
    shutil.rmtree(folder)


def survive(options, folder):
    rng = random.Random(options.seed)
    counts, runs = collections.Counter(), collections.Counter()
    begun = time.monotonic()
    references = {}
    for layout in options.layouts:
        whole = Run(options, layout, folder / f"{layout}-whole")
        start = time.monotonic()
        whole.finish()
        references[layout] = (whole.tensors(), time.monotonic() - start)
    number = 0
    while sum(counts.values()) < options.kills:
        layout = options.layouts[number % len(options.layouts)]
        reference, seconds = references[layout]
        survive_one(options, layout, folder / f"{layout}-{number}", rng, reference, seconds, counts)
        number += 1
        runs[layout] += 1
    spent = time.monotonic() - begun
    print(f"{sum(counts.values())} kills in {spent:.0f} s (seed {options.seed}): " + ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())))
    print(f"{sum(runs.values())} runs (" + ", ".join(f"{n} {layout}" for layout, n in runs.items()) +
          "): no checkpoint was lost or damaged, the last weights are equal bit for bit to those of undisturbed runs")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True, help="the program")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", choices=("kill", "all"), default="kill", help="what ends runs")
    parser.add_argument("--layouts", default=",".join(LAYOUTS), help="some of " + ", ".join(LAYOUTS))
    parser.add_argument("--limit", type=float, default=120, help="seconds that a start may take")
    parser.add_argument("--folder", type=pathlib.Path, help="where to work; a temporary folder when not given")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    options.layouts = options.layouts.split(",")
    folder = options.folder or pathlib.Path(tempfile.mkdtemp(prefix="welkin-survive-"))
    try:
        survive(options, folder)
    except Lost as lost:
        print(f"survive: {lost}\nsurvive: its folder is {folder}", file=sys.stderr)
        return 1
    if options.folder is None:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
