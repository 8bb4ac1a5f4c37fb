#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much of the time training keeps under a scheduler that kills it, beside what the formula says.

A small run is killed (SIGKILL) after exponentially distributed times and started again with --resume, for every interval between checkpoints with
the same times. What counts at the end is the newest checkpoint: goodput = its step / steps that were possible. How many these are says a run beside
it that nobody disturbs and that saves nothing, by what it does meanwhile. A step takes --step_ms longer than it would, by sleeping, and a checkpoint --save_ms, so that the
processor is free most of the time. What a checkpoint takes is what an undisturbed run measures (checkpoint_times.json), what a restart takes stands in
the log of each start. The formula is that of src/core/fault/failure_model.h; its form for the same failures, floor((t - restart - latency) / (interval + held)) for each of them, has no
luck in it.
"""
import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

CONFIG = """
run: {model: vit, embed_dim: 16, depth: 2, num_heads: 2, patch_size: 4, img_size: [16, 32], n_in_channels: 3, n_out_channels: 3,
  data_loader_config: synthetic, limit_nsamples: 4000000, limit_nsamples_val: 4, global_batch_size: 4, num_iters: 1000000, lr: 1E-3, warmup: 3,
  num_data_workers: 1, expdir: /logs}
"""
WEEK_S = 7 * 24 * 3600
MANY_STEPS = 10**6


def formula(mtbf, held, written, restart, interval):
    """Expected goodput of an interval of training between checkpoints, all in seconds."""
    unsaved = restart + max(written - held, 0)
    return interval / mtbf * math.exp(-unsaved / mtbf) / math.expm1((interval + held) / mtbf)


def formula_of_failures(gaps, held, written, restart, interval):
    """The same for failures that are known: whole intervals that were published before each."""
    unsaved = restart + max(written - held, 0)
    return sum(max(0, math.floor((gap - unsaved) / (interval + held))) for gap in gaps) * interval / sum(gaps)


def failure_gaps(seed, mtbf, failures):
    rng = random.Random(seed)
    return [rng.expovariate(1 / mtbf) for _ in range(failures)]


class Run:
    """One run in a folder of its own, started as often as it takes."""

    def __init__(self, options, name, interval):
        self.options, self.interval = options, interval
        self.root = options.folder / name
        self.root.mkdir(parents=True)
        (self.root / "run.yaml").write_text(CONFIG)

    @property
    def folder(self):
        return self.root / "logs" / "run" / "1GPU" / "00"

    def start(self):
        faults = [f"slow:step=1,steps={MANY_STEPS},seconds={self.options.step_ms / 1000}"]
        if self.options.save_ms > 0:
            faults.append(f"slow:phase=rename,step=1,steps={MANY_STEPS},seconds={self.options.save_ms / 1000}")
        command = [self.options.binary, "train", "--yaml_config", str(self.root / "run.yaml"), "--config", "run", "--log_root", str(self.root / "logs"),
                   "--device", "cpu", "--threads", "1", "--resume", "--checkpoint_interval", str(self.interval), "--mtbf", str(self.options.mtbf / 3600),
                   f"--checkpoint_async={'true' if self.options.beside else 'false'}", "--status_interval_s", "0.5", "--inject", ";".join(faults)]
        with open(self.root / "said", "ab") as said:
            return subprocess.Popen(command, stdout=said, stderr=said, env={**os.environ, "OMP_NUM_THREADS": "1"})

    def newest(self):
        """The step of the newest checkpoint."""
        found = (self.folder / "checkpoints").glob("step_*")
        return max((int(path.name[5:]) for path in found if re.fullmatch(r"step_\d+", path.name)), default=0)

    def live_for(self, seconds, number):
        """Starts it and sends the signal after that time; how long it lived, and how much of that passed before its first step."""
        begun, begun_by_clock = time.monotonic(), time.time()
        process = self.start()
        try:
            process.wait(timeout=seconds)
            raise SystemExit(f"goodput: the run ended by itself: {self.root}/said")
        except subprocess.TimeoutExpired:
            process.send_signal(number)
        process.wait()
        lived = time.monotonic() - begun
        return lived, min(lived, max(self.last_loop() - begun_by_clock, 0) or lived)

    def last_loop(self):
        """When its log last said that training begins, in seconds since 1970; 0: never."""
        lines = re.findall(r"^(\S+ \S+),(\d+) - root - INFO - Starting Training Loop", (self.root / "said").read_text(errors="replace"), re.MULTILINE)
        return time.mktime(time.strptime(lines[-1][0], "%Y-%m-%d %H:%M:%S")) + int(lines[-1][1]) / 1000 if lines else 0


def measured_times(options):
    """Of an undisturbed run and of its restart."""
    run = Run(options, "measured", "auto")
    for _ in range(2):
        run.live_for(options.measure_s, signal.SIGTERM)
    times = json.loads((run.folder / "checkpoint_times.json").read_text())
    return {name: times[name] for name in ("held_s", "written_s")}


class Reference:
    """A run beside the others that nobody disturbs: how many steps are possible."""

    def __init__(self, options):
        self.run = Run(options, "reference", 0)
        self.process = self.run.start()
        while self.step() == 0:
            if self.process.poll() is not None:
                raise SystemExit(f"goodput: the run ended by itself: {self.run.root}/said")
            time.sleep(0.1)

    def step(self):
        status = self.run.folder / "status.json"
        return json.loads(status.read_text())["step"] if status.exists() else 0

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def last_number(run, pattern):
    found = re.findall(pattern, (run.root / "said").read_text(errors="replace"))
    if not found:
        raise SystemExit(f"goodput: the run does not say {pattern}: {run.root}/said")
    return int(found[-1])


def trial(options, interval, reference):
    """The run with its interval, how long each start lived, the last checkpoint's step, and the steps that were possible."""
    run = Run(options, f"interval-{interval}", interval)
    before = reference.step()
    lived, restarts = zip(*[run.live_for(gap, signal.SIGKILL) for gap in options.gaps])
    possible = reference.step() - before
    chosen = last_number(run, r"Checkpoint interval: (\d+) step") if interval == "auto" else interval
    return {"interval": chosen, "lived": lived, "restarts": restarts, "steps": run.newest(), "possible": possible, "is_auto": interval == "auto"}


