# SPDX-License-Identifier: Apache-2.0
"""Which sources of a target are compiled together, for cmake/WelkinLayers.cmake: prints "UNIT;SOURCE" for each.

usage: compile_units.py ROOT UNIT_KB INCLUDE_FOLDERS APART SOURCE...    (lists with commas)

A unit has up to UNIT_KB of source, of neighbouring folders: headers cost each unit 5 s, even precompiled, since GCC instantiates their
templates anew. Sources that include none of torch's headers, themselves or through ours, have units of their own (free_...), without them.
APART: files or folders that are compiled by themselves, since programs without torch link them from the layer's archive.
"""
import functools
import pathlib
import re
import sys

from check_names import ALONE

INCLUDE = re.compile(r'^#include [<"]([^>"]+)[>"]', re.MULTILINE)
TORCH = re.compile(r"(ATen|c10|torch)/")


class Includes:
    def __init__(self, folders):
        self.folders = folders

    @functools.cache
    def of(self, path):
        """(whether it includes a header of torch's, headers of ours)."""
        names = INCLUDE.findall(path.read_text(encoding="utf-8", errors="replace"))
        found = (next((file for folder in [path.parent, *self.folders] if (file := folder / name).is_file()), None) for name in names)
        return any(TORCH.match(name) for name in names), [file for file in found if file]

    def reach_torch(self, source):
        seen, left = {source}, [source]
        while left:
            is_torch, headers = self.of(left.pop())
            if is_torch:
                return True
            new = [header for header in headers if header not in seen]
            seen.update(new)
            left += new
        return False


def units(sources, largest):
    """(number, source): sources in order, in about equal parts of up to `largest` bytes."""
    sizes = [source.stat().st_size for source in sources]
    share = sum(sizes) / max(1, -(-sum(sizes) // largest))
    before = 0
    for source, size in zip(sources, sizes):
        yield int((before + size / 2) / share), source
        before += size


def main(arguments):
    root, unit_kb, folders, apart, *sources = arguments
    root = pathlib.Path(root)
    includes = Includes([root / folder for folder in folders.split(",") if folder])
    parts = {}
    for source in sorted(map(pathlib.Path, sources)):
        name = source.relative_to(root).as_posix()
        if ALONE.search("/" + name):
            continue
        own = next((part for part in apart.split(",") if part and (name == part or name.startswith(part + "/"))), "")
        own = re.sub(r"\W", "_", own.removesuffix(".cpp").removeprefix("src/"))
        parts.setdefault(("torch" if includes.reach_torch(source) else "free", own), []).append(source)
    for (kind, own), files in parts.items():
        for number, source in units(files, int(unit_kb) * 1000):
            print(f"{kind}{'_' + own if own else ''}_{number};{source}")


if __name__ == "__main__":
    main(sys.argv[1:])
