# SPDX-License-Identifier: Apache-2.0
"""The two sides of the comparison as processes that measure a window when they are told to. Only one of them works at a time."""
import json
import os
import pathlib
import select
import statistics
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
RATE = "synthetic_samples_per_s"
CLOSING_S = 20  # from the end of its input to the end of a process
HIGHEST = ("resident_peak_bytes", "peak_device_bytes", "step_tensors_peak_bytes", "peak_fp32_flops_per_s", "peak_bf16_flops_per_s")  # of all windows


class NotMeasured(Exception):
    """Why a side has no figure."""


class Side:
    """`windows` holds the JSON object of every window, `closing` what was said after the last."""

    def __init__(self, name):
        self.name, self.windows, self.failure, self.closing = name, [], None, {}

    def measure(self, seconds):
        if self.failure:
            return
        try:
            self.windows.append(self.window(seconds))
        except NotMeasured as reason:
            self.failure = str(reason)
        except (OSError, ValueError, KeyError) as error:  # no such program, a process that went away, no JSON or another one
            self.failure = f"{type(error).__name__}: {error}"

    def stop(self):
        pass

    def report(self):
        if self.failure or not self.windows:
            return {"not_measured": self.failure or "no window"}
        rates = [window[RATE] for window in self.windows]
        facts = {key: value for key, value in {**self.windows[-1], **self.closing}.items() if not key.startswith(RATE)}
        for key in HIGHEST:
            if key in facts:
                facts[key] = max(window[key] for window in (*self.windows, self.closing) if key in window)
        return {RATE: statistics.median(rates), f"{RATE}_min": min(rates), f"{RATE}_max": max(rates), f"{RATE}_windows": rates, **facts}


def welkin_command(binary, preset, batch, precision, threads, extra, warmup_seconds, mode="synthetic"):
    return [str(word) for word in
            [binary, "bench", "--mode", mode, "--yaml_config", HERE / "speed.yaml", "--config", preset, "--json", "-", "--warmup_seconds", warmup_seconds,
             "--threads", threads, "--set", f"global_batch_size={batch}", "--amp_mode", "none" if precision == "fp32" else precision, *extra]]


class Welkin(Side):
    """`welkin bench --mode synthetic`, a fresh process for every window: its start costs less than a second on a CPU. The first step, and those of the warm-up,
    are not counted: memory is touched for the first time in them, for which a virtual machine may wait for its host (docs/results/speed.md)."""

    def __init__(self, binary, preset, batch, precision, threads, extra=(), warmup_seconds=0.5, limit_s=None):
        super().__init__("welkin")
        self.limit_s = limit_s
        self.command = [*welkin_command(binary, preset, batch, precision, threads, extra, warmup_seconds), "--windows", "1"]

    def window(self, seconds):
        words = [*self.command, "--window_seconds", str(max(seconds, 0.001))]
        try:
            done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=self.limit_s)
        except subprocess.TimeoutExpired:
            raise NotMeasured(f"no answer within {self.limit_s} s") from None
        if done.returncode != 0:
            raise NotMeasured(f"exit code {done.returncode}: {done.stderr.strip()[-300:]}")
        return json.loads(done.stdout)


class Staying(Side):
    """A process that stays: a line of JSON when it is ready, and one for a window of every "SECONDS" on its standard input; when that ends, it may say more."""

    def __init__(self, name, command, environment=(), limit_s=600):
        super().__init__(name)
        self.limit_s = limit_s
        self.command = [str(word) for word in command]
        self.environment = {**os.environ, **dict(environment)}
        self.process, self.errors, self.facts = None, None, {}

    def start(self):
        begun = time.monotonic()
        self.errors = open(f"/tmp/welkin_bench_{os.getpid()}_{self.name}.err", "w+")
        os.unlink(self.errors.name)
        try:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True, env=self.environment)
            self.facts = self.answer(self.limit_s)
            self.facts["start_to_ready_s"] = time.monotonic() - begun
        except (NotMeasured, OSError, ValueError) as reason:
            self.failure = str(reason)
            self.stop()  # or it would compile on beside the others

    def answer(self, limit_s):
        ready, _, _ = select.select([self.process.stdout], [], [], limit_s)
        if not ready:
            raise NotMeasured(f"no answer within {limit_s} s")
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            self.errors.seek(0)
            raise NotMeasured(" ".join(self.errors.read().strip().splitlines()[-1:]) or "it ended without a word")
        return json.loads(line)

    def window(self, seconds):
        if self.process is None:
            self.start()
            if self.failure:
                raise NotMeasured(self.failure)
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        return {**self.facts, **self.answer(min(300, self.limit_s))}

    def stop(self):
        if self.process is not None:
            self.end_process()
        if self.errors is not None:
            self.errors.close()

    def end_process(self):
        try:
            said, _ = self.process.communicate(timeout=0 if self.failure else CLOSING_S)
            self.closing = json.loads(said) if said.strip() else {}
        except (OSError, ValueError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()


class Peer(Staying):
    """bench/peer/measure.py --serve: torch.compile takes a minute and `import torch` seconds."""

    def __init__(self, name, python, flags, threads, warmup_steps, environment=(), limit_s=600):
        script = HERE.parent / "peer/measure.py"
        super().__init__(name, [python, script, "--serve", "--threads", threads, "--warmup_steps", warmup_steps, *flags], environment, limit_s)


class Served(Staying):
    """`welkin bench --serve`: on a GPU a start takes seconds, and cuDNN measures every convolution. What it says of itself comes last."""

    def __init__(self, name, command, key=RATE, limit_s=600):
        super().__init__(name, [*command, "--serve"], limit_s=limit_s)
        self.key = key  # of its rates

    def window(self, seconds):
        figures = super().window(seconds)
        return {**figures, RATE: figures[self.key]}


def race(sides, rounds, seconds, until=None):
    """Everyone in turns, `rounds` times, or as often as a round begins before `until` (time.monotonic()), once at least; the first window of the first round follows
    each one's own warm-up."""
    try:
        for side in sides:
            if isinstance(side, Staying):
                side.start()
        for round_ in range(rounds):
            if round_ > 0 and until is not None and time.monotonic() > until:
                break
            for side in sides:
                side.measure(seconds)
    finally:
        for side in sides:
            side.stop()


def ratios(ours, theirs):
    """Ours over theirs, round by round."""
    pairs = [mine[RATE] / other[RATE] for mine, other in zip(ours.windows, theirs.windows)]
    return {"median": statistics.median(pairs), "min": min(pairs), "max": max(pairs)} if pairs and not theirs.failure and not ours.failure else None
