# SPDX-License-Identifier: Apache-2.0
"""Training from damaged files of every format but HDF5 (which read_fault_test.py has): cut off, with a bit turned, before the run and while it
lasts. Each is exit code 3 with file and place, and leaves nothing half written behind."""
import json
import shutil
import signal
import unittest

import h5py
import numpy as np
from bad_input_case import BINARY, DATA, DONE, FIELDS, BadInputCase, tree, truncate

ENDLESS = {**FIELDS, "num_iters": 1000000, "checkpoint_interval": 20}
CHUNKED = ("--chunk", "1,3,8,16")
# Name of the format: flags of `welkin data convert`, and the file that holds values.
KINDS = {"npy": ((), ""), "raw": ((), ""), "webdataset": ((), ""), "lmdb": ((), "/data.mdb"),
         "zarr2": ((*CHUNKED, "--compress", "gzip"), "/fields/4.0.0.0"), "zarr3": ((*CHUNKED, "--compress", "zstd"), "/fields/c/4/0/0/0"),
         "zarr3plain": ((*CHUNKED, "--compress", "none"), "/fields/c/4/0/0/0")}


class DamagedFormats(BadInputCase):
    one_process = True

    def setUp(self):
        super().setUp()
        self.make_fields()
        self.source = self.root / "2000.h5"
        shutil.move(self.data / "train/2000.h5", self.source)

    def no_data(self):
        """The path of the training data, of which there are none."""
        shutil.rmtree(self.data / "train")
        (self.data / "train").mkdir()
        self.target = self.data / "train/2000"
        return self.target

    def convert(self, kind):
        """Training data of that format alone; the file in it that holds values."""
        flags, inner = KINDS[kind]
        target = self.no_data()
        done = self.run_command([BINARY, "data", "convert", self.source, target, "--format", kind.removesuffix("plain"), *flags])
        self.assertEqual(done.returncode, DONE, done.stderr)
        return target.parent / (target.name + inner)

    def turn_bit(self, path, offset):
        data = bytearray(path.read_bytes())
        if isinstance(offset, bytes):  # in the first place of these bytes, behind them
            offset = data.index(offset) + len(offset)
        data[offset] ^= 0x10
        path.write_bytes(data)

    def refuse(self, *parts, arguments=()):
        """The run ends with the file and the place; whether its folder is there depends on when that shows, but all in it is whole."""
        shutil.rmtree(self.logs, ignore_errors=True)
        message = self.assert_refused(self.train(FIELDS, "--num_data_workers", "1", *arguments), DATA, str(self.target), *parts)
        self.assert_nothing_half_written()
        return message

    def assert_nothing_half_written(self):
        left = tree(self.logs) if self.logs.exists() else []
        self.assertEqual([path for path in left if "partial" in path or path.endswith((".tmp", ".part"))], [])

    def test_whole_files_train_alike(self):
        logs = set()
        for kind in KINDS:
            self.convert(kind)
            shutil.rmtree(self.logs, ignore_errors=True)
            done = self.train(FIELDS)
            self.assertEqual(done.returncode, DONE, kind + done.stderr)
            log = (self.run_folder / "out.log").read_text()
            logs.add(tuple(line.split(" - ")[-1] for line in log.splitlines() if "Avg train loss" in line or "Avg val loss" in line))
        self.assertEqual(len(logs), 1, logs)
        self.assertGreaterEqual(len(logs.pop()), 2)

    def test_files_that_are_cut_off(self):
        for kind, place in {"npy": ("npy_byte=128", "bytes_expected=18432"), "raw": ("dataset=fields", "offset=0", "bytes_needed=18432"),
                            "webdataset": ("offset=",), "lmdb": ("offset=", "page="), "zarr2": ("dataset=fields", "chunk=(4, 0, 0, 0)", "offset=0"),
                            "zarr3": ("dataset=fields", "chunk=(4, 0, 0, 0)", "offset=0"),
                            "zarr3plain": ("dataset=fields", "chunk=(4, 0, 0, 0)", "offset=0", "bytes_expected=1536")}.items():
            with self.subTest(kind=kind):
                truncate(self.convert(kind), 0.6)
                self.refuse(*place)

    def test_turned_bits(self):
        """In what says where values lie, and in values that a checksum covers."""
        for kind, offset, place in (("npy", 10, ("npy_byte=",)), ("webdataset", 2, ("offset=0", "checksum")), ("webdataset", b"NUMPY", ("member=", "npy_byte=")),
                                    ("lmdb", 4096 + 16, ("offset=", "page=")), ("zarr2", -6, ("chunk=(4, 0, 0, 0)", "offset=0")),
                                    ("zarr3", -3, ("chunk=(4, 0, 0, 0)", "offset=0"))):
            with self.subTest(kind=kind, offset=offset):
                self.turn_bit(self.convert(kind), offset)
                self.refuse(*place)

    def test_turned_bits_of_descriptions(self):
        for kind, file, named in (("raw", "2000.json", "2000.json"), ("zarr2", "2000/fields/.zarray", "2000, dataset=fields"),
                                  ("zarr2", "2000/.zgroup", "2000/.zgroup"),
                                  ("zarr3", "2000/fields/zarr.json", "2000/fields/zarr.json")):
            with self.subTest(kind=kind):
                self.convert(kind)
                path = self.target.parent / file
                path.write_text(path.read_text().replace("{", "k", 1))
                self.refuse(f"path={self.target.parent}/{named}", "it is no JSON at byte 1")

    def test_values_without_a_checksum_are_found_where_they_are_not_finite(self):
        for kind in ("raw", "lmdb"):
            with self.subTest(kind=kind):
                path = self.convert(kind)
                data = path.read_bytes()
                value = self.values()[4, 1, 2, 3].tobytes()
                self.assertEqual(data.count(value), 1)
                path.write_bytes(data.replace(value, np.float32(np.nan).tobytes()))
                self.refuse("dataset=fields", "step=", "channel=1", "values=1", arguments=("--set", "nan_policy=error"))

    def test_shapes_that_cannot_be(self):
        with open(self.no_data(), "wb") as file:
            np.save(file, np.zeros((0, 3, 8, 16), np.float32))
        self.refuse("fields of wrong shape", "shape=(0, 3, 8, 16)")
        self.target.write_bytes(bytes(64))
        for shape, reason in (((1 << 40, 1 << 20, 8, 16), "a shape that no machine can hold"), ((1 << 30, 3, 8, 16), "bytes_needed=1649267441664")):
            (self.target.parent / "2000.json").write_text(json.dumps({"shape": shape, "dtype": "float32"}))
            self.refuse(reason)

    def values(self):
        with h5py.File(self.source) as file:
            return file["fields"][()]

    def steps(self):
        folder = self.run_folder / "checkpoints"
        return sorted((int(path.name[5:]) for path in folder.glob("step_*")), reverse=True) if folder.exists() else []

    def test_files_that_are_cut_off_while_they_are_read(self):
        for kind in ("npy", "webdataset", "lmdb"):
            with self.subTest(kind=kind):
                shutil.rmtree(self.logs, ignore_errors=True)
                path = self.convert(kind)
                whole = path.read_bytes()
                process = self.start(self.train_command({**ENDLESS, "num_data_workers": 1}))
                self.wait_until(self.steps, process)
                truncate(path)
                log = process.communicate(timeout=30)[0]
                self.assertEqual(process.returncode, DATA, log)
                message = log[log.rfind("welkin: ["):]
                for part in (f"path={path}", "offset="):
                    self.assertIn(part, message)
                self.assert_nothing_half_written()
                path.write_bytes(whole)
                newest = self.steps()[0]
                done = self.train(ENDLESS, "--resume", "--num_iters", str(newest + 1))
                self.assertEqual(done.returncode, DONE, done.stderr)
                self.assertIn(f"Resumed at step {newest} ", done.stdout + done.stderr)

    def test_chunks_that_are_kept_outlive_their_file(self):
        path = self.convert("zarr3")
        process = self.start(self.train_command({**ENDLESS, "num_data_workers": 1}))
        self.wait_until(self.steps, process)
        truncate(path)
        newest = self.steps()[0]
        self.wait_until(lambda: self.steps()[0] >= newest + 2, process)
        process.send_signal(signal.SIGTERM)
        log = process.communicate(timeout=30)[0]
        self.assertEqual(process.returncode, DONE, log)
        self.assert_refused(self.train(ENDLESS, "--resume"), DATA, "the training data have changed since the checkpoint: 2000 had ")


if __name__ == "__main__":
    unittest.main()
