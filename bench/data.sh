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
. "$root/tools/setup.sh"
. "$root/bench/python.sh"

cmake --build "$build" --target bench_data programs >&2
require_bench_python
export OMP_NUM_THREADS=1
mkdir -p "$root/build/bench"
python3 "$root/bench/data_compare.py" "$folder" "$build/bench/bench_data" "$build/welkin" "$bench_venv/bin/python3" "${quick[@]}" |
  tee "$root/build/bench/data.json"
