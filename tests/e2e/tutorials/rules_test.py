# SPDX-License-Identifier: Apache-2.0
"""The shipped program under old rules, the deterministic mode, TF32's variable and a memory limit."""
import os
import unittest

from bad_input_case import BINARY, BOXES, DONE, OTHER, USAGE, BadInputCase

SYNTHETIC = {**BOXES, "data_loader_config": "synthetic", "Nsamples": 5, "Nsamples_val": 3}


def losses(log):
    return [line.split(": ")[-1].split("=")[-1] for line in log.splitlines() if "loss=" in line]


class Rules(BadInputCase):
    one_process = True

    def log(self):
        return (self.run_folder / "out.log").read_text()

    def test_a_run_records_its_rules_and_keeps_them(self):
        self.assertEqual(self.train(SYNTHETIC, "--compat", "sc22").returncode, DONE)
        for line in ("compat sc22", "crop_rule exclusive", "validation_rule drawn", "schedule unet_tutorial", "augment tutorial"):
            self.assertIn(line, self.log())
        self.assertIn("crop_rule: exclusive", (self.run_folder / "config.yaml").read_text())
        before = self.log()
        done = self.train(SYNTHETIC, "--compat", "sc21", "--resume")
        self.assert_refused(done, USAGE, "the run to resume has other rules", "compat=sc22 and sc21", "--run_num")
        done = self.train(SYNTHETIC, "--resume")
        self.assert_refused(done, USAGE, "crop_rule=exclusive and inclusive")
        self.assertEqual(self.log(), before)
        self.assertEqual(self.train(SYNTHETIC, "--compat", "sc22", "--resume", "--num_epochs", "2").returncode, DONE)

    def test_deterministic_runs_are_equal_bit_for_bit(self):
        traces = set()
        for workers in (0, 1, 3):
            run = f"{workers:02d}"
            done = self.train(SYNTHETIC, "--deterministic", "--num_data_workers", workers, "--run_num", run, "--num_epochs", "2")
            self.assertEqual(done.returncode, DONE, done.stderr)
            folder = self.run_folder.parent / run
            files = [path.read_bytes() for path in sorted((folder / "checkpoints/step_6").glob("*.safetensors"))]
            self.assertEqual(len(files), 3)
            log = (folder / "out.log").read_text()
            self.assertIn("deterministic True", log)
            self.assertEqual(len(losses(log)), 4)
            traces.add((*files, *losses(log)))
        self.assertEqual(len(traces), 1)

    def test_tf32_and_its_origin_are_printed(self):
        for variable, flags, state in (
                (None, [], "tf32 on (default)"), (None, ["--tf32", "off"], "tf32 off (--tf32)"),
                ("0", ["--tf32", "on"], "tf32 off (NVIDIA_TF32_OVERRIDE=0)")):
            environment = {name: value for name, value in os.environ.items() if name != "NVIDIA_TF32_OVERRIDE"}
            if variable is not None:
                environment["NVIDIA_TF32_OVERRIDE"] = variable
            done = self.train(SYNTHETIC, "--dry_run", *flags, env=environment)
            name, value = state.split(" ")[:2]
            origin = state[state.index("(") + 1:-1]
            self.assertRegex(done.stdout, rf"{name} +{value} +{origin}")
            done = self.train(SYNTHETIC, "--run_num", str(len(flags)) + (variable or ""), *flags, env=environment)
            self.assertIn(state, done.stdout + done.stderr)

    def test_a_memory_limit_says_where_the_memory_is(self):
        done = self.train({**SYNTHETIC, "width": 16}, "--memory_limit_gib", "0.001")
        self.assert_refused(done, OTHER, "[memory] tensors would take more memory than the limit allows: requested=", "limit=1.0 MiB", "weights=",
                            "activations=", "--memory_limit_gib")
        self.assertIn("activations", self.log())

    def test_a_memory_limit_that_no_number_of_bytes_holds_is_refused(self):
        self.assert_refused(self.train(SYNTHETIC, "--memory_limit_gib", "1e300"), USAGE, "memory_limit_gib must be at most 1048576")

    def test_a_memory_limit_holds_for_other_verbs_too(self):
        keys = {**SYNTHETIC, "width": 16}
        self.assertEqual(self.train(keys).returncode, DONE)
        steps = [BINARY, "bench", *self.train_command(keys)[2:], "--windows", "1", "--window_seconds", "0.01", "--warmup_seconds", "0"]
        verbs = ([BINARY, "evaluate", self.run_folder], [BINARY, "predict", self.run_folder], [*steps, "--mode", "synthetic"],
                 [*steps, "--mode", "io"], [*steps, "--memory"])
        for command in verbs:
            done = self.run_command([*command, "--memory_limit_gib", "0.00001"])
            self.assert_refused(done, OTHER, "[memory] tensors would take more memory than the limit allows: requested=", "limit=10.5 KiB",
                                "weights=", "activations=", " shrink with ", "--memory_limit_gib")


if __name__ == "__main__":
    unittest.main()
