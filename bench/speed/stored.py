# SPDX-License-Identifier: Apache-2.0
"""The ratios that a speed check must keep, by processor: another one has other kernels, hence other ratios.

bench/stored_ratios.json: {processor: {"measured": {date, commit, threads}, "ratios": {row: {peer: ratio}}}}
"""
import json
import pathlib

FILE = pathlib.Path(__file__).resolve().parents[1] / "stored_ratios.json"
LEAST_FALL, MOST_FALL = 0.10, 0.25  # what a ratio may fall by: more than the first where the rounds of its run differ by more


def read():
    return json.loads(FILE.read_text()) if FILE.exists() else {}


def measured_ratios(rows):
    return {name: {peer: ratio["median"] for peer, ratio in row["ratios"].items() if ratio} for name, row in rows.items()}


def write(machine, rows):
    """Replaces what is stored of this processor; the others stay."""
    stored = read()
    ratios = {row: {peer: round(value, 3) for peer, value in peers.items()} for row, peers in measured_ratios(rows).items()}
    stored[machine["cpu"]] = {"measured": {key: machine[key] for key in ("date", "commit", "threads")}, "ratios": ratios}
    FILE.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n")


def of_processor(stored, machine):
    """The stored ratios of this processor with as many threads; nothing where they were never measured."""
    entry = stored.get(machine["cpu"])
    return entry["ratios"] if entry and entry["measured"]["threads"] == machine["threads"] else {}


def may_fall(ratio):
    """10 %, or by how much the rounds of this run differ, at most 25 %."""
    return min(MOST_FALL, max(LEAST_FALL, (ratio["max"] - ratio["min"]) / ratio["median"]))


def fallen(wanted, rows):
    """(row, peer, measured or None, stored) of each ratio that has fallen further than it may, or is no longer measured."""
    found = []
    for row, peers in wanted.items():
        for peer, ratio in peers.items():
            now = rows[row]["ratios"].get(peer) if row in rows else None
            if row in rows and (not now or now["median"] < (1 - may_fall(now)) * ratio):
                found.append((row, peer, now and now["median"], ratio))
    return found


def describe(problem):
    row, peer, now, ratio = problem
    return f"{row}: {'not measured' if now is None else f'{now:.2f}x'} over {peer}, stored {ratio:.2f}x"
