#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All figures of a GPU in under eight minutes, in build/bench/gpu.json, written after every part: `welkin verify` there, runs with --cuda_graph against runs without,
# both models SYNTHETIC, FULL and recorded beside PyTorch (eager, torch.compile) with the same switches, and training steps under compute-sanitizer.
# usage: bench/gpu.sh [--dry_run] [--built] [--only PART]... [CASES]
#   --dry_run     prints the commands and needs no GPU
#   --built       builds and installs nothing: takes build/release/welkin as it is, and WELKIN_PEER_PYTHON (python3) with its torch
#   --only PART   verify, graph, unet, vit, vit_wide or sanitizer alone, into the JSON that is there
#   CASES         folder of reference cases
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/tools/setup.sh"
. "$root/bench/python.sh"
words=() built="" dry=""
while [ "$#" -gt 0 ]; do
  case $1 in
    --dry_run) dry=1; words+=(--dry_run) ;;
    --built) built=1 ;;
    --only) words+=(--only "${2:?--only needs a part}"); shift ;;
    -*) fail "unknown word: $1" ;;
    *) break ;;
  esac
  shift
done
cases=${1:-${WELKIN_GOLDENS:-}}
peer_python="$root/build/bench-venv/bin/python3"
if [ -n "$built" ]; then
  peer_python=$(command -v "${WELKIN_PEER_PYTHON:-python3}") || fail "no such program: ${WELKIN_PEER_PYTHON:-python3}"
  [ -n "$dry" ] || [ -n "${WELKIN_TORCH:-}" ] || [ -d "$root/.venv" ] ||
    WELKIN_TORCH=$("$peer_python" -c 'import importlib.util, os; print(os.path.dirname(importlib.util.find_spec("torch").origin))')
  [ -z "${WELKIN_TORCH:-}" ] || export WELKIN_TORCH
fi
if [ -z "$dry" ]; then
  command -v nvidia-smi >/dev/null || fail "no GPU at hand (nvidia-smi is missing); --dry_run prints the commands"
  if [ -z "$built" ]; then
    "$root/quickstart.sh" --cuda --skip-train >&2
    require_bench_python
  fi
fi
exec python3 "$root/bench/speed/gpu.py" --welkin "$release/welkin" --peer_python "$peer_python" ${cases:+--cases "$cases"} \
  --json "$root/build/bench/gpu.json" "${words[@]}"
