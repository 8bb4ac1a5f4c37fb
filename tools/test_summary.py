# SPDX-License-Identifier: Apache-2.0
"""Counts what the tests of each label did, from the reports of CTest, GoogleTest and run_script_test.py, and lists every skip with its reason.

usage: test_summary.py REPORTS_FOLDER LABEL...
Fails when a test failed and when a label has no test that ran: a ladder with an empty rung holds nothing.
"""
import pathlib
import sys
import xml.etree.ElementTree as ElementTree


class Count:
    def __init__(self):
        self.ran, self.failed, self.skipped, self.seconds = 0, [], [], 0.0

    def add_googletest(self, report):
        for case in ElementTree.parse(report).iter("testcase"):
            name = f"{case.get('classname')}.{case.get('name')}"
            skip = case.find("skipped")
            if case.get("status") == "notrun":
                continue  # filtered out or DISABLED_
            if skip is not None:
                self.skipped.append((name, skip.get("message", "").splitlines()[-1] if skip.get("message") else "no reason given"))
                continue
            self.ran += 1
            if case.find("failure") is not None:
                self.failed.append(name)

    def add_script(self, case):
        if case.get("status") == "notrun" or case.find("skipped") is not None:
            lines = (case.findtext("system-out") or "").strip().splitlines()
            self.skipped.append((case.get("name"), lines[-1] if lines else "no reason given"))
            return
        self.ran += 1
        if case.get("status") == "fail":
            self.failed.append(case.get("name"))


def count_label(reports, label):
    count = Count()
    report = reports / "ctest.xml"
    if not report.exists():
        return count
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        if not case.get("name").startswith(f"{label}_"):
            continue
        count.seconds += float(case.get("time") or 0)
        details = reports / f"{case.get('name')}.xml"
        if details.exists():
            count.add_googletest(details)
            if case.get("status") == "fail" and not count.failed:
                count.failed.append(case.get("name"))
        else:  # a script; or a program that died before it wrote its report, which CTest counts as failed
            count.add_script(case)
    return count


def main(arguments):
    reports, labels = pathlib.Path(arguments[0]), arguments[1:]
    good = True
    print(f"{'label':<12} {'ran':>5} {'failed':>7} {'skipped':>8} {'seconds':>8}")
    counts = {label: count_label(reports, label) for label in labels}
    for label, count in counts.items():
        print(f"{label:<12} {count.ran:>5} {len(count.failed):>7} {len(count.skipped):>8} {count.seconds:>8.1f}")
    for label, count in counts.items():
        for name, reason in count.skipped:
            print(f"skipped [{label}] {name}: {reason}")
        for name in count.failed:
            print(f"FAILED  [{label}] {name}")
        if count.ran == 0:
            print(f"FAILED  [{label}] no test ran" + (", all were skipped" if count.skipped else ", it has none"))
        good = good and count.ran > 0 and not count.failed
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
