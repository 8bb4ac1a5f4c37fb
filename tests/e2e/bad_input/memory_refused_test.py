#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory that the system refuses (ulimit -v) ends like memory beyond --memory_limit_gib: sizes and a remedy, exit code 1."""
import os
import pathlib
import resource
import subprocess
import tempfile
import unittest

BINARY = os.environ["WELKIN_BINARY"]
PRESETS = pathlib.Path(os.environ["WELKIN_SOURCE_DIR"]) / "bench" / "speed" / "speed.yaml"
LIMIT_GIB = 3
OUT_OF_MEMORY = 1


def limit_addresses():
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_GIB << 30, LIMIT_GIB << 30))


class MemoryRefused(unittest.TestCase):
    ROOM_FOR_WEIGHTS = ("--set", "img_size=[16, 32]", "--memory_limit_gib", "0.12")  # 82 MiB of them, and as much twice for Adam

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def last_line(self, *arguments):
        """Of two threads, since each takes addresses of its own."""
        done = subprocess.run([BINARY, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=120, preexec_fn=limit_addresses,
                              env={**os.environ, "OMP_NUM_THREADS": "2", "MALLOC_ARENA_MAX": "2"})
        self.assertEqual(done.returncode, OUT_OF_MEMORY, done.stdout + done.stderr)
        self.assertNotIn("alloc_cpu", done.stderr)
        line = done.stderr.splitlines()[-1]
        self.assertRegex(line, rf"welkin: \[memory\] the system gives this process no more memory: requested=[0-9.]+ [KMG]iB, free=[0-9.]+ [KMG]iB, limit={LIMIT_GIB}.0 GiB")
        self.assertIn("ulimit -v", line)
        return line

    def preset(self, verb, *arguments):
        return self.last_line(verb, f"--yaml_config={PRESETS}", "--config=unet", "--set", "width=256", "--set", "expdir=logs", "--threads=2", *arguments)

    def test_a_run_says_where_its_memory_is(self):
        line = self.preset("train")
        for part in (", weights and the program=", ", gradients=", ", optimizer=", ", buffers=", ", activations=0 B", ". Weights shrink with --tensor_parallel over more processes and a smaller model; "):
            self.assertIn(part, line)
        log = next(pathlib.Path(self.folder).rglob("out.log")).read_text()
        self.assertIn("Out of memory at step 1", log)

    def test_what_is_being_made_is_named(self):
        """Weights fit, and then Adam wants twice as much."""
        preset = ("--yaml_config", PRESETS, "--config", "vit", "--set", "expdir=logs", "--device", "cpu", "--threads", "1")
        for verb in (("train",), ("bench", "--mode", "synthetic")):
            with self.subTest(verb=verb):
                done = subprocess.run([BINARY, *map(str, [*verb, *preset, *self.ROOM_FOR_WEIGHTS])], cwd=self.folder, capture_output=True, text=True, timeout=120)
                self.assertEqual(done.returncode, OUT_OF_MEMORY, done.stdout + done.stderr)
                line = done.stderr.splitlines()[-1]
                self.assertRegex(line, r"optimizer=[1-9.]+ [KM]iB, buffers=.*, activations=0 B\. Weights, gradients and the optimizer's state shrink with")
                self.assertNotIn("prefetch_depth", line)

    def test_a_measurement_of_steps(self):
        self.assertIn(", weights and the program=", self.preset("bench", "--mode", "synthetic"))

    def test_a_verb_that_does_not_know_what_its_memory_is_for(self):
        self.last_line("bench", "--tiles", "--device", "cpu", "-m", "65536", "-k", "65536", "-n", "16")


if __name__ == "__main__":
    unittest.main()
