# SPDX-License-Identifier: Apache-2.0
"""`welkin data ingest` of boxes (HDF5: no component is needed) when input or output is bad: nothing half-written is ever called finished."""
import os
import resource
import shutil
import signal
import unittest

import h5py
import numpy as np
from bad_input_case import BINARY, DATA, DONE, BadInputCase, on_tmpfs, private_mounts, tree, truncate

MOUNTS = private_mounts()
EDGE = 64  # 1 MiB a field


class Ingest(BadInputCase):
    one_process = True

    def setUp(self):
        super().setUp()
        self.file = self.data / "fields.h5"
        random = np.random.default_rng(4)
        with h5py.File(self.file, "w") as file:
            for name in "dx", "rho":
                file[name] = random.normal(size=(EDGE, EDGE, EDGE)).astype(np.float32)
        self.folder = self.root / "boxes"
        self.folder.mkdir()
        self.out = self.folder / "out"

    def command(self, *arguments):
        return [BINARY, "data", "ingest", str(self.data), "--box", "--input", "dx", "--target", "rho", "--out", str(self.out), *arguments]

    def refuse(self, *parts, command=None, **options):
        self.assert_refused(self.run_command(command or self.command(), **options), DATA, *parts)
        self.assertEqual(tree(self.folder), [])

    def test_missing_input(self):
        self.file.unlink()
        self.refuse(str(self.data))

    def test_truncated_input(self):
        truncate(self.file)
        self.refuse(str(self.file))

    def test_wrong_dataset_name(self):
        wrong = [word if word != "rho" else "rh0" for word in self.command()]
        self.refuse("no such field: field=rh0. There are: dx, rho.", command=wrong)
        # Where there is netCDF too, it would have to be looked into: without the component both are said.
        with h5py.File(self.file, "r+") as file:
            file["packed"] = np.zeros((2, 2, 2), np.int16)
            file["packed"].attrs["scale_factor"] = 0.5
        self.refuse("no such data set in plain HDF5: field=rh0, data sets=dx rho", "/nowhere.so",
                    command=[*wrong, "--component", "/nowhere.so"])

    def test_output_that_exists(self):
        self.out.mkdir()
        (self.out / "note").write_text("mine\n")
        self.assert_refused(self.run_command(self.command()), DATA, f"the output exists already: out={self.out}", "choose another --out")
        self.assertEqual(tree(self.folder), ["out", "out/note"])

    @unittest.skipUnless(MOUNTS, "this system allows no mounts of one's own (unshare -m), which stand for a full or read-only disk")
    def test_full_and_read_only_disk(self):
        for options, reason in ("size=1500k", "No space left on device"), ("ro", "Read-only file system"):
            script = '"$@"; code=$?; find "$0" -mindepth 1 > "$0.left"; exit $code'
            done = self.run_command(on_tmpfs(MOUNTS, options, self.folder, ["sh", "-c", script, str(self.folder), *self.command()]))
            self.assert_refused(done, DATA, reason, str(self.out))
            self.assertEqual((self.root / "boxes.left").read_text(), "")

    def test_limit_on_file_sizes(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        self.refuse("File too large", str(self.out), preexec_fn=limit)

    def partial_file(self):
        return next(self.folder.glob("out.partial-*/train.h5"), None)

    def test_a_killed_writer_leaves_nothing_that_looks_finished(self):
        for _ in range(50):
            process = self.start(self.command())
            self.wait_until(lambda: self.partial_file() or process.poll() is not None)
            os.kill(process.pid, signal.SIGSTOP)
            if self.partial_file() and not self.out.exists():
                break
            os.kill(process.pid, signal.SIGCONT)
            self.assertEqual(process.wait(timeout=30), DONE)
            shutil.rmtree(self.out)
        else:
            self.fail("the writer was never caught in the act")
        process.kill()
        process.wait(timeout=30)
        self.assertFalse(self.out.exists())
        left = self.partial_file().parent
        (self.folder / "out.partial-elsewhere-1").mkdir()  # of another host: it may be at work
        (self.folder / "out.partial-notes").mkdir()
        done = self.run_command(self.command())
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertIn(f"removed what a killed run had left: path={left}", done.stdout)
        for name in "elsewhere-1", "notes":
            self.assertIn(f"another run writes here or was killed, perhaps on another host: path={self.folder}/out.partial-{name}", done.stdout)
        self.assertEqual([path.name for path in sorted(self.folder.iterdir())], ["out", "out.partial-elsewhere-1", "out.partial-notes"])
        with h5py.File(self.out / "train.h5") as file:
            self.assertEqual((file["Nbody"].shape, file["Hydro"].shape), ((1, EDGE, EDGE, EDGE),) * 2)


if __name__ == "__main__":
    unittest.main()
