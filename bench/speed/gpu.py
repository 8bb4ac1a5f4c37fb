# SPDX-License-Identifier: Apache-2.0
"""All figures of a GPU in one JSON: reference cases, recorded steps against steps as they are, training steps under compute-sanitizer, and both
models against PyTorch there.

usage: gpu.py --welkin PROGRAM --peer_python PROGRAM [--cases FOLDER] [--json FILE] [--minutes M] [--only PART]... [--dry_run]
Every part stands alone: what fails is named, the rest goes on, and the JSON is written after each. Parts that would begin after their share of the time
are left out and named; --only measures them later, into the same JSON.
"""
import argparse
import dataclasses
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from compare import machine, say, say_checks, say_row, write_json  # noqa: E402
from rows import COMPILE, SHAPES, Row, against, at_least, at_most  # noqa: E402
from sides import RATE, Peer, Served, Welkin, race, ratios, welkin_command  # noqa: E402

DEVICE = ["--device", "cuda"]
ROUNDS, SECONDS, WARMUP_STEPS, WARMUP_SECONDS = 3, 2.0, 10, 2.0
WELKIN_LIMIT_S, PEER_LIMIT_S = 90, 150  # of one process of ours, and until a peer is compiled
LEAST_S = 75  # of a row
PRESET = "{}_gpu"
SHAPES_ON_GPU = {"unet": SHAPES["unet"], "vit": SHAPES["vit"], "vit_wide": [*SHAPES["vit"], "--embed_dim", "1536"]}


def rate_of(bound, stretch):
    def check(figures, _):
        return at_least(f"samples/s (stretch {stretch})", bound, figures["ours"].get(RATE), "goal of an H200", unit="")
    return check


def memory_of_steps(figures, _):
    """Of counted steps: the first one's trials of cuDNN's algorithms come before them."""
    ours, eager = (side.get("step_tensors_peak_bytes") for side in (figures["ours"], figures["peers"].get("eager", {})))
    return at_most("peak memory of the steps, over eager's", 0.85, ours / eager if ours and eager else None)


def goals(bound, stretch):
    return [against(1.3, "samples/s over eager with the same switches", "eager"), against(1.0, "samples/s over torch.compile", "compile"), rate_of(bound, stretch),
            memory_of_steps]


ROWS = [
    Row("unet", "unet", 64, "bf16", {"eager": [], "compile": COMPILE, "channels_last": ["--channels_last"]}, goals(2400, 4900)),
    Row("vit", "vit", 16, "bf16", {"eager": [], "compile": COMPILE}, goals(150, 200)),
    Row("vit_wide", "vit_wide", 4, "bf16", {"eager": [], "compile": COMPILE}, goals(38, 45)),
]


PARTS = ["verify", "graph", *(row.name for row in ROWS), "sanitizer"]

# Boxes are cut on the GPU; fields, which only the host can hold here, are read ahead by threads: without them the step would wait for every copy.
READING = {"unet": ["--resident", "device"], "vit": ["--resident", "host", "--num_data_workers", "8"]}


def ours_of(row, arguments):
    """Our side's processes: steps over one batch, with the loader and the samples resident, and recorded and replayed."""
    kinds = (("welkin", "synthetic", []), ("welkin_full", "full", READING[row.model.split("_")[0]]), ("welkin_graph", "synthetic", ["--cuda_graph"]))
    return [Served(name, welkin_command(arguments.welkin, PRESET.format(row.model), row.batch, row.precision, 0, [*DEVICE, *extra], WARMUP_SECONDS, mode),
                   f"{mode}_samples_per_s", WELKIN_LIMIT_S) for name, mode, extra in kinds]


def sides_of(row, arguments):
    flags = [*SHAPES_ON_GPU[row.model], "--batch", str(row.batch), "--precision", row.precision, *DEVICE]
    cache = {"TORCHINDUCTOR_CACHE_DIR": str(arguments.json.parent / "inductor")}
    peers = [Peer(name, arguments.peer_python, flags + extra, 1, WARMUP_STEPS, cache, PEER_LIMIT_S) for name, extra in row.peers.items()]
    return *ours_of(row, arguments), peers


