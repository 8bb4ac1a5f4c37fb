# SPDX-License-Identifier: Apache-2.0
# The Python of the peers in bench/. Sourced by bash with `root` set and tools/setup.sh read.

# What bench/requirements.txt lists, in build/bench-venv: torch with all of its CUDA libraries (2 GB).
require_bench_python() {
  bench_venv="$root/build/bench-venv"
  cmp -s "$root/bench/requirements.txt" "$bench_venv/requirements.txt" && return
  say "installing the peers' Python packages into ${bench_venv#"$root"/}" >&2
  python3 -m venv "$bench_venv"
  "$bench_venv/bin/python3" -m pip install -q --disable-pip-version-check --no-input -r "$root/bench/requirements.txt" >&2
  # DALI's readers run without a GPU; where its wheel cannot be had, its row says so.
  "$bench_venv/bin/python3" -m pip install -q --disable-pip-version-check --no-input nvidia-dali-cuda120 >&2 || echo "bench: no DALI wheel" >&2
  cp "$root/bench/requirements.txt" "$bench_venv/requirements.txt"
}

# Sets peer_python: WELKIN_PEER_PYTHON, else build/bench-venv where it is there already or a GPU is, else the tests' environment, whose
# torch is the same wheel without the libraries of a GPU (tools/torch_for_tests.py).
require_peer_python() {
  peer_python=${WELKIN_PEER_PYTHON:-}
  [ -z "$peer_python" ] || return 0
  if [ -e /dev/nvidiactl ] || cmp -s "$root/bench/requirements.txt" "$root/build/bench-venv/requirements.txt"; then
    require_bench_python
    peer_python="$bench_venv/bin/python3"
  else
    require_torch
    require_test_python
    peer_python="$test_venv/bin/python3"
  fi
}
