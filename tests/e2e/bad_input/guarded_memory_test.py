#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/guarded_memory.c, under which tools/processors.sh runs the kernels: what reads or writes beyond aligned memory, or uses it when it is freed,
ends with SIGSEGV; the program trains under it."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

BINARY = os.environ["WELKIN_BINARY"]
SOURCE = pathlib.Path(os.environ["WELKIN_SOURCE_DIR"]) / "tests/guarded_memory.c"
USE = """
import ctypes
library, memory = ctypes.CDLL(None), ctypes.c_void_p()
assert library.posix_memalign(ctypes.byref(memory), 64, ctypes.c_size_t(100)) == 0
begin = memory.value
ctypes.memset(begin, 1, 100)
assert ctypes.string_at(begin, 100) == bytes([1]) * 100
"""
TRAIN = """
run: {model: vit, embed_dim: 48, depth: 1, num_heads: 4, patch_size: 8, img_size: [16, 32], n_in_channels: 3, n_out_channels: 3, dropout: 0.1,
  data_loader_config: synthetic, limit_nsamples: 8, limit_nsamples_val: 2, global_batch_size: 2, num_iters: 3, lr: 1E-3, warmup: 1, expdir: /logs}
"""


class GuardedMemory(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        kept = tempfile.TemporaryDirectory()
        cls.addClassCleanup(kept.cleanup)
        cls.folder = pathlib.Path(kept.name)
        library = cls.folder / "guarded_memory.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"], check=True)
        cls.environment = {**os.environ, "LD_PRELOAD": str(library)}

    def code_after(self, access):
        free = "library.free.argtypes = [ctypes.c_void_p]\n"
        return subprocess.run([sys.executable, "-c", USE + free + access], env=self.environment, capture_output=True, timeout=60).returncode

    def test_only_the_memory_itself_can_be_used(self):
        for access, code in (("ctypes.string_at(begin + 99, 1)", 0), ("library.free(begin)", 0), ("ctypes.string_at(begin + 100, 1)", -signal.SIGSEGV),
                             ("ctypes.memset(begin + 100, 0, 1)", -signal.SIGSEGV), ("library.free(begin); ctypes.string_at(begin, 1)", -signal.SIGSEGV)):
            self.assertEqual(self.code_after(access), code, access)

    def test_a_run_stays_within_its_memory(self):
        (self.folder / "run.yaml").write_text(TRAIN)
        done = subprocess.run([BINARY, "train", "--yaml_config", str(self.folder / "run.yaml"), "--config", "run", "--log_root", str(self.folder), "--device",
                               "cpu", "--threads", "2"], env=self.environment, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("DONE", done.stderr)


if __name__ == "__main__":
    unittest.main()
