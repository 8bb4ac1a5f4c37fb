#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# TensorBoard on a free port of this machine alone, with the line that brings it to yours through a tunnel.
set -euo pipefail
usage="usage: tools/tensorboard.sh [FOLDER...]

Shows the event files below the folders (default: logs and example_logs, as far as they exist) with TensorBoard, on a free port that only
this machine reaches, and prints the address and the ssh line for a browser elsewhere. Ctrl-C ends it.
Without a tensorboard: welkin report FOLDER... writes one HTML page."
case "${1:-}" in
  -h | --help) echo "$usage"; exit 0 ;;
  -*) echo "tensorboard.sh: no such option: $1" >&2; echo "$usage" >&2; exit 2 ;;
esac
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folders=("$@")
if [ ${#folders[@]} = 0 ]; then
  for folder in logs "$root/example_logs"; do
    [ ! -d "$folder" ] || folders+=("$folder")
  done
fi
[ ${#folders[@]} -gt 0 ] || { echo "tensorboard.sh: no logs here. Give the --log_root of your runs." >&2; exit 2; }
spec=
for folder in "${folders[@]}"; do
  [ -d "$folder" ] || { echo "tensorboard.sh: no such folder: $folder. Give the --log_root of your runs." >&2; exit 2; }
  spec+=${spec:+,}$(basename "$folder"):$folder
done

# The first python that has tensorboard: the active environment's, this repository's, the system's.
python=
for candidate in "${VIRTUAL_ENV:+$VIRTUAL_ENV/bin/python3}" "$root/.venv/bin/python3" "$root/.venv-test/bin/python3" python3; do
  if [ -n "$candidate" ] && "$candidate" -c "import importlib.util as u, sys; sys.exit(u.find_spec('tensorboard') is None)" 2>/dev/null; then
    python=$candidate
    break
  fi
done
if [ -z "$python" ]; then
  echo "tensorboard.sh: no python3 here has tensorboard. Run: pip install tensorboard, or look at the runs with: welkin report ${folders[*]}" >&2
  exit 1
fi
port=$("$python" -c "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); print(s.getsockname()[1])")
echo "TensorBoard: http://127.0.0.1:$port/"
echo "from another machine: ssh -N -L $port:127.0.0.1:$port $(id -un)@$(hostname)"
exec "$python" -m tensorboard.main --logdir_spec "$spec" --host 127.0.0.1 --port "$port"
