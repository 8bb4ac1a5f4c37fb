#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Unit tests and a first hour with the program under AddressSanitizer and UBSan, for a bounded time: the layers that read foreign bytes come
# first. Layers for which the time did not suffice are named: they are not silently passed.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/tools/setup.sh"

usage="usage: tools/asan.sh MINUTES"
[[ "${1:-}" =~ ^[0-9]+$ ]] || fail "$usage"
limit=$(($1 * 60))
first=(core observe config data)  # these must be reached
rest=(launch plan parallel ops model train bench verify)
folder="$root/build/dev"
seconds_left() { echo "$((limit - (SECONDS - started)))"; }

cd "$root"
build dev -DWELKIN_BUILD_TESTS=ON -DWELKIN_TEST_PYTHON="$test_venv/bin/python3" -- "${first[@]/#/unit_}"
ctest --test-dir "$folder" -R "^unit_($(IFS='|'; echo "${first[*]}"))\$" --output-on-failure --no-tests=error -j "$(nproc)"

# Runs a command within the time that is left. 1 when it did not suffice; a failure ends the script.
in_time() {
  local code=0
  [ "$(seconds_left)" -gt 60 ] || return 1
  timeout -k 10 "$(seconds_left)" "$@" || code=$?
  [ "$code" -ne 124 ] || return 1
  [ "$code" -eq 0 ] || fail "failed under the sanitizers: $*"
}

left_out=()
for layer in "${rest[@]}"; do
  in_time cmake --build "$folder" -j "$(build_jobs)" --target "unit_$layer" &&
    in_time ctest --test-dir "$folder" -R "^unit_$layer\$" --output-on-failure --no-tests=error || left_out+=("unit_$layer")
done
in_time cmake --build "$folder" -j "$(build_jobs)" --target programs &&
  in_time env WELKIN_BINARY="$folder/welkin" "$test_venv/bin/python3" tests/e2e/smoke_test.py || left_out+=(smoke_test)
[ "${#left_out[@]}" -eq 0 ] || say "not reached in $1 minutes: ${left_out[*]}"
