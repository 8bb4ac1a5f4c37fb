#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""welkin bench --tiles: matmuls with one size varied, without a configuration."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

BINARY = os.environ["WELKIN_BINARY"]


class BenchTiles(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.folder = pathlib.Path(kept.name)

    def tiles(self, *flags, code=0):
        done = subprocess.run([BINARY, "bench", "--tiles", "--device", "cpu", *flags], cwd=self.folder, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def test_sizes_tiles_and_rates(self):
        found = json.loads(self.tiles("-m", "64", "-k", "32", "-n", "8,16,24", "--seconds", "0.01", "--json", "-").stdout)
        self.assertEqual([found[key] for key in ("mode", "m", "k", "type", "tile")], ["tiles", 64, 32, "fp32", "1x16"])
        self.assertEqual([row["n"] for row in found["matmuls"]], [8, 16, 24])
        self.assertEqual([row["tiles"] for row in found["matmuls"]], [64, 64, 128])
        self.assertEqual([row["filled"] for row in found["matmuls"]], [0.5, 1, 0.75])
        for row in found["matmuls"]:
            self.assertEqual(round(row["flops_per_s"] * row["seconds"]), 2 * 64 * 32 * row["n"])

    def test_picture_and_table(self):
        done = self.tiles("-n", "128,192", "--tile", "256x128", "--type", "bf16", "--seconds", "0", "--plot", "tiles.svg", "--json", "tiles.json")
        self.assertIn("bf16, tiles of 256x128", done.stdout)
        self.assertRegex(done.stdout, r"192 +2 +75 ")
        self.assertEqual((self.folder / "tiles.svg").read_text().count("<svg "), 4)
        self.assertEqual(len(json.loads((self.folder / "tiles.json").read_text())["matmuls"]), 2)

    def test_errors(self):
        self.assertIn("[bench] not a tile: --tile=256. Give rows and columns, such as 256x128", self.tiles("--tile", "256", code=2).stderr)
        for size in ("0", "-1", "65537"):
            self.assertIn("-n", self.tiles("-n", size, code=2).stderr)
        for flag in ("--json", "--plot"):
            self.assertIn(f"[bench] this file cannot be written: {flag}=nowhere/file", self.tiles(flag, "nowhere/file", code=2).stderr)


if __name__ == "__main__":
    unittest.main()
