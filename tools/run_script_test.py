# SPDX-License-Identifier: Apache-2.0
"""Runs the unittest cases of one script and writes a report in GoogleTest's format, so that test_summary.py counts cases and skips alike.

usage: run_script_test.py REPORT.xml SCRIPT.py
"""
import importlib.util
import pathlib
import sys
import time
import unittest
import xml.etree.ElementTree as ElementTree


class Recorder(unittest.TextTestResult):
    """Keeps (test, seconds, what became of it) in the order of running."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.cases, self.begun = [], {}

    def startTest(self, test):
        self.begun[test] = time.monotonic()
        super().startTest(test)

    def stopTest(self, test):
        super().stopTest(test)
        self.cases.append((test, time.monotonic() - self.begun[test]))


def report(result):
    root = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(root, "testsuite")
    skipped = {test: reason for test, reason in result.skipped}
    failed = {test: text for test, text in result.failures + result.errors}
    # A whole class that is skipped, or whose set-up fails, never starts a test.
    tests = result.cases + [(test, 0.0) for test in [*skipped, *failed] if test not in result.begun]
    for test, seconds in tests:
        suite_name, _, name = test.id().rpartition(".")
        case = ElementTree.SubElement(suite, "testcase", classname=suite_name.rpartition(".")[2] or suite_name, name=name, status="run",
                                      time=f"{seconds:.3f}")
        if test in skipped:
            ElementTree.SubElement(case, "skipped", message=skipped[test])
        elif test in failed:
            ElementTree.SubElement(case, "failure", message=failed[test])
    return ElementTree.ElementTree(root)


def main(arguments):
    path, script = arguments
    folders = pathlib.Path(script).resolve().parents
    names = [folder.name for folder in folders]
    sys.path[:0] = [str(folder) for folder in folders[:names.index("tests") + 1]]  # beside it, and up to tests/tolerance.py
    specification = importlib.util.spec_from_file_location(pathlib.Path(script).stem, script)
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    result = unittest.TextTestRunner(resultclass=Recorder, verbosity=2).run(suite)
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    report(result).write(path)
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
