#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All figures of a GPU in under eight minutes, in build/bench/gpu.json: `welkin verify` there, runs with --cuda_graph against runs without,
# training steps under compute-sanitizer, and both models SYNTHETIC, FULL and recorded beside PyTorch (eager, torch.compile) with the same switches.
# usage: bench/gpu.sh [--dry_run] [CASES]      --dry_run prints the commands and needs no GPU; CASES: folder of reference cases
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/tools/setup.sh"
. "$root/bench/python.sh"
dry=()
if [ "${1:-}" = --dry_run ]; then dry=(--dry_run); shift; fi
cases=${1:-${WELKIN_GOLDENS:-}}
peer_python="$root/build/bench-venv/bin/python3"
if [ "${#dry[@]}" -eq 0 ]; then
  command -v nvidia-smi >/dev/null || fail "no GPU at hand (nvidia-smi is missing); --dry_run prints the commands"
  "$root/quickstart.sh" --cuda --skip-train >&2
  require_bench_python
  require_peer_python
fi
exec python3 "$root/bench/speed/gpu.py" --welkin "$release/welkin" --peer_python "$peer_python" ${cases:+--cases "$cases"} \
  --json "$root/build/bench/gpu.json" "${dry[@]}"
