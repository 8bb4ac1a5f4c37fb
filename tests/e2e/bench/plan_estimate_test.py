#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`welkin plan estimate`: the lecture's formulas for language models, by hand, and flags that a question does not read."""
import json
import math
import os
import subprocess
import unittest

BINARY = os.environ["WELKIN_BINARY"]
PRESET = ("--yaml_config", os.environ["WELKIN_SOURCE_DIR"] + "/config/ViT.yaml", "--config", "base")


class PlanEstimate(unittest.TestCase):
    def estimate(self, *flags, code=0):
        done = subprocess.run([BINARY, "plan", "estimate", *map(str, flags)], capture_output=True, text=True, check=False, timeout=120)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def figures(self, *flags):
        return json.loads(self.estimate(*flags, "--json", "-"))

    def near(self, figure, value):
        self.assertTrue(math.isclose(figure["value"], value, rel_tol=1e-9), (figure, value))

    def test_a_gpt_by_hand(self):
        layers, hidden, sequence, vocabulary, batch, tokens, devices, rate = 10, 640, 320, 5000, 6, 3e9, 7, 11e12
        found = self.figures("--layers", layers, "--hidden", hidden, "--sequence", sequence, "--vocabulary", vocabulary, "--batch", batch, "--tokens", tokens,
                             "--devices", devices, "--rate", 11, "--flops_per_parameter", 6)["language model"]
        parameters = 12 * layers * hidden ** 2 * (1 + 13 / (12 * hidden) + (vocabulary + sequence) / (12 * layers * hidden))
        flops = 96 * batch * sequence * layers * hidden ** 2 * (1 + sequence / (6 * hidden) + vocabulary / (16 * layers * hidden))
        self.near(found["parameters"], parameters / 1e9)
        self.near(found["FLOPs of a step"], flops / 1e15)
        self.near(found["time of a step"], flops / (devices * rate))
        self.near(found["days to train"], 6 * tokens * parameters / (devices * rate) / 86400)

    def test_a_small_model_has_digits(self):
        text = self.estimate("--layers", 4, "--hidden", 256, "--vocabulary", 1000, "--sequence", 64, "--batch", 8, "--rate", 100, "--tokens", 1e8)
        parameters = 12 * 4 * 256 ** 2 * (1 + 13 / (12 * 256) + 1064 / (12 * 4 * 256))
        flops = 96 * 8 * 64 * 4 * 256 ** 2 * (1 + 64 / (6 * 256) + 1000 / (16 * 4 * 256))
        training = 8 * 1e8 * parameters
        for name, value in (("parameters", parameters / 1e9), ("time of a step", flops / 1e14), ("FLOPs of the training", training / 1e15 / 86400),
                            ("days to train", training / 1e14 / 86400)):
            self.assertRegex(text, rf"{name} +{value:.{1 - math.floor(math.log10(value))}f} ")

    def test_given_parameters_of_a_gpt_count(self):
        self.assertRegex(self.estimate("--layers", 10, "--hidden", 640, "--parameters", 2e9), r"parameters +2\.000 +1e9 +given")
        self.assertRegex(self.estimate("--layers", 10, "--hidden", 640), r"parameters +0\.083 +1e9 +12 l h\^2")

    def test_flags_that_the_question_does_not_read_are_refused(self):
        cases = ((("--lecture", "--parameters", "1e9"), "--parameters"),
                 (("--lecture", "--devices", "4", "--rate", "9"), "--devices, --rate"),
                 (("--parameters", "1e9", "--batch", "8", "--sequence", "512"), "--batch, --sequence"),
                 (("--parameters", "1e9", "--flops_per_parameter", "6"), "--flops_per_parameter"),
                 (("--parameters", "1e9", "--shard", "full", "--set", "lr=1"), "--shard, --set lr"),
                 (("--parameters", "1e9", *PRESET), "--yaml_config, --config"),
                 (("--parameters", "1e9", "--save_seconds", "3", "--mtbf", "9"), "--save_seconds, --mtbf"),
                 ((*PRESET, "--hidden", "64"), "--hidden"),
                 ((*PRESET, "--tokens", "1e9", "--batch", "2"), "--batch, --tokens"),
                 ((*PRESET, "--write_seconds", "2", "--nodes", "3"), "--nodes, --write_seconds"),
                 (("--mtbf", "600", "--save_seconds", "3", "--rate", "2", "--devices", "8"), "--devices, --rate"),
                 (("--mtbf", "600", "--save_seconds", "3", "--tensor_parallel", "2"), "--tensor_parallel"))
        for flags, names in cases:
            message = self.estimate(*flags, code=2)
            self.assertIn(f"[plan estimate] flags without effect on this estimate: {names}. ", message)
            self.assertIn("--help", message)


if __name__ == "__main__":
    unittest.main()
