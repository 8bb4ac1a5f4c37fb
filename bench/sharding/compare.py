# SPDX-License-Identifier: Apache-2.0
"""Sharded data parallelism (--shard, ZeRO 1 to 3): bytes that a rank holds and sends beside the lecture's formulas and `welkin plan estimate`,
peak memory and time of a step beside PyTorch's DistributedDataParallel, ZeroRedundancyOptimizer and fully_shard on as many ranks, in turns.

usage: compare.py --welkin BINARY --peer_python PYTHON --json FILE [--rounds N] [--quick] [--disk FOLDER] [--only bytes|planned|traffic|steps|checkpoint|peak]...
Prints Markdown tables (docs/results/memory.md). All ranks work on this machine with one thread each, over Gloo on the loopback interface.
"""
import argparse
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
STAGES = ("none", "optimizer", "gradients", "full")
PEERS = {"none": "ddp", "optimizer": "zero1", "full": "full"}
SMALL = {"embed_dim": 384, "depth": 6, "num_heads": 6}
BASE = {"embed_dim": 768, "depth": 12, "num_heads": 12}
LARGE = {"embed_dim": 1536, "depth": 12, "num_heads": 12}
PRESET = """
run: {{model: vit, embed_dim: {embed_dim}, depth: {depth}, num_heads: {num_heads}, patch_size: 8, img_size: [64, 128], n_in_channels: 4, n_out_channels: 4,
  global_batch_size: {batch}, micro_batch_size: {micro}, num_iters: 100, lr: 1.E-4, lr_schedule: constant, warmup: 0, optimizer: Adam, threads: 1, device: cpu}}
"""


