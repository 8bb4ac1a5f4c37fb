#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a run says when the disk fails it: EIO while reading, ENOSPC while staging, files that change, symlink loops, absurd shapes."""
import errno
import os
import pathlib
import subprocess
import tempfile
import unittest

import h5py
import numpy as np

BINARY = os.environ["WELKIN_BINARY"]
SHIM_SOURCE = pathlib.Path(os.environ["WELKIN_SOURCE_DIR"]) / "tests/read_fault.c"
TRAIN = """
run: {{model: vit, embed_dim: 48, depth: 1, num_heads: 4, patch_size: 8, img_size: [16, 32], n_in_channels: 3, n_out_channels: 3,
  global_batch_size: 2, num_iters: {steps}, lr: 1E-3, warmup: 1, expdir: /logs, train_data_path: {folder}/years, valid_data_path: {folder}/years,
  global_means_path: {folder}/means.npy, global_stds_path: {folder}/stds.npy}}
"""


class ReadFaults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        kept = tempfile.TemporaryDirectory()
        cls.addClassCleanup(kept.cleanup)
        cls.shim = pathlib.Path(kept.name) / "read_fault.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(cls.shim), str(SHIM_SOURCE), "-ldl"], check=True)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "years").mkdir()
        self.values = np.random.default_rng(1).normal(size=(9, 3, 16, 32)).astype(np.float32)
        self.write_year(self.values)
        for name, value in (("means", 0), ("stds", 1)):
            np.save(self.folder / f"{name}.npy", np.full((1, 3, 1, 1), value, np.float32))

    def write_year(self, values, chunks=(1, 3, 16, 32)):
        with h5py.File(self.folder / "years" / "1979.h5", "w") as file:
            file.create_dataset("fields", data=values, chunks=chunks, compression="gzip" if chunks else None)

    def run_welkin(self, verb, *flags, fault=None, steps=3, more=()):
        yaml = self.folder / "run.yaml"
        yaml.write_text(TRAIN.format(folder=self.folder, steps=steps))
        environment = dict(os.environ) | dict(more)
        if fault:
            path, number, after = fault
            environment |= {"LD_PRELOAD": str(self.shim), "WELKIN_FAULT_PATH": path, "WELKIN_FAULT_ERRNO": str(number),
                            "WELKIN_FAULT_AFTER": str(after)}
        return subprocess.run([BINARY, verb, "--yaml_config", str(yaml), "--config", "run", "--threads", "1", "--device", "cpu", *flags],
                              capture_output=True, text=True, timeout=120, env=environment)

    def bench(self, *flags, fault=None, more=()):
        return self.run_welkin("bench", "--mode", "io", "--windows", "1", "--window_seconds", "0.05", "--warmup_seconds", "0", *flags, fault=fault, more=more)

    def train(self, *flags, steps=3):
        return self.run_welkin("train", "--log_root", str(self.folder / "logs"), *flags, steps=steps)

    def test_an_error_of_the_disk_names_file_and_offset(self):
        for after in range(0, 200, 10):
            done = self.bench(fault=("1979.h5", errno.EIO, after))
            if " bytes at offset " in done.stderr:
                break
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(done.stderr, r"\[file\] cannot read \d+ bytes at offset \d+: path=.*1979\.h5, reason=Input/output error\. Check the disk")

    def test_an_error_of_the_disk_under_a_mapping_is_the_same(self):
        self.write_year(self.values, chunks=None)
        done = self.bench("--num_data_workers", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        fault = {"LD_PRELOAD": str(self.shim), "WELKIN_FAULT_PATH": "1979.h5", "WELKIN_FAULT_AFTER": "0", "WELKIN_FAULT_ERRNO": str(errno.EIO),
                 "WELKIN_FAULT_FROM": "4096", "WELKIN_FAULT_MAP": "4096"}
        done = self.bench("--num_data_workers", "1", more=fault)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(done.stderr, r"\[file\] cannot read \d+ bytes at offset \d+: path=.*1979\.h5, reason=Input/output error\. Check the disk")

    def test_a_full_disk_while_staging(self):
        done = self.bench("--stage", str(self.folder / "node"), fault=(".part", errno.ENOSPC, 0))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(done.stderr, r"\[file\] cannot write: path=.*1979\.h5\.part, reason=No space left on device\. Free space")
        self.assertEqual(list(self.folder.glob("node/*/1979.h5")), [], "half a copy stands there as a whole one")
        self.assertEqual(self.bench("--stage", str(self.folder / "node")).returncode, 0, "the next run finishes the copy")

    def test_changed_data_are_refused_when_a_run_is_resumed(self):
        self.assertEqual(self.train().returncode, 0)
        self.values[0] += 1
        self.write_year(self.values[:8])
        done = self.train("--resume", steps=5)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(done.stderr, r"\[checkpoint\] the training data have changed since the checkpoint: 1979\.h5 had \d+ bytes and has \d+\. "
                                      r"Restore the files, start over without --resume, or go on with --allow_changed_data")
        self.assertEqual(self.train("--resume", "--allow_changed_data", steps=5).returncode, 0)

    def test_nan(self):
        self.values[:, 1, 3, 4] = np.nan
        self.write_year(self.values)
        done = self.bench("--set", "nan_policy=error")
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, r"\[data\] values that are not finite: path=.*1979\.h5, dataset=fields, step=\d+, target_step=\d+, index=\d+, "
                                      r"input_channel=1 \(channel1\), values=1\. Fill them")
        done = self.train("--set", "nan_policy=mask")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("masked with the channel's mean", done.stderr + done.stdout)

    def test_a_damaged_chunk_is_an_error_or_skipped(self):
        with h5py.File(self.folder / "years" / "1979.h5") as file:
            chunk = file["fields"].id.get_chunk_info(4)
        with open(self.folder / "years" / "1979.h5", "r+b") as file:
            file.seek(chunk.byte_offset + chunk.size // 2)
            file.write(b"\xff" * 8)
        done = self.bench()
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(done.stderr, rf"\[hdf5\] a damaged chunk: path=.*1979\.h5, dataset=fields, chunk_from=\(4, 0, 0, 0\), "
                                      rf"offset={chunk.byte_offset}, bytes={chunk.size}, reason=deflate: ")
        done = self.train("--set", "bad_samples=skip", "--num_data_workers", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("a sample was skipped: index=", done.stderr + done.stdout)

    def test_a_stalled_read_is_named_and_waited_for(self):
        with h5py.File(self.folder / "years" / "1979.h5") as file:
            chunk = file["fields"].id.get_chunk_info(4)
        fault = {"LD_PRELOAD": str(self.shim), "WELKIN_FAULT_PATH": "1979.h5", "WELKIN_FAULT_AFTER": "0", "WELKIN_FAULT_ERRNO": "0",
                 "WELKIN_FAULT_OFFSET": str(chunk.byte_offset), "WELKIN_FAULT_WAIT_MS": "1000"}
        for workers in (0, 2):
            done = self.run_welkin("train", "--log_root", str(self.folder / f"logs{workers}"), "--num_data_workers", str(workers), "--set",
                                   "read_stall_seconds=0.2", steps=4, more=fault)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stderr, rf"\[data\] a read does not come back: path=.*1979\.h5, offset={chunk.byte_offset}, seconds=0\.\d+, "
                                          rf"reading_threads=\d of {max(workers, 1)}\. Check the file system; the run waits\.")

    def test_memory_is_stated_before_the_first_step(self):
        done = self.train("--num_data_workers", "2", "--set", "prefetch_depth=3")
        log = done.stderr
        self.assertRegex(log, r"Reading: 2 threads into \d+(\.\d+)? KiB of host buffers")
        self.assertLess(log.index("Reading: 2 threads"), log.index("Starting Training Loop"))

    def test_a_file_that_is_replaced_while_it_trains(self):
        yaml = self.folder / "run.yaml"
        yaml.write_text(TRAIN.format(folder=self.folder, steps=100000))
        command = [BINARY, "train", "--yaml_config", str(yaml), "--config", "run", "--threads", "1", "--device", "cpu", "--log_root",
                   str(self.folder / "logs")]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            seen = ""
            for line in process.stderr:
                seen += line
                if "Time taken for epoch 1 " in line:
                    self.values += 1
                    other = self.folder / "other"
                    with h5py.File(other, "w") as file:
                        file.create_dataset("fields", data=self.values, chunks=(1, 3, 16, 32), compression="gzip")
                    os.replace(other, self.folder / "years" / "1979.h5")
            self.assertEqual(process.wait(timeout=60), 3, seen)
        self.assertRegex(seen, r"\[file\] the file was removed or replaced while it was being read: path=.*1979\.h5, bytes_before=\d+")

    def test_a_hundred_years_are_opened_once_each_at_the_start(self):
        (self.folder / "years" / "1979.h5").unlink()
        for year in range(1900, 2000):
            with h5py.File(self.folder / "years" / f"{year}.h5", "w") as file:
                file.create_dataset("fields", data=self.values[:3])

        def opened(seconds):
            log = self.folder / f"opened_{seconds}"
            done = self.run_welkin("bench", "--mode", "io", "--windows", "1", "--window_seconds", str(seconds), "--warmup_seconds", "0",
                                   more={"LD_PRELOAD": str(self.shim), "WELKIN_OPEN_LOG": str(log)})
            self.assertEqual(done.returncode, 0, done.stderr)
            paths = [pathlib.Path(line).name for line in log.read_text().splitlines() if line.endswith(".h5")]
            return {name: paths.count(name) for name in set(paths)}

        short, long = opened(0.05), opened(1)
        self.assertEqual(len(short), 100)
        self.assertEqual(short, long, "no step opens a file")
        self.assertLessEqual(max(long.values()), 4, "by a child first, to know the format, by the library, and to read: " + str(long))

    def test_a_loop_of_links(self):
        (self.folder / "years" / "1979.h5").unlink()
        (self.folder / "years" / "1979.h5").symlink_to("1980.h5")
        (self.folder / "years" / "1980.h5").symlink_to("1979.h5")
        done = self.bench()
        self.assertEqual(done.returncode, 3)
        self.assertIn("Too many levels of symbolic links", done.stderr)

    def test_a_shape_that_no_file_can_hold(self):
        with h5py.File(self.folder / "years" / "1979.h5", "w") as file:
            file.create_dataset("fields", shape=(1 << 40, 3, 16, 32), dtype=np.float32, chunks=(1, 3, 16, 32))
        done = self.bench()
        self.assertEqual(done.returncode, 0, "sparse, but every value can be read as the fill value: " + done.stderr)
        done = self.bench("--resident", "host")
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, r"\[data\] it does not fit in memory: data=.*years, needed=6\.0 PiB, free=")


if __name__ == "__main__":
    unittest.main()
