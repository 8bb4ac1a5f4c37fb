# SPDX-License-Identifier: Apache-2.0
"""All figures of a GPU in one JSON: reference cases, recorded steps against steps as they are, training steps under compute-sanitizer, and both
models against PyTorch there.

usage: gpu.py --welkin PROGRAM --peer_python PROGRAM [--cases FOLDER] [--json FILE] [--minutes M] [--dry_run]
Parts that would begin after their share of the time are left out and named.
"""
import argparse
import dataclasses
import pathlib
import shlex
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from compare import machine, say, say_checks, say_row, write_json  # noqa: E402
from rows import COMPILE, SHAPES, Row, against, at_least  # noqa: E402
from sides import RATE, Peer, Welkin, race, ratios  # noqa: E402

DEVICE = ["--device", "cuda"]
ROUNDS, SECONDS, WARMUP_STEPS, WARMUP_SECONDS = 3, 2.0, 10, 2.0
SHAPES_ON_GPU = {"unet": SHAPES["unet"], "vit": SHAPES["vit"], "vit_wide": [*SHAPES["vit"], "--embed_dim", "1536"]}


def rate_of(bound, stretch):
    def check(figures, _):
        return at_least(f"samples/s (stretch {stretch})", bound, figures["ours"].get(RATE), "goal of an H200", unit="")
    return check


def goals(bound, stretch):
    return [against(1.3, "samples/s over eager with the same switches", "eager"), against(1.0, "samples/s over torch.compile", "compile"), rate_of(bound, stretch)]


ROWS = [
    Row("unet", "unet", 64, "bf16", {"eager": [], "compile": COMPILE, "channels_last": ["--channels_last"]}, goals(2400, 4900)),
    Row("vit", "vit", 16, "bf16", {"eager": [], "compile": COMPILE}, goals(150, 200)),
    Row("vit_wide", "vit_wide", 4, "bf16", {"eager": [], "compile": COMPILE}, goals(38, 45)),
]


# Boxes are cut on the GPU; fields, which only the host can hold here, are read ahead by threads: without them the step would wait for every copy.
READING = {"unet": ["--resident", "device"], "vit": ["--resident", "host", "--num_data_workers", "8"]}


class Full(Welkin):
    """`welkin bench --mode full`: with the loader, the samples resident."""

    def __init__(self, binary, preset, *arguments):
        super().__init__(binary, preset, *arguments, extra=[*DEVICE, *READING[preset.split("_")[0]]], warmup_seconds=WARMUP_SECONDS)
        self.name = "welkin_full"
        self.command[self.command.index("synthetic")] = "full"

    def window(self, seconds):
        figures = super().window(seconds)
        return {**figures, **{key.replace("full_", "synthetic_", 1): value for key, value in figures.items() if key.startswith("full_samples_per_s")}}


class Graph(Welkin):
    """The same steps, recorded and replayed."""

    def __init__(self, *arguments):
        super().__init__(*arguments, extra=[*DEVICE, "--cuda_graph"], warmup_seconds=WARMUP_SECONDS)
        self.name = "welkin_graph"


def sides_of(row, arguments):
    preset = row.model + "_gpu"
    flags = [*SHAPES_ON_GPU[row.model], "--batch", str(row.batch), "--precision", row.precision, *DEVICE]
    ours = Welkin(arguments.welkin, preset, row.batch, row.precision, 0, extra=DEVICE, warmup_seconds=WARMUP_SECONDS)
    full = Full(arguments.welkin, preset, row.batch, row.precision, 0)
    graph = Graph(arguments.welkin, preset, row.batch, row.precision, 0)
    cache = {"TORCHINDUCTOR_CACHE_DIR": str(arguments.json.parent / "inductor")}
    return ours, full, graph, [Peer(name, arguments.peer_python, flags + extra, 1, WARMUP_STEPS, cache) for name, extra in row.peers.items()]


def run_row(row, arguments):
    ours, full, graph, peers = sides_of(row, arguments)
    race([ours, full, graph, *peers], ROUNDS, SECONDS)
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


