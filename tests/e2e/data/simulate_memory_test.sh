#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A box larger than its memory limit: the peak of the process stays near the limit, and the files are those of an unlimited run.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Peak resident memory of `welkin data simulate nbody` in MiB, from its last line.
peak() {
  "$WELKIN_BINARY" data simulate nbody --quiet --steps 2 --edge_valid 16 "$@" | tee "$work/log" >&2
  sed -n 's/.*at most \([0-9.]*\) MiB of memory.*/\1/p' "$work/log"
}

base=$(peak --edge 16 --out "$work/base")
limited=$(peak --edge 128 --out "$work/limited" --max_memory_gib 0.05)
free=$(peak --edge 128 --out "$work/free" --max_memory_gib 4)
echo "peak MiB: base=$base limited=$limited free=$free"
cmp "$work/limited/downsamp_2048crop_train_data.npy" "$work/free/downsamp_2048crop_train_data.npy"
cmp "$work/limited/downsamp_2048crop_train_label.npy" "$work/free/downsamp_2048crop_train_label.npy"
# 51 MiB of buffers and what the allocator keeps; 128^3 particles and their mesh alone are 58 MiB, with buffers 190.
awk -v base="$base" -v limited="$limited" -v free="$free" 'BEGIN { exit !(limited - base < 85 && free - base > 110) }'
