# SPDX-License-Identifier: Apache-2.0
"""Reads the PNG files that Welkin writes (8-bit RGB): their pixels, and what is lettered on them."""
import re
import struct
import zlib

import numpy as np

MISSING_GRAY = (190, 190, 190)  # kMissingGray of src/observe/image/raster.h


def chunks(data):
    at = 8
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        yield kind, data[at + 8:at + 8 + length]
        at += 12 + length


def pixels(data):
    """(height, width, 3)"""
    width, height = struct.unpack(">2I", data[16:24])
    rows = np.frombuffer(zlib.decompress(b"".join(body for kind, body in chunks(data) if kind == b"IDAT")), np.uint8).reshape(height, 1 + 3 * width)
    image, above = np.zeros((height, 3 * width), np.uint8), np.zeros(3 * width, np.uint8)
    for y, (kind, *_), line in zip(range(height), rows, rows[:, 1:]):
        image[y] = above = unfiltered(kind, line, above)
    return image.reshape(height, width, 3)


def unfiltered(kind, line, above):
    """Section 9 of the specification: what was left after a guess from the pixels before and above."""
    if kind == 0:
        return line
    if kind == 2:
        return line + above
    found, line, above = [0] * 3, line.tolist(), [0] * 3 + above.tolist()  # a black pixel stands before
    for x, value in enumerate(line):
        left, up, corner = found[x], above[x + 3], above[x]
        guess = left
        if kind == 3:
            guess = (left + up) // 2
        elif kind == 4:
            of_left, of_up, of_corner = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
            guess = left if of_left <= of_up and of_left <= of_corner else up if of_up <= of_corner else corner
        found.append((value + guess) & 255)
    return np.array(found[3:], np.uint8)


def texts(data):
    """What is lettered on the picture, in order."""
    found = [body for kind, body in chunks(data) if kind == b"iTXt"]
    return found[0].removeprefix(b"Description\0\0\0\0\0").decode().split("\n") if found else []


def panels(data):
    """The ends of the colour bar of each panel, by its title. Degrees beside a map are passed over."""
    ends, title = {}, None
    for text in texts(data):
        if re.fullmatch(r"\d+[NSEW]?", text):
            continue
        try:
            value = float(text)
        except ValueError:
            title = text
            continue
        low, high = ends.get(title, (value, value))
        ends[title] = (min(low, value), max(high, value))
    return ends


def share_of(image, colour):
    return float((image == np.array(colour, np.uint8)).all(-1).mean())
