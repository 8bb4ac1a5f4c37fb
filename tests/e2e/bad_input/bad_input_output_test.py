# SPDX-License-Identifier: Apache-2.0
"""Output that cannot be written: a folder that refuses, a full disk, a limit on file sizes, the run folder of another configuration."""
import resource
import signal
import unittest

import h5py

from bad_input_case import (BINARY, CHECKPOINT, DATA, DONE, FIELDS, INTERRUPTED, USAGE, BadInputCase, on_tmpfs, private_mounts, tree)

WIDE = {**FIELDS, "embed_dim": 64}  # a checkpoint of about 0.7 MiB
MOUNTS = private_mounts()
needs_mounts = unittest.skipUnless(MOUNTS, "this system allows no mounts of one's own (unshare -m), which stand for a full or read-only disk")


class Refused(BadInputCase):
    def setUp(self):
        super().setUp()
        self.make_fields()

    @needs_mounts
    def test_read_only_folder(self):
        done = self.run_command(on_tmpfs(MOUNTS, "ro", self.logs, self.train_command(FIELDS)))
        self.assert_refused(done, DATA, f"the run folder cannot be made: path={self.run_folder}", f"cannot make the folders of {self.run_folder}",
                            "reason=Read-only file system", "Choose a path", "Name a folder for all runs with --log_root.")

    def test_a_file_where_the_folder_should_be(self):
        self.logs.write_text("a note\n")
        done = self.train(FIELDS)
        self.assert_refused(done, DATA, f"cannot make the folders of {self.run_folder}", "reason=Not a directory", "should be a folder is a file")
        self.assertEqual(self.logs.read_text(), "a note\n")

    def test_a_folder_that_the_system_owns(self):
        done = self.train({**FIELDS, "expdir": "/proc/welkin"})
        self.assert_refused(done, DATA, "/proc/welkin", "Check the path")

    def test_the_run_folder_of_another_configuration(self):
        self.assertEqual(self.train(FIELDS).returncode, DONE)
        before = tree(self.run_folder), (self.run_folder / "out.log").read_bytes(), (self.run_folder / "config.yaml").read_bytes()
        done = self.train({**FIELDS, "embed_dim": 32})
        self.assert_refused(done, USAGE, f"the run folder holds another configuration: path={self.run_folder}", "embed_dim=16 and 32",
                            "Choose another --run_num, remove the folder, or continue that run with --resume")
        self.assertEqual((tree(self.run_folder), (self.run_folder / "out.log").read_bytes(), (self.run_folder / "config.yaml").read_bytes()), before)

    def test_a_resume_with_another_model_keeps_what_is_there(self):
        self.assertEqual(self.train(FIELDS).returncode, DONE)
        before = tree(self.run_folder / "checkpoints")
        done = self.train({**FIELDS, "embed_dim": 32}, "--resume")
        self.assert_refused(done, CHECKPOINT, "checkpoints/step_4", "configuration")
        self.assertEqual(tree(self.run_folder / "checkpoints"), before)


    def test_a_conversion_of_more_than_the_disk_has(self):
        path = self.root / "huge.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset("fields", shape=(2, 3, 8, 1 << 48), dtype="f4", chunks=(1, 3, 8, 16))
        for flags in ((), ("--compress", "gzip")):
            done = self.run_command([BINARY, "data", "convert", path, self.root / "out.h5", "--format", "hdf5", *flags])
            self.assert_refused(done, DATA, "the output has no room", f"path={path}", "GiB free=", "welkin data inspect")


