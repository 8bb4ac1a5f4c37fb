# SPDX-License-Identifier: Apache-2.0
"""The two rows that are no rates: the optimizer's step against memory, and the start of a process to its first finished step."""
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

from rows import Check, at_most
from sides import HERE, NotMeasured, Peer

EPOCH_LINE = "Time taken for epoch"  # the first line after the first step of a run whose epoch has one step


def optimizer(program, threads, width):
    if not pathlib.Path(program).exists():
        return {"ours": {"not_measured": f"no program {program}"}}, [Check("optimizer step over the memory-bandwidth floor", "<= 1.3x", None, None)]
    done = subprocess.run([str(program), str(threads), "7", str(width)], capture_output=True, text=True, check=True)
    figures = json.loads(done.stdout)
    what = f"optimizer step of {figures['parameters'] / 1e6:.1f} M parameters over the memory-bandwidth floor"
    return {"ours": figures}, [at_most(what, 1.3, figures["optimizer_per_floor"])]


def first_step(binary, threads):
    """Seconds from starting `welkin train` to the line that follows its first step; initial losses and the epoch's report are in it."""
    with tempfile.TemporaryDirectory() as folder:
        begun = time.monotonic()
        words = [binary, "train", "--yaml_config", HERE / "speed.yaml", "--config", "start", "--log_root", folder, "--threads", threads, "--device", "cpu"]
        process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        lines, passed = [], None
        for line in process.stdout:
            lines.append(line)
            if passed is None and EPOCH_LINE in line:
                passed = time.monotonic() - begun
        if process.wait() != 0 or passed is None:
            raise NotMeasured("".join(lines)[-300:])
        return passed


def start(binary, python, shapes, threads, rounds):
    """Ours and the peer's in turns; neither is warmed but by the first round, which is left out."""
    ours, theirs = [], []
    for round_number in range(rounds + 1):
        passed = first_step(binary, threads)
        peer = Peer("start", python, shapes, threads, warmup_steps=1)
        peer.start()
        peer.stop()
        if round_number > 0:
            ours.append(passed)
            theirs.append(peer.facts.get("start_to_ready_s"))
    figures = {"ours": {"start_to_first_step_s": statistics.median(ours), "start_to_first_step_s_windows": ours},
               "peers": {"eager": {"start_to_first_step_s_windows": theirs}}}
    return figures, [at_most("start of the process to the first finished step", 1.0, statistics.median(ours), unit=" s")]
