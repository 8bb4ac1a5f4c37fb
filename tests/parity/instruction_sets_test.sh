#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fused forms against reference forms, and gradients, with aten's kernels held to each instruction set below the machine's own, which
# the unit tests run with. ATEN_CPU_CAPABILITY is read once, while torch is loaded: one process each.
set -u
build=$(dirname "$WELKIN_BINARY")
ran=0
for set in default avx2; do
  [ "$set" = default ] || grep -qw avx2 /proc/cpuinfo || continue
  for program in unit_ops unit_model; do
    [ -x "$build/tests/$program" ] || continue
    out=$(ATEN_CPU_CAPABILITY=$set "$build/tests/$program" --gtest_filter='*Fused*:*Gradient*' 2>&1) || { echo "$out"; echo "failed: $program with $set"; exit 1; }
    echo "$program with $set: $(grep -o '[0-9]* tests\? ran' <<<"$out" | tail -1)"
    ran=$((ran + 1))
  done
done
[ "$ran" -gt 0 ] || { echo "skipped: the unit programs are not built"; exit 77; }
