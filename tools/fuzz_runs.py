#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs fuzzers one after the other at the lowest priority until each has a number of executions, and prints the table of
docs/results/reliability.md. It goes on where it was stopped: what was done stands in build/fuzz/runs.csv, a log for each piece in
build/fuzz/runs/. The fuzzers are those that tools/fuzz.sh has built; their corpora are its corpora.

usage: fuzz_runs.py [--goal N] [--seconds S] [--table] [FUZZER...]
"""
import argparse
import csv
import os
import pathlib
import re
import resource
import subprocess
import sys
import tarfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "fuzz"
RESULTS = BUILD / "runs.csv"
FIELDS = ["fuzzer", "executions", "cpu_s", "wall_s", "edges", "features", "slowest_s", "peak_mb", "exit"]
# No stack of each allocation, a short list of freed memory, and seeds of equal weight: their weights took a quarter of the time of
# checkpoint_index_fuzz. Inputs are short, but for a format of pages.
ASAN = "malloc_context_size=0:quarantine_size_mb=16"
OPTIONS = ["-timeout=10", "-rss_limit_mb=2048", "-entropic=0", "-print_final_stats=1"]
LONGEST = 4096


def pieces():
    if not RESULTS.exists():
        return []
    with RESULTS.open() as file:
        return [{key: value if key == "fuzzer" else float(value) for key, value in row.items()} for row in csv.DictReader(file)]


def executions(name):
    return int(sum(piece["executions"] for piece in pieces() if piece["fuzzer"] == name))


def number(text, name):
    found = re.findall(rf"{name}:?\s*(\d+)", text)
    return int(found[-1]) if found else 0


def run_piece(name, runs, seconds):
    corpus = BUILD / "corpus" / name
    corpus.mkdir(parents=True, exist_ok=True)
    found, seeds = ROOT / "tests/fuzz/found" / f"{name}.tar.gz", ROOT / "tests/fuzz/seeds" / name
    if found.exists():
        with tarfile.open(found) as archive:
            archive.extractall(corpus)
    log = BUILD / "runs" / f"{name}.{int(time.time())}.log"
    log.parent.mkdir(exist_ok=True)
    longest = max([LONGEST, *(2 * seed.stat().st_size for seed in seeds.glob("*"))])
    command = ["nice", "-n", "19", str(BUILD / "fuzzers" / name), f"-runs={runs}", f"-max_total_time={seconds}", *OPTIONS, f"-max_len={longest}",
               f"-artifact_prefix={BUILD}/{name}-", str(corpus), *([str(seeds)] if seeds.is_dir() else [])]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.time()
    with log.open("w") as out:
        code = subprocess.call(command, stdout=out, stderr=out, env=dict(os.environ, ASAN_OPTIONS=ASAN))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    text = log.read_text(errors="replace")
    row = {"fuzzer": name, "executions": number(text, "number_of_executed_units"),
           "cpu_s": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1),
           "wall_s": round(time.time() - began), "edges": number(text, r"\bcov"), "features": number(text, r"\bft"),
           "slowest_s": number(text, "slowest_unit_time_sec"), "peak_mb": number(text, "peak_rss_mb"), "exit": code}
    is_new = not RESULTS.exists()
    with RESULTS.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if is_new:
            writer.writeheader()
        writer.writerow(row)
    if code != 0:
        print(f"{name} ended with code {code}: {log}", file=sys.stderr)
    return code


def table():
    lines = ["| fuzzer | executions | CPU time | executions/s | edges | longest | memory |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for name in sorted({piece["fuzzer"] for piece in pieces()}):
        of = [piece for piece in pieces() if piece["fuzzer"] == name]
        total, seconds = int(sum(piece["executions"] for piece in of)), sum(piece["cpu_s"] for piece in of)
        most = {key: int(max(piece[key] for piece in of)) for key in ("edges", "slowest_s", "peak_mb")}
        longest = f"{most['slowest_s']} s" if most["slowest_s"] else "below 1 s"
        lines.append(f"| {name} | {total:,} | {seconds:,.0f} s | {total / max(seconds, 0.1):,.0f} | {most['edges']:,} | {longest} | "
                     f"{most['peak_mb']} MB |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--goal", type=int, default=10_000_000, help="executions of each (default: 10000000)")
    parser.add_argument("--seconds", type=int, default=420, help="of a piece, after which the next fuzzer comes (default: 420)")
    parser.add_argument("--table", action="store_true", help="only print what was done")
    parser.add_argument("fuzzers", nargs="*")
    given = parser.parse_args()
    left = given.fuzzers or sorted(path.name for path in (BUILD / "fuzzers").glob("*_fuzz"))
    status = 0
    while left and not given.table:
        left = [name for name in left if executions(name) < given.goal]
        for name in list(left):
            if run_piece(name, given.goal - executions(name), given.seconds) != 0:
                left.remove(name)
                status = 1
    print(table())
    return status


if __name__ == "__main__":
    sys.exit(main())
