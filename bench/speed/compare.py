# SPDX-License-Identifier: Apache-2.0
"""Both sides of every row in turns on this machine, and whether the goals are met. bench/compare calls it with the programs it needs.

usage: compare.py --welkin PROGRAM --peer_python PROGRAM [--sizes full|short|quick] [--only ROW]... [--json FILE] [--store | --gate]
"""
import argparse
import dataclasses
import json
import os
import pathlib
import platform
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import moments  # noqa: E402
import stored  # noqa: E402
from rows import SHAPES, SIZES, USED, best_of, comparable  # noqa: E402
from sides import RATE, NotMeasured, Peer, Welkin, race, ratios  # noqa: E402

MOMENTS = ("optimizer", "start")


def say(text=""):
    print(text, flush=True)


def machine(threads):
    fields = {}
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    flags = fields.get("flags", "").split()
    try:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:  # no git here
        commit = ""
    memory = int(pathlib.Path("/proc/meminfo").read_text().split()[1]) * 1024
    name = " ".join([fields.get("model name", platform.machine()), "family", fields.get("cpu family", "?"), "model", fields.get("model", "?")])
    return {"cpu": name, "cores": len(os.sched_getaffinity(0)), "threads": threads, "memory_bytes": memory, "kernel": platform.release(),
            "vectors": [flag for flag in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if flag in flags], "load_before": os.getloadavg()[0],
            "commit": commit, "date": time.strftime("%Y-%m-%d")}


def check_parameters(row, sides):
    counts = {side.name: side.windows[-1].get("parameters") for side in sides if side.windows}
    if len(set(counts.values()) - {None}) > 1:
        raise SystemExit(f"{row.name}: the sides train different models: parameters {counts}")


def measure(row, sizes, arguments):
    """The figures of a row: each side's rates and facts, and ours over each peer's."""
    preset = row.model + sizes.suffix
    flags = [*SHAPES[preset], "--batch", str(row.batch), "--precision", row.precision]
    cache = {"TORCHINDUCTOR_CACHE_DIR": str(arguments.json.parent / "inductor")} if arguments.json else {}
    ours = Welkin(arguments.welkin, preset, row.batch, row.precision, arguments.threads, row.flags)
    peers = [Peer(name, arguments.peer_python, flags + extra, arguments.threads, sizes.warmup_steps[row.model], cache) for name, extra in row.peers.items()]
    race([ours, *peers], arguments.rounds or sizes.rounds, sizes.seconds if arguments.seconds is None else arguments.seconds)
    check_parameters(row, [ours, *peers])
    return {"batch": row.batch, "precision": row.precision, "ours": ours.report(), "peers": {peer.name: peer.report() for peer in peers},
            "ratios": {peer.name: ratios(ours, peer) for peer in peers}}


def rate_text(figures):
    if RATE not in figures:
        return figures["not_measured"]
    peak = figures.get("resident_peak_bytes")
    return f"{figures[RATE]:8.4g} samples/s ({figures[f'{RATE}_min']:.4g} to {figures[f'{RATE}_max']:.4g})" + (f", peak {peak / 2**30:.2f} GiB" if peak else "")


def say_row(name, figures):
    say(f"\n{name}")
    say(f"  {'welkin':16s} {rate_text(figures['ours'])}")
    for peer, found in figures["peers"].items():
        ratio = figures["ratios"][peer]
        kind = "as users run it" if peer == USED else "as an expert tunes it" if peer == best_of(figures, set(figures["peers"]) - {USED}) else ""
        text = f"  ours over it {ratio['median']:.2f}x ({ratio['min']:.2f} to {ratio['max']:.2f}) {kind}" if ratio else ""
        say(f"  {peer:16s} {rate_text(found)}{text}")


def say_checks(checks):
    say(f"\n{'row':20s} {'goal':10s} {'measured':>10s}  {'':10s} what")
    for name, check in checks:
        measured = "-" if check.measured is None else f"{check.measured:.3g}"
        verdict = "not measured" if check.met is None else "met" if check.met else "NOT MET"
        say(f"{name:20s} {check.goal:10s} {measured:>10s}  {verdict:12s} {check.what}{f' ({check.note})' if check.note else ''}")


def run_rows(rows, sizes, arguments, every):
    for row in rows:
        every[row.name] = measure(row, sizes, arguments)
        say_row(row.name, every[row.name])