def trials(options, intervals):
    reference = Reference(options)
    try:
        with concurrent.futures.ThreadPoolExecutor(options.parallel) as pool:
            return list(pool.map(lambda interval: trial(options, interval, reference), intervals))
    finally:
        reference.end()


def row_of(mtbf, times, interval, lived, restarts, steps, possible, is_auto):
    """A row of the table from what happened in a trial."""
    restart = statistics.median(restarts)
    costs = (times["held_s"], times["written_s"], restart, interval * sum(lived) / possible)
    return {"interval": interval, "is_auto": is_auto, "failures": len(lived), "seconds": sum(lived), "restart_s": restart, "steps": steps,
            "possible": possible, "measured": steps / possible, "formula": formula(mtbf, *costs), "same_failures": formula_of_failures(lived, *costs)}


def table(options, rows, times):
    total = sum(row["seconds"] for row in rows) / len(rows)
    scale = WEEK_S / total
    step = sum(row["seconds"] for row in rows) / sum(row["possible"] for row in rows)
    restart = statistics.mean(row["restart_s"] for row in rows)
    yield (f"a failure every {options.mtbf:g} s, {len(options.gaps)} failures (seed {options.seed}); a step {step * 1000:.0f} ms, a checkpoint holds "
           f"training for {times['held_s'] * 1000:.0f} ms and is whole after {times['written_s'] * 1000:.0f} ms, a restart {restart:.1f} s")
    yield (f"with {total:.0f} s taken for a week: a failure every {options.mtbf * scale / 3600:.1f} h, a step {step * scale:.0f} s, "
           f"a checkpoint {times['held_s'] * scale / 60:.1f} min, a restart {restart * scale / 60:.0f} min")
    yield "| interval | steps possible | steps kept | goodput | formula, the same failures | formula |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for row in rows:
        name = f"{row['interval']} steps" + (" (auto)" if row["is_auto"] else "")
        yield (f"| {name} | {row['possible']} | {row['steps']} | {row['measured'] * 100:.1f} % | {row['same_failures'] * 100:.1f} % | "
               f"{row['formula'] * 100:.1f} % |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True, help="the program")
    parser.add_argument("--mtbf", type=float, default=30, help="mean seconds between failures")
    parser.add_argument("--failures", type=int, default=20)
    parser.add_argument("--intervals", default="5,20,80,320,auto", help="steps between checkpoints, or auto")
    parser.add_argument("--step_ms", type=float, default=20, help="by which a step is longer")
    parser.add_argument("--save_ms", type=float, default=0, help="by which a checkpoint takes longer")
    parser.add_argument("--beside", action="store_true", help="write checkpoints beside training")
    parser.add_argument("--measure_s", type=float, default=15, help="time that each of two undisturbed starts takes")
    parser.add_argument("--parallel", type=int, default=1, help="runs at a time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=pathlib.Path, help="write the rows to this file")
    parser.add_argument("--folder", type=pathlib.Path, help="where to work; a temporary folder when not given")
    options = parser.parse_args()
    is_temporary = options.folder is None
    options.folder = options.folder or pathlib.Path(tempfile.mkdtemp(prefix="welkin-goodput-"))
    options.gaps = failure_gaps(options.seed, options.mtbf, options.failures)
    times = measured_times(options)
    intervals = [word if word == "auto" else int(word) for word in options.intervals.split(",")]
    rows = [row_of(options.mtbf, times, **one) for one in trials(options, intervals)]
    print("\n".join(table(options, rows, times)))
    if options.json:
        options.json.write_text(json.dumps({"times": times, "mtbf_s": options.mtbf, "seed": options.seed, "rows": rows}, indent=2) + "\n")
    if is_temporary:
        shutil.rmtree(options.folder)


if __name__ == "__main__":
    sys.exit(main())
