#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The pages of docs/ as a static site with search in build/site; warnings (a link or an anchor that leads nowhere, a page that the
# navigation lacks) are errors. The generator lives in build/docs-venv (docs/requirements.txt).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv="$root/build/docs-venv"
wanted="$root/docs/requirements.txt"
case "${1:-}" in
  '') ;;
  -h | --help) sed -n '3,4s/^# //p' "$0"; exit ;;
  *) echo "docs.sh: no such argument: $1. It takes none" >&2; exit 2 ;;
esac

if ! cmp -s "$wanted" "$venv/requirements.txt"; then
  mkdir -p "$root/build"
  [ -x "$venv/bin/python3" ] || python3 -m venv "$venv"
  "$venv/bin/python3" -m pip install -q --disable-pip-version-check --no-input -r "$wanted"
  cp "$wanted" "$venv/requirements.txt"
fi
cd "$root"
export NO_MKDOCS_2_WARNING=1  # the theme announces its successor; the versions are pinned
# Not --quiet: warnings that are not logged are not counted as errors either.
if ! "$venv/bin/python3" -m mkdocs build --strict --clean >build/docs.log 2>&1; then
  cat build/docs.log >&2
  echo "docs.sh: the pages have warnings, above" >&2
  exit 1
fi
echo "$(find build/site -name '*.html' | wc -l) pages in build/site: open build/site/index.html"
