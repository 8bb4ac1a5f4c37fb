#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The test ladder: ./test.sh runs all labels, ./test.sh unit e2e runs those. A label in which no test ran fails.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$root/tools/setup.sh"

usage() {
  cat <<'TEXT'
usage: ./test.sh [--preset release|dev|tsan] [unit|distributed|parity|e2e]...

Sets up like ./quickstart.sh (and the tests' Python packages in .venv-test), builds with tests and runs the labels named, or all.
Skipped tests are counted and listed with their reasons.
TEXT
}

preset=release
labels=()
while [ "$#" -gt 0 ]; do
  case $1 in
    unit | distributed | parity | e2e) labels+=("$1") ;;
    --preset) preset=${2:?--preset needs a name}; shift ;;
    --help | -h) usage; exit 0 ;;
    *) usage >&2; fail "unknown argument: $1" ;;
  esac
  shift
done
[ "${#labels[@]}" -gt 0 ] || labels=(unit distributed parity e2e)

mkdir -p "$root/build"
require_packages "${build_packages[@]}" "${test_packages[@]}"
require_torch
require_outlines
require_test_python
require_trackers
folder="$root/build/$preset"
say "building the tests in build/$preset"
build "$preset" -DWELKIN_BUILD_TESTS=ON -DWELKIN_BUILD_EXAMPLES=ON -DWELKIN_TEST_PYTHON="$test_venv/bin/python3" -- \
  "${labels[@]/#/tests_}"

[ "$preset" = tsan ] && export OMP_NUM_THREADS=1  # libgomp is not instrumented: with more threads it gives false races
export GTEST_BRIEF=1  # a failure is not lost among what passes
rm -rf "$folder/test-reports"
mkdir -p "$folder/test-reports"
failed=()
# All labels at once: no label's last test runs alone. Most tests take half a core; PROCESSORS of the others in tests/CMakeLists.txt.
say "running the tests of ${labels[*]}"
(cd "$folder" && ctest -L "^($(IFS='|'; echo "${labels[*]}"))\$" --output-on-failure --no-tests=ignore --output-junit test-reports/ctest.xml -j "$(($(nproc) * 2))") ||
  failed+=("${labels[*]}")
say "summary"
"$test_venv/bin/python3" "$root/tools/test_summary.py" "$folder/test-reports" "${labels[@]}" || failed+=(summary)
[ "${#failed[@]}" -eq 0 ] || fail "failed: ${failed[*]}"
