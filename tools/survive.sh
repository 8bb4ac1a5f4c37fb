#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/survive.sh [KILLS] [FLAGS...]: ends small training runs at random instants, KILLS times in all (default 50), resumes each until it is done,
# and compares its last weights bit for bit with those of an undisturbed run. Flags: tools/survive.py --help.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
binary=${WELKIN_BINARY:-$root/build/release/welkin}
kills=50
if [ $# -gt 0 ] && [[ $1 != -* ]]; then kills=$1; shift; fi
[ -x "$binary" ] || { echo "survive: there is no $binary: build it with ./quickstart.sh --skip-train, or set WELKIN_BINARY" >&2; exit 2; }
exec python3 "$root/tools/survive.py" --binary "$binary" --kills "$kills" "$@"
