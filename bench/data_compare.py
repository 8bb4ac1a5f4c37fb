# SPDX-License-Identifier: Apache-2.0
"""Runs our readers and their peers in turns, a slice of time each, and prints rates and ratios as JSON.

usage: data_compare.py FOLDER BENCH_DATA WELKIN PEER_PYTHON [--seconds S] [--rounds N] [--quick]
FOLDER keeps the files between runs. Only one process works at a time; a peer that cannot start is listed with its reason.
"""
import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent


class Contender:
    """A process that reads for as long as it is told to, and waits in between."""

    def __init__(self, name, command, cores):
        self.name, self.rates, self.totals, self.failure = name, [], {}, None
        prefix = ["taskset", "-c", ",".join(map(str, cores))]
        self.errors = open(f"/tmp/welkin_bench_{os.getpid()}_{name}.err", "w+")
        os.unlink(self.errors.name)
        self.process = subprocess.Popen(prefix + [str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, text=True)
        if self.process.stdout.readline().strip() != "ready":
            self.errors.seek(0)
            self.failure = self.errors.read().strip().splitlines()[-1:] or ["it ended without a word"]

    def measure(self, seconds):
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            self.failure = ["it ended while it was measured"]
            return
        result = json.loads(line)
        self.rates.append(result["samples"] / result["seconds"])
        for key in ("samples", "delivered_bytes", "requested_bytes", "batches", "page_faults"):
            self.totals[key] = self.totals.get(key, 0) + result.get(key, 0)

    def stop(self):
        self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def report(self):
        if self.failure or not self.rates:
            return {"not_measured": " ".join(self.failure or ["no slice"])}
        rate = statistics.median(self.rates)
        one = self.totals["delivered_bytes"] / max(1, self.totals["samples"])
        report = {"samples_per_s": rate, "min": min(self.rates), "max": max(self.rates), "bytes_per_s": rate * one}
        if self.totals.get("requested_bytes"):
            report["requested_per_delivered"] = self.totals["requested_bytes"] / self.totals["delivered_bytes"]
        if self.totals.get("batches"):
            report["page_faults_per_batch"] = self.totals["page_faults"] / self.totals["batches"]
        return report


def compete(contenders, arguments):
    """Everyone once to warm up, then in turns. `ours` comes first and the ratios are ours over theirs."""
    running = [one for one in contenders if not one.failure]
    for one in running:
        one.measure(min(1.0, arguments.seconds))
        one.rates.clear()
        one.totals.clear()
    for _ in range(arguments.rounds):
        for one in running:
            if not one.failure:
                one.measure(arguments.seconds)
    for one in contenders:
        one.stop()
    reports = {one.name: one.report() for one in contenders}
    ours = reports[contenders[0].name].get("samples_per_s")
    ratios = {f"ours_per_{name}": ours / report["samples_per_s"] for name, report in reports.items()
              if ours and "samples_per_s" in report and name != contenders[0].name}
    return {"rates": reports, "ratios": ratios}


def make_files(folder, bench, quick):
    """Only what is not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    large = 128 if quick else 512
    small = 96 if quick else 320
    files = {
        f"box{large}.h5": ["write-box", large, 0, 0],
        f"box{small}.h5": ["write-box", small, 0, 0],
        f"box{small}_npy": ["write-npy", small],
        "box192_gzip.h5": ["write-box", 96 if quick else 192, 32, 1],
        "years": ["write-years", 1, 8 if quick else 40, 20, 360, 720],
        "hundred": ["write-years", 100, 2, 2, 90 if quick else 360, 180 if quick else 720],
    }
    for name, (verb, *numbers) in files.items():
        if not (folder / name).exists():
            subprocess.run([str(bench), verb, str(folder / name), *map(str, numbers)], check=True)
    return large, small


def first_batch(folder, welkin, quick):
    """`welkin bench --mode io` on a hundred files, five times; milliseconds."""
    height, width = (90, 180) if quick else (360, 720)
    yaml = folder / "hundred.yaml"
    yaml.write_text(f"""base: &base
  model: vit
  img_size: [{height}, {width}]
  patch_size: {2 if quick else 8}
  n_in_channels: 2
  n_out_channels: 2
  global_batch_size: 1
  num_iters: 10
  train_data_path: {folder / 'hundred'}
  valid_data_path: {folder / 'hundred'}
  global_means_path: {folder / 'hundred' / 'means.npy'}
  global_stds_path: {folder / 'hundred' / 'stds.npy'}
""")
    runs = []
    for _ in range(5):
        done = subprocess.run([str(welkin), "bench", "--mode", "io", "--yaml_config", str(yaml), "--config", "base", "--json", "-", "--windows", "1",
                               "--window_seconds", "0.2", "--warmup_seconds", "0", "--num_data_workers", "1"],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return {"not_measured": done.stderr.strip()[-300:]}
        runs.append(json.loads(done.stdout))
    return {"first_batch_ms": sorted(run["first_batch_ms"] for run in runs), "open_ms": sorted(run["open_ms"] for run in runs)}


def one_line(command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else {"not_measured": done.stderr.strip()[-300:]}


def machine():
    model = [line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    return {"cpu": model[0] if model else platform.machine(), "cores": os.cpu_count(), "kernel": platform.release(),
            "load_before": os.getloadavg()[0], "date": time.strftime("%Y-%m-%d")}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("bench", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("welkin", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("peer_python")
    parser.add_argument("--seconds", type=float, default=2.5)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--quick", action="store_true", help="small files and short slices: whether everything runs")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.seconds, arguments.rounds = 0.2, 1
    cores = sorted(os.sched_getaffinity(0))
    large, small = make_files(arguments.folder, arguments.bench, arguments.quick)

    def ours(kind, path, workers=0, on=cores[:1], name="ours", extra=()):
        return Contender(name, [arguments.bench, "serve", kind, arguments.folder / path, workers, 4, *extra], on)

    def peer(kind, path, on=cores[:1]):
        return Contender(kind, [arguments.peer_python, HERE / "data_peers.py", kind, arguments.folder / path], on)

    result = {"machine": machine(), "seconds": arguments.seconds, "rounds": arguments.rounds}
    box = f"box{large}.h5"
    result[f"crops_{large}"] = compete([ours("crops", box), ours("copy", box, name="copy_loop"), peer("memmap", box), peer("h5py", box),
                                        ours("crops", box, name="ours_turned", extra=("turns",))], arguments)
    box = f"box{small}.h5"
    result[f"crops_{small}"] = compete([ours("crops", box), ours("copy", box, name="copy_loop"), peer("memmap", box), peer("h5py", box)],
                                       arguments)
    result[f"crops_{small}_two_cores"] = compete([ours("crops", box, 2, cores), peer("torch_crops", box, cores)], arguments)
    npy = f"box{small}_npy"
    result[f"crops_{small}_npy"] = compete([ours("crops", npy), peer("dali", npy)], arguments)
    result["pairs"] = compete([ours("pairs", "years"), peer("h5py_pairs", "years")], arguments)
    result["pairs_two_cores"] = compete([ours("pairs", "years", 2, cores), peer("torch_pairs", "years", cores)], arguments)
    zipped = "box192_gzip.h5"
    # Nothing is kept of what was decoded, else the whole file soon is and nothing is left to decode; then as in training.
    result["gzip"] = compete([ours("crops", zipped, 2, cores, extra=("uncached",)),
                              ours("crops", zipped, 1, cores, name="one_thread", extra=("uncached",)), peer("h5py", zipped)], arguments)
    result["gzip_cached"] = compete([ours("crops", zipped, 2, cores), ours("crops", zipped, 1, cores, name="one_thread")], arguments)
    result["first_batch_100_files"] = first_batch(arguments.folder, arguments.welkin, arguments.quick)
    result["cold_bytes"] = {path: one_line([arguments.bench, "cold", "crops", arguments.folder / path, 16])
                            for path in (f"box{small}.h5", npy, zipped)}
    result["memory"] = one_line([arguments.bench, "memory", arguments.folder / f"box{small}.h5", 200 if arguments.quick else 10000])
    json.dump(result, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
