# SPDX-License-Identifier: Apache-2.0
"""Files that end the library which reads them, HDF5 or the GRIB and netCDF component: an error that names the file, since a process of its own
(welkin-check-files) reads it."""
import struct
import subprocess
import unittest

import h5py
from bad_input_case import BINARY, DATA, DONE, FIELDS, SOURCE, BadInputCase, write_fields
from referring_files import heap_of, refer_elsewhere, write_with_references

# A component that opens everything and crashes in what follows.
CRASHING = r"""
#include <stdlib.h>
#include <string.h>
#include "component_abi.h"
static int open_source(const char* path, int format, welkin_ingest_source** out, char* error, int64_t capacity) {
  *out = (welkin_ingest_source*)"x";
  return 0;
}
static void close_source(welkin_ingest_source* source) {}
static int scan(welkin_ingest_source* source, welkin_ingest_counts* out, char* error, int64_t capacity) { END; return 0; }
const welkin_ingest_api* welkin_ingest_component(uint32_t abi) {
  static welkin_ingest_api api = {WELKIN_INGEST_ABI, "crashing 1", open_source, close_source, scan};
  return &api;
}
"""


def make_endless(path):
    """HDF5 1.10 adds the size of an object to a place until it is behind the heap: this size leads it in a circle."""
    data = bytearray(path.read_bytes())
    size = heap_of(data) + 24
    data[size:size + 8] = ((1 << 64) - 16).to_bytes(8, "little")
    path.write_bytes(data)


def make_longer(path, size):
    """HDF5 1.10 copies an object of any size from a heap of 4096 bytes."""
    data = bytearray(path.read_bytes())
    place = heap_of(data) + 24
    data[place:place + 8] = size.to_bytes(8, "little")
    path.write_bytes(data)


def claim(path, length):
    """An attribute's text of another length than it has."""
    data = path.read_bytes()
    place = heap_of(data).to_bytes(8, "little") + (1).to_bytes(4, "little")
    damaged = data.replace((3).to_bytes(4, "little") + place, length.to_bytes(4, "little") + place)
    assert damaged != data
    path.write_bytes(damaged)


