# SPDX-License-Identifier: Apache-2.0
"""Whether what ./quickstart.sh shows is worth showing: every channel of the globe beats persistence, and the pictures of it have no seams where the
patches of the ViT meet.

usage: check_quickstart.py quickstart-out
"""
import json
import pathlib
import re
import sys

import h5py
import numpy as np

MOST_SEAM = 1.15  # of the steps at the edges of patches over those within, in units of the target's own; 1.2 can be seen


def edge_steps(fields, patch, axis):
    """The mean step from a point to the next one at the edges of patches, over that within them; along `axis` of (sample, row, column)."""
    steps = np.moveaxis(np.abs(np.diff(fields.astype(float), axis=axis)), axis, 0)
    at_edge = np.arange(len(steps)) % patch == patch - 1
    return steps[at_edge].mean() / steps[~at_edge].mean()


def seam(prediction, target, patch):
    """How much more the prediction steps at the edges of patches than the target does there."""
    return max(edge_steps(prediction, patch, axis) / edge_steps(target, patch, axis) for axis in (1, 2))


def problems(out):
    found = [f"vit loses to persistence in {name}" for name in json.loads((out / "scores-vit.json").read_text())["worse_than_persistence"]]
    run = (out / "logs/vit/1GPU/00/config.yaml").read_text()
    patch = int(re.search(r"^ *patch_size: *(\d+)", run, re.M)[1])
    pictures = out / "pictures/vit"
    shown = sorted({path.stem.split("_", 2)[2] for path in pictures.glob("sample_*.png")})
    with h5py.File(pictures / "predictions.h5") as file:
        names = [str(name) for name in file["target"].attrs["channels"].astype(str)]
        for name in shown:
            channel = names.index(name)
            of_channel = seam(file["prediction"][:, channel], file["target"][:, channel], patch)
            print(f"{name}: steps at the edges of patches are {of_channel:.3f} of the target's")
            if not of_channel <= MOST_SEAM:
                found.append(f"the pictures of {name} have seams: {of_channel:.2f}, most={MOST_SEAM}")
    if not shown:
        found.append(f"there are no pictures: path={pictures}")
    return found


def main(out):
    found = problems(pathlib.Path(out))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
