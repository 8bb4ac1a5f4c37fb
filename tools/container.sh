#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the image of packaging/container/Containerfile with podman, buildah or docker, whichever is there.
#   tools/container.sh [--cpu] [--wheel FILE] [--base IMAGE] [--tag NAME] [-- FLAGS OF THE BUILDER]
#   --cpu     torch as a machine without GPU needs it      --wheel   a wheel of tools/wheel.sh, in place of a build in the container
#   --base    another Debian 12 image                      --tag     name of the image (welkin)
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/tools/setup.sh"
gpu=1 wheel='' base='' tag=welkin
while [ "$#" -gt 0 ]; do
  case $1 in
    --cpu) gpu=0 ;;
    --wheel) wheel=${2:?--wheel needs a file}; shift ;;
    --base) base=${2:?--base needs an image}; shift ;;
    --tag) tag=${2:?--tag needs a name}; shift ;;
    -h | --help) sed -n '3,6s/^# //p' "$0"; exit ;;
    --) shift; break ;;
    *) fail "unknown flag: $1" ;;
  esac
  shift
done
builder=
for name in podman buildah docker; do
  if command -v "$name" >/dev/null; then builder=$name; break; fi
done
[ -n "$builder" ] || fail "none of podman, buildah and docker is here: install one (Debian: apt-get install buildah)"

# What git tracks, as it lies here, and no build folder.
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
git -C "$root" ls-files -z | tar -C "$root" --null --files-from=- --create | tar -C "$context" --extract
if [ -n "$wheel" ]; then
  mkdir "$context/dist"
  cp "$wheel" "$context/dist/"
fi
flags=(--build-arg "GPU=$gpu" --tag "$tag")
[ -z "$base" ] || flags+=(--build-arg "BASE=$base")
"$builder" build "${flags[@]}" "$@" --file "$context/packaging/container/Containerfile" "$context"
