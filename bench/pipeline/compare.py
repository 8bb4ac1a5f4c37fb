# SPDX-License-Identifier: Apache-2.0
"""A step through a pipeline (--pipeline_parallel) beside PyTorch's torch.distributed.pipelining: the same ViT, stages, schedules and
micro-batches on as many ranks, in turns.

usage: compare.py --welkin BINARY --peer_python PYTHON --json FILE [--ranks 2,4] [--micro_batches M,...] [--rounds N] [--quick]
Prints a Markdown table (docs/results/scaling.md). All ranks work on this machine with one thread each, over Gloo on the loopback interface.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SCHEDULES = ("gpipe", "1f1b", "interleaved", "zero_bubble")
SIZE = {"embed_dim": 384, "depth": 8, "num_heads": 6}
QUICK = {"embed_dim": 32, "depth": 8, "num_heads": 2}
PRESET = """
run: {{model: vit, embed_dim: {embed_dim}, depth: {depth}, num_heads: {num_heads}, patch_size: 8, img_size: [64, 128], n_in_channels: 4, n_out_channels: 4,
  global_batch_size: {batch}, micro_batch_size: 1, num_iters: 100, lr: 1.E-4, lr_schedule: constant, warmup: 0, optimizer: Adam, clip_norm: 0, threads: 1,
  device: cpu}}
"""


class Bench:
    def __init__(self, arguments):
        self.arguments, self.folder = arguments, pathlib.Path(tempfile.mkdtemp(prefix="welkin-pipeline-"))
        self.size = QUICK if arguments.quick else SIZE
        self.windows = ["--windows", "1" if arguments.quick else "3", "--window_seconds", "0.1" if arguments.quick else "2"]

    def json_of(self, words, file):
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        if done.returncode != 0:
            sys.exit(f"compare.py: exit code {done.returncode} of {' '.join(map(str, words))}\n{done.stderr[-2000:]}")
        return json.loads(file.read_text())

    def welkin(self, ranks, schedule, micros):
        preset, file = self.folder / "run.yaml", self.folder / "figures.json"
        preset.write_text(PRESET.format(batch=micros, **self.size))
        words = [self.arguments.welkin, "launch", "-n", ranks, "--", "bench", "--mode", "synthetic", "--yaml_config", preset, "--config", "run", "--synthetic",
                 "--pipeline_parallel", ranks, "--pipeline_schedule", schedule, *self.windows, "--json", file]
        return micros / self.json_of(words, file)["synthetic_samples_per_s"]

    def peer(self, ranks, schedule, micros):
        file = self.folder / "figures.json"
        flags = [word for key, value in self.size.items() for word in (f"--{key}", value)]
        words = [self.arguments.peer_python, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", ranks, HERE.parent / "peer/pipeline.py",
                 "--schedule", schedule, "--micro_batches", micros, *flags, *self.windows, "--json", file]
        return self.json_of(words, file)["step_s"]


def compare(bench, ranks, schedule, micros):
    ours, theirs = [], []
    for _ in range(bench.arguments.rounds):
        ours.append(bench.welkin(ranks, schedule, micros))
        theirs.append(bench.peer(ranks, schedule, micros))
    ratios = [b / a for a, b in zip(ours, theirs)]
    print(f"| {ranks} | {schedule} | {micros} | {statistics.median(ours):.3f} s | {statistics.median(theirs):.3f} s | "
          f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) |", flush=True)
    return {"ranks": ranks, "schedule": schedule, "micro_batches": micros, "welkin_s": ours, "torch_s": theirs}


def numbers(text):
    return [int(number) for number in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--welkin", required=True)
    parser.add_argument("--peer_python", required=True)
    parser.add_argument("--json", required=True)
    parser.add_argument("--ranks", type=numbers, default=[2, 4])
    parser.add_argument("--micro_batches", type=numbers, default=[8])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    bench, rows = Bench(arguments), []
    print("| ranks | schedule | micro-batches | Welkin | PyTorch | PyTorch over Welkin |\n| --- | --- | --- | --- | --- | --- |", flush=True)
    for ranks in arguments.ranks:
        for schedule in SCHEDULES:
            for micros in arguments.micro_batches:
                rows.append(compare(bench, ranks, schedule, micros))
                pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
