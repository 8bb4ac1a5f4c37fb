#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bad_samples=skip with real ranks: the sample that takes a bad one's place is the same for any number of ranks and for all ranks of a
split model, also where only one of them cannot read it; the first rank logs what all have skipped."""
import errno
import pathlib
import re
import subprocess
import sys
import unittest

import h5py
import numpy as np

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[i]) for i in (1, 2)]
from ranks_case import DATA, RanksCase, free_port, log_text, losses, weights  # noqa: E402
from tolerance import rounds_to, within  # noqa: E402

SHIM = pathlib.Path(__file__).resolve().parents[2] / "read_fault.c"
LOGGED = 3e-6  # six decimals of losses near 1
YAML = """
run: {{model: vit, embed_dim: 16, depth: 1, num_heads: 2, patch_size: 4, img_size: [16, 32], n_in_channels: 3, n_out_channels: 3,
  global_batch_size: 4, num_iters: 5, lr: 1E-3, warmup: 1, expdir: /logs, optimizer: SGD, bad_samples: skip, num_data_workers: 2,
  train_data_path: {folder}/years, valid_data_path: {folder}/years, global_means_path: {folder}/means.npy, global_stds_path: {folder}/stds.npy}}
"""


class BadSamples(RanksCase):
    def setUp(self):
        super().setUp()
        (self.folder / "years").mkdir()
        for name, value in (("means", 0), ("stds", 1)):
            np.save(self.folder / f"{name}.npy", np.full((1, 3, 1, 1), value, np.float32))
        self.year = self.folder / "years" / "1979.h5"
        with h5py.File(self.year, "w") as file:
            values = np.random.default_rng(1).normal(size=(9, 3, 16, 32)).astype(np.float32)
            file.create_dataset("fields", data=values, chunks=(1, 3, 16, 32), compression="gzip", fletcher32=True)
        with h5py.File(self.year) as file:
            self.chunk = file["fields"].id.get_chunk_info(4)
        self.yaml = self.write(YAML.format(folder=self.folder))

    def damage(self):
        with open(self.year, "r+b") as file:
            file.seek(self.chunk.byte_offset + self.chunk.size // 2)
            file.write(b"\xff" * 8)

    def skipped(self, root):
        """Samples that were, as the first rank has logged them."""
        return sorted(set(re.findall(r"a sample was skipped: index=(\d+)", log_text(root))), key=int)

    def assert_same(self, one, other):
        self.assertGreaterEqual(len(losses(one)), 4)
        within(losses(other), losses(one), LOGGED, "a unit of the last logged digit, and the sums of ranks")
        expected, found = weights(one), weights(other)
        for name, values in expected.items():
            rounds_to(found[name], values, 16, scale=max(1.0, np.abs(values).max()), message=name)  # a few steps of SGD

    def test_any_number_of_ranks_takes_the_same_substitutes(self):
        self.damage()
        one = self.folder / "one"
        self.run_ranks(0, self.yaml, one)
        self.assertEqual(self.skipped(one), ["3", "4"], "both pairs that hold the damaged step")
        self.assertRegex(log_text(one), rf"a sample was skipped: index=4, reason=\[hdf5\] a damaged chunk: path=.*1979\.h5, .*"
                                        rf"offset={self.chunk.byte_offset}")
        for name, flags in (("data_parallel", ()), ("tensor_parallel", ("--tensor_parallel", 2)),
                            ("parts_of_samples", ("--context_parallel", 2, "--context_io", "sharded"))):
            root = self.folder / name
            self.run_ranks(2, self.yaml, root, *flags, "--replica_check_interval", 1)
            self.assert_same(one, root)
            self.assertEqual(self.skipped(root), ["3", "4"], name)

    def test_what_one_rank_of_a_model_cannot_read_all_of_them_skip(self):
        shim = self.folder / "fault.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(shim), str(SHIM), "-ldl"], check=True)
        fault = {"LD_PRELOAD": shim, "WELKIN_FAULT_PATH": "1979.h5", "WELKIN_FAULT_AFTER": 0, "WELKIN_FAULT_ERRNO": errno.EIO,
                 "WELKIN_FAULT_OFFSET": self.chunk.byte_offset}
        roots = []
        for axis in ("tensor_parallel", "context_parallel"):
            port, root = free_port(), self.folder / axis
            flags = (f"--{axis}", 2, "--replica_check_interval", 1)
            ranks = [self.by_hand(self.yaml, root, rank, 2, port, *flags, **(fault if rank == 1 else {})) for rank in range(2)]
            for process in ranks:
                self.finish(process)
            self.assertEqual(self.skipped(root), ["3", "4"])
            self.assertIn("reason=another rank could not read it", log_text(root))
            self.assertRegex(log_text(root), r"reason=\[file\] cannot read \d+ bytes at offset \d+: path=.*1979\.h5, reason=Input/output error.*rank 1")
            roots.append(root)
        self.damage()
        one = self.folder / "one"
        self.run_ranks(0, self.yaml, one)
        for root in roots:
            self.assert_same(one, root)

    def test_an_error_of_one_rank_ends_all_of_them(self):
        self.damage()
        yaml = self.write(YAML.format(folder=self.folder).replace("bad_samples: skip", "bad_samples: error"), "error.yaml")
        text = self.finish(self.launch(2, yaml, self.folder / "no"), DATA)
        self.assertRegex(text, r"\[hdf5\] a damaged chunk: path=.*1979\.h5")

    def test_what_was_skipped_is_said_when_an_error_ends_the_run(self):
        """The first step skips two samples and then finds no memory: nobody comes to the place where notes are shared."""
        self.damage()
        yaml = self.write(YAML.format(folder=self.folder).replace("global_batch_size: 4", "global_batch_size: 8").replace("embed_dim: 16", "embed_dim: 512"), "large.yaml")
        root = self.folder / "full"
        text = self.finish(self.launch(2, yaml, root, "--memory_limit_gib", 0.03), 1)
        self.assertIn("tensors would take more memory than the limit allows", text)
        self.assertEqual(set(re.findall(r"a sample was skipped: index=(\d+)", text + log_text(root))), {"3", "4"})


if __name__ == "__main__":
    unittest.main()
