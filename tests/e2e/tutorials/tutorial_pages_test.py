#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A reader of docs/tutorials meets no command that does not work: every line of a code block, and every command in running text that has
flags, is run here as it stands, as far as a small machine can:

  train      --dry_run, for as many ranks as the line asks for
  bench      of a small model, on samples that need no file, in windows of a hundredth of a second, on as many ranks as the line says
  report     over example_logs, which stands for the reader's logs
  simulate   fewer and smaller steps
  predict    there is no trained run here: anything but an error of usage is right
  others     as they are

What tutorial_commands.csv has is run by tutorial_commands_test.py.
What `plan estimate` and `train --dry_run` print is arithmetic, so the pages' copies of it are compared with what they print today.
A page has one heading for each heading of its text, and the lecture's page a row for each slide, where the texts are beside this
repository."""
import concurrent.futures
import pathlib
import re
import shutil
import tempfile
import unittest

from tutorial_forms import BINARY, PAGES, SOURCE, TEXTS, UNET, VIT, Form, read_table, run

FENCE = re.compile(r"^```.*?\n(.*?)^```", re.MULTILINE | re.DOTALL)
BACKTICKS = re.compile(r"`([^`\n]+)`")
STARTS = re.compile(r"^(?:[A-Z_0-9]+=\S+ )*(welkin|sbatch|srun|mpirun|torchrun|nsys) ")
SCRIPTS = ("./quickstart.sh", "tools/", "build/")  # tests of their own
PLACEHOLDER = re.compile(r"\.\.\.|\*|\b(?:FILE|NAME|PATH|RUN)\b")
ARITHMETIC = re.compile(r"^\S.*  value +unit|^mesh +\d+ ranks|^groups along | +GiB +\S", re.MULTILINE)
USAGE = 2  # ExitCode of src/core/error.h
LANGUAGE = re.compile(r"^(?P<name>[A-Z]+)=\"(?P<value>.*)\"$|^for (?P<each>\w+) in (?P<values>[^;]+); do$|^done$")


def headings(text):
    """Level and words of each heading below the title, outside of code blocks."""
    return [(len(marks), words.strip()) for marks, words in re.findall(r"^(#{2,}) (.+)$", FENCE.sub("", text), re.MULTILINE)]


def lines_of(block, variables):
    """The commands of a code block as a shell sees them: variables set on the page, and loops, written out."""
    each, values = "", [""]
    for line in re.sub(r"\\ *\n", " ", block).splitlines():
        line = re.sub(r"\s+", " ", line).strip()
        shell = LANGUAGE.match(line)
        if shell and shell["name"]:
            variables[shell["name"]] = shell["value"]
        elif shell and shell["each"]:
            each, values = shell["each"], shell["values"].split()
        elif shell:
            each, values = "", [""]
        else:
            for value in values:
                yield re.sub(r"\$(\w+)", lambda match: value if match[1] == each else variables.get(match[1], match[0]), line)


def commands_of(text):
    """(command, whether it stands in a block), in the page's order, blocks first."""
    variables = {}
    for block in FENCE.findall(text):
        for line in lines_of(block, variables):
            if STARTS.match(line):
                yield line
    for quoted in BACKTICKS.findall(FENCE.sub("", text)):
        if STARTS.match(quoted) and " --" in quoted and not PLACEHOLDER.search(quoted):
            yield from lines_of(quoted, variables)


def without(words, *names):
    """`words` less the flags of these names with their values."""
    kept, skip = [], False
    for word in words:
        if not skip and word.split("=")[0] not in names:
            kept.append(word)
        skip = word in names
    return kept


def training(form):
    words = [word for word in form.arguments if word != "--dry_run"]
    ranks = [] if "--world" in words else ["--world", str(form.ranks), "--nodes", str(form.nodes)]
    return [*words, "--dry_run", *ranks]


