#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh clone to trained models: system packages, torch, the build, then the main job on fields that Welkin simulates itself.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$root/tools/setup.sh"

usage() {
  cat <<'TEXT'
usage: ./quickstart.sh [--skip-train] [--cuda] [--examples] [--help]

Installs what is missing (system packages by apt, torch 2.11.0 into .venv), builds build/release/welkin, simulates a small box of the
universe and a small globe, trains the U-Net and the ViT on them, scores both and writes pictures to quickstart-out/pictures.
A second run reuses all that is there.

  --skip-train   stop after the build
  --cuda         build the CUDA library too (nvcc 13 is installed from PyPI where there is no toolkit)
  --examples     build the plug-ins of examples/ too
  --help         this text
TEXT
}

skip_train=no
cuda=no
targets=(programs)
options=()
for argument in "$@"; do
  case $argument in
    --skip-train) skip_train=yes ;;
    --cuda) cuda=yes ;;
    --examples) options+=(-DWELKIN_BUILD_EXAMPLES=ON); targets+=(examples) ;;
    --help | -h) usage; exit 0 ;;
    *) usage >&2; fail "unknown flag: $argument" ;;
  esac
done

mkdir -p "$root/build"
require_packages "${build_packages[@]}"
require_torch
require_outlines
say "building build/release/welkin"
if [ "$cuda" = yes ]; then
  require_nvcc
  options+=(-DWELKIN_CUDA=ON -DWELKIN_NVCC="$WELKIN_NVCC")
fi
build release "${options[@]}" -- "${targets[@]}"
"$release/welkin" --version
if [ "$skip_train" = yes ]; then
  say "built: $release/welkin"
  exit 0
fi
. "$root/tools/first_job.sh"
