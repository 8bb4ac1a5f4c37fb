# SPDX-License-Identifier: Apache-2.0
"""GenericIO files of particles: `welkin data inspect`, and `welkin data ingest --box` to a density, cloud in cell."""
import subprocess
import unittest

import h5py
import numpy as np

from genericio_writer import closed, crc64, genericio
from ingest_runner import BINARY, IngestCase, component_is_built, run_all
from tolerance import rounds_to

EXTENT, ORIGIN, CELLS = (100.0, 100.0, 50.0), (0.0, 10.0, 0.0), 8


def particles(count, seed):
    random = np.random.default_rng(seed)
    places = [ORIGIN[a] + EXTENT[a] * random.random(count) for a in range(3)]
    return {"x": places[0].astype(np.float32), "y": places[1].astype(np.float32), "z": places[2], "id": np.arange(count, dtype=np.int64) - 5,
            "mask": np.full(count, 7, np.uint16), "vx": random.normal(200, 50, count).astype(np.float32)}


def cloud_in_cell(ranks, variable=None):
    """The density, or the mean of a variable."""
    mesh, sums, count = np.zeros((CELLS,) * 3), np.zeros((CELLS,) * 3), 0
    for rank in ranks:
        place = [(np.asarray(rank[name], float) - ORIGIN[a]) / EXTENT[a] * CELLS for a, name in enumerate("xyz")]
        below = [np.floor(p).astype(int) for p in place]
        count += len(place[0])
        for corner in np.ndindex(2, 2, 2):
            weight = np.prod([p - b if c else 1 - (p - b) for p, b, c in zip(place, below, corner)], axis=0)
            np.add.at(mesh, tuple((b + c) % CELLS for b, c in zip(below, corner)), weight)
            if variable:
                np.add.at(sums, tuple((b + c) % CELLS for b, c in zip(below, corner)), weight * np.asarray(rank[variable], float))
    return np.divide(sums, mesh, where=mesh > 0, out=np.zeros_like(sums)) if variable else mesh / (count / CELLS ** 3)


def resealed(whole, at):
    """With byte `at` of the only block of values changed, under a right checksum of what is stored."""
    begin = int.from_bytes(whole[8:16], "little")
    block = bytearray(whole[begin:-8])
    block[at] ^= 0x41
    return whole[:begin] + closed(bytes(block))


