#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs fuzzers one after the other at the lowest priority until each has a number of executions, and prints the table of
docs/results/reliability.md. It goes on where it was stopped, on any machine: what was done stands in docs/results/fuzz_runs.csv, a row
for each fuzzer, and the log of each piece in build/fuzz/runs/. Those with the least time to go come first. The fuzzers are those that
tools/fuzz.sh has built; their corpora are its corpora.

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
RESULTS = ROOT / "docs" / "results" / "fuzz_runs.csv"
SUMS, MOST = ["executions", "cpu_s"], ["edges", "slowest_s", "peak_mb"]  # over the pieces of a fuzzer
FIELDS = ["fuzzer", *SUMS, *MOST]
# No stack of each allocation, a short list of freed memory, and seeds of equal weight: their weights took a quarter of the time of
# checkpoint_index_fuzz. Inputs are short, but for a format of pages; a few characters of a list of hosts stand for thousands.
ASAN = "malloc_context_size=0:quarantine_size_mb=16"
OPTIONS = ["-timeout=10", "-rss_limit_mb=2048", "-entropic=0", "-print_final_stats=1"]
LONGEST, LONGEST_OF = 1024, {"launch_list_fuzz": 256}


def totals():
    if not RESULTS.exists():
        return {}
    with RESULTS.open() as file:
        return {row["fuzzer"]: {key: float(row[key]) for key in FIELDS[1:]} for row in csv.DictReader(file)}


def executions(name):
    return int(totals().get(name, {}).get("executions", 0))


def seconds_to(goal, name):
    done = totals().get(name)
    return (goal - done["executions"]) * done["cpu_s"] / max(done["executions"], 1) if done else float("inf")


def add_piece(name, piece):
    of = totals()
    before = of.get(name, dict.fromkeys(FIELDS[1:], 0.0))
    of[name] = {key: before[key] + piece[key] for key in SUMS} | {key: max(before[key], piece[key]) for key in MOST}
    fresh = RESULTS.with_suffix(".new")
    with fresh.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        for each in sorted(of):
            writer.writerow({"fuzzer": each} | {key: f"{value:g}" if key == "cpu_s" else int(value) for key, value in of[each].items()})
    fresh.replace(RESULTS)


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
    longest = max([LONGEST_OF.get(name, LONGEST), *(2 * seed.stat().st_size for seed in seeds.glob("*"))])
    command = ["nice", "-n", "19", str(BUILD / "fuzzers" / name), f"-runs={runs}", f"-max_total_time={seconds}", *OPTIONS, f"-max_len={longest}",
               f"-artifact_prefix={BUILD}/{name}-", str(corpus), *([str(seeds)] if seeds.is_dir() else [])]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with log.open("w") as out:
        code = subprocess.call(command, stdout=out, stderr=out, env=dict(os.environ, ASAN_OPTIONS=ASAN))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    text = log.read_text(errors="replace")
    add_piece(name, {"executions": number(text, "number_of_executed_units"),
                     "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, "edges": number(text, r"\bcov"),
                     "slowest_s": number(text, "slowest_unit_time_sec"), "peak_mb": number(text, "peak_rss_mb")})
    if code != 0:
        print(f"{name} ended with code {code}: {log}", file=sys.stderr)
    return code


def table():
    lines = ["| fuzzer | executions | CPU time | executions/s | edges | longest | memory |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for name, of in totals().items():
        longest = f"{of['slowest_s']:.0f} s" if of["slowest_s"] else "below 1 s"
        lines.append(f"| {name} | {of['executions']:,.0f} | {of['cpu_s']:,.0f} s | {of['executions'] / max(of['cpu_s'], 0.1):,.0f} | "
                     f"{of['edges']:,.0f} | {longest} | {of['peak_mb']:.0f} MB |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--goal", type=int, default=10_000_000, help="executions of each (default: 10000000)")
    parser.add_argument("--seconds", type=int, default=420, help="of a piece (default: 420)")
    parser.add_argument("--table", action="store_true", help="only print what was done")
    parser.add_argument("fuzzers", nargs="*")
    given = parser.parse_args()
    left = given.fuzzers or sorted(path.name for path in (BUILD / "fuzzers").glob("*_fuzz"))
    status = 0
    while left and not given.table:
        left = sorted((name for name in left if executions(name) < given.goal), key=lambda name: seconds_to(given.goal, name))
        for name in left[:1]:
            if run_piece(name, given.goal - executions(name), given.seconds) != 0:
                left.remove(name)
                status = 1
    print(table())
    return status


if __name__ == "__main__":
    sys.exit(main())
