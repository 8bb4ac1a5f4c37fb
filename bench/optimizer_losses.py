#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Final validation losses of every optimizer on two real data sets, over several seeds: docs/results/optimizers.md.

usage: bench/optimizer_losses.py --data FOLDER [--welkin PROGRAM] [--seeds N] [--workers N] [--json FILE]

FOLDER/uk and FOLDER/enzo are those of docs/results/real-data.md. The rate of each optimizer is the best of those of RATES in a third of the
training with seed 0; the states of AdamW and of Adafactor take the rate of their optimizer. Then each optimizer trains in full with seeds 0 to
N-1. A table in Markdown on standard output. Runs have one thread each, so the losses do not depend on the number of workers.
"""
import argparse
import concurrent.futures
import csv
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The preset, how its length is set, the whole length, and how its rate is set.
SETS = {
    "uk": ("era5-uk.yaml", "lead6h", "num_iters={}", 300, "lr={}"),
    "enzo": ("enzo.yaml", "unet", "num_epochs={}", 60, "lr_schedule.start_lr={}"),
}
SEARCHED = 3  # the search takes this part of the length
# Name: settings, rates to choose from, and the name whose rate it takes.
OPTIMIZERS = {
    "AdamW": (["optimizer=AdamW"], [2e-4, 5e-4, 1e-3, 2e-3, 5e-3], None),
    "AdamW, bf16 states": (["optimizer=AdamW", "optimizer_state=bf16"], [], "AdamW"),
    "AdamW, 8-bit states": (["optimizer=AdamW", "optimizer_state=8bit"], [], "AdamW"),
    "SGD": (["optimizer=SGD", "momentum=0.9"], [3e-3, 1e-2, 3e-2, 1e-1, 3e-1], None),
    "Lion": (["optimizer=Lion"], [2e-5, 5e-5, 1e-4, 2e-4, 5e-4], None),
    "LAMB": (["optimizer=LAMB"], [1e-3, 3e-3, 1e-2, 3e-2], None),
    "LARS": (["optimizer=LARS"], [3e-1, 1.0, 3.0, 10.0], None),
    "Adafactor": (["optimizer=Adafactor"], [1e-3, 3e-3, 1e-2, 3e-2], None),
    "Adafactor, not factored": (["optimizer=Adafactor", "adafactor_factored=false"], [], "Adafactor"),
    "Muon": (["optimizer=Muon", "muon_scale=match_rms_adamw"], [5e-4, 1e-3, 2e-3, 5e-3], None),
}


def validation_losses(options, data_set, settings, rate, seed, part=1):
    """Of each epoch."""
    yaml, preset, length, whole, rate_key = SETS[data_set]
    words = [*settings, length.format(whole // part), rate_key.format(rate), f"seed={seed}"]
    with tempfile.TemporaryDirectory() as logs:
        command = [options.welkin, "train", "--yaml_config", ROOT / "config/real-data" / yaml, "--config", preset, "--data_root",
                   options.data / data_set, "--log_root", logs, "--device", "cpu", "--threads", "1", "--csv"]
        command += [text for word in words for text in ("--set", word)]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        if "nonfinite_" in done.stderr + done.stdout:
            return [math.inf]
        if done.returncode:
            raise SystemExit(f"{' '.join(map(str, command))}\n{done.stderr}")
        with open(next(pathlib.Path(logs).rglob("metrics.csv"))) as file:
            return [float(row["Loss/valid"]) for row in csv.DictReader(file) if row["Loss/valid"]]


def measure(options, data_set, pool):
    def losses(name, rate, seed, part=1):
        return pool.submit(validation_losses, options, data_set, OPTIMIZERS[name][0], rate, seed, part)

    tried = {name: {rate: losses(name, rate, 0, SEARCHED) for rate in rates} for name, (_, rates, _) in OPTIMIZERS.items()}
    searched = {name: {rate: job.result()[-1] for rate, job in jobs.items()} for name, jobs in tried.items()}
    rates = {name: min(found, key=found.get) for name, found in searched.items() if found}
    rates.update({name: rates[like] for name, (_, _, like) in OPTIMIZERS.items() if like})
    jobs = {name: [losses(name, rate, seed) for seed in range(options.seeds)] for name, rate in rates.items()}
    return {name: {"rate": rates[name], "searched": searched[name], "losses": [job.result() for job in jobs[name]]} for name in OPTIMIZERS}


def print_table(data_set, measured):
    print(f"| {data_set} | rate | last epoch: mean | spread | best epoch: mean | spread |\n| --- | --- | --- | --- | --- | --- |")
    for name, found in measured.items():
        cells = [name, f"{found['rate']:g}"]
        for pick in (lambda losses: losses[-1], min):
            values = [pick(losses) for losses in found["losses"]]
            cells += [f"{statistics.mean(values):.4f}", f"{min(values):.4f} to {max(values):.4f}"]
        print("| " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--welkin", default=ROOT / "build/release/welkin", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    figures = {}
    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        for data_set in options.sets:
            figures[data_set] = measure(options, data_set, pool)
            print_table(data_set, figures[data_set])
            if options.json:
                options.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