class FullDisk(BadInputCase):
    def setUp(self):
        super().setUp()
        self.make_fields()

    def assert_no_remains(self, paths):
        for path in paths:
            self.assertNotRegex(path, r"\.tmp$|\.partial|\.removed")

    @needs_mounts
    def test_no_room_for_the_run_folder(self):
        done = self.run_command(on_tmpfs(MOUNTS, "nr_inodes=3", self.logs, self.train_command(FIELDS)))
        self.assert_refused(done, DATA, "reason=No space left on device", "Free space on that disk")

    @needs_mounts
    def test_checkpoints_that_do_not_fit_lose_nothing(self):
        # Two runs on one disk, the second after room was made; what the first left is listed between them.
        script = ('mount -t tmpfs -o size=1100k tmpfs "$0" && "$@"; code=$?; (cd "$0" && find . -type f) > "$0.files"; '
                  'mount -o remount,size=64m "$0" && "$@" --resume && echo resumed; exit $code')
        self.logs.mkdir()
        command = self.train_command({**WIDE, "checkpoint_interval": 1, "keep_checkpoints": 1})
        done = self.run_command([*MOUNTS, "sh", "-c", script, self.logs, *command])
        first = done.stderr[:done.stderr.index("welkin: [") + 400]
        self.assertEqual(done.returncode, CHECKPOINT, done.stdout + done.stderr)
        self.assertIn("[checkpoint] cannot be saved: path=", first)
        self.assertIn("No space left on device", first)
        self.assertIn("continue with --resume; earlier checkpoints are untouched", done.stderr)
        files = (self.root / "logs.files").read_text().splitlines()
        self.assert_no_remains(files)
        self.assertIn("./base/1GPU/00/checkpoints/step_1/index.json", files)
        self.assertEqual(sum(path.endswith("index.json") for path in files), 1)
        self.assertIn("Resumed at step 1", done.stderr + done.stdout)
        self.assertTrue(done.stdout.endswith("resumed\n"), done.stdout + done.stderr)

    @needs_mounts
    def test_a_signal_with_nothing_saved_says_so(self):
        command = self.train_command({**WIDE, "num_iters": 1000000})
        process = self.start(on_tmpfs(MOUNTS, "size=200k", self.logs, command))
        log = []
        for line in process.stdout:
            log.append(line)
            if "Starting Training Loop" in line:
                process.send_signal(signal.SIGTERM)
        code = process.wait(timeout=30)
        self.assertEqual(code, INTERRUPTED, "".join(log))
        self.assertIn("interrupted, and nothing could be saved: signal=SIGTERM, step=", log[-1])
        self.assertIn("No space left on device", "".join(log))

    @needs_mounts
    def test_events_that_cannot_be_written_do_not_end_the_run(self):
        command = self.train_command({**FIELDS, "num_iters": 40})  # twenty epochs, each with a picture
        done = self.run_command(on_tmpfs(MOUNTS, "size=8k", self.run_folder / "logs", command))
        self.assertEqual(done.returncode, DONE, done.stdout + done.stderr)
        self.assertRegex(done.stderr, "ERROR - .*cannot write: path=.*events.out.tfevents.*No space left on device")
        self.assertTrue((self.run_folder / "checkpoints/step_40/index.json").exists())

    def test_limit_on_file_sizes(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (100 << 10, 100 << 10))
        done = self.train(WIDE, preexec_fn=limit)
        self.assert_refused(done, CHECKPOINT, f"cannot be saved: path={self.run_folder}/checkpoints/step_4, step=4", "reason=File too large",
                            "ulimit -f", "continue with --resume")
        self.assert_no_remains(tree(self.run_folder))
        self.assertEqual(list((self.run_folder / "checkpoints").iterdir()), [])
        self.assertEqual(self.train(WIDE, "--resume").returncode, DONE)

    def test_a_log_that_cannot_be_written_does_not_end_the_run(self):
        self.run_folder.mkdir(parents=True)
        (self.run_folder / "out.log").symlink_to("/dev/full")
        done = self.train(FIELDS)
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertEqual((done.stdout + done.stderr).count("No space left on device"), 1)
        self.assertTrue((self.run_folder / "checkpoints/step_4/index.json").exists())


if __name__ == "__main__":
    unittest.main()
