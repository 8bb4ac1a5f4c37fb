# SPDX-License-Identifier: Apache-2.0
"""Prints as JSON what TensorBoard's EventAccumulator reads in a folder: every scalar as [step, value], every image as [step, width, height, kind].

Usage: read_events.py FOLDER. Exit code 77 where the tensorboard package is not installed.
"""
import json
import sys

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError:
    sys.exit(77)


def kind_of(encoded: bytes) -> str:
    return "PNG" if encoded.startswith(b"\x89PNG\r\n\x1a\n") else "unknown"


def read(folder: str) -> dict:
    events = EventAccumulator(folder, size_guidance={"scalars": 0, "images": 0})
    events.Reload()
    tags = events.Tags()
    return {
        "scalars": {tag: [[e.step, e.value] for e in events.Scalars(tag)] for tag in tags["scalars"]},
        "images": {
            tag: [[e.step, e.width, e.height, kind_of(e.encoded_image_string)] for e in events.Images(tag)] for tag in tags["images"]
        },
        "file_version": events.file_version,
    }


if __name__ == "__main__":
    print(json.dumps(read(sys.argv[1]), sort_keys=True))
