# SPDX-License-Identifier: Apache-2.0
"""`welkin train --profile --timeline` as users run it: the files, what TensorBoard's PyTorch plug-in asks of them, and what is refused."""
import json
import re
import unittest
import xml.etree.ElementTree as ElementTree

from bad_input_case import BOXES, DATA, DONE, USAGE, BadInputCase

SYNTHETIC = {**BOXES, "data_loader_config": "synthetic", "Nsamples": 8, "Nsamples_val": 2, "global_batch_size": 1, "num_epochs": 1}


class Profile(BadInputCase):
    def test_traces_and_a_timeline(self):
        done = self.train(SYNTHETIC, "--profile", "wait=1,warmup=1,active=2,repeat=2", "--timeline", "--num_data_workers", 2)
        self.assertEqual(done.returncode, DONE, done.stderr)
        folder = self.run_folder / "profile"
        # The plug-in's own pattern: worker, optionally a time, then the ending.
        traces = [path for path in folder.iterdir() if re.fullmatch(r"(.*?)(\.\d+)?\.pt\.trace\.json(?:\.gz)?", path.name)]
        self.assertEqual(len(traces), 2, "wait + warmup + active, twice, in eight steps")
        steps = []
        for path in sorted(traces):
            trace = json.loads(path.read_text())
            self.assertIn("schemaVersion", trace)
            self.assertIn("deviceProperties", trace)
            events = [event for event in trace["traceEvents"] if event.get("ph") == "X"]
            steps.append(sorted(event["name"] for event in events if event["name"].startswith("ProfilerStep#")))
            self.assertTrue({"forward", "backward", "optimizer"} <= {event["name"] for event in events})
            self.assertTrue(any(event.get("cat") == "cpu_op" and "conv" in event["name"] for event in events))
        self.assertEqual(steps, [["ProfilerStep#2", "ProfilerStep#3"], ["ProfilerStep#6", "ProfilerStep#7"]])
        log = (self.run_folder / "out.log").read_text()
        self.assertEqual(len(re.findall(r"^contraction ", log, re.MULTILINE)), 2)
        self.assertRegex(log, r"Timeline: idle [\d.]+ % of [\d.]+ s; reading [^\n]*; the profiler's own [\d.]+ s are not counted")
        self.assertEqual(ElementTree.parse(folder / "timeline.svg").getroot().tag, "{http://www.w3.org/2000/svg}svg")
        spans = json.loads((folder / "timeline.json").read_text())["traceEvents"]
        self.assertEqual(sum(event["name"] == "step 7" for event in spans), 1)
        self.assertGreaterEqual(sum(event["name"] == "profiler" for event in spans), 4, "begun and written, twice")

    def test_what_cannot_be_written_is_a_warning_and_an_exit_code(self):
        for flag in ("--timeline", "--profile"):
            with self.subTest(flag=flag):
                self.run_folder.mkdir(parents=True, exist_ok=True)
                (self.run_folder / "profile").write_text("in the way of the folder")
                done = self.train(SYNTHETIC, flag)
                self.assertEqual(done.returncode, DATA, done.stderr)
                self.assertRegex((self.run_folder / "out.log").read_text(), r"WARNING - .*/profile")
                self.assertIn("DONE ---- rank 0", (self.run_folder / "out.log").read_text())
                self.assertTrue(list(self.run_folder.glob("checkpoints/step_*/model.safetensors")), "what was trained is kept")

    def test_bare_profile_and_bad_values(self):
        done = self.train(SYNTHETIC, "--profile", "--profile_steps", "2-6")
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertIn("Profiling epoch 0, steps 2 to 6", (self.run_folder / "out.log").read_text())
        self.assertEqual(len(list((self.run_folder / "profile").glob("*.pt.trace.json"))), 1)
        self.assert_refused(self.train(SYNTHETIC, "--profile", "wiat=1"), USAGE, "[profile] no schedule of the profiler: profile=wiat=1, unknown part: wiat")
        for flags in (["--timeline"], ["--profile"], ["--profile_epoch", "1"]):
            self.assert_refused(self.train({**SYNTHETIC, "num_epochs": 20}, "--enable_benchy", *flags), USAGE, "[benchy] --profile, --timeline and their window cannot be used with --enable_benchy",
                                "whose epochs are trials", "Measure first, then profile")
        self.assert_refused(self.train(SYNTHETIC, "--timeline", "--profile_steps", "9-2"), USAGE, "not a number or a range: --profile_steps 9-2")


if __name__ == "__main__":
    unittest.main()
