#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`welkin completion man`: the page has its sections, names every verb and flag, and roff has nothing to say against it."""
import os
import re
import shutil
import subprocess
import sys
import unittest

BINARY = os.environ["WELKIN_BINARY"]
SECTIONS = ["NAME", "SYNOPSIS", "DESCRIPTION", "VERBS", "OPTIONS", "ENVIRONMENT", "EXIT STATUS", "EXAMPLES", "SEE ALSO"]


def run(*words, text=None):
    return subprocess.run(words, input=text, capture_output=True, text=True, timeout=60)


class Manual(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        done = run(BINARY, "completion", "man")
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        cls.page = done.stdout

    def test_sections_in_their_order(self):
        self.assertEqual(re.findall(r'^\.SH "(.*)"$', self.page, re.MULTILINE), SECTIONS)

    def test_names_every_verb_and_flag(self):
        plain = self.page.replace("\\-", "-")
        verbs = re.findall(r"^  ([a-z]+(?: [a-z]+)?)  +\S", run(BINARY, "--help").stdout.split("verbs:")[-1], re.MULTILINE)
        self.assertGreater(len(verbs), 15)
        for verb in verbs:
            self.assertRegex(plain, rf'\.SS "welkin {verb}[" ]', verb)
        for flag in re.findall(r"^  (--\w+)", run(BINARY, "train", "--help=all").stdout, re.MULTILINE):
            self.assertIn(f'.BI "{flag}"', plain, flag)

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_roff_accepts_it(self):
        done = run("groff", "-man", "-ww", "-z", text=self.page)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_reads_as_text(self):
        text = re.sub(r"\x1b\[[0-9;]*m|.\x08", "", run("groff", "-man", "-Tascii", text=self.page).stdout)
        self.assertRegex(text, r"welkin - train deep networks on scientific fields")
        self.assertRegex(text, r"--amp_mode none\|fp16\|bf16")
        self.assertRegex(text, r"source <\(welkin completion bash\)")


if __name__ == "__main__":
    sys.exit(unittest.main())
