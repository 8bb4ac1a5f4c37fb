#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A step through a pipeline (--pipeline_parallel) beside PyTorch's torch.distributed.pipelining, on ranks of this machine
# (docs/results/scaling.md). About a quarter of an hour with two quiet cores.
# usage: bench/pipeline.sh [--quick] [--rounds N] [--ranks 2,4] [--micro_batches M,...]
# Markdown on standard output, all figures in build/bench/pipeline.json. WELKIN_PEER_PYTHON: a python3 with torch 2.11 to use.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/tools/setup.sh"
. "$root/bench/python.sh"
require_torch >&2
build release -- programs >&2
require_peer_python
mkdir -p "$root/build/bench"
exec python3 "$root/bench/pipeline/compare.py" --welkin "$release/welkin" --peer_python "$peer_python" --json "$root/build/bench/pipeline.json" "$@"
