# SPDX-License-Identifier: Apache-2.0
"""welkin doctor: the page of this machine, its JSON, ranks that connect, paths, and a torch that is not there."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BINARY = os.environ["WELKIN_BINARY"]


def doctor(*words, **environment):
    return subprocess.run([BINARY, "doctor", *map(str, words)], capture_output=True, text=True, timeout=120, env=os.environ | environment)


class Doctor(unittest.TestCase):
    def page(self, *words, code=0, **environment):
        done = doctor(*words, "--json", "-", **environment)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        page = json.loads(done.stdout)
        return page["verdict"], {row["topic"]: row for row in page["findings"]}

    def test_a_line_for_each_finding(self):
        done = doctor()
        self.assertEqual(done.stderr, "")
        for topic in ("processor", "bfloat16", "cores", "NUMA", "memory", "huge pages", "torch", "GPU", "launcher", "interfaces"):
            self.assertRegex(done.stdout, rf"(?m)^(green|amber|red) +{topic} ")
        self.assertRegex(done.stdout, r"\n\d+ green, \d+ amber, \d+ red\n$")

    def test_json_says_the_same_and_each_remedy(self):
        verdict, rows = self.page()
        self.assertIn(verdict, ("green", "amber"))
        self.assertRegex(rows["torch"]["found"], r"^2\.11\.0 in /.*, starts in \d+ ms$")
        for row in rows.values():
            self.assertEqual(row["remedy"] == "", row["verdict"] == "green", row)

    def test_ranks_connect_to_each_other(self):
        verdict, rows = self.page("-n", "3")
        self.assertEqual(rows["ranks"]["found"], "3 of 3 reached rank 0")
        self.assertEqual(rows["ports"]["verdict"], "green")
        self.assertRegex(rows["links"]["found"], r"at least \d+ MB/s .* at most \d+ us")
        self.assertIn("welkin launch", rows["launcher"]["found"])

    def test_paths_are_measured(self):
        with tempfile.TemporaryDirectory() as folder:
            done = doctor("--megabytes", 4, folder)
            self.assertRegex(done.stdout, rf"path {re.escape(folder)} +writes \S+ \w+/s, reads")
            self.assertEqual(list(pathlib.Path(folder).iterdir()), [])

    def test_a_torch_that_is_not_there_is_red(self):
        with tempfile.TemporaryDirectory() as folder:
            verdict, rows = self.page(code=1, WELKIN_TORCH=folder)
        self.assertEqual((verdict, rows["torch"]["verdict"]), ("red", "red"))
        self.assertIn("no torch in the folder named by WELKIN_TORCH", rows["torch"]["found"])

    def test_what_the_environment_contradicts_is_red(self):
        verdict, rows = self.page(code=1, OMP_NUM_THREADS="4096", GLOO_SOCKET_IFNAME="none0")
        self.assertEqual((rows["threads"]["verdict"], rows["interface"]["verdict"]), ("red", "red"))

    def test_a_wrong_option_is_named(self):
        done = doctor("--fast")
        self.assertEqual(done.returncode, 2)
        self.assertIn("[doctor] unknown option: option=--fast", done.stderr)


if __name__ == "__main__":
    sys.exit(unittest.main())