class Compilers:
    """torch.compile of the peers of these rows, all at once and beside parts that measure no time: a minute each. The row's own process then finds the kernels
    in Inductor's cache. One that fails is told by its row."""

    def __init__(self, rows, arguments):
        self.processes = []
        for peer in (peer for row in rows for peer in sides_of(row, arguments)[-1] if COMPILE[0] in peer.command):
            try:
                quiet = subprocess.DEVNULL  # without windows to measure it ends
                self.processes.append(subprocess.Popen(peer.command, stdin=quiet, stdout=quiet, stderr=quiet, env=peer.environment))
            except OSError:
                pass

    def wait(self, until):
        """Nothing of them runs on."""
        for process in self.processes:
            try:
                process.wait(max(0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes.clear()


def run_row(row, arguments, until):
    ours, full, graph, peers = sides_of(row, arguments)
    race([ours, full, graph, *peers], ROUNDS, SECONDS, until)
    figures = {"batch": row.batch, "precision": row.precision, "ours": ours.report(), "full": full.report(), "graph": graph.report(),
               "peers": {peer.name: peer.report() for peer in peers}, "ratios": {peer.name: ratios(ours, peer) for peer in peers}}
    found = ratios(full, ours)
    figures["full_over_synthetic"] = found["median"] if found else None
    gained = ratios(graph, ours)
    figures["graph_over_synthetic"] = gained["median"] if gained else None
    return figures


def checks_of(row, figures):
    checks = [check(figures, {}) for check in row.checks]
    checks.append(at_least("recorded steps over steps as they are", 1.0, figures["graph_over_synthetic"], unit=""))
    return [*checks, at_least("FULL over SYNTHETIC, samples resident", 0.97, figures["full_over_synthetic"], unit="")]


def verify_command(arguments):
    """Every reference case on the device; float32 is never TF32 there."""
    return [arguments.welkin, "verify", "--case", arguments.cases, *DEVICE, "--json", arguments.json.parent / "gpu-verify.json", "--brief"]


def only_our_kernels(help_text):
    """The sanitizer's option to look at our kernels alone, by the name that this one knows it under: cuBLAS and cuDNN would take minutes each."""
    return next(([flag, "kns=welkin"] for flag in ("--kernel-name", "--kernel-regex") if re.search(rf"{flag}\b(?!-)", help_text)), [])


def sanitizer_commands(arguments, help_text=""):
    """Training steps of both models at small sizes with everything on that has a kernel of ours. Not under racecheck: it fails within cuDNN's convolutions,
    also in a PyTorch program without a kernel of ours (CUDA 13.0, driver 580.159). tests/cuda_on_cpu runs warps in an order drawn anew instead."""
    tool = sanitizer()
    runs = [Welkin(arguments.welkin, "vit_quick", 1, "bf16", 0, extra=[*DEVICE, "--set", "dropout=0.1"]),
            Welkin(arguments.welkin, "unet_quick", 1, "fp32", 0, extra=DEVICE)]
    runs.append(Welkin(arguments.welkin, "vit_quick", 1, "fp16", 0, extra=[*DEVICE, "--cuda_graph"]))
    return [[tool, "--tool", kind, *only_our_kernels(help_text), "--error-exitcode", "9", *run.command, "--window_seconds", "0.01"]
            for kind in ("memcheck", "synccheck") for run in runs]


def sanitizer():
    return shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"


def graph_commands(arguments):
    """Runs of both models with and without recorded steps, whose weights must have the same bits: short last batch, dropout, fp16 with its scaler."""
    folder = arguments.json.parent / "gpu-graph"
    cases = {"vit": ["--config", "vit_quick", "--set", "dropout=0.1", "--amp_mode", "fp16"], "unet": ["--config", "unet_quick", "--amp_mode", "bf16"]}
    commands = []
    for name, flags in cases.items():
        own = [*flags, "--set", "num_iters=12", "--set", "limit_nsamples=10", "--set", "Nsamples=10", "--set", "global_batch_size=4", *DEVICE, "--deterministic"]
        for kind, more in (("eager", []), ("graph", ["--cuda_graph"])):
            commands.append([arguments.welkin, "train", "--yaml_config", HERE / "speed.yaml", *own, *more, "--set", f"expdir={folder}", "--run_num", f"{name}_{kind}"])
        commands.append([arguments.welkin, "ckpt", "diff", *(folder / flags[1] / "1GPU" / f"{name}_{kind}" for kind in ("eager", "graph")), "--checkpoint", "newest"])
    return commands


def run_command(command, limit_s, last=600):
    """Exit code, seconds and the last characters of what it says; a tool that is not there is named."""
    begun = time.monotonic()
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace", timeout=limit_s, check=False)
        said, code = done.stdout + done.stderr, done.returncode
    except OSError as missing:
        said, code = str(missing), 127
    except subprocess.TimeoutExpired:
        said, code = f"ended after {limit_s:.0f} s", 124
    return {"command": shlex.join(map(str, command)), "exit_code": code, "seconds": time.monotonic() - begun, "tail": said[-last:]}


def device_facts():
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version,clocks.max.sm,power.limit", "--format=csv,noheader"]
    return run_command(query, 20)["tail"].strip()


def machine_facts():
    try:
        return {**machine(0), "gpu": device_facts()}
    except Exception as error:  # facts that are missing are no reason to measure nothing
        return {"not_known": reason_of(error), "gpu": device_facts()}


def reason_of(error):
    return f"{type(error).__name__}: {error}"


def dry_run(arguments):
    verify = [verify_command(arguments)] if arguments.cases else []
    for command in (*verify, *graph_commands(arguments), *sanitizer_commands(arguments)):
        say(shlex.join(map(str, command)))
    for row in ROWS:
        ours, full, graph, peers = sides_of(row, arguments)
        for side in (ours, full, graph):
            say(shlex.join(side.command))
        for peer in peers:
            say(shlex.join(peer.command))


class Report:
    """What is measured so far: a file after every part."""

    def __init__(self, arguments):
        self.arguments, self.begun, self.checks, self.bad = arguments, time.monotonic(), [], []
        self.result = {"rows": {}, "goals": []}
        if arguments.only and arguments.json.exists():
            self.result = json.loads(arguments.json.read_text())
        self.result.update(machine=machine_facts(), left_out=[])

    def left(self):
        return self.arguments.minutes * 60 - (time.monotonic() - self.begun)

    def keep(self):
        self.result["minutes"] = (time.monotonic() - self.begun) / 60
        write_json(self.arguments.json, self.result, announce=False)

    def part(self, name, measure, least_s=10):
        """Runs measure(), whatever becomes of it, if it is asked for and there is time."""
        if self.arguments.only and name not in self.arguments.only:
            return
        if self.left() < least_s:
            self.result["left_out"].append(name)
            return self.keep()
        say(f"\n[{self.arguments.minutes * 60 - self.left():.0f} s] {name}")
        self.result.get("failed", {}).pop(name, None)  # of an earlier run
        try:
            measure()
        except Exception as error:
            self.bad.append(f"{name}: {reason_of(error)}")
            self.result.setdefault("failed", {})[name] = reason_of(error)
        self.keep()

    def commands(self, name, commands, limit_s, most_s):
        """Each command's outcome, as soon as it is known; none for longer than `limit_s`, all together for no longer than `most_s`."""
        done, until = self.result.setdefault(name, []), time.monotonic() + most_s
        done.clear()
        for command in commands:
            done.append(run_command(command, max(10, min(limit_s, until - time.monotonic(), self.left()))))
            if done[-1]["exit_code"] != 0:
                self.bad.append(done[-1]["command"])
            self.keep()


def run(arguments):
    report = Report(arguments)
    result = report.result

    def verify():
        result["verify"] = run_command(verify_command(arguments), min(120, report.left()))
        if result["verify"]["exit_code"] != 0:
            report.bad.append(result["verify"]["command"])

    def graph():
        shutil.rmtree(arguments.json.parent / "gpu-graph", ignore_errors=True)
        report.commands("graph_equals_eager", graph_commands(arguments), 40, 150)

    def row_of(row):
        compilers.wait(compile_until)
        until = time.monotonic() + report.left() - 20
        result["rows"][row.name] = run_row(row, arguments, until)
        say_row(row.name, result["rows"][row.name])
        checks = checks_of(row, result["rows"][row.name])
        report.checks += [(row.name, check) for check in checks]
        result["goals"] = [goal for goal in result["goals"] if goal["row"] != row.name]
        result["goals"] += [{"row": row.name, **dataclasses.asdict(check)} for check in checks]

    def sanitize():
        known = run_command([sanitizer(), "--help"], 20, last=100_000)["tail"]
        report.commands("sanitizer", sanitizer_commands(arguments, known), 90, 240)

    compilers = Compilers([row for row in ROWS if not arguments.only or row.name in arguments.only], arguments)
    compile_until = time.monotonic() + PEER_LIMIT_S
    if arguments.cases:
        report.part("verify", verify)
    elif not arguments.only:
        result["verify"] = {"not_measured": "no --cases"}
    report.part("graph", graph)
    for row in ROWS:
        report.part(row.name, lambda row=row: row_of(row), LEAST_S)
    compilers.wait(0)  # where no row had the time
    report.part("sanitizer", sanitize)
    say_checks(report.checks)
    write_json(arguments.json, result)
    for what in report.bad + result["left_out"]:
        say(f"not passed: {what}")
    return 1 if report.bad or result["left_out"] else 0


def main(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--welkin", required=True)
    parser.add_argument("--peer_python", required=True)
    parser.add_argument("--cases", help="folder of reference cases")
    parser.add_argument("--json", type=lambda text: pathlib.Path(text).resolve(), required=True)
    parser.add_argument("--minutes", type=float, default=8)
    parser.add_argument("--only", action="append", default=[], choices=PARTS, help="measure this part alone, into the JSON that is there; may be given again")
    parser.add_argument("--dry_run", action="store_true", help="print the commands")
    arguments = parser.parse_args(words)
    if arguments.dry_run:
        dry_run(arguments)
        return 0
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