class Bench:
    def __init__(self, arguments):
        self.arguments, self.folder = arguments, pathlib.Path(tempfile.mkdtemp(prefix="welkin-sharding-"))
        self.windows = ["--windows", "1" if arguments.quick else "3", "--window_seconds", "0.1" if arguments.quick else "2"]

    def json_of(self, words, file):
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        if done.returncode != 0:
            sys.exit(f"compare.py: exit code {done.returncode} of {' '.join(map(str, words))}\n{done.stderr[-2000:]}")
        return json.loads(file.read_text())

    def preset(self, size, ranks, samples, passes):
        path = self.folder / "run.yaml"
        path.write_text(PRESET.format(batch=ranks * samples, micro=samples // passes, **size))
        return ["--yaml_config", path, "--config", "run"]

    def welkin(self, size, ranks, *words, samples=1, passes=1):
        """`samples` of each rank, in so many forward and backward passes."""
        file = self.folder / "figures.json"
        return self.json_of([self.arguments.welkin, "launch", "-n", ranks, "--", "bench", *words, *self.preset(size, ranks, samples, passes), "--synthetic", "--json", file], file)

    def peer(self, size, ranks, kind):
        file = self.folder / "figures.json"
        flags = [word for key, value in size.items() for word in (f"--{key}", value)]
        return self.json_of([self.arguments.peer_python, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", ranks,
                             HERE.parent / "peer/sharded.py", "--kind", kind, *flags, *self.windows, "--json", file], file)

    def estimate(self, size, ranks, *words, samples=1, passes=1):
        file = self.folder / "estimate.json"
        return self.json_of([self.arguments.welkin, "plan", "estimate", *self.preset(size, ranks, samples, passes), "--devices", ranks, *words, "--json", file], file)


def say(line=""):
    print(line, flush=True)


def held_bytes(bench):
    """Weights, gradients and states of the fullest rank over 4 P, 4 P and 8 P bytes, of which the stage says what is shared out. Two passes:
    gradients of stage `optimizer` stand whole between them."""
    rows = []
    say("| ranks | `--shard` | precision | weights | gradients | states | formula | measured over formula |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
    for ranks in (2, 4, 8):
        for level, stage in enumerate(STAGES):
            for precision in ("none", "bf16"):
                held = bench.welkin(SMALL, ranks, "memory", "--shard", stage, "--amp_mode", precision, samples=2, passes=2)
                parameters = sum(row["parameters"] for row in held["placements"])
                most = max(held["held"], key=lambda row: sum(row[f"{kind}_bytes"] for kind in ("weights", "gradients", "optimizer")))
                parts = [most["weights_bytes"], most["gradients_bytes"], most["optimizer_bytes"]]
                formula = parameters * sum(size / (ranks if level >= shared else 1) for size, shared in ((4, 3), (4, 2), (8, 1)))
                rows.append({"ranks": ranks, "shard": stage, "precision": precision, "bytes": parts, "formula": formula, "ratio": sum(parts) / formula})
                say(f"| {ranks} | {stage} | {'fp32' if precision == 'none' else precision} | " + " | ".join(f"{part / 2**20:.1f}" for part in parts) +
                    f" | {formula / 2**20:.1f} MiB | {sum(parts) / formula:.4f} |")
    return rows


def planned_peaks(bench):
    """The most bytes of tensors that a rank had while steps were made, and what the planner says."""
    rows = []
    say("| width | precision | ranks | `--shard` | passes of a step | tensors at once, MiB | planner, MiB | planner over measured |\n" + "| --- " * 8 + "|")
    once = ("--windows", "1", "--window_seconds", "0.2", "--warmup_seconds", "0", "--memory_limit_gib", "20")
    numbers = {384: (2, 4) if bench.arguments.quick else (2, 4, 8), 768: (2, 4)}  # of ranks
    for size in (SMALL,) if bench.arguments.quick else (SMALL, BASE):
        for precision, ranks, stage, passes in itertools.product(("none", "bf16"), numbers[size["embed_dim"]], STAGES, (1, 2)):
            how = {"samples": 2, "passes": passes}
            flags = ("--shard", stage, "--amp_mode", precision)
            measured = bench.welkin(size, ranks, "--mode", "synthetic", *flags, *once, **how)["step_tensors_peak_bytes"]
            planned = bench.estimate(size, ranks, *flags, **how)["memory of a rank, tp=1, cp=1"]["all of it"]["value"] * 2**30
            rows.append({"width": size["embed_dim"], "precision": precision, "ranks": ranks, "shard": stage, "passes": passes, "bytes": measured, "planned": planned})
            say(f"| {size['embed_dim']} | {'fp32' if precision == 'none' else precision} | {ranks} | {stage} | {passes} | {measured / 2**20:.0f} | "
                f"{planned / 2**20:.0f} | {planned / measured:.3f} |")
    return rows


def sent_bytes(bench):
    """By the counter of the collectives, a ring's (n - 1)/n of each message, twice for a sum; and by the planner."""
    rows = []
    say("| ranks | `--shard` | sent in a step, over P | formula | planner over measured |\n| --- | --- | --- | --- | --- |")
    for ranks in (2, 4):
        for stage in STAGES:
            figures = bench.welkin(SMALL, ranks, "--mode", "all", "--shard", stage, "--windows", "1", "--window_seconds", "0.05", "--warmup_seconds", "0")
            weight = {"gradient exchange": 2, "all_gather": 1, "reduce_scatter": 1}
            sent = sum(weight.get(call["collective"], 0) * call["bytes_per_step"] for call in figures["communication"]["calls"] if call["group"].startswith("dp"))
            sent *= (ranks - 1) / ranks
            planned = 1e6 * next(value for name, value in bench.estimate(SMALL, ranks, "--shard", stage)[f"time on {ranks} devices"].items()
                                 if name.startswith("sent"))["value"]
            unit = 4 * figures["parameters"] * (ranks - 1) / ranks
            rows.append({"ranks": ranks, "shard": stage, "bytes": sent, "planned": planned})
            say(f"| {ranks} | {stage} | {sent / unit:.3f} | {3 if stage == 'full' else 2} | {planned / sent:.4f} |")
    return rows


def steps(bench):
    rows = []
    say("| ranks | `--shard` | Welkin | PyTorch | PyTorch over Welkin |\n| --- | --- | --- | --- | --- |")
    for ranks in (2, 4):
        sides = {(side, stage): [] for stage in PEERS for side in ("welkin", "torch")}
        for _ in range(bench.arguments.rounds):
            for side, stage in sides:
                if side == "welkin":
                    figures = bench.welkin(SMALL, ranks, "--mode", "synthetic", "--shard", stage, *bench.windows)
                    sides[side, stage].append(ranks / figures["synthetic_samples_per_s"])
                else:
                    sides[side, stage].append(bench.peer(SMALL, ranks, PEERS[stage])["step_s"])
        for stage in PEERS:
            ours, theirs = sides["welkin", stage], sides["torch", stage]
            ratios = [b / a for a, b in zip(ours, theirs)]
            rows.append({"ranks": ranks, "shard": stage, "welkin_s": ours, "torch_s": theirs})
            say(f"| {ranks} | {stage} | {statistics.median(ours):.3f} s | {statistics.median(theirs):.3f} s | "
                f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) |")
    return rows


def peak(bench):
    """Resident memory of a rank at its peak above what was there before the model."""
    size = SMALL if bench.arguments.quick else LARGE
    ours = bench.welkin(size, 4, "--mode", "synthetic", "--shard", "full", "--windows", "1", "--window_seconds", "0.1", "--warmup_seconds", "0")
    ours = ours["resident_peak_bytes"] - ours["resident_before_model_bytes"]
    theirs = bench.peer(size, 4, "full")["peak_bytes"]
    planned = bench.estimate(size, 4, "--shard", "full")["memory of a rank, tp=1, cp=1"]["all of it"]["value"] * 2**30
    say("| ViT, width, 4 ranks, `--shard full` | peak of a rank | over fully_shard's | planner |\n| --- | --- | --- | --- |")
    say(f"| {size['embed_dim']} | {ours / 2**20:.0f} MiB | {ours / theirs:.2f} (of {theirs / 2**20:.0f} MiB) | {planned / 2**20:.0f} MiB |")
    return {"welkin_bytes": ours, "torch_bytes": theirs, "planned_bytes": planned}


def seconds_of(path, which):
    """Of the day: when the file was born (%w), or its folder entry changed last (%z)."""
    clock = subprocess.run(["stat", "-c", which, str(path)], capture_output=True, text=True, check=True).stdout.split()[1]
    hours, minutes, seconds = clock.split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def written(bench, root):
    """Seconds of each checkpoint of a run of 4 ranks that wait for it, from the first file's birth to the rename, and the files of one."""
    steps = 2 if bench.arguments.quick else 4
    words = [bench.arguments.welkin, "launch", "-n", 4, "--", "train", "--yaml_config", HERE.parents[1] / "config/UNet.yaml", "--config", "base",
             "--log_root", root, "--device", "cpu", "--shard", "full", "--checkpoint_async=false", "--checkpoint_interval", 1, "--keep_checkpoints", steps,
             "--num_iters", steps]
    settings = {"data_loader_config": "synthetic", "global_batch_size": 4, "Nsamples": 64, "Nsamples_val": 4, "optimizer": "Adam"}
    words += [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if done.returncode != 0:
        sys.exit(f"compare.py: exit code {done.returncode} of {' '.join(map(str, words))}\n{done.stderr[-2000:]}")
    folders = sorted(root.rglob("step_*"))
    return [seconds_of(folder, "%z") - min(seconds_of(file, "%w") for file in folder.glob("*.safetensors")) for folder in folders], folders[-1]


def copied(folder, root):
    """Four processes of dd write as many bytes each as a rank, from files that the system has in memory."""
    sources = [root / f"rank{rank}" for rank in range(4)]
    for rank, source in enumerate(sources):
        source.write_bytes(b"".join(file.read_bytes() for file in sorted(folder.glob(f"*-r{rank}.safetensors"))))
    os.sync()
    targets = [root / f"copy{rank}" for rank in range(4)]
    begin = time.monotonic()
    copies = [subprocess.Popen(["dd", f"if={source}", f"of={target}", "bs=1M", "conv=fsync", "status=none"]) for source, target in zip(sources, targets)]
    if any([copy.wait() for copy in copies]):
        sys.exit("compare.py: dd has failed")
    seconds = time.monotonic() - begin
    for file in sources + targets:
        file.unlink()
    return seconds


def checkpoint(bench):
    """A checkpoint of a U-Net of 117 million parameters with Adam that 4 ranks write, and as many bytes by dd, in turns."""
    rows = []
    say("| round | checkpoints, s | dd, s | median over dd |\n| --- | --- | --- | --- |")
    for number in range(1 if bench.arguments.quick else bench.arguments.rounds):
        with tempfile.TemporaryDirectory(prefix="welkin-checkpoint-", dir=bench.arguments.disk) as name:
            root = pathlib.Path(name)
            ours, folder = written(bench, root / "logs")
            theirs = [copied(folder, root) for _ in range(len(ours))]
        ratio = statistics.median(ours) / statistics.median(theirs)
        rows.append({"checkpoint_s": ours, "dd_s": theirs, "ratio": ratio})
        say(f"| {number + 1} | {', '.join(f'{value:.2f}' for value in ours)} | {', '.join(f'{value:.2f}' for value in theirs)} | {ratio:.2f} |")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--welkin", required=True)
    parser.add_argument("--peer_python", required=True)
    parser.add_argument("--json", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--disk", help="a folder for the checkpoints; else the system's for temporary files")
    parts = {"bytes": held_bytes, "planned": planned_peaks, "traffic": sent_bytes, "steps": steps, "checkpoint": checkpoint, "peak": peak}
    parser.add_argument("--only", action="append", choices=parts)
    arguments = parser.parse_args()
    bench, found = Bench(arguments), {}
    for name, measure in parts.items():
        if arguments.only and name not in arguments.only:
            continue
        found[name] = measure(bench)
        say()
        pathlib.Path(arguments.json).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
