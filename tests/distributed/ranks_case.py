# SPDX-License-Identifier: Apache-2.0
"""What the tests of many ranks share: two tiny configurations, runs of the shipped binary through `welkin launch` or by hand, and
reading back what a run left."""
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from tolerance import rounds_to, within  # noqa: E402

BINARY = os.environ["WELKIN_BINARY"]
LOGGED = 6e-6  # six decimals of losses near 1 or 2
DONE, OTHER, USAGE, DATA, COMM, CHECKPOINT, DEFECTIVE = 0, 1, 2, 3, 4, 5, 6  # ExitCode of src/core/error.h

# 20 samples and 10 for validation: the last steps of an epoch are shorter than a batch of 8, and leave ranks without a sample.
VIT = """
run: {model: vit, embed_dim: 16, depth: 2, num_heads: 2, patch_size: 4, img_size: [16, 32], n_in_channels: 3, n_out_channels: 3, dropout: 0.1,
  data_loader_config: synthetic, limit_nsamples: 20, limit_nsamples_val: 10, global_batch_size: 8, num_iters: 6, lr: 1E-3, expdir: /logs}
"""
UNET = """
run: {model: unet3d, width: 4, scales: 2, data_size: 8, box_size: [16, 16], Nsamples: 18, Nsamples_val: 10, data_loader_config: synthetic,
  global_batch_size: 8, num_epochs: 3, lr_schedule: {scaling: none, start_lr: 1.E-3, end_lr: 0., warmup_steps: 0}, expdir: /logs}
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def clean_environment(**more):
    """Ours, without what a launcher around the tests may have set."""
    drop = re.compile(r"(SLURM|PMI|PMIX|OMPI|FLUX|TORCHELASTIC|MASTER_|WELKIN_L|WELKIN_P)|(WORLD_SIZE|RANK|WORLD_RANK|LOCAL_RANK)$")
    kept = {name: value for name, value in os.environ.items() if not drop.match(name)}
    return {**kept, "OMP_NUM_THREADS": "1", **{name: str(value) for name, value in more.items()}}


class RanksCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, text, name="run.yaml"):
        path = self.folder / name
        path.write_text(text)
        return path

    def train_arguments(self, yaml, root, *flags):
        return ["train", "--yaml_config", str(yaml), "--config", "run", "--log_root", str(root), "--device", "cpu",
                "--comm_timeout_s", "60", *map(str, flags)]

    def launch(self, ranks, yaml, root, *flags, options=()):
        """Starts a run; ranks 0 means without a launcher."""
        launcher = ["launch", "-n", str(ranks), "--bind", "off", *options, "--"] if ranks else []
        command = [BINARY, *launcher, *self.train_arguments(yaml, root, *flags)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean_environment())
        self.addCleanup(process.kill)
        return process

    def finish(self, process, code=DONE, limit_s=300):
        out, err = process.communicate(timeout=limit_s)
        self.assertEqual(process.returncode, code, err)
        return out + err

    def run_ranks(self, ranks, yaml, root, *flags, code=DONE):
        return self.finish(self.launch(ranks, yaml, root, *flags), code)

    def assert_close_weights(self, one, other):
        """As those of a few steps of SGD in another order of sums."""
        expected, found = weights(one), weights(other)
        self.assertEqual(expected.keys(), found.keys())
        for name, values in expected.items():
            rounds_to(found[name], values, 16, scale=max(1.0, np.abs(values).max()), message=name)

    def assert_close_training(self, one, other, logged=LOGGED):
        self.assertGreaterEqual(len(losses(one)), 4)
        within(losses(other), losses(one), logged, "a unit of the last logged digit, and the sums of ranks")
        self.assert_close_weights(one, other)

    def by_hand(self, yaml, root, rank, world, port, *flags, **variables):
        """One rank, in the tutorials' own environment."""
        environment = clean_environment(WORLD_SIZE=world, RANK=rank, LOCAL_RANK=rank, MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
        environment.update({name: str(value) for name, value in variables.items()})
        return subprocess.Popen([BINARY, "--bind", "off", *self.train_arguments(yaml, root, *flags)], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env=environment)


def run_folder(root):
    return next(path for path in (pathlib.Path(root) / "run").iterdir() if path.is_dir()) / "00"


def log_text(root):
    return (run_folder(root) / "out.log").read_text()


def losses(root):
    """Training and validation losses of the epochs, as logged."""
    return [float(number) for number in re.findall(r"Avg (?:train|val) loss=(\S+)", log_text(root))]


def checkpoints(root):
    return sorted(int(path.name[5:]) for path in (run_folder(root) / "checkpoints").glob("step_*"))


def stored_tensors(path):
    """The float32 tensors of a safetensors file, by name."""
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:8 + size])
    header.pop("__metadata__", None)
    tensors = {}
    for name, row in header.items():
        begin, end = row["data_offsets"]
        tensors[name] = np.frombuffer(raw[8 + size + begin:8 + size + end], np.float32).reshape(row["shape"])
    return tensors


def from_pieces(row, files):
    """A tensor that stands in the files of several ranks (docs/reference/formats.md)."""
    split = row.get("split", {"dim": 0, "blocks": 1, "ranks": 1})
    dim, blocks, ranks = split["dim"], split["blocks"], split["ranks"]
    shape = list(row["shape"])
    if ranks > 1:
        shape[dim] //= ranks
    parts = []
    for part in range(ranks):
        pieces = sorted((piece for piece in row["pieces"] if piece["part"] == part), key=lambda piece: piece["begin"])
        memory = np.concatenate([files[piece["file"]][row["name"]] for piece in pieces])
        parts.append(memory.reshape([shape[i] for i in row["order"]]).transpose(np.argsort(row["order"])))
    if ranks == 1:
        return parts[0]
    return np.concatenate([np.split(part, blocks, axis=dim)[block] for block in range(blocks) for part in parts], axis=dim)


def weights(root):
    """Tensors of the newest checkpoint's model, by name."""
    folder = run_folder(root) / "checkpoints" / f"step_{checkpoints(root)[-1]}"
    files = {path.name: stored_tensors(path) for path in folder.glob("model*.safetensors")}
    tensors = {}
    for name, row in json.loads((folder / "index.json").read_text())["tensors"].items():
        if row["file"] in files:
            tensors[name] = from_pieces({"name": name, **row}, files) if "pieces" in row else files[row["file"]][name]
    return tensors


def children_of(process):
    """Process numbers of the ranks, in their order."""
    return [int(word) for word in pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
