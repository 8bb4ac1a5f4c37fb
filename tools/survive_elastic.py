#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether an elastic run outlives its ranks: ranks of `welkin launch --elastic` are killed or stopped at random instants, also while they start,
meet and hand over their state. Every run has to come to its end by itself, without a restart by hand, and its last weights and its losses have to
be, bit for bit, those of a run that nobody disturbed. Exit code 0: they were.
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

from survive import children_of

CONFIG = """
run: {{model: vit, embed_dim: 16, depth: 2, num_heads: 2, patch_size: 4, img_size: [16, 32], n_in_channels: 3, n_out_channels: 3, dropout: 0.1,
  data_loader_config: synthetic, limit_nsamples: 80, limit_nsamples_val: 8, global_batch_size: 8, num_iters: {steps}, lr: 1E-3, warmup: 3,
  num_data_workers: 1, expdir: /logs}}
"""
# Of --measure: the ViT of ./quickstart.sh.
SMALL = """
run: {{model: vit, embed_dim: 128, depth: 4, num_heads: 4, patch_size: 8, img_size: [48, 96], n_in_channels: 20, n_out_channels: 20, qkv: separate,
  data_loader_config: synthetic, limit_nsamples: 640, limit_nsamples_val: 16, global_batch_size: 16, num_iters: {steps}, optimizer: AdamW, lr: 1E-3,
  warmup: 40, num_data_workers: 1, expdir: /logs}}
"""
STEP = re.compile(r"Step (\d+)/\d+, epoch [^:]*: loss=([^,]+)")


class Lost(Exception):
    """The run, or the equality with the undisturbed one."""


class ElasticRun:
    def __init__(self, options, root):
        self.options, self.root = options, root
        root.mkdir(parents=True)
        (root / "run.yaml").write_text((SMALL if options.measure else CONFIG).format(steps=options.steps))

    def start(self):
        limits = f"1:{self.options.ranks}"
        command = [self.options.binary, "launch", "--bind", "off", "--grace", "3", "--elastic", limits, "--max_restarts", "1000", "--", "train",
                   "--yaml_config", str(self.root / "run.yaml"), "--config", "run", "--log_root", str(self.root / "logs"), "--device", "cpu", "--threads", "1",
                   "--comm_timeout_s", "10", "--rank_invariant", "--set", "log_every_n_steps=1", "--checkpoint_interval", "10"]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=(self.root / "said").open("w"), env={**os.environ, "OMP_NUM_THREADS": "1"})

    def said(self):
        return (self.root / "said").read_text()

    def folder(self):
        return next((self.root / "logs").glob("run/*/00"))

    def outcome(self):
        """The loss of every step, and the bytes of the last weights."""
        losses = dict(STEP.findall((self.folder() / "out.log").read_text()))
        last = self.folder() / "checkpoints" / f"step_{self.options.steps}"
        return losses, {path.name: path.read_bytes() for path in sorted(last.glob("*.safetensors"))}


def hit_a_rank(process, rng, options, counts):
    ranks = children_of(process)
    if not ranks:
        return
    number = signal.SIGSTOP if rng.random() < options.stops else signal.SIGKILL
    try:
        os.kill(rng.choice(ranks), number)
        counts[number.name] += 1
    except ProcessLookupError:
        pass


def disturb(run, rng, counts):
    options = run.options
    process = run.start()
    deadline = time.monotonic() + options.limit
    next_hit = None  # only once it trains: a first round waits for all
    while process.poll() is None:
        if time.monotonic() > deadline:
            process.kill()
            raise Lost(f"it did not end within {options.limit} s:\n{run.said()}")
        if next_hit is None and "Starting Training Loop" in run.said():
            next_hit = time.monotonic()
        if next_hit is not None and time.monotonic() >= next_hit and sum(counts.values()) < options.kills:
            hit_a_rank(process, rng, options, counts)
            next_hit = time.monotonic() + rng.uniform(0.2, options.pause)
        time.sleep(0.01)
    if process.returncode != 0:
        raise Lost(f"it ended with exit code {process.returncode}:\n{run.said()}")


