#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`welkin plan schedule`: the table of a pipeline as text and as a picture; what `plan estimate` makes of it."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

BINARY = os.environ["WELKIN_BINARY"]


class PlanSchedule(unittest.TestCase):
    def run_plan(self, *flags, code=0):
        done = subprocess.run([BINARY, "plan", "schedule", *flags], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout + done.stderr

    def test_the_table_is_printed_with_its_figures(self):
        self.assertEqual(self.run_plan("--pipeline_parallel", "2", "--micro_batches", "2"),
                         "1f1b: 2 ranks, 2 micro-batches\n"
                         "rank 0   F0 F1 .  .  B0 -  .  B1 -\n"
                         "rank 1   .  F0 B0 -  F1 B1 -  .  .\n"
                         "idle 33.3 % of the time (formula: 33.3 %); activations of 2 1 micro-batches held at once\n")
        for schedule, idle in (("gpipe", "27.3"), ("1f1b", "27.3"), ("interleaved", "15.8"), ("zero_bubble", "11.1")):
            text = self.run_plan("--pipeline_schedule", schedule)
            self.assertIn(f"idle {idle} % of the time (formula: {idle} %)", text)

    def test_steps_of_the_model_follow_each_other(self):
        text = self.run_plan("--pipeline_parallel", "2", "--micro_batches", "2", "--multistep", "2")
        self.assertIn("1f1b: 2 ranks, 2 micro-batches, 2 steps of the model\n", text)
        self.assertIn("idle 20.0 % of the time (formula: 20.0 %); activations of 4 3 steps of micro-batches held at once\n", text)
        text = self.run_plan("--multistep", "3", "--multistep_gradient", "last")
        self.assertIn("1f1b: 4 ranks, 8 micro-batches, 3 steps of the model, a gradient of the last\n", text)
        self.assertIn("activations of 4 3 2 1 steps of micro-batches held at once", text)

    def test_an_estimate_counts_the_steps_that_a_rank_holds(self):
        def estimated(*flags):
            command = [BINARY, "plan", "estimate", "--yaml_config", os.environ["WELKIN_SOURCE_DIR"] + "/config/ViT.yaml", "--config", "base"]
            done = subprocess.run([*command, "--devices", "2", "--json", "-", "--pipeline_parallel", "2", "--micro_batch_size", "1", *flags],
                                  capture_output=True, text=True, check=True)
            return next(figures for title, figures in json.loads(done.stdout).items() if title.startswith("memory of a rank"))["activations"]["value"]

        one, two = estimated(), estimated("--multistep", "2")
        self.assertEqual(round(2 * two / one), 5)  # 2 micro-batches at once; with two steps (n - 1) P + 2 (P - 1) + 1
        self.assertLess(estimated("--multistep", "2", "--multistep_recompute"), one)

    def test_the_picture_is_svg(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "schedule.svg"
            self.run_plan("--pipeline_schedule", "zero_bubble", "--svg", str(path))
            page = xml.etree.ElementTree.parse(path).getroot()
        words = [element.text for element in page.iter("{http://www.w3.org/2000/svg}text")]
        self.assertIn("zero_bubble: 4 ranks, 8 micro-batches", words)
        self.assertIn("of weights", words)

    def test_a_shape_that_does_not_go_is_refused(self):
        text = self.run_plan("--pipeline_schedule", "interleaved", "--micro_batches", "6", code=2)
        self.assertIn("the ranks of the pipeline do not divide the micro-batches of a step", text)
        self.assertIn("makes 4 or 8 micro-batches, or take pipeline_schedule: 1f1b", text)

    def test_an_estimate_takes_the_cut_of_a_run(self):
        """The deep levels of a U-Net have nearly all of its weights, and are one stage."""
        def estimated(*flags):
            command = [BINARY, "plan", "estimate", "--yaml_config", os.environ["WELKIN_SOURCE_DIR"] + "/config/UNet.yaml", "--config", "base"]
            done = subprocess.run([*command, "--devices", "2", "--json", "-", *flags], capture_output=True, text=True, check=True)
            return next(figures for title, figures in json.loads(done.stdout).items() if title.startswith("memory of a rank"))

        whole = estimated()["weights"]["value"]
        pipeline = ("--pipeline_parallel", "2", "--micro_batch_size", "1")
        for split, rank, share in ((), 0, 0.9), (("--pipeline_split", "0,1-10"), 1, 0.98):
            with self.subTest(split=split):
                figures = estimated(*pipeline, *split)
                self.assertEqual(figures["rank of the pipeline"]["value"], rank)
                self.assertGreater(figures["weights"]["value"], share * whole)
                self.assertLess(figures["weights"]["value"], whole)


if __name__ == "__main__":
    unittest.main()