class LibraryCrashes(BadInputCase):
    def refuse_each(self, damage, numbers, end):
        """A file is damaged with each number; the process that reads it first ends so."""
        for number in numbers:
            path = self.root / f"{number}.h5"
            write_with_references(path)
            damage(path, number)
            with self.subTest(number=number):
                self.assert_refused(self.run_command([BINARY, "data", "inspect", path]), DATA,
                                    f"a damaged file: path={path}, reason=a process that read it ended with {end}. ")

    def test_a_size_that_only_a_reader_with_much_memory_could_take(self):
        """The second took 4 GB and 6 s before it was read."""
        self.refuse_each(claim, (0xFFFFFF00, 0x40000000), "signal 6 (Aborted)")

    def test_an_object_that_is_longer_than_its_heap(self):
        """What lies behind the heap is memory of the process, and the copy ends as it will: it must not even begin."""
        self.refuse_each(make_longer, (5000, 6000, 100_000), "signal 11 (Segmentation fault)")

    def test_extents_that_cannot_be(self):
        self.make_fields()
        path = self.data / "train/2000.h5"
        with h5py.File(path) as file:
            shape = file["fields"].shape
        sizes = b"".join(size.to_bytes(8, "little") for size in shape)
        data = path.read_bytes()
        self.assertGreaterEqual(data.count(sizes), 1)
        larger = sizes[:8] + (194613558116355).to_bytes(8, "little") + sizes[16:]
        path.write_bytes(data.replace(sizes, larger, 1))
        stats = ["data", "stats", path.parent, "--out", self.root / "out"]
        self.assert_refused(self.run_command([BINARY, *stats]), DATA, f"a data set larger than it may become: path={path}, dataset=fields, shape=")
        path.unlink()
        with h5py.File(path, "w") as file:  # sound, and of no use: its chunks were never written
            file.create_dataset("fields", (2, 10**9, 8, 16), "f4", maxshape=(None, None, 8, 16), chunks=(1, 3, 8, 16))
        self.assert_refused(self.run_command([BINARY, *stats]), DATA, f"fields of a size that cannot be: path={path}, shape=2x1000000000x8x16")

    def test_a_filter_that_takes_values_of_any_size(self):
        """It made 2 GB of room for each chunk, and took a second for it: the limits ended it after twelve."""
        self.make_fields()
        path = self.data / "train/2000.h5"
        write_fields(path, chunks=(1, 1, 8, 16), scaleoffset=3)
        stats = ["data", "stats", path.parent, "--out", self.root / "out"]
        self.assertEqual(self.run_command([BINARY, *stats]).returncode, DONE)
        parameters = struct.pack("<5I", 0, 3, 8 * 16, 1, 4)
        data = path.read_bytes()
        self.assertEqual(data.count(parameters), 1)
        path.write_bytes(data.replace(parameters, struct.pack("<5I", 0, 3, 8 * 16, 1, 15400964)))
        self.assert_refused(self.run_command([BINARY, *stats]), DATA,
                            f"a filter of other chunks: path={path}, dataset=fields, filter=scaleoffset, values=128 of 15400964 bytes, chunk=1x1x8x16 of 4. ")

    def test_an_hdf5_file_that_ends_the_library(self):
        self.make_fields()
        path = self.data / "train/2000.h5"
        write_with_references(path)
        sound = self.run_command([BINARY, "data", "inspect", path])
        self.assertEqual(sound.returncode, DONE, sound.stderr)
        refer_elsewhere(path)
        said = (f"[hdf5] a damaged file: path={path}, reason=a process that read it ended with signal 11 (Segmentation fault). "
                "Copy or make it again, or look at the disk that it is on.")
        for command in (["data", "inspect", path], ["data", "stats", path.parent, "--out", self.root / "out"],
                        ["data", "convert", path, self.root / "out.npy", "--format", "npy"]):
            self.assert_refused(self.run_command([BINARY, *command]), DATA, said)
        self.refuse_training(FIELDS, DATA, said)
        self.assertEqual(sorted(entry.name for entry in self.root.iterdir()), ["data", "run.yaml"])

    def test_a_file_that_keeps_the_library_busy_for_ever(self):
        path = self.root / "a.h5"
        write_with_references(path)
        make_endless(path)
        message = self.assert_refused(self.run_command([BINARY, "data", "inspect", path]), DATA, f"a damaged file: path={path}, reason=")
        # Whichever comes first: 4 s of a processor, or 8 s on the clock.
        self.assertRegex(message, r"a process that read it (ended with signal 24 \(CPU time limit exceeded\)|made no progress in 8 s)\. ")

    def test_a_sound_file_beside_a_damaged_one(self):
        good, bad = self.root / "good.h5", self.root / "bad.h5"
        for path in (good, bad):
            write_with_references(path)
        refer_elsewhere(bad)
        done = self.run_command([BINARY, "data", "inspect", good, bad])
        self.assert_refused(done, DATA, f"path={bad}")
        self.assertIn("u10", done.stdout)

    def test_a_component_that_ends_its_process(self):
        source = self.root / "component.c"
        path = self.root / "a.grib"
        path.write_bytes(b"GRIB" + bytes(64) + b"7777")
        for end, reason in (("abort()", "ended with signal 6 (Aborted)"), ("strlen((char*)8)", "ended with signal 11 (Segmentation fault)"),
                            ("exit(3)", "ended with exit code 3")):
            source.write_text(CRASHING.replace("END", end))
            subprocess.run(["cc", "-shared", "-fPIC", "-O0", "-w", "-I", SOURCE / "src/data/ingest/source", "-o", self.root / "component.so", source], check=True)
            with self.subTest(end=end):
                done = self.run_command([BINARY, "data", "ingest", path, "--out", self.root / "out", "--component", self.root / "component.so"])
                self.assert_refused(done, DATA, f"[ingest] cannot read a file: path={path}, reason=the process that reads it {reason}. "
                                                "Check that the file is complete.")
                self.assertFalse((self.root / "out").exists())


if __name__ == "__main__":
    unittest.main()
