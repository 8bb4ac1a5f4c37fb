#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests under sanitizers for a bounded time. dev: all unit tests and a first hour with the program under AddressSanitizer and UBSan, the
# layers that read foreign bytes first. tsan: the layers with threads of their own under ThreadSanitizer. What the time did not suffice for
# is named, and the exit code is 75.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/tools/setup.sh"

preset=${1:-} minutes=${2:-}
layers=(core observe config data launch plan parallel ops model train bench)
[ "$preset" = dev ] || { [ "$preset" = tsan ] && layers=(core observe data); } || fail "usage: tools/sanitized.sh dev|tsan MINUTES"
[[ "$minutes" =~ ^[0-9]+$ ]] || fail "usage: tools/sanitized.sh dev|tsan MINUTES"
# With more than one OpenMP thread libgomp, which is not instrumented, gives false races.
[ "$preset" = dev ] || export OMP_NUM_THREADS=1
# GCC's library takes what stands before a thread's block of variables for its size, and its search for leaks ends by a signal where that is none.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}intercept_tls_get_addr=0"
export GTEST_BRIEF=1  # a failure is not lost among what passes
folder="$root/build/$preset"
left_out=()
seconds_left() { echo "$((minutes * 60 - (SECONDS - started)))"; }

# Runs a command within the time that is left, less `kept` seconds. 1 when it did not suffice; a failure ends the script.
kept=$((minutes * 20))  # a third is for running what is built
in_time() {
  local code=0 left=$(($(seconds_left) - kept))
  [ "$left" -gt 30 ] || return 1
  timeout -k 10 "$left" "$@" || code=$?
  [ "$code" -ne 124 ] || return 1
  [ "$code" -eq 0 ] || fail "failed under the sanitizers: $*"
}
built() { in_time cmake --build "$folder" -j "$(build_jobs)" --target "$1"; }

cd "$root"
mkdir -p build
build "$preset" -DWELKIN_BUILD_TESTS=ON -DWELKIN_TEST_PYTHON="$test_venv/bin/python3" -- help >build/help.txt  # configures
ready=()
for layer in "${layers[@]}"; do
  built "unit_$layer" && ready+=("unit_$layer") || left_out+=("unit_$layer")
done
kept=0
[ "${#ready[@]}" -eq 0 ] ||
  in_time ctest --test-dir "$folder" -R "^($(IFS='|' && echo "${ready[*]}"))\$" -j "$(nproc)" --output-on-failure --no-tests=error ||
  left_out+=("running ${ready[*]}")
if [ "$preset" = dev ]; then
  built programs && in_time env WELKIN_BINARY="$folder/welkin" "$test_venv/bin/python3" tests/e2e/runs/smoke_test.py || left_out+=(smoke_test)
fi
[ "${#left_out[@]}" -gt 0 ] || exit 0
say "not reached in $minutes minutes: ${left_out[*]}"
exit 75