def survive(options, folder):
    rng = random.Random(options.seed)
    whole = ElasticRun(options, folder / "whole")
    if whole.start().wait(timeout=options.limit) != 0:
        raise Lost(f"a run that nobody disturbs does not end as it should:\n{whole.said()}")
    expected = whole.outcome()
    counts = collections.Counter()
    begun = time.monotonic()
    runs = rounds = 0
    while sum(counts.values()) < options.kills:
        run = ElasticRun(options, folder / f"run-{runs}")
        disturb(run, rng, counts)
        if run.outcome() != expected:
            raise Lost(f"losses or last weights are not those of the undisturbed run: {run.root}")
        rounds += len(re.findall(r"; round \d+ begins", run.said()))
        runs += 1
        if options.verbose:
            print(f"run {runs}: {sum(counts.values())} hits so far, {rounds} rounds", flush=True)
        shutil.rmtree(run.root)
    print(f"{sum(counts.values())} ranks lost in {time.monotonic() - begun:.0f} s (seed {options.seed}): "
          + ", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    print(f"{runs} runs of up to {options.ranks} ranks, {rounds} rounds after the first: none was started again by hand, losses and last weights are those of "
          "an undisturbed run, bit for bit")


def stamped_steps(run):
    """(seconds since 1970, step) of each line of a step, and the times at which rounds began."""
    steps, rounds = [], []
    for line in (run.folder() / "out.log").read_text().splitlines():
        found = re.match(r"(\d+-\d+-\d+ \d+:\d+:\d+),(\d+) - root - \w+ - (.*)", line)
        if not found:
            continue
        at = time.mktime(time.strptime(found[1], "%Y-%m-%d %H:%M:%S")) + int(found[2]) / 1000
        step = re.match(r"Step (\d+)/", found[3])
        if step:
            steps.append((at, int(step[1])))
        elif found[3].startswith("event round"):
            rounds.append(at)
    return steps, rounds


def wait_until(process, condition, limit):
    deadline = time.monotonic() + limit
    while not condition():
        if process.poll() is not None or time.monotonic() > deadline:
            raise Lost("the run has ended, or does not go on")
        time.sleep(0.02)


def measure(options, folder):
    """Seconds from a kill to the next finished step, and to the first one with all ranks again."""
    run = ElasticRun(options, folder / "measured")
    process = run.start()
    try:
        wait_until(process, lambda: list((run.root / "logs").glob("run/*/00/out.log")) and len(stamped_steps(run)[0]) > 10, options.limit)
        for number in range(options.measure):
            before = len(stamped_steps(run)[1])
            killed_at = time.time()
            os.kill(children_of(process)[-1], signal.SIGKILL)
            wait_until(process, lambda: len(stamped_steps(run)[1]) >= before + 2 and stamped_steps(run)[0][-1][0] > stamped_steps(run)[1][-1], options.limit)
            steps, rounds = stamped_steps(run)
            again = next(at for at, _ in steps if at > rounds[before])
            whole = next(at for at, _ in steps if at > rounds[before + 1])
            print(f"kill {number + 1}: next step after {again - killed_at:.2f} s, with all {options.ranks} ranks after {whole - killed_at:.2f} s", flush=True)
            time.sleep(2)
    finally:
        process.terminate()
        process.wait()
        if options.verbose:
            print("\n".join(line for line in run.said().splitlines() if re.search(r"\[launch\]|round|Resumed", line)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True, help="the program")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=300, help="of a run")
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--pause", type=float, default=4, help="at most so many seconds between two of them")
    parser.add_argument("--stops", type=float, default=0.2, help="the share of ranks that are stopped (SIGSTOP) instead")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=600, help="seconds that a run may take")
    parser.add_argument("--measure", type=int, default=0, help="measure so many kills instead of comparing runs; takes a large --steps")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="welkin-elastic-"))
    try:
        measure(options, folder) if options.measure else survive(options, folder)
    except Lost as lost:
        print(f"survive_elastic: {lost}\nsurvive_elastic: its folder is {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