def run_moments(arguments, wanted):
    """(name, figures, checks) of the rows that are no rates."""
    quick = arguments.sizes == "quick"
    for name in wanted:
        try:
            if name == "optimizer":
                found = moments.optimizer(arguments.bench_optimizer, arguments.threads, 8 if quick else 64)
            else:
                found = moments.start(arguments.welkin, arguments.peer_python, SHAPES["vit_quick"] + ["--batch", "1"], arguments.threads, 1 if quick else 3)
        except (NotMeasured, subprocess.CalledProcessError) as reason:
            say(f"{name}: not measured: {reason}")
            found = ({"ours": {"not_measured": str(reason)}}, [])
        yield name, *found


def gate(rows, sizes, arguments, facts, every):
    """Fails where a ratio is further below what is stored than it may be (stored.may_fall), in this run and in a second one of the same rows."""
    wanted = stored.of_processor(stored.read(), facts)
    if not wanted:
        say(f"\nNothing is stored for this processor and so many threads ({facts['cpu']}, {facts['threads']}): reported, not judged. bench/compare --store on a "
            "quiet machine stores it.")
        return 0
    first = stored.fallen(wanted, every)
    for problem in first:
        say(f"\nfallen: {stored.describe(problem)}. A second run decides.")
    names = {problem[0] for problem in first}
    again = {}
    run_rows([row for row in rows if row.name in names], sizes, arguments, again)
    second = [problem for problem in stored.fallen(wanted, again) if problem[:2] in {one[:2] for one in first}]
    for problem in second:
        say(f"\nFAILED: {stored.describe(problem)}, in both runs")
    if not second:
        say("\nno ratio has fallen: each is at most 10 % below what is stored, or 25 % where its rounds differ by as much")
    return 1 if second else 0


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--welkin", required=True)
    parser.add_argument("--peer_python", required=True)
    parser.add_argument("--bench_optimizer", default="")
    parser.add_argument("--sizes", choices=SIZES, default="full", help="full: the goals; short: CI's; quick: whether everything runs")
    parser.add_argument("--only", action="append", default=[], metavar="ROW")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--json", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--store", action="store_true", help="keep the ratios of this run as those to be kept; on a quiet machine only")
    parser.add_argument("--check_words", action="store_true", help="only see whether these words are understood")
    parser.add_argument("--gate", action="store_true", help="exit code 1 when a ratio is 10 %% below what is stored (25 %% where its rounds differ by as much), twice")
    arguments = parser.parse_args(words)
    if arguments.threads < 1:
        parser.error(f"at least one thread: --threads {arguments.threads}")
    known = [row.name for row in SIZES[arguments.sizes].rows] + ([] if arguments.sizes == "short" else list(MOMENTS))
    for name in arguments.only:
        if name not in known:
            parser.error(f"no row {name} in --sizes {arguments.sizes}: choose from {', '.join(known)}")
    arguments.only = arguments.only or known
    return arguments


def write_json(path, result, announce=True):
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(result, indent=1) + "\n")
    partial.rename(path)
    if announce:
        say(f"\n{path}")


def main(words):
    arguments = parse(words)
    if arguments.check_words:
        return 0
    sizes, facts, begun = SIZES[arguments.sizes], machine(arguments.threads), time.monotonic()
    rows = [comparable(row, facts["vectors"]) for row in sizes.rows if row.name in arguments.only]
    say(f"{facts['cpu']}, {facts['threads']} threads, load {facts['load_before']:.2f}")
    if arguments.gate and not stored.of_processor(stored.read(), facts):
        arguments.rounds = arguments.rounds or 1  # there is nothing to judge by: whether everything runs
    every = {}
    run_rows(rows, sizes, arguments, every)
    checks = [(row.name, check(every[row.name], every)) for row in rows for check in row.checks]
    others = {}
    for name, figures, found in run_moments(arguments, [name for name in MOMENTS if name in arguments.only]):
        others[name] = figures
        checks += [(name, check) for check in found]
    if checks:
        say_checks(checks)
        if arguments.sizes != "full":
            say("These sizes are not the goals': the table shows that everything runs.")
    if arguments.json:
        goals = [{"row": name, **dataclasses.asdict(check)} for name, check in checks]
        write_json(arguments.json, {"machine": facts, "sizes": arguments.sizes, "minutes": (time.monotonic() - begun) / 60, "goals": goals, "rows": {**every, **others}})
    if arguments.store:
        stored.write(facts, every)
        say(f"stored in {stored.FILE}")
    return gate(rows, sizes, arguments, facts, every) if arguments.gate else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