def bench(words):
    if "--collectives" in words:
        return [*words, "--sizes", "1024", "--seconds", "0.01"]
    if "--tiles" in words:
        return [*words, "-n", "8,16", "--seconds", "0"]
    if "--parallel_figure" in words:
        return [*words, "--help"]  # minutes
    words = [*without(words, "--windows", "--window_seconds"), "--windows", "1", "--window_seconds", "0.01", "--warmup_seconds", "0"]
    if "--scaling" in words:
        words = [*without(words, "-n"), "-n", "1,2"]
    words += UNET if "sc21" in words or "sc22" in words else VIT if "sc23" in words or "dl4sci25" in words else []
    return words if "--synthetic" in words else [*words, "--synthetic"]


def simulation(words):
    if "--scale" in words:
        words[words.index("--scale") + 1] = "0.02"
    if "nbody" in words or "sc22" in words or "sc21" in words:
        return [*without(words, "--edge"), "--edge", "16", "--steps", "2", "--quiet"]
    return [*without(words, "--grid"), "--grid", "16x32", "--truncation", "10", "--years", "1", "--years_test", "0", "--steps", "4", "--spin_up_days", "1",
            "--quiet"]


class TutorialPages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = pathlib.Path(cls.temporary.name)
        for name, stands_for in (("config", "config"), ("example_logs", "example_logs"), ("logs", "example_logs")):
            shutil.copytree(SOURCE / stands_for, cls.folder / name)
        cls.pages = {page: (SOURCE / f"docs/tutorials/{page}.md").read_text(encoding="utf-8") for page in PAGES}

    def problem_of(self, command):
        """None where the command works."""
        form = Form(command)
        verb, words = form.arguments[0], form.arguments
        if verb == "train":
            done = run([BINARY, *training(form)], folder=self.folder, **form.variables)
            return None if done.returncode == 0 and "global_batch_size" in done.stdout else done.stderr
        if verb in ("predict", "evaluate"):
            done = run([BINARY, *words], folder=self.folder)
            return done.stderr if done.returncode == USAGE and "this is no run folder" not in done.stderr else None
        if verb == "bench":
            words = bench(words)
        if words[:2] == ["data", "simulate"]:
            words = simulation(words)
        if words[:2] == ["data", "inspect"] or words == ["verify", "--layouts"]:  # no file here; two minutes
            words = [*words, "--help"]
        launcher = ["launch", "-n", str(form.ranks), "--bind", "off", "--"] if verb == "bench" and form.ranks > 1 else []
        done = run([BINARY, *launcher, *words], folder=self.folder)
        return None if done.returncode == 0 else f"exit code {done.returncode}: {done.stderr}"

    def test_every_command_works(self):
        elsewhere = {row["welkin"] for row in read_table() if row["check"] in ("dry", "real")}  # by tutorial_commands_test.py
        seen = {}
        for page, text in self.pages.items():
            found = list(commands_of(text))
            self.assertGreater(len(found), 15, page)
            for command in found:
                if command not in elsewhere:
                    seen.setdefault(command, page)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            problems = [f"{page}.md: {command}\n  {found}" for (command, page), found in zip(seen.items(), pool.map(self.problem_of, seen)) if found]
        self.assertEqual(problems, [], "\n".join(problems))

    def test_a_command_that_does_not_work_is_found(self):
        for command, why in (("welkin train --tutorial sc22 --config=bs65_opt", "bs65_opt"),
                             ("welkin launch -n 3 -- train --tutorial dl4sci25 --config=mp --tensor_parallel=2", "tensor_parallel"),
                             ("welkin train --yaml_config config/course.yaml --config unet --set num_epoch=3", "num_epoch"),
                             ("welkin bench --mode fast --tutorial sc22 --config short", "fast"),
                             ("welkin report nowhere --output report.html", "nowhere"),
                             ("welkin plan estimate --tutorial dl4sci25 --config none", "none")):
            self.assertIn(why, self.problem_of(command) or "", command)

    def test_lines_are_what_a_shell_sees(self):
        block = 'SMALL="--device cpu --threads 1"\nfor n in 1 2; do\n  welkin launch -n $n -- train \\\n    $SMALL --run_num r$n\ndone\nwelkin train $OTHER\n'
        self.assertEqual(list(lines_of(block, {})), ["welkin launch -n 1 -- train --device cpu --threads 1 --run_num r1",
                                                     "welkin launch -n 2 -- train --device cpu --threads 1 --run_num r2", "welkin train $OTHER"])

    def printed(self, page):
        """Everything that the arithmetic commands of a page print."""
        forms = [Form(command) for command in dict.fromkeys(commands_of(self.pages[page]))]
        forms = [form for form in forms if form.arguments[:2] == ["plan", "estimate"] or "--dry_run" in form.arguments]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            done = pool.map(lambda form: run([BINARY, *form.arguments], folder=self.folder, **form.variables), forms)
            return "\n".join(one.stdout for one in done)

    def stale_lines(self, page, printed):
        """Lines of the page's tables and meshes that are printed no more. Columns get wider with other rows: blanks count as one."""
        now = {" ".join(line.split()) for line in printed.splitlines()}
        blocks = [block for block in FENCE.findall(self.pages[page]) if ARITHMETIC.search(block)]
        return len(blocks), [line for block in blocks for line in block.splitlines()
                             if line.strip() not in ("", "...") and set(line) - set("- ") and " ".join(line.split()) not in now]

    def test_the_arithmetic_on_the_pages_is_todays(self):
        for page in PAGES:
            count, stale = self.stale_lines(page, self.printed(page))
            self.assertEqual(stale, [], f"{page}.md: no command of the page prints these lines")
            self.assertGreaterEqual(count, {"sc21": 0}.get(page, 1), page)
        self.assertIn("local batch 32 of 64 samples per step", self.stale_lines("sc23", "mesh 8 ranks")[1])

    @unittest.skipUnless(TEXTS.is_dir(), "the tutorials' texts are not beside this repository (../shared/seeds)")
    def test_a_heading_for_each_heading_of_the_text(self):
        for page in ("sc22", "sc23", "dl4sci25"):
            self.assertEqual(headings(self.pages[page]), headings((TEXTS / PAGES[page]).read_text(encoding="utf-8")), page)
        lines = (TEXTS / PAGES["sc21"]).read_text(encoding="utf-8").splitlines()  # whose headings are bare lines, and words of SC22's
        begin = max(place for place, line in enumerate(lines) if line.strip() == "Links")
        wanted = headings((TEXTS / PAGES["sc22"]).read_text(encoding="utf-8"))
        found = []
        for line in lines[begin:]:
            found += [heading for heading in wanted if heading[1] == line.strip()][:1]
        self.assertGreater(len(found), 20)
        self.assertEqual([words for _, words in headings(self.pages["sc21"])], [words for _, words in found])

    @unittest.skipUnless(TEXTS.is_dir(), "the tutorials' texts are not beside this repository (../shared/seeds)")
    def test_a_row_for_each_slide_of_the_lecture(self):
        text = FENCE.sub("", (TEXTS / PAGES["lecture"]).read_text(encoding="utf-8"))
        slides = [slide.strip() for slide in re.findall(r"^# (.+)$", text, re.MULTILINE)][1:]  # behind the title
        self.assertGreater(len(slides), 80)
        table = self.pages["lecture"].split("## Slides and sections")[1]
        rows = [(slide.strip(), section) for first, section in re.findall(r"^\| (.+?) \| (.+) \|$", table, re.MULTILINE)
                for slide in first.split(";")][2:]
        self.assertEqual(sorted(set(slides)), sorted(slide for slide, _ in rows))
        known = {re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-") for _, words in headings(self.pages["lecture"])}
        anchors = re.findall(r"\(#([^)]+)\)", self.pages["lecture"])
        self.assertEqual([anchor for anchor in anchors if anchor not in known], [], "links to no heading")


if __name__ == "__main__":
    unittest.main()
