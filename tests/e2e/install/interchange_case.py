# SPDX-License-Identifier: Apache-2.0
"""What the tests of interchange share: a short run, the ckpt verbs, and modules of PyTorch made from names and shapes."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import safetensors.torch
import torch

BINARY = os.environ["WELKIN_BINARY"]
VIT = """
run: {model: vit, embed_dim: 16, depth: 2, num_heads: 2, patch_size: 8, img_size: [16, 32], n_in_channels: 2, n_out_channels: 2,
  data_loader_config: synthetic, limit_nsamples: 16, limit_nsamples_val: 4, global_batch_size: 4, num_iters: 7, lr: 1E-3, warmup: 2, expdir: /logs}
"""


def welkin(*words, code=0):
    done = subprocess.run([BINARY, *map(str, words)], capture_output=True, text=True, timeout=300)
    assert done.returncode == code, f"exit code {done.returncode}: {done.stderr}{done.stdout}"
    return done.stdout + done.stderr


def train(folder, root, *flags):
    """A run that keeps a checkpoint of every step; its folder."""
    yaml = folder / "run.yaml"
    yaml.write_text(VIT)
    welkin("train", "--yaml_config", yaml, "--config", "run", "--log_root", root, "--threads", "1", "--device", "cpu",
           "--checkpoint_interval", "1", "--keep_checkpoints", "20", *flags)
    return root / "run" / "1GPU" / "00"


def module_of(tensors):
    """A tree of modules whose parameters have these dotted names."""
    root = torch.nn.Module()
    for name, value in tensors.items():
        *path, last = name.split(".")
        module = root
        for part in path:
            if not hasattr(module, part):
                module.add_module(part, torch.nn.Module())
            module = getattr(module, part)
        module.register_parameter(last, torch.nn.Parameter(torch.zeros_like(value)))
    return root


def stored(folder, file="model.safetensors"):
    return safetensors.torch.load_file(folder / file)


def bits(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8) if tensor.numel() else tensor


class InterchangeCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def assert_same_bits(self, first, second):
        self.assertEqual(sorted(first), sorted(second))
        for name in first:
            self.assertEqual((first[name].dtype, first[name].shape), (second[name].dtype, second[name].shape), name)
            self.assertTrue(torch.equal(bits(first[name]), bits(second[name])), name)
