#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`welkin ... | head -1`: a reader that goes away ends the output to it, not the run."""
import subprocess
import unittest

from bad_input_case import BINARY, DONE, FIELDS, BadInputCase


class ClosedOutput(BadInputCase):
    def setUp(self):
        super().setUp()
        self.make_fields()

    def test_a_run_goes_on_and_its_log_is_complete(self):
        command = self.train_command({**FIELDS, "num_iters": 40, "checkpoint_interval": 10})
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.root)
        self.addCleanup(process.kill)
        self.assertIn("Configuration", process.stdout.readline())
        process.stdout.close()
        self.assertEqual(process.wait(timeout=60), DONE)
        log = (self.run_folder / "out.log").read_text()
        self.assertIn("DONE ---- rank 0", log)
        self.assertEqual(log.count("Avg val loss"), 20)
        self.assertNotIn("Broken pipe", log)
        for step in (40,):
            self.assertTrue((self.run_folder / f"checkpoints/step_{step}/index.json").exists(), step)

    def test_in_a_shell(self):
        line = f'{" ".join(self.train_command(FIELDS))} 2>&1 | head -1; echo ${{PIPESTATUS[0]}}'
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, cwd=self.root)
        self.assertEqual(len(done.stdout.splitlines()), 2, done.stdout)
        self.assertEqual(done.stdout.splitlines()[1], str(DONE))
        self.assertTrue((self.run_folder / "checkpoints/step_4/index.json").exists())

    def test_under_a_launcher(self):
        line = f'{BINARY} launch -n 1 -- {" ".join(self.train_command(FIELDS)[1:])} 2>&1 | head -1; echo ${{PIPESTATUS[0]}}'
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, cwd=self.root)
        self.assertEqual(done.stdout.splitlines()[-1], str(DONE), done.stdout)
        self.assertTrue((self.run_folder / "checkpoints/step_4/index.json").exists())

    def test_streams_that_were_never_open(self):
        """As a daemon's: no file of the run gets their numbers, and with them what is written there."""
        words = self.train_command({**FIELDS, "data_loader_config": "synthetic"})[1:]
        line = f'{BINARY} --bind off {" ".join(words)} <&- >&- 2>&-'
        self.assertEqual(subprocess.run(["bash", "-c", line], timeout=60, cwd=self.root, check=False).returncode, DONE)
        for path in self.run_folder.rglob("*"):
            if path.is_file() and path.name != "out.log":
                self.assertNotIn(b"Avg val loss", path.read_bytes(), path)
        done = self.run_command([BINARY, "report", self.run_folder, "--output", self.root / "report.html"])
        self.assertEqual(done.returncode, DONE, done.stderr)

    def test_results_on_standard_output(self):
        line = f'{" ".join(self.train_command(FIELDS, "--dry_run"))} | true; echo ${{PIPESTATUS[0]}}'
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, cwd=self.root)
        self.assertEqual((done.stdout, done.stderr), (f"{DONE}\n", ""))


if __name__ == "__main__":
    unittest.main()