class GenericIo(IngestCase):
    def setUp(self):
        super().setUp()
        self.ranks = [particles(500, 1), particles(0, 2), particles(300, 3)]
        self.mesh = self.root / "mesh.h5"
        with h5py.File(self.mesh, "w") as file:
            file["gas"] = np.random.default_rng(0).random((CELLS,) * 3).astype(np.float32)

    def write(self, name="m000.full.mpicosmo.499", ranks=None, extent=EXTENT, **options):
        path = self.root / name
        path.write_bytes(genericio(self.ranks if ranks is None else ranks, extent, ORIGIN, **options))
        return path

    def inspect(self, path):
        return subprocess.run([BINARY, "data", "inspect", path], capture_output=True, text=True, timeout=60)

    def box_of(self, *files):
        self.ingest("--box", *files, self.mesh, "--cells", CELLS, "--input", "density", "--target", "gas")
        with h5py.File(self.out / "train.h5") as file:
            nbody = file["Nbody"]
            for attribute, text in ("channels", "density"), ("units", "1"), ("transform", "identity"):
                self.assertEqual(list(nbody.attrs[attribute].astype(str)), [text])
            return nbody[0].astype(float) * float(nbody.attrs["scale"][0]) + float(nbody.attrs["offset"][0])

    def test_the_checksum_is_the_published_one(self):
        self.assertEqual(crc64(b"123456789"), 0x995DC9BBDF1939FA)

    def test_inspect(self):
        for options in {}, {"big_endian": True}, {"element_size": False, "blocks": False}:
            with self.subTest(**options):
                done = self.inspect(self.write(**options))
                self.assertEqual(done.returncode, 0, done.stderr)
                for part in ("800 particles of 3 ranks (3 x 1 x 1), checksum of the header right", "box from (0, 10, 0), extent (100, 100, 50)",
                             "x  float32, coordinate x  values min ", "z  float64, coordinate z", "id  int64  values min -5, max 494",
                             "mask  uint16  values min 7, max 7"):
                    self.assertIn(part, done.stdout)

    def test_inspect_of_compressed_values(self):
        path = self.write(compress=True)
        done = self.inspect(path)
        self.assertEqual(done.returncode, 0, done.stderr)
        for part in "compressed with BLOSC", "id  int64  values min -5, max 494", "mask  uint16  values min 7, max 7":
            self.assertIn(part, done.stdout)
        whole = path.read_bytes()
        plain = len(self.write("plain").read_bytes())
        self.assertLess(len(whole), plain)
        path.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
        self.assertIn("the checksum of values is wrong: path=", self.inspect(path).stderr)
        # A frame of other values with right checksums but for that of the plain ones.
        path.write_bytes(genericio([{"x": np.zeros(500, np.float32)}], EXTENT, ORIGIN, compress=True))
        done = self.inspect(path)
        self.assertEqual(done.returncode, 0, done.stderr)
        for which, text in ((0, "the checksum of values is wrong"), (9, "values cannot be decompressed: path=")):
            with self.subTest(text):
                damaged = path.with_name(f"damaged{which}")
                damaged.write_bytes(resealed(path.read_bytes(), which))
                done = self.inspect(damaged)
                self.assertEqual(done.returncode, 3)
                self.assertIn(text, done.stderr)

    def test_density(self):
        expected = cloud_in_cell(self.ranks)
        rounds_to(self.box_of(self.write()), expected, 64, scale=expected)
        self.out = self.root / "swapped"
        rounds_to(self.box_of(self.write(big_endian=True)), expected, 64, scale=expected)
        for order in "little", "big":
            self.out = self.root / f"compressed-{order}"
            rounds_to(self.box_of(self.write(compress=True, big_endian=order == "big")), expected, 64, scale=expected)

    def test_mean_velocity(self):
        sparse = [{name: values[:40] for name, values in self.ranks[0].items()}]
        expected = cloud_in_cell(sparse, "vx")
        empty = int((expected == 0).sum())
        self.assertGreater(empty, 100)
        said = self.ingest("--box", self.write(ranks=sparse, compress=True), self.mesh, "--cells", CELLS, "--input", "density,particles/vx", "--target", "gas")
        self.assertIn(f"points without a particle have the mean 0: field=particles/vx, points={empty} of {CELLS ** 3}", said)
        with h5py.File(self.out / "train.h5") as file:
            nbody = file["Nbody"]
            self.assertEqual(list(nbody.attrs["channels"].astype(str)), ["density", "vx"])
            made = nbody[1].astype(float) * float(nbody.attrs["scale"][1]) + float(nbody.attrs["offset"][1])
        rounds_to(made, expected, 64, scale=np.abs(expected).max())

    def test_a_snapshot_in_parts(self):
        expected = cloud_in_cell(self.ranks)
        rounds_to(self.box_of(self.write("part0", self.ranks[:2]), self.write("part1", self.ranks[2:])), expected, 64, scale=expected)

    def refuse_box(self, path, *parts, cells=CELLS, code=3):
        done = self.run_ingest("--box", path, self.mesh, *(("--cells", cells) if cells else ()), "--input", "particles/density", "--target", "gas")
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)
        self.assertFalse(self.out.exists())

    def test_what_is_refused(self):
        path = self.write()
        self.refuse_box(path, "a field of particles needs a mesh: cells=0. Give its edge with --cells", cells=0, code=2)
        whole = path.read_bytes()
        path.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])  # a value of `vx`, which is not read
        rounds = self.inspect(path)
        self.assertEqual(rounds.returncode, 3)
        self.assertIn("the checksum of values is wrong: path=", rounds.stderr)
        at = len(whole) - len(self.ranks[2]["x"]) * (4 + 4 + 8 + 8 + 2 + 4) - 6 * 8
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])  # the first x of the last rank
        self.refuse_box(path, "the checksum of values is wrong", "variable=x")
        path.write_bytes(whole[:100] + b"\1" + whole[101:])
        self.refuse_box(path, "the checksum of the header is wrong")
        path.write_bytes(whole[:-1])
        self.refuse_box(path, "values beyond the end of the file: rank=2, variable=vx, elements=300")
        path.write_bytes(whole[:600])
        self.refuse_box(path, "its header does not fit into it")
        self.refuse_box(self.write(extent=(50.0, 100.0, 50.0)), "a particle outside of the box: ", "axis=x")
        self.refuse_box(self.write(extent=(0.0, 1.0, 1.0)), "a box of particles without extent")
        self.refuse_box(self.write(ranks=self.ranks[1:2]), "the files hold no particles")
        done = self.run_ingest("--box", self.write(), self.mesh, "--cells", CELLS, "--input", "particles/vw", "--target", "gas")
        self.assertEqual(done.returncode, 3)
        self.assertIn("no such variable: path=", done.stderr)
        self.assertIn("variable=vw. There are: x, y, z, id, mask, vx.", done.stderr)

    @unittest.skipUnless(component_is_built(), "the ingest component is not built: ecCodes or netCDF-C is not installed")
    def test_particles_are_no_fields(self):
        self.assertIn("Not taken: particles (m000.full.mpicosmo.499): only --box takes particles", self.refused(self.write()))


if __name__ == "__main__":
    run_all("__main__")
