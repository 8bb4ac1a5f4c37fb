# SPDX-License-Identifier: Apache-2.0
"""Writes GenericIO files as HACC does, for tests: packed headers, blocks of one rank after another, a CRC-64 after the header and after every
variable of a rank."""
import struct

import numpy as np
from numcodecs import blosc

POLYNOMIAL = 0xC96C5795D7870F42  # ECMA-182, bits reversed
ALL = (1 << 64) - 1
FLAG_FLOAT, FLAG_SIGNED, FLAG_X, FLAG_Y, FLAG_Z = 1, 2, 4, 8, 16


def _table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ POLYNOMIAL if value & 1 else value >> 1
        table.append(value)
    return table


TABLE = _table()


def crc64(data):
    state = ALL
    for byte in data:
        state = TABLE[(state ^ byte) & 0xFF] ^ (state >> 8)
    return state ^ ALL


def closed(data):
    """The data and its inverted sum: the CRC-64 of both is all ones."""
    return data + struct.pack("<Q", crc64(data) ^ ALL)


def flags_of(name, kind):
    flags = {"f": FLAG_FLOAT | FLAG_SIGNED, "i": FLAG_SIGNED, "u": 0}[kind]
    return flags | {"x": FLAG_X, "y": FLAG_Y, "z": FLAG_Z}.get(name, 0)


def blosc_block(plain, width, order):
    """(filter, values as they are stored): the sum of the plain values and a frame; plain where that is not shorter."""
    frame = blosc.compress(plain, b"blosclz", 9, blosc.SHUFFLE, typesize=width)
    return ("BLOSC", struct.pack(order + "Q", crc64(plain)) + frame) if 0 < len(plain) > len(frame) else ("", plain)


def genericio(ranks, extent, origin=(0.0, 0.0, 0.0), big_endian=False, element_size=True, blocks=True, compress=False):
    """`ranks`: of each rank, a mapping from name to a one-dimensional array. `element_size` and `blocks`: fields that older writers had not.
    `compress`: with headers of blocks, which have filter, place and size of each."""
    order = ">" if big_endian else "<"
    names = list(ranks[0])
    global_bytes, variable_bytes, rank_bytes = 168 if blocks else 152, 280 if element_size else 272, 48
    variables_start = global_bytes
    ranks_start = variables_start + variable_bytes * len(names)
    blocks_start = ranks_start + rank_bytes * len(ranks)
    header_bytes = blocks_start + (48 * len(ranks) * len(names) if compress else 0) + 8
    starts, at, body, block_headers = [], header_bytes, b"", b""
    for rank in ranks:
        starts.append(at)
        for name in names:
            stored = np.ascontiguousarray(rank[name]).astype(rank[name].dtype.newbyteorder(order)).tobytes()
            used, stored = blosc_block(stored, rank[name].dtype.itemsize, order) if compress else ("", stored)
            block_headers += used.encode().ljust(32, b"\0") + struct.pack(order + "2Q", at, len(stored))
            at, body = at + len(stored) + 8, body + closed(stored)
    counts = [len(rank[names[0]]) for rank in ranks]
    head = b"HACC01B\0" if big_endian else b"HACC01L\0"
    head += struct.pack(order + "12Q", header_bytes, sum(counts), len(ranks), 1, 1, len(names), variable_bytes, variables_start, len(ranks), rank_bytes,
                        ranks_start, global_bytes)
    head += struct.pack(order + "6d", *origin, *extent)
    if blocks:
        head += struct.pack(order + "2Q", *((48, blocks_start) if compress else (0, 0)))
    for name in names:
        dtype = ranks[0][name].dtype
        head += name.encode().ljust(256, b"\0") + struct.pack(order + "2Q", flags_of(name, dtype.kind), dtype.itemsize)
        if element_size:
            head += struct.pack(order + "Q", dtype.itemsize)
    for i, (count, start) in enumerate(zip(counts, starts)):
        head += struct.pack(order + "6Q", i, 0, 0, count, start, i)
    return closed(head + (block_headers if compress else b"")) + body
