#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every fuzzer of tests/fuzz/ for an equal share of the time: tools/fuzz.sh [SECONDS]. Each begins with its seeds and with what earlier
# runs found (tests/fuzz/found/, which tools/fuzz.sh [SECONDS] --keep writes anew: the fewest inputs that reach what all have reached). Inputs
# that crash one are left in build/fuzz/.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/tools/setup.sh"
seconds=${1:-120}
keep=${2:-}
require_packages "${build_packages[@]}" "${fuzz_packages[@]}"
require_torch
build fuzz -- fuzzers
fuzzers=("$root"/build/fuzz/fuzzers/*_fuzz)
status=0
for fuzzer in "${fuzzers[@]}"; do
  name=${fuzzer##*/}
  say "fuzzing $name"
  mkdir -p "$root/build/fuzz/corpus/$name"  # kept between runs
  seeds=("$root/tests/fuzz/seeds/$name")
  [ -d "${seeds[0]}" ] || seeds=()
  found=$root/tests/fuzz/found/$name.tar.gz
  [ ! -f "$found" ] || tar -C "$root/build/fuzz/corpus/$name" -xzf "$found"
  "$fuzzer" -max_total_time=$((seconds / ${#fuzzers[@]})) -timeout=10 -rss_limit_mb=2048 -max_len=65536 -entropic=0 -print_final_stats=1 \
    -artifact_prefix="$root/build/fuzz/$name-" "$root/build/fuzz/corpus/$name" "${seeds[@]}" >"$root/build/fuzz/$name.log" 2>&1 || status=1
  grep -E 'stat::number_of_executed_units|SUMMARY|ERROR|Test unit written' "$root/build/fuzz/$name.log" || true
  [ "$keep" = --keep ] || continue
  kept=$root/build/fuzz/kept/$name
  rm -rf "$kept"
  mkdir -p "$kept" "${found%/*}"
  "$fuzzer" -set_cover_merge=1 -use_counters=0 -max_len=1024 "$kept" "$root/build/fuzz/corpus/$name" "${seeds[@]}" >>"$root/build/fuzz/$name.log" 2>&1
  (cd "$kept" && tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=644 -cf - -- *) | gzip -9n >"$found"
done
exit $status
