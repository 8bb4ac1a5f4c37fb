#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tests of what depends on the processor, once on each processor that this one can stand for: with fewer instruction sets, with dot
# matmuls of bfloat16 that are slow, fast or not there, and with either library of float32 matmuls. Ours are held by
# WELKIN_INSTRUCTION_SET, WELKIN_BF16_DOT and WELKIN_GEMM (src/ops/base/processor_override.h), oneDNN's by ONEDNN_MAX_CPU_ISA and
# aten's by ATEN_CPU_CAPABILITY. Two at a time; ./test.sh ran them on the processor as it is. Here a kernel that leaves its tensors ends its
# program (tests/guarded_memory.c).
#   tools/processors.sh [BUILD_FOLDER]
set -euo pipefail
build=$(cd "${1:-build/release}" && pwd)
export GOMP_SPINCOUNT=0 OMP_NUM_THREADS=1 WELKIN_SOURCE_DIR=$PWD WELKIN_BINARY=$build/welkin
programs=(unit_ops unit_model parity_tests)
filter="-*_base_*:*/unet_full"  # the largest reference cases: minutes each without vectors
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cc -shared -fPIC -O1 -o "$out/guarded_memory.so" tests/guarded_memory.c -ldl

has() { grep -qw "$1" /proc/cpuinfo; }
rows=("portable|WELKIN_INSTRUCTION_SET=portable ONEDNN_MAX_CPU_ISA=SSE41 ATEN_CPU_CAPABILITY=default")
has avx2 && rows+=("avx2, onednn|WELKIN_INSTRUCTION_SET=avx2 WELKIN_GEMM=onednn ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2")
if has avx512bw && has avx512dq && has avx512vl; then
  rows+=("avx512 without bfloat16|WELKIN_INSTRUCTION_SET=avx512 WELKIN_BF16_DOT=none WELKIN_GEMM=mkl ONEDNN_MAX_CPU_ISA=AVX512_CORE")
  if has avx512_bf16; then
    rows+=("avx512, slow bfloat16|WELKIN_INSTRUCTION_SET=avx512 WELKIN_BF16_DOT=slow WELKIN_GEMM=mkl ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16")
    rows+=("avx512, fast bfloat16, onednn|WELKIN_INSTRUCTION_SET=avx512 WELKIN_BF16_DOT=fast WELKIN_GEMM=onednn ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16")
  fi
fi

# run NUMBER SETTINGS: all programs; what they print is shown where one fails.
run() {
  local program
  for program in "${programs[@]}"; do
    # shellcheck disable=SC2086  # a list of settings
    env LD_PRELOAD="$out/guarded_memory.so" $2 "$build/tests/$program" --gtest_brief=1 --gtest_filter="$filter" >"$out/$1.$program" 2>&1 || return 1
  done
}

status=0
numbers=()
for number in "${!rows[@]}"; do
  [ "$(jobs -rp | wc -l)" -lt 2 ] || wait -n || true
  { run "$number" "${rows[$number]#*|}" && touch "$out/$number.passed"; } &
  numbers+=("$number")
done
wait || true
for number in "${numbers[@]}"; do
  ran=$(cat "$out/$number".* | sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' | awk '{n += $1} END {print n + 0}')
  if [ -e "$out/$number.passed" ]; then
    printf 'passed  %-32s %s tests of %s\n' "${rows[$number]%%|*}" "$ran" "$(cd "$out" && echo "$number".* | sed "s/$number\.//g; s/ passed//; s/^passed //")"
  else
    tail -n 40 "$out/$number".* | grep -v "Skipped\|this CPU has no" || true
    printf 'FAILED  %-32s %s\n' "${rows[$number]%%|*}" "${rows[$number]#*|}"
    status=1
  fi
done
exit $status
