#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The wheel of this tree: builds the programs (--from: takes those of a build folder as they are), installs them, packs the folder as
# packaging/wheel says and names its manylinux level.
#   tools/wheel.sh [--from BUILD_FOLDER] [OUT_FOLDER]     OUT_FOLDER: dist
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/tools/setup.sh"
from=
out=dist
while [ "$#" -gt 0 ]; do
  case $1 in
    --from) from=${2:?--from needs a folder}; shift ;;
    -h | --help) sed -n '3,5s/^# //p' "$0"; exit ;;
    -*) fail "unknown flag: $1" ;;
    *) out=$1 ;;
  esac
  shift
done

mkdir -p "$root/build" "$out"
out=$(cd "$out" && pwd)
if [ -z "$from" ]; then
  require_packages "${build_packages[@]}"
  require_torch
  say "building build/release/welkin"
  build release -- programs
  from=$release
fi
packer="$root/build/wheel-venv"
wanted="$root/packaging/wheel/requirements.txt"
if ! cmp -s "$wanted" "$packer/requirements.txt"; then
  [ -x "$packer/bin/python3" ] || python3 -m venv "$packer"
  "$packer/bin/python3" -m pip install -q --disable-pip-version-check --no-input -r "$wanted"
  cp "$wanted" "$packer/requirements.txt"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$from" --prefix "$work/prefix" --strip >"$work/install.log" || { cat "$work/install.log"; fail "cmake could not install $from"; }
level=$("$packer/bin/python3" "$root/packaging/wheel/level.py" "$work/prefix")
"$packer/bin/python3" -m pip wheel -q --disable-pip-version-check --no-input --no-index --no-deps --no-build-isolation --wheel-dir "$work/dist" \
  --config-settings="build-dir=$work/build" --config-settings="cmake.define.WELKIN_PREFIX=$work/prefix" "$root/packaging/wheel"
made=$(cd "$work/dist" && "$packer/bin/python3" -m wheel tags --remove --platform-tag "$level" ./*.whl)
rm -f "$out"/welkin-*.whl
mv "$work/dist/${made##*/}" "$out/"
say "$out/${made##*/}: python3 -m pip install $out/${made##*/}"
