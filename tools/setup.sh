# SPDX-License-Identifier: Apache-2.0
# What quickstart.sh, test.sh and .ci/run share: system packages, Python environments, the build. Sourced by bash with `root` set to the
# repository. Every step looks first and does nothing when its work is done.

build_packages=(ca-certificates git g++ cmake ninja-build ccache python3 python3-venv libhdf5-dev libaec-dev zlib1g-dev libyaml-dev
  libblosc-dev libsnappy-dev liblz4-dev libzstd-dev libpng-dev libxxhash-dev libsodium-dev libcli11-dev nlohmann-json3-dev libeccodes-dev libnetcdf-dev
  libjs-dygraphs)
test_packages=(libgtest-dev libgmock-dev gfortran openmpi-bin slurm-wlm munge zsh groff-base chromium)
fuzz_packages=(clang-14 libclang-rt-14-dev)
torch_version=2.11.0
release="$root/build/release"
venv="$root/.venv"
test_venv="$root/.venv-test"
started=$SECONDS

say() { printf '\n[%3d s] %s\n' $((SECONDS - started)) "$*"; }
fail() { printf '\n%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# The packages of the list that are not installed.
missing_packages() {
  local package
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || printf '%s ' "$package"
  done
}

# Installs Debian or Ubuntu packages as root or through sudo; otherwise says what the administrator has to run, and stops.
require_packages() {
  command -v dpkg-query >/dev/null || fail "this is no Debian or Ubuntu: install what these packages hold, then build with cmake --preset release: $*"
  local missing as_root=()
  missing=$(missing_packages "$@")
  [ -n "$missing" ] || return 0
  local line="apt-get install -y --no-install-recommends ${missing% }"
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null && { sudo -n true 2>/dev/null || { [ -t 0 ] && sudo true; }; } ||
      fail "system packages are missing and this user is no administrator. Have one run:"$'\n'"  apt-get update && $line"
    as_root=(sudo)
  fi
  say "installing system packages: ${missing% }"
  export DEBIAN_FRONTEND=noninteractive
  "${as_root[@]}" apt-get -o Acquire::Retries=3 -q update
  # shellcheck disable=SC2086  # a list of words
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive ${line/install/-o Acquire::Retries=3 -q install}
}

# The torch wheel. A machine without GPU needs half a gigabyte of it: libtorch_cpu wants CUPTI and the CUDA runtime to load, no more.
require_torch() {
  local site packages
  site=$(echo "$venv"/lib/python3*/site-packages)
  if [ -e /dev/nvidiactl ]; then
    [ -e "$site/nvidia/cu13/lib/libcublas.so.13" ] && grep -qs "'$torch_version" "$site/torch/version.py" && return
    packages=("torch==$torch_version")
  else
    [ -e "$site/nvidia/cu13/lib/libcupti.so.13" ] && [ -e "$site/nvidia/cu13/lib/libcudart.so.13" ] &&
      grep -qs "'$torch_version" "$site/torch/version.py" && return
    packages=(--no-deps "torch==$torch_version" nvidia-cuda-cupti==13.0.85 nvidia-cuda-runtime==13.0.96)
  fi
  say "installing torch $torch_version into ${venv#"$root"/} (0.5 GB without GPU, 2 GB with)"
  [ -x "$venv/bin/python3" ] || python3 -m venv "$venv"
  "$venv/bin/python3" -m pip install -q --disable-pip-version-check --no-input "${packages[@]}"
}

# The outlines of land on maps: the shapefile of Natural Earth (public domain) that this version of geopandas was the last one to hold. A build without
# them draws the same maps without outlines.
require_outlines() {
  local folder="$root/build/natural_earth" shapes=geopandas/datasets/naturalearth_lowres/naturalearth_lowres.shp
  [ -e "$folder/naturalearth_lowres.shp" ] && return
  say "installing outlines of land into build/natural_earth (1 MB)"
  [ -x "$venv/bin/python3" ] || python3 -m venv "$venv"
  rm -rf "$folder.new" "$folder"
  "$venv/bin/python3" -m pip install -q --disable-pip-version-check --no-input --no-deps --target "$folder.new" geopandas==0.14.4 || return 0
  mkdir "$folder"
  cp "$folder.new/$shapes" "$folder/"
  rm -rf "$folder.new"
}

# What the tests' scripts import: numpy and h5py as referees of our files, tensorboard as the reader of our event files, torch (the wheel of
# require_torch) and safetensors as the other side of what is exchanged with Python.
require_test_python() {
  local wanted="$root/tests/requirements.txt"
  cmp -s "$wanted" "$test_venv/requirements.txt" && return
  say "installing the tests' Python packages into ${test_venv#"$root"/}"
  [ -x "$test_venv/bin/python3" ] || python3 -m venv "$test_venv"
  "$test_venv/bin/python3" -m pip install -q --disable-pip-version-check --no-input -r "$wanted"
  "$test_venv/bin/python3" "$root/tools/torch_for_tests.py" "$venv"/lib/python3*/site-packages "$test_venv"/lib/python3*/site-packages
  cp "$wanted" "$test_venv/requirements.txt"
}

# wandb and MLflow, which read what runs leave for them, in an environment of their own.
require_trackers() {
  local wanted="$root/tests/requirements-trackers.txt" trackers="$test_venv/trackers"
  cmp -s "$wanted" "$trackers/requirements.txt" && return
  say "installing experiment trackers for the tests into ${trackers#"$root"/}"
  [ -x "$trackers/bin/python3" ] || python3 -m venv "$trackers"
  "$trackers/bin/python3" -m pip install -q --disable-pip-version-check --no-input -r "$wanted"
  cp "$wanted" "$trackers/requirements.txt"
}

# A compiler for CUDA 13: that of an installed toolkit, else the PyPI packages of nvcc, which are 0.1 GB.
require_nvcc() {
  local nvcc
  for nvcc in "$root/build/nvcc/nvidia/cu13/bin/nvcc" "$(command -v nvcc || true)" /usr/local/cuda/bin/nvcc; do
    if [ -x "$nvcc" ] && "$nvcc" --version | grep -q 'release 13\.'; then
      WELKIN_NVCC=$nvcc
      return
    fi
  done
  say "installing nvcc 13.0 into build/nvcc"
  python3 -m venv "$root/build/nvcc-installer"
  "$root/build/nvcc-installer/bin/python3" -m pip install -q --disable-pip-version-check --no-input --no-deps --target "$root/build/nvcc" \
    nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-cuda-cccl==13.0.85
  rm -rf "$root/build/nvcc-installer"
  WELKIN_NVCC="$root/build/nvcc/nvidia/cu13/bin/nvcc"
}

# Compiling a unit that includes torch takes up to 2.1 GB: no more jobs than cores, nor than the free memory holds.
build_jobs() {
  local jobs by_memory
  jobs=$(nproc)
  by_memory=$(awk '/MemAvailable/ {print int($2 / 2200000)}' /proc/meminfo)
  [ "$by_memory" -lt "$jobs" ] && jobs=$by_memory
  [ "$jobs" -lt 1 ] && jobs=1
  echo "$jobs"
}

# build PRESET [-DOPTION...] -- TARGETS...; WELKIN_CMAKE_OPTIONS adds options (CI: warnings are errors)
build() {
  local preset=$1 options=()
  shift
  while [ "$#" -gt 0 ] && [ "$1" != -- ]; do
    options+=("$1")
    shift
  done
  shift
  (cd "$root" && cmake --preset "$preset" -DWELKIN_PYTHON="$venv/bin/python3" "${options[@]}" \
    ${WELKIN_CMAKE_OPTIONS:-} >"build/$preset.configure.log" 2>&1) ||
    { cat "$root/build/$preset.configure.log"; fail "cmake could not configure the preset $preset"; }
  cmake --build "$root/build/$preset" -j "$(build_jobs)" --target "$@"
}
