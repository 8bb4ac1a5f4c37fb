# SPDX-License-Identifier: Apache-2.0
"""The ratios that a speed check must keep, by processor: another one has other kernels, hence other ratios.

bench/stored_ratios.json: {processor: {"measured": {date, commit, threads}, "ratios": {row: {peer: ratio}}}}
"""
import json
import pathlib

FILE = pathlib.Path(__file__).resolve().parents[1] / "stored_ratios.json"
MAY_FALL = 0.25


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


def fallen(wanted, rows):
    """(row, peer, measured or None, stored) of each ratio that is 25 % below what is stored, or is no longer measured."""
    measured = measured_ratios(rows)
    found = []
    for row, peers in wanted.items():
        for peer, ratio in peers.items():
            now = measured.get(row, {}).get(peer)
            if row in rows and (now is None or now < (1 - MAY_FALL) * ratio):
                found.append((row, peer, now, ratio))
    return found


def describe(problem):
    row, peer, now, ratio = problem
    return f"{row}: {'not measured' if now is None else f'{now:.2f}x'} over {peer}, stored {ratio:.2f}x"
