#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The figures of docs/results/data.md: our readers and their peers in turns on this machine. About six minutes with two cores; about
# 10 GB of files in the folder, which stay for the next run.
# usage: bench/data.sh [--quick] [FOLDER]      JSON on standard output and in build/bench/data.json
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
quick=()
if [ "${1:-}" = --quick ]; then quick=(--quick); shift; fi
folder=${1:-${TMPDIR:-/tmp}/welkin-bench-data${quick[*]:+-quick}}
build="$root/build/release"
venv="$root/build/bench-venv"

cmake --build "$build" --target bench_data programs >&2
if ! cmp -s "$root/bench/requirements.txt" "$venv/requirements.txt"; then
  python3 -m venv "$venv"
  "$venv/bin/python3" -m pip install -q --disable-pip-version-check --no-input -r "$root/bench/requirements.txt" >&2
  # DALI's readers run without a GPU; where its wheel cannot be had, its row says so.
  "$venv/bin/python3" -m pip install -q --disable-pip-version-check --no-input nvidia-dali-cuda120 >&2 || echo "bench: no DALI wheel" >&2
  cp "$root/bench/requirements.txt" "$venv/requirements.txt"
fi
export OMP_NUM_THREADS=1
mkdir -p "$root/build/bench"
python3 "$root/bench/data_compare.py" "$folder" "$build/bench/bench_data" "$build/welkin" "$venv/bin/python3" "${quick[@]}" |
  tee "$root/build/bench/data.json"
