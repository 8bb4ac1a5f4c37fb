#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--help of every verb fits a screen, --help=all of those that take a configuration says everything, for every verb alike."""
import functools
import os
import re
import subprocess
import sys
import unittest

BINARY = os.environ["WELKIN_BINARY"]
LINES, COLUMNS = 50, 100
CONFIGURED = ("train", "evaluate", "predict", "forecast", "data climatology", "bench", "plan estimate", "plan search", "ckpt import", "ckpt package")
FORMS = ("data simulate nbody", "data simulate weather", "verify --layouts", "bench --tiles", "bench --collectives", "bench --scaling weak",
         "bench --parallel_figure overlap")


@functools.cache  # a start is half a second, and most tests look at every verb
def welkin(*words):
    return subprocess.run([BINARY, *words], capture_output=True, text=True, timeout=60)


def verbs():
    return re.findall(r"^  ([a-z]+(?: [a-z]+)?)  +\S", welkin("--help").stdout.split("verbs:")[-1], re.MULTILINE)


class Help(unittest.TestCase):
    def help(self, verb, form="--help"):
        done = welkin(*verb.split(), form)
        self.assertEqual((done.returncode, done.stderr), (0, ""), verb)
        return done.stdout

    def test_fits_a_screen(self):
        self.assertIn("train", verbs())
        for verb in ("", *verbs(), *FORMS):
            lines = self.help(verb).splitlines()
            self.assertLessEqual(len(lines), LINES, verb)
            self.assertLessEqual(max(map(len, lines)), COLUMNS, verb)

    def test_h_is_help(self):
        for verb in ("", "train", "data inspect", "launch", "bench collectives"):  # one for each parser
            self.assertEqual(self.help(verb), self.help(verb, "-h"), verb)

    def test_all_is_more_for_verbs_with_a_configuration_and_equal_for_others(self):
        for verb in ("", *verbs(), *FORMS):
            common, everything = self.help(verb), self.help(verb, "--help=all")
            self.assertLessEqual(max(map(len, everything.splitlines())), COLUMNS, verb)
            if verb not in CONFIGURED:
                self.assertEqual(common, everything, verb)
                continue
            self.assertEqual(common.splitlines()[-1], "--help=all shows everything.")
            self.assertGreater(len(everything.splitlines()), 140, verb)
            for flag in re.findall(r"^  (--\w+)", common, re.MULTILINE):
                self.assertIn(f"\n  {flag}", everything, f"{verb} {flag}")

    def test_names_what_most_runs_need(self):
        text = self.help("train")
        for words in ("--yaml_config FILE", "--config PRESET", "--set KEY=VALUE", "--set train_data_path=PATH", "--set global_batch_size=N",
                      "--local_batch_size N", "--num_epochs N", "--num_iters N", "--set lr=X", "--amp_mode none|fp16|bf16", "--device",
                      "--tensor_parallel N", "--resume", "--run_num", "--dry_run", "--init_from PATH"):
            self.assertIn(f"\n  {words}", text)
        self.assertNotIn("--cudnn_benchmark", text)
        self.assertNotIn("--num_epochs", self.help("evaluate"))

    def test_help_and_version_are_words_too(self):
        for verb in ("", "train", "data ingest", "ckpt export"):
            self.assertEqual(welkin("help", *verb.split()).stdout, self.help(verb), verb)
        self.assertEqual(welkin("version").stdout, welkin("--version").stdout)
        self.assertRegex(welkin("version").stdout, r"^welkin \d+\.\d+\.\d+\n$")

    def test_a_word_of_several_verbs_lists_them(self):
        text = self.help("data")
        self.assertIn("usage: welkin data VERB", text)
        self.assertEqual(set(re.findall(r"^  (data [a-z]+)", text, re.MULTILINE)), {verb for verb in verbs() if verb.startswith("data ")})
        self.assertNotIn("evaluate", text)

    def test_verbs_about_a_trained_run_name_their_own_flags_first(self):
        for verb in ("evaluate", "predict"):
            flags = re.findall(r"^  (--\w+)", self.help(verb), re.MULTILINE)
            self.assertLess(flags.index("--split"), flags.index("--yaml_config"), verb)

    def test_no_notation_of_the_argument_library(self):
        for verb in (*verbs(), *FORMS):
            text = self.help(verb, "--help=all")
            for notation in ("->", "ENUM", "TEXT:", "INT:", "UINT", "REQUIRED", "Excludes"):
                self.assertNotIn(notation, text, verb)

    def test_a_wrong_value_names_the_choices(self):
        done = welkin("ckpt", "export", "a", "b", "--format", "xyz")
        self.assertEqual(done.returncode, 2)
        self.assertIn('--format: "xyz" is none of pt, safetensors', done.stderr)

    def test_another_form_is_an_error(self):
        done = welkin("train", "--help=most")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("unknown form: --help=most. Use --help or --help=all.", done.stderr)


if __name__ == "__main__":
    sys.exit(unittest.main())
