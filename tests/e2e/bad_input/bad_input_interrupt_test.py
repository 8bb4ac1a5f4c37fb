# SPDX-License-Identifier: Apache-2.0
"""What happens to a run while it lasts: files that vanish, a writer that is killed, checkpoints that are damaged afterwards."""
import os
import shutil
import signal
import unittest

from bad_input_case import CHECKPOINT, DATA, DONE, FIELDS, BadInputCase, tree, truncate

ENDLESS = {**FIELDS, "num_iters": 1000000, "checkpoint_interval": 20}


class FilesThatChange(BadInputCase):
    def setUp(self):
        super().setUp()
        self.make_fields()
        self.year = self.data / "train/2000.h5"
        shutil.copy(self.year, self.root / "copy.h5")

    def steps(self):
        """Steps of the finished checkpoints, newest first."""
        folder = self.run_folder / "checkpoints"
        return sorted((int(path.name[5:]) for path in folder.glob("step_*")), reverse=True) if folder.exists() else []

    def fail_while_training(self, change, *parts, **keys):
        process = self.start(self.train_command({**ENDLESS, **keys}))
        self.wait_until(self.steps, process)
        change()
        log = process.communicate(timeout=30)[0]
        self.assertEqual(process.returncode, DATA, log)
        message = log[log.rfind("welkin: ["):]
        for part in (f"path={self.year}", "resume from the last checkpoint", *parts):
            self.assertIn(part, message)
        os.replace(self.root / "copy.h5", self.year)
        newest = self.steps()[0]
        done = self.train({**ENDLESS, **keys}, "--resume", "--num_iters", str(newest + 1))
        self.assertEqual(done.returncode, DONE, done.stdout + done.stderr)
        self.assertIn(f"Resumed at step {newest} ", done.stdout + done.stderr)

    def test_truncated(self):
        self.fail_while_training(lambda: truncate(self.year), "the file was truncated or written to while it was being read", "bytes_now=")

    def test_truncated_with_reading_threads(self):
        self.fail_while_training(lambda: truncate(self.year, 0), "the file was truncated or written to", "bytes_now=0", num_data_workers=2)

    def test_removed(self):
        self.fail_while_training(self.year.unlink, "the file was removed or replaced while it was being read")

    def test_overwritten(self):
        def overwrite():
            with open(self.year, "r+b") as file:
                file.seek(3000)
                file.write(b"\0" * 4000)
        self.fail_while_training(overwrite, "written to while it was being read")


class KilledWriter(BadInputCase):
    def setUp(self):
        super().setUp()
        self.make_fields()
        self.checkpoints = self.run_folder / "checkpoints"

    def kill_while_saving(self, keys):
        """Stops the process at a moment when a checkpoint is half written, and kills it there."""
        process = self.start(self.train_command(keys))
        def is_saving():
            return self.checkpoints.exists() and len(list(self.checkpoints.glob("step_*"))) > 0 and any(self.checkpoints.glob(".step_*.partial*"))
        while True:
            self.wait_until(is_saving, process)
            process.send_signal(signal.SIGSTOP)
            self.wait_until(lambda: "T" in self.state(process))
            if is_saving():
                break
            process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait(timeout=30)

    @staticmethod
    def state(process):
        with open(f"/proc/{process.pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]

    def test_resume_works_from_the_last_whole_checkpoint(self):
        keys = {**ENDLESS, "checkpoint_interval": 1, "embed_dim": 64}
        self.kill_while_saving(keys)
        newest = max(int(path.name[5:]) for path in self.checkpoints.glob("step_*"))
        done = self.train(keys, "--resume", "--num_iters", str(newest + 2))
        self.assertEqual(done.returncode, DONE, done.stdout + done.stderr)
        self.assertIn(f"Resumed at step {newest} from {self.checkpoints}/step_{newest}", done.stdout + done.stderr)
        self.assertNotIn("WARNING", done.stdout + done.stderr)
        self.assertEqual([path for path in tree(self.run_folder) if "partial" in path or "removed" in path or path.endswith(".tmp")], [])


class DamagedCheckpoints(BadInputCase):
    KEYS = {**FIELDS, "checkpoint_interval": 1}

    def setUp(self):
        super().setUp()
        self.make_fields()
        done = self.train(self.KEYS)
        self.assertEqual(done.returncode, DONE, done.stdout + done.stderr)
        self.checkpoints = self.run_folder / "checkpoints"
        self.newest = self.checkpoints / "step_4"

    def resume_from_before(self, *warnings):
        done = self.train(self.KEYS, "--resume", "--num_iters", "6")
        log = done.stdout + done.stderr
        self.assertEqual(done.returncode, DONE, log)
        self.assertRegex(log, "WARNING - .*" + str(self.newest))
        for part in (*warnings, f"Resumed at step 3 from {self.checkpoints}/step_3"):
            self.assertIn(part, log)
        self.assertTrue((self.checkpoints / "step_6/index.json").exists())

    def test_truncated_weights(self):
        truncate(self.newest / "model.safetensors")
        self.resume_from_before("a file has the wrong size")

    def test_flipped_bit(self):
        with open(self.newest / "optimizer.safetensors", "r+b") as file:
            file.seek(-5, os.SEEK_END)
            byte = file.read(1)[0]
            file.seek(-5, os.SEEK_END)
            file.write(bytes([byte ^ 1]))
        self.resume_from_before("a file is damaged", "xxh3=")

    def test_missing_file(self):
        (self.newest / "state.safetensors").unlink()
        self.resume_from_before("a file is missing")

    def test_index_that_is_gone_or_nonsense(self):
        (self.newest / "index.json").write_text('{"format": [[[[[[')
        self.resume_from_before("index.json cannot be used")

    def test_nothing_good_is_left(self):
        for step in self.checkpoints.glob("step_*"):
            truncate(step / "model.safetensors")
        before = tree(self.checkpoints)
        done = self.train(self.KEYS, "--resume")
        self.assert_refused(done, CHECKPOINT, "no checkpoint of the run is whole", f"path={self.checkpoints}", "without --resume")
        self.assertEqual(tree(self.checkpoints), before)


if __name__ == "__main__":
    unittest.main()
