# SPDX-License-Identifier: Apache-2.0
"""Tests of the checks themselves: each must find what it is for, on a small tree that breaks the rule.

usage: python3 tools/checks_test.py
"""
import contextlib
import io
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

import tidy_changed

TOOLS = pathlib.Path(__file__).resolve().parent
SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
FAKE_WELKIN = """#!/bin/sh
if [ "$1" = train ]; then echo "--yaml_config --config --help, switches have a --no-... form"; exit; fi
if [ "$1" = launch ]; then echo "-n"; exit; fi
if [ "$1 $2 $3" = "data simulate box" ]; then echo "--edge"; exit; fi
if [ "$1 $2" = "data simulate" ]; then echo "welkin data simulate box --help   boxes"; exit; fi
printf 'usage\\n --torch --plugin\\nverbs:\\n  train           train a model\\n  launch          start processes\\n  data inspect    what is in a file\\n  data simulate   make files\\n'
"""


class TreeTest(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        subprocess.run(["git", "init", "-q", "."], cwd=self.root, check=True)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        subprocess.run(["git", "add", name], cwd=self.root, check=True)
        return path

    def run_check(self, script, *arguments):
        done = subprocess.run([sys.executable, TOOLS / script, self.root, *arguments], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


class ToleranceRule(TreeTest):
    def test_typed_tolerances_are_found(self):
        for name, line in (("tests/unit/a_test.cpp", SPDX + "EXPECT_NEAR(a, b, 1e-6);\n"),
                           ("tests/e2e/a_test.py", SPDX.replace("//", "#") + "np.testing.assert_allclose(a, b, rtol=1e-6)\n")):
            self.write(name, line)
            code, output = self.run_check("check_tree.py")
            self.assertEqual(code, 1, output)
            self.assertIn(f"{name}:2: a typed tolerance", output)


class IncludeRule(TreeTest):
    def write(self, name, text):
        for folder in pathlib.PurePosixPath(name).parents:
            if folder.parts[:1] == ("src",) and not (self.root / folder / "README.md").exists():
                super().write(f"{folder}/README.md", "# What is here\n")
        return super().write(name, text)

    def expect(self, name, include, text):
        self.write(name, SPDX + f"#include {include}\n")
        code, output = self.run_check("check_includes.py")
        self.assertEqual(code, 1, output)
        self.assertIn(f"{name}: {text}", output)

    def test_upward_include(self):
        self.expect("src/model/vit/vit.cpp", '"parallel/mesh/mesh.h"', "layer model may not include layer parallel")

    def test_torch_in_a_layer_without_it(self):
        self.expect("src/config/load.cpp", "<ATen/core/Tensor.h>", "no torch in this file")

    def test_torch_in_a_parser(self):
        self.expect("src/data/formats/npy_reader.cpp", "<c10/core/Device.h>", "no torch in this file")

    def test_heavy_header(self):
        self.expect("src/train/step/step.cpp", "<torch/torch.h>", "too heavy a header")

    def test_module_header_outside_models(self):
        self.expect("src/data/batch.h", "<torch/nn/module.h>", "only models and what trains them")

    def test_planner_includes_costs_only(self):
        self.write("src/plan/flops.cpp", SPDX + '#include "model/vit/vit_cost.h"\n')
        self.assertEqual(self.run_check("check_includes.py")[0], 0)
        self.expect("src/plan/flops.cpp", '"model/vit/vit.h"', "layer plan may not include layer model")

    def test_page_that_says_otherwise(self):
        page = (TOOLS.parent / "docs/development/rooms.md").read_text(encoding="utf-8")
        self.write("docs/development/rooms.md", page)
        self.write("src/core/a.h", SPDX)
        self.assertEqual(self.run_check("check_includes.py")[0], 0)
        self.write("docs/development/rooms.md", page.replace("| `src/data/` | config, core", "| `src/data/` | core"))
        self.assertIn("rooms.md: no row of src/data/ that ends in: config, core, observe, ops", self.run_check("check_includes.py")[1])

    def test_unknown_layer(self):
        self.write("src/extras/a.h", SPDX)
        self.assertIn("src/extras: no such layer", self.run_check("check_includes.py")[1])

    def test_upward_include_between_rooms(self):
        self.expect("src/data/storage/array.h", '"data/datasets/open.h"', "room data/storage may not include room data/datasets")
        self.write("src/data/datasets/box.h", SPDX + '#include "data/storage/array.h"\n')
        self.assertNotIn("data/datasets/box.h", self.run_check("check_includes.py")[1])

    def test_good_tree(self):
        self.write("src/train/step/step.cpp", SPDX + '#include "parallel/mesh/mesh.h"\n#include <ATen/ops/add.h>\n')
        self.assertEqual(self.run_check("check_includes.py")[0], 0)


class ReadmeRule(TreeTest):
    def output(self):
        return self.run_check("check_includes.py")[1]

    def test_folder_without_a_page(self):
        self.write("src/core/archive/a.h", SPDX)
        self.write("src/README.md", "layers\n" * 20)
        self.write("src/core/README.md", "[a](archive/a.h#top), [web](https://a.org/b), `archive/`\n")
        self.assertEqual(self.output(), "src/core/archive: no README.md\n")
        self.write("src/core/archive/README.md", "line\n" * 12)
        self.assertEqual(self.run_check("check_includes.py")[0], 0)

    def test_long_page(self):
        self.write("src/core/a.h", SPDX)
        self.write("src/core/README.md", "line\n" * 13)
        self.assertIn("src/core/README.md: 13 lines, more than 12", self.output())

    def test_page_with_files_that_do_not_exist(self):
        self.write("src/core/a.h", SPDX)
        self.write("src/core/README.md", "[a.h](a.h), [b.h](b.h), `a.h`, `c.h`\n")
        output = self.output()
        self.assertIn("src/core/README.md: no such file: b.h", output)
        self.assertIn("src/core/README.md: no such file: c.h", output)
        self.assertNotIn("no such file: a.h", output)

    def test_folder_without_tracked_sources(self):
        self.write("src/README.md", "layers\n")
        self.write("src/core/README.md", "base\n")
        self.write("src/core/a.h", SPDX)
        (self.root / "src/core/scratch").mkdir()
        (self.root / "src/core/scratch/b.h").write_text(SPDX)
        self.assertEqual(self.run_check("check_includes.py")[0], 0)


class NameRule(TreeTest):
    def test_clash_names_both_files(self):
        body = SPDX + "namespace welkin::data {\nnamespace {\n\n%s\n\n}  // namespace\n}\n"
        self.write("src/data/datasets/a.cpp", body % "constexpr int kRows = 4;\n\nint size_of(int rows) { return rows; }")
        self.write("src/data/datasets/b.cpp", body % "int size_of(long rows) { return 0; }")
        self.assertEqual(self.run_check("check_names.py")[0], 0, "an overload is no clash")
        self.write("src/train/c.cpp", body % "constexpr int kRows = 5;")
        self.assertEqual(self.run_check("check_names.py")[0], 0, "another layer has other units")
        self.write("src/data/pipeline/d.cpp", body % "constexpr int kRows = 5;")
        code, output = self.run_check("check_names.py")
        self.assertEqual(code, 1)
        self.assertIn("src/data/pipeline/d.cpp:5: kRows is also defined in src/data/datasets/a.cpp:5", output)

    def test_aliases_and_types_of_headers(self):
        body = SPDX + "namespace welkin::data {\nnamespace {\n\n%s\n\n}  // namespace\n}\n"
        self.write("src/data/a.cpp", body % "using Row = int;")
        self.write("src/data/b.cpp", body % "using Row = int;")
        self.write("src/data/c.h", SPDX + "namespace welkin::data {\n\nstruct Table {\n};\n\n}\n")
        self.assertEqual(self.run_check("check_names.py")[0], 0, "the same alias twice is none")
        self.write("src/data/d.cpp", body % "using Row = long;\n\nclass Table {};")
        code, output = self.run_check("check_names.py")
        self.assertEqual(code, 1)
        self.assertIn("src/data/d.cpp:5: Row is also defined in src/data/a.cpp:5", output)
        self.assertIn("src/data/d.cpp:7: Table is also defined in src/data/c.h:4", output)


class CompileUnits(TreeTest):
    def units(self, *names, apart="", unit_kb="120"):
        script = TOOLS / "compile_units.py"
        output = subprocess.run([sys.executable, script, self.root, unit_kb, "src", apart, *(self.root / name for name in names)],
                                check=True, capture_output=True, text=True).stdout
        return {pathlib.Path(source).name: unit for unit, source in (line.split(";") for line in output.splitlines())}

    def test_sources_without_torch_have_units_of_their_own(self):
        self.write("src/data/a.h", "#include <ATen/core/Tensor.h>\n")
        self.write("src/data/b.cpp", '#include "data/a.h"\n')
        self.write("src/data/c.cpp", "#include <vector>\n")
        self.write("src/data/store/d.cpp", "#include <string>\n")
        self.assertEqual(self.units("src/data/b.cpp", "src/data/c.cpp", "src/data/store/d.cpp", apart="src/data/store"),
                         {"b.cpp": "torch_0", "c.cpp": "free_0", "d.cpp": "free_data_store_0"})

    def test_a_unit_has_a_limit(self):
        names = [f"src/data/{letter}.cpp" for letter in "abcd"]
        for name in names:
            self.write(name, "// " + 50_000 * "-" + "\n")
        self.assertEqual(self.units(*names), {"a.cpp": "free_0", "b.cpp": "free_0", "c.cpp": "free_1", "d.cpp": "free_1"})
        self.assertEqual(set(self.units(*names, unit_kb="320").values()), {"free_0"})


class TreeRule(TreeTest):
    def expect(self, name, content, text):
        self.write(name, content)
        code, output = self.run_check("check_tree.py")
        self.assertEqual(code, 1, output)
        self.assertIn(text, output)

    def test_no_licence(self):
        self.expect("src/a.cpp", "int a;\n", "src/a.cpp: no line 'SPDX")

    def test_not_ascii(self):
        self.expect("src/a.cpp", SPDX + "// \u00e9\n", "src/a.cpp:2: not ASCII")

    def test_big_file(self):
        self.expect("data.bin", "x" * (1 << 20) + "x", "data.bin: 1048577 bytes")

    def test_long_file(self):
        self.expect("src/a.cpp", SPDX + "\n" * 900, "more than 800")

    def test_vague_folder(self):
        self.expect("src/utils/a.cpp", SPDX, "a folder whose name says nothing")

    def test_script_without_suffix(self):
        self.expect("run", "#!/bin/sh\n", "run: no line 'SPDX")


class DocumentRule(TreeTest):
    def problems(self, text):
        self.write("src/a.cpp", SPDX)
        binary = self.write("bin/welkin", FAKE_WELKIN)
        binary.chmod(0o755)
        self.write("README.md", text)
        return self.run_check("check_docs.py", str(binary))

    def test_list_that_does_not_begin(self):
        self.assertEqual(self.problems("words:\n\n- one\n  more\n- two\n\n| a |\n| - |\n\nwords")[0], 0)
        for text in ("words:\n- one\n", "words:\n| a |\n", "| a |\n| - |\nwords"):
            self.assertIn("needs an empty line above", self.problems(text)[1], text)

    def test_message_that_nobody_says(self):
        self.write("src/b.cpp", SPDX + 'throw DataError("data", "the disk is on fire: path=");\n')
        self.write("docs/troubleshooting.md", "| message |\n| --- |\n| `the disk is on fire` |\n| `the disk is wet` |\n")
        output = self.problems("words")[1]
        self.assertIn("no source says: the disk is wet", output)
        self.assertNotIn("on fire", output)

    def test_missing_path(self):
        self.assertIn("no such path: src/b.cpp", self.problems("see `src/b.cpp`")[1])

    def test_missing_link(self):
        self.assertIn("no such path: docs/none.md", self.problems("[x](docs/none.md#part)")[1])

    def test_missing_heading(self):
        text = "[x](#one-two)[y](#one-two-1)\n# One `two`!\n## One two\n"
        self.assertEqual(self.problems(text)[0], 0)
        self.assertIn("no such heading: #three", self.problems(text + "[z](#three)")[1])

    def test_missing_name_in_a_file(self):
        self.assertEqual(self.problems("`Apache` in `src/a.cpp`")[0], 0)
        self.assertIn("src/a.cpp has no N::run", self.problems("`Apache` and `N::run` in `src/a.cpp`")[1])

    def test_unknown_verb(self):
        self.assertIn("no such verb: welkin fly", self.problems("```\nwelkin fly --high\n```")[1])

    def test_unknown_flag_of_a_verb(self):
        self.assertIn("welkin train has no flag --speed", self.problems("```\nX=1 build/release/welkin train \\\n  --speed 3\n```")[1])

    def test_unknown_flag_in_running_text(self):
        self.assertIn("no verb has the flag --speed", self.problems("use `--speed`")[1])

    def test_switches_and_kinds_of_a_verb(self):
        self.assertEqual(self.problems("`--no-config`, `welkin data simulate box --edge 8`")[0], 0)
        self.assertIn("welkin train has no flag --speed", self.problems("`welkin launch -n 2 -- train --speed 3`")[1])
        self.assertIn("welkin data simulate has no flag --no-edge", self.problems("`welkin data simulate box --no-edge`")[1])

    def test_good_document(self):
        code, output = self.problems("`src/a.cpp`, `bs/64`, `welkin data`:\n```\nwelkin --plugin l.so train --config short  # --not a flag\n```\n")
        self.assertEqual(code, 0, output)


class TestSummary(unittest.TestCase):
    CTEST = '<testsuite><testcase name="unit_core" status="{}" time="1"><system-out>{}</system-out></testcase></testsuite>'
    RAN = '<testcase name="ran" status="run" classname="A"/>'
    SKIPPED = '<testcase name="left" status="run" classname="A"><skipped message="file:1&#10;no data here"/></testcase>'
    FAILED = '<testcase name="bad" status="run" classname="A"><failure message="1 is not 2"/></testcase>'

    def summarise(self, status, cases=None, output=""):
        folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        (folder / "ctest.xml").write_text(self.CTEST.format(status, output))
        if cases is not None:
            (folder / "unit_core.xml").write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
        done = subprocess.run([sys.executable, TOOLS / "test_summary.py", folder, "unit"], capture_output=True, text=True)
        return done.returncode, done.stdout

    def test_passed_with_a_skip_and_its_reason(self):
        code, output = self.summarise("run", self.RAN + self.SKIPPED)
        self.assertEqual(code, 0, output)
        self.assertIn("skipped [unit] A.left: no data here", output)

    def test_all_skipped_fails(self):
        code, output = self.summarise("run", self.SKIPPED)
        self.assertEqual((code, "no test ran, all were skipped" in output), (1, True), output)

    def test_failure_is_named(self):
        code, output = self.summarise("fail", self.RAN + self.FAILED)
        self.assertEqual((code, "FAILED  [unit] A.bad" in output), (1, True), output)

    def test_program_that_died_without_a_report_fails(self):
        self.assertEqual(self.summarise("fail")[0], 1)

    def test_program_that_died_after_its_report_fails(self):
        self.assertEqual(self.summarise("fail", self.RAN)[0], 1)

    def test_skipped_script_gives_its_last_line(self):
        code, output = self.summarise("notrun", output="one&#10;no shared data")
        self.assertEqual((code, "skipped [unit] unit_core: no shared data" in output), (1, True), output)

    def test_label_without_tests_fails(self):
        done = subprocess.run([sys.executable, TOOLS / "test_summary.py", tempfile.gettempdir(), "nolabel"], capture_output=True, text=True)
        self.assertEqual((done.returncode, "no test ran, it has none" in done.stdout), (1, True), done.stdout)


@unittest.skipUnless(shutil.which("clang-tidy-14") or shutil.which("clang-tidy"), "clang-tidy is not installed")
class TidyBatches(TreeTest):
    """Of files that are looked at together."""

    def look_at(self, *texts):
        names = [f"file_{number}.cpp" for number in range(len(texts))]
        for name, text in zip(names, texts):
            self.write(name, SPDX + text)
        self.write(".clang-tidy", "Checks: '-*,readability-container-size-empty'\nWarningsAsErrors: '*'\nHeaderFilterRegex: '.*'\n")
        program = shutil.which("clang-tidy-14") or shutil.which("clang-tidy")
        with unittest.mock.patch.multiple(tidy_changed, ROOT=self.root, BUILD=self.root), contextlib.redirect_stdout(io.StringIO()) as output:
            results = tidy_changed.tidy(program, 0, names, {name: ["-std=c++20"] for name in names}, time.monotonic() + 100)
        return results, output.getvalue()

    def test_a_name_of_two_files_is_no_finding(self):
        results, output = self.look_at("namespace {\nconstexpr int kRows = 1;\n}\n", "namespace {\nconstexpr long kRows = 2;\n}\n")
        self.assertEqual((results, output), ([(["file_0.cpp"], 0), (["file_1.cpp"], 0)], ""))

    def test_a_file_with_a_finding_is_named_among_those(self):
        results, output = self.look_at("constexpr int kRows = 1;\n", "constexpr long kRows = 2;\n", "constexpr int kColumns = kRow;\n")
        self.assertEqual([code for _, code in results], [0, 0, 1])
        self.assertIn("file_2.cpp:2:26: error: use of undeclared identifier 'kRow'", output)

    def test_files_without_a_common_name_are_looked_at_once(self):
        results, output = self.look_at("#include <string>\nbool bad(const std::string& s) { return s.size() == 0; }\n", "int good();\n")
        self.assertEqual([(len(files), code) for files, code in results], [(2, 1)])
        self.assertIn("file_0.cpp:3", output)


class NamingRule(unittest.TestCase):
    def test_every_bad_name_is_found(self):
        program = shutil.which("clang-tidy-14") or shutil.which("clang-tidy")
        if program is None:
            self.skipTest("clang-tidy is not installed")
        source = TOOLS / "bad_files" / "naming.cpp"
        output = subprocess.run([program, "--quiet", source, "--", "-std=c++20"], capture_output=True, text=True).stdout
        found = set(re.findall(r"'((?:bad|Bad)\w+)' \[readability-identifier-naming", output))
        self.assertEqual(found, set(re.findall(r"\b((?:bad_|bad[A-Z]|Bad)\w+)", source.read_text().split("\nnamespace", 1)[1])) | {"BadNamespace"})


if __name__ == "__main__":
    unittest.main()
