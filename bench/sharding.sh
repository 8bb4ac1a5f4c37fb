#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sharded data parallelism (--shard) beside the lecture's formulas and PyTorch's fully_shard and ZeroRedundancyOptimizer, on ranks of this
# machine (docs/results/memory.md). About half an hour with two quiet cores.
# usage: bench/sharding.sh [--quick] [--rounds N] [--disk FOLDER] [--only bytes|planned|traffic|steps|checkpoint|peak]...
# Markdown on standard output, all figures in build/bench/sharding.json. WELKIN_PEER_PYTHON: a python3 with torch 2.11 and numpy to use.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/tools/setup.sh"
. "$root/bench/python.sh"
require_torch >&2
build release -- programs >&2
require_peer_python
mkdir -p "$root/build/bench"
exec python3 "$root/bench/sharding/compare.py" --welkin "$release/welkin" --peer_python "$peer_python" --json "$root/build/bench/sharding.json" "$@"