def sanitizer_commands(arguments):
    """Training steps of both models at small sizes with everything on that has a kernel of ours."""
    tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    runs = [Welkin(arguments.welkin, "vit_quick", 1, "bf16", 0, extra=[*DEVICE, "--set", "dropout=0.1"]),
            Welkin(arguments.welkin, "unet_quick", 1, "fp32", 0, extra=DEVICE)]
    runs.append(Welkin(arguments.welkin, "vit_quick", 1, "fp16", 0, extra=[*DEVICE, "--cuda_graph"]))
    return [[tool, "--tool", kind, "--error-exitcode", "9", *run.command, "--window_seconds", "0.01"] for kind in ("memcheck", "racecheck") for run in runs]


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


def run_command(command, limit_s):
    """Exit code, seconds and the last words; a tool that is not there is named."""
    begun = time.monotonic()
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=limit_s, check=False)
        said, code = done.stdout + done.stderr, done.returncode
    except FileNotFoundError as missing:
        said, code = str(missing), 127
    except subprocess.TimeoutExpired:
        said, code = f"ended after {limit_s} s", 124
    return {"command": shlex.join(map(str, command)), "exit_code": code, "seconds": time.monotonic() - begun, "tail": said[-600:]}


def device_facts():
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version,clocks.max.sm,power.limit", "--format=csv,noheader"]
    return run_command(query, 20)["tail"].strip()


def dry_run(arguments):
    verify = [verify_command(arguments)] if arguments.cases else []
    for command in (*verify, *graph_commands(arguments), *sanitizer_commands(arguments)):
        say(shlex.join(map(str, command)))
    for row in ROWS:
        ours, full, graph, peers = sides_of(row, arguments)
        for side in (ours, full, graph):
            say(shlex.join([*map(str, side.command), "--window_seconds", str(SECONDS)]))
        for peer in peers:
            say(shlex.join(peer.command))


def run(arguments):
    begun, result, checks = time.monotonic(), {"machine": {**machine(0), "gpu": device_facts()}, "rows": {}, "left_out": []}, []

    def left():
        return arguments.minutes * 60 - (time.monotonic() - begun)

    result["verify"] = run_command(verify_command(arguments), min(120, left())) if arguments.cases else {"not_measured": "no --cases"}
    shutil.rmtree(arguments.json.parent / "gpu-graph", ignore_errors=True)
    result["graph_equals_eager"] = [run_command(command, max(10, min(30, left()))) for command in graph_commands(arguments)]
    for row in ROWS:
        if left() < 75:
            result["left_out"].append(row.name)
            continue
        result["rows"][row.name] = run_row(row, arguments)
        say_row(row.name, result["rows"][row.name])
        checks += [(row.name, check) for check in checks_of(row, result["rows"][row.name])]
    result["sanitizer"] = [run_command(command, max(10, min(45, left()))) for command in sanitizer_commands(arguments)]
    say_checks(checks)
    result["goals"] = [{"row": name, **dataclasses.asdict(check)} for name, check in checks]
    result["minutes"] = (time.monotonic() - begun) / 60
    write_json(arguments.json, result)
    bad = [part["command"] for part in [result["verify"], *result["graph_equals_eager"], *result["sanitizer"]] if part.get("exit_code", 0) != 0]
    for command in bad + result["left_out"]:
        say(f"not passed: {command}")
    return 1 if bad or result["left_out"] else 0


def main(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--welkin", required=True)
    parser.add_argument("--peer_python", required=True)
    parser.add_argument("--cases", help="folder of reference cases")
    parser.add_argument("--json", type=lambda text: pathlib.Path(text).resolve(), required=True)
    parser.add_argument("--minutes", type=float, default=8)
    parser.add_argument("--dry_run", action="store_true", help="print the commands")
    arguments = parser.parse_args(words)
    if arguments.dry_run:
        dry_run(arguments)
        return 0
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
