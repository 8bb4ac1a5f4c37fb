#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every command of the tutorials' texts has a counterpart that works. tutorial_commands.csv maps each command line to its Welkin form; a
command of the texts that the table lacks fails, and so does a row without a form and without a reason. Every form is in the page of
docs/tutorials that walks through that text; rows say how it is checked here:

  dry   `welkin train` is resolved with --dry_run, for as many ranks as the form asks for
  real  it runs: small model, simulated data, at most four ranks
  help  the script's --help
  page  tutorial_pages_test.py runs it as it stands on the page
  none  there is no counterpart; the row and the page say why

The texts are no part of this repository: where ../shared/seeds is absent, the forms are checked and the texts are not."""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

from tutorial_forms import BINARY, PAGES, SOURCE, TEXTS, Form, read_table, run

PROGRAMS = r"sbatch|salloc|srun|python|python3|Python|nsys|git|cd|mkdir|cp|torchrun|mpirun|jsrun|bsub|deepspeed|ssh|export|pytest|docker|shifter|pip|tensorboard|\./\w+\.sh"
COMMAND = re.compile(rf"^(?:\$ )?((?:[A-Z_0-9]+=\S+ )*(?:{PROGRAMS}) .+)$")
BESIDE_THE_TEXTS = ("utils/convert_to_npy.py", "test_data_loader.py", "test_model_dims.py", "./run_tests.sh")  # the repositories have them, no text calls them
RANKS_AT_ONCE = 4  # of a form that asks for more


def commands_in(text):
    """Command lines, joined over trailing backslashes (behind which the lecture's text has blanks)."""
    for line in re.sub(r"\\ *\n", " ", text).splitlines():
        match = COMMAND.match(line.strip())
        if match:
            yield re.sub(r"\s+", " ", match.group(1)).strip()


class TutorialCommands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.table = read_table()
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.data = cls.folder / "data"
        for kind, *flags in (("nbody", "--edge", "32", "--steps", "4"),
                             ("weather", "--grid", "16x32", "--years", "1", "--years_test", "0", "--steps", "24", "--spin_up_days", "1", "--truncation", "10")):
            out = cls.data / {"nbody": "boxes", "weather": "weather"}[kind]
            done = run([BINARY, "data", "simulate", kind, "--out", str(out), "--quiet", *flags])
            if done.returncode != 0:
                raise RuntimeError(done.stderr)

    def check_all(self, rows, check):
        """`check` of each row (a message, or None where all is well), two at a time."""
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            problems = [f"{row['command']}\n  {row['welkin']}\n  {found}" for row, found in zip(rows, pool.map(check, rows)) if found]
        self.assertEqual(problems, [], "\n".join(problems))

    @unittest.skipUnless(TEXTS.is_dir(), "the tutorials' texts are not beside this repository (../shared/seeds)")
    def test_every_command_of_the_texts_is_in_the_table(self):
        beside = {name: [row for row in self.table if name in row["command"].split()] for name in BESIDE_THE_TEXTS}
        self.assertEqual([name for name, rows in beside.items() if len(rows) != 1], [])
        known = {(row["page"], row["command"]) for row in self.table if row not in sum(beside.values(), [])}
        found = {(page, command) for page, name in PAGES.items() for command in commands_in((TEXTS / name).read_text(encoding="utf-8"))}
        self.assertGreater(len(found), 100)
        self.assertEqual(sorted(found - known), [], "commands without a counterpart")
        self.assertEqual(sorted(known - found), [], "rows of no command")

    def test_every_row_has_a_form_or_a_reason(self):
        for row in self.table:
            self.assertIn(row["check"], ("dry", "real", "help", "page", "none"), row)
            self.assertNotEqual(bool(row["welkin"]), bool(row["why"]), row)
            self.assertEqual(row["check"] == "none", bool(row["why"]), row)
        counterparts = [row for row in self.table if row["welkin"]]
        self.assertGreaterEqual(3 * sum(row["check"] == "real" for row in counterparts), len(counterparts), "a third runs for real")

    def test_the_pages_have_every_form_and_every_reason(self):
        pages = {page: re.sub(r"\s+", " ", (SOURCE / f"docs/tutorials/{page}.md").read_text(encoding="utf-8")) for page in PAGES}
        missing = [row for row in self.table if (row["welkin"] or row["why"]) not in pages[row["page"]]]
        self.assertEqual([f"{row['page']}: {row['welkin'] or row['why']}" for row in missing], [])

    def test_every_training_resolves(self):
        seen = {}
        for row in self.table:
            if row["check"] in ("dry", "real") and Form(row["welkin"]).arguments[:1] == ["train"]:
                form = Form(row["welkin"])
                seen.setdefault((tuple(form.arguments), form.ranks), row)

        def check(row):
            form = Form(row["welkin"])
            done = run([BINARY, *form.arguments, "--dry_run", "--world", str(form.ranks), "--nodes", str(form.nodes)], **form.variables)
            return None if done.returncode == 0 and "global_batch_size" in done.stdout else done.stderr + done.stdout[-500:]

        self.check_all(list(seen.values()), check)

    def test_a_third_runs(self):
        rows = [row for row in self.table if row["check"] == "real"]

        def check(row):
            form = Form(row["welkin"])
            root = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
            if form.arguments[0] != "train":
                command = [str(root / word) if re.fullmatch(r"\w+\.(html|svg|json)", word) else word for word in form.arguments]
                done = run([BINARY, *command], **form.variables)
                return None if done.returncode == 0 else done.stderr
            ranks = min(form.ranks, RANKS_AT_ONCE)
            launcher = ["launch", "-n", str(ranks), "--bind", "off", "--"] if ranks > 1 else []
            done = run([BINARY, *launcher, *form.small(self.data, root)], **form.variables)
            logs = list(root.rglob("out.log"))
            if done.returncode != 0 or len(logs) != 1:
                return f"exit code {done.returncode}, {len(logs)} logs\n{done.stderr[-2000:]}"
            text = logs[0].read_text()
            wanted = ("Time taken for epoch 1 is", "Avg train loss=", "Avg val loss=", "DONE ---- rank 0")
            return next((f"no line with: {line}" for line in wanted if line not in text), None)

        self.check_all(rows, check)

    def test_scripts_say_what_they_are_for(self):
        for script in sorted({row["welkin"].split()[0] for row in self.table if row["check"] == "help"}):
            done = run([str(SOURCE / script), "--help"])
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout + done.stderr, "(?i)usage")

    def test_benchy_output_names_the_json_of_a_batch_job(self):
        row = next(row for row in self.table if row["page"] == "sc21" and row["command"].startswith("BENCHY_OUTPUT=weak_scale "))
        form = Form(row["welkin"])
        job = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        (job / "config").symlink_to(SOURCE / "config")
        srun = job / "srun"  # one task, without its own flags
        srun.write_text('#!/bin/bash\nwhile [[ $1 == --* ]]; do shift; done\nexec "$@"\n')
        srun.chmod(0o755)
        words = form.small(self.data, job / "logs")[1:]
        words[words.index("--num_epochs") + 1] = "10"
        line = "global: {report_freq: 5, exit_after_tests: True, profiler_mode: none, output_filename: x.json, output_dir: './', use_distributed_barrier: False}"
        (job / "benchy.yaml").write_text(line + "\nsynthetic: {run_benchmark: False, nbatches: 1, ntrials: 1, nwarmup: 0}\n")
        for name, variables, modes in (("weak_scale", {}, ["IO", "SYNTHETIC", "FULL"]), ("named", {"BENCHY_CONFIG_FILE": "benchy.yaml"}, ["IO", "FULL"])):
            done = run(["bash", str(SOURCE / "scripts/slurm/submit_train.sh"), *words, "--run_num", name], folder=job, BENCHY_OUTPUT=name, WELKIN=BINARY,
                       WELKIN_BIND="off", PATH=f"{job}:{os.environ['PATH']}", **variables)
            self.assertEqual(done.returncode, 0, done.stderr)
            found = json.loads((job / f"{name}.json").read_text())
            self.assertEqual([mode for mode in ("IO", "SYNTHETIC", "FULL") if found[mode].get("rates")], modes)
        self.assertFalse((job / "x.json").exists())

    @unittest.skipIf(any(shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") is None for name in ("slurmctld", "slurmd", "munged", "sbatch")),
                     "Slurm is not installed")
    @unittest.skipIf(os.geteuid() != 0, "slurmd wants to be root")
    def test_a_batch_script_through_slurm_with_two_nodes(self):
        sys.path.insert(0, str(SOURCE / "tests/distributed"))
        from ranks_case import free_port
        sys.path.insert(0, str(SOURCE / "tests/distributed/runs"))
        from real_launchers_test import Slurm
        row = next(row for row in self.table if row["page"] == "sc22" and "bs512_test" in row["command"])
        form, root = Form(row["welkin"]), self.folder / "slurm"
        self.assertEqual(form.nodes, 2)
        with tempfile.TemporaryDirectory() as folder:
            slurm = Slurm(pathlib.Path(folder))
            try:
                slurm.wait_idle()
                done = slurm.run("sbatch", "--wait", "--nodes=2", "--ntasks-per-node=1", "--cpus-per-task=1", f"--output={folder}/job.txt",
                                 f"--chdir={SOURCE}",
                                 SOURCE / "scripts/slurm/submit_train.sh", *form.small(self.data, root)[1:], MASTER_ADDR="127.0.0.1",
                                 MASTER_PORT=free_port(), WELKIN=BINARY, WELKIN_BIND="off")
                self.assertEqual(done.returncode, 0, done.stderr + (pathlib.Path(folder) / "job.txt").read_text())
            finally:
                slurm.stop()
        log = next(root.rglob("out.log")).read_text()
        self.assertIn("Ranks: 2 on 2 node(s) from Slurm", log)
        self.assertIn("DONE ---- rank 0", log)


if __name__ == "__main__":
    unittest.main()
