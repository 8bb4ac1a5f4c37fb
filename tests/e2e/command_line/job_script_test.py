# SPDX-License-Identifier: Apache-2.0
"""Job scripts of Flux, LSF and PBS under bash, with stand-ins for the systems' starters that say what they were given."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BINARY = os.environ["WELKIN_BINARY"]
STARTER = """#!/bin/bash
echo "starter $(basename "$0") $*"
echo "secret ${WELKIN_JOB_SECRET:-none}"
[ -z "${WELKIN_JOB_SECRET_FILE:-}" ] || echo "file $(stat -c %a "$WELKIN_JOB_SECRET_FILE") $(wc -c <"$WELKIN_JOB_SECRET_FILE")"
if [ "$(basename "$0")" = mpirun ]; then shift 2; exec "$@"; fi
"""


class JobScripts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "bin").mkdir()
        (self.root / "job").mkdir()
        for name in ("mpirun", "flux"):
            (self.root / "bin" / name).write_text(STARTER)
            (self.root / "bin" / name).chmod(0o755)

    def script(self, system, *words):
        done = subprocess.run([BINARY, "launch", "--script", system, "-n", "1", *words, "--", "ckpt", "inspect"], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def submit(self, text, *words):
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("WELKIN_JOB", "MASTER"))}
        return subprocess.run(["bash", "-s", "--", *words], input=text, capture_output=True, text=True, timeout=60, cwd=self.root / "job",
                              env=environment | {"PATH": f"{self.root}/bin:{os.environ['PATH']}"})

    def test_mpirun_starts_the_program_with_a_secret_that_nobody_sees(self):
        for system in ("lsf", "pbs"):
            done = self.submit(self.script(system), "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""), system)
            self.assertIn("Usage: welkin ckpt inspect", done.stdout)
            self.assertIn("secret none\nfile 600 65\n", done.stdout)
            started, = re.findall(r"starter mpirun -n 1 env (.*)", done.stdout)
            self.assertRegex(started, r"MASTER_ADDR=\S+ MASTER_PORT=\d+ WELKIN_JOB_SECRET_FILE=\S+ HDF5_USE_FILE_LOCKING=FALSE WELKIN_BIND=auto")
            self.assertEqual(list((self.root / "job").iterdir()), [], "the secret is taken away")

    def test_the_code_of_the_program_is_that_of_the_job(self):
        self.assertEqual(self.submit(self.script("pbs"), "--no_such_flag").returncode, 2)

    def test_flux_runs_in_its_own_nodes(self):
        done = self.submit(self.script("flux", "--nnodes", "2"), "--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"starter flux run --nodes=2 --ntasks=2 --exclusive -o cpu-affinity=off \S+ ckpt inspect --help\nsecret [0-9a-f]{64}\n")

    def test_another_system_is_an_error(self):
        done = subprocess.run([BINARY, "launch", "--script", "condor", "-n", "1", "--", "train"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn("[launch] unknown batch system: script=condor. Choose one of: slurm, flux, lsf, pbs.", done.stderr)


if __name__ == "__main__":
    sys.exit(unittest.main())
