# SPDX-License-Identifier: Apache-2.0
"""`welkin evaluate` and `welkin predict` on runs, checkpoints and outputs that are bad."""
import json
import subprocess
import unittest

from bad_input_case import BINARY, CHECKPOINT, DATA, DONE, FIELDS, USAGE, BadInputCase, tree, truncate


class BadRuns(BadInputCase):
    one_process = True

    def setUp(self):
        super().setUp()
        self.make_fields()

    def refuse(self, verb, code, *parts, arguments=()):
        before = tree(self.root)
        self.assert_refused(self.run_command([BINARY, verb, self.run_folder, *arguments]), code, *parts)
        self.assertEqual(tree(self.root), before)

    def train_once(self):
        done = self.train(FIELDS)
        self.assertEqual(done.returncode, DONE, done.stderr)

    def test_a_folder_without_a_run(self):
        self.refuse("evaluate", USAGE, f"this is no run folder, it holds no config.yaml: path={self.run_folder}", "<expdir>/<config>/<W>GPU/<run_num>")

    def test_checkpoints_that_are_absent_or_damaged(self):
        self.train_once()
        self.refuse("evaluate", CHECKPOINT, "there is no such checkpoint", "checkpoint=7", "Choose best, newest, or a step: 4",
                    arguments=("--checkpoint", "7"))
        truncate(self.run_folder / "checkpoints/step_4/model.safetensors")
        for verb in "evaluate", "predict":
            self.refuse(verb, CHECKPOINT, "a file has the wrong size", "step_4/model.safetensors", "Use another checkpoint",
                        arguments=("--checkpoint", "newest"))

    def scores(self, *arguments):
        done = self.run_command([BINARY, "evaluate", *arguments, "--json", self.root / "scores.json"])
        self.assertEqual(done.returncode, DONE, done.stderr)
        scores = json.loads((self.root / "scores.json").read_text())
        return scores["channels"]

    def test_data_that_have_moved(self):
        self.train_once()
        before = self.scores(self.run_folder)
        self.refuse("evaluate", DATA, "path=/nonexistent/valid", "--data_root", arguments=("--data_root", "/nonexistent"))
        self.data.rename(self.root / "moved")
        self.refuse("evaluate", DATA, f"path={self.data}/valid", "--data_root")
        self.assertEqual(self.scores(self.run_folder, "--data_root", self.root / "moved"), before)

    def test_a_relative_root_holds_in_another_folder(self):
        done = self.train(FIELDS, "--data_root", "data")
        self.assertEqual(done.returncode, DONE, done.stderr)
        done = self.train(FIELDS, "--data_root", "data", "--resume", "--num_iters", "6")
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertNotIn("path", done.stdout.partition("had another configuration")[2].partition("\n")[0])
        done = subprocess.run([BINARY, "evaluate", self.run_folder], capture_output=True, text=True, timeout=60, cwd="/")
        self.assertEqual(done.returncode, DONE, done.stderr)

    def test_runs_of_several_processes(self):
        for folder, flags in ("2MP", ("--tp", "2", "--set", "sequence_parallel=true")), ("2MP", ("--cp", "2", "--run_num", "cp")), ("2GPU", ()):
            train = self.train_command({**FIELDS, "local_batch_size": 2} if folder == "2GPU" else FIELDS, *flags)
            done = self.run_command([BINARY, "launch", "-n", "2", "--bind", "off", "--", *train[1:]])
            self.assertEqual(done.returncode, DONE, done.stderr)
            run = self.logs / "base" / folder / ("cp" if "cp" in flags else "00")
            alone = self.train_command(FIELDS)[2:]
            self.assertEqual(self.scores(run), self.scores(*alone, "--checkpoint", run / "checkpoints/step_4"))
            done = self.run_command([BINARY, "predict", run, "--output", self.root / run.name / folder, "--samples", "2"])
            self.assertEqual(done.returncode, DONE, done.stderr)

    def test_data_and_output_that_are_bad(self):
        self.train_once()
        self.refuse("evaluate", DATA, "cannot create: path=/proc/scores.json", arguments=("--json", "/proc/scores.json"))
        truncate(self.data / "valid/2001.h5")
        self.refuse("evaluate", DATA, f"{self.data}/valid/2001.h5", "truncated")
        # Before the data are looked at: scores of an hour would be lost.
        self.refuse("evaluate", USAGE, "this file cannot be written: --json=/nowhere/scores.json", arguments=("--json", "/nowhere/scores.json"))


if __name__ == "__main__":
    unittest.main()
