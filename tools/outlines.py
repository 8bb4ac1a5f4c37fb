#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rings of a shapefile of polygons (ESRI's white paper of 1998) as src/observe/image/outline_data.h has them.

usage: outlines.py FILE.shp OUTPUT
"""
import pathlib
import struct
import sys

POLYGON = 5
MOST_POINTS = 32767


def rings_of(shapes):
    at = 100  # behind the file's header
    while at < len(shapes):
        length = 2 * struct.unpack_from(">i", shapes, at + 4)[0]
        record = shapes[at + 8:at + 8 + length]
        at += 8 + length
        if struct.unpack_from("<i", record)[0] != POLYGON:
            continue
        num_parts, num_points = struct.unpack_from("<2i", record, 36)
        begins = [*struct.unpack_from(f"<{num_parts}i", record, 44), num_points]
        numbers = struct.unpack_from(f"<{2 * num_points}d", record, 44 + 4 * num_parts)
        points = list(zip(numbers[::2], numbers[1::2]))
        yield from (points[begin:end] for begin, end in zip(begins, begins[1:]))


def is_seam(one, other):
    """Polygons are closed along 180 degrees and along the pole, where there is no coast."""
    return abs(one[0]) == abs(other[0]) == 18000 or one[1] == other[1] == -9000


def lines_of(ring):
    """In hundredths of a degree, cut where it is a seam."""
    line = []
    for longitude, latitude in ring:
        point = (round(100 * longitude), round(100 * latitude))
        if line and is_seam(line[-1], point) or len(line) == MOST_POINTS:
            yield line
            line = []
        if not line or point != line[-1]:
            line.append(point)
    yield line


def main(arguments):
    if len(arguments) != 2:
        sys.exit(__doc__)
    packed = b""
    for ring in rings_of(pathlib.Path(arguments[0]).read_bytes()):
        for line in lines_of(ring):
            if len(line) > 1:
                packed += struct.pack("<h", len(line)) + b"".join(struct.pack("<2h", *point) for point in line)
    pathlib.Path(arguments[1]).write_bytes(packed)


if __name__ == "__main__":
    main(sys.argv[1:])
