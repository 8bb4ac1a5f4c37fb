# SPDX-License-Identifier: Apache-2.0
"""What holds for every tracked file: licence line, ASCII, size, and names that say something; and no typed tolerances in tests.

usage: check_tree.py [ROOT]
"""
import pathlib
import re
import subprocess
import sys

CODE = {".cpp", ".h", ".cu", ".cuh", ".c", ".py", ".sh", ".cmake", ".in"}
SPDX = "SPDX-License-Identifier: Apache-2.0"
LARGEST_BYTES = 1 << 20
LONGEST_CODE_LINES = 800
# Bounds of tests come from core/rounding.h, or have a name and a reason: tests/number_close.h, tests/tolerance.py.
TYPED_TOLERANCE = re.compile(rb"EXPECT_NEAR|ASSERT_NEAR|at::allclose\(|testing\.assert_allclose|assertAlmostEqual")
TOLERANCE_FILES = {"tests/tolerance.py", "tools/checks_test.py", "tools/check_tree.py"}
VAGUE_FOLDERS = {"util", "utils", "common", "helper", "helpers", "misc"}


def problems_of(name, data):
    path = pathlib.PurePosixPath(name)
    is_code = path.suffix in CODE or path.name == "CMakeLists.txt" or data.startswith(b"#!")
    if len(data) > LARGEST_BYTES:
        yield f"{name}: {len(data)} bytes, more than {LARGEST_BYTES}"
    if VAGUE_FOLDERS & set(path.parts[:-1]):
        yield f"{name}: a folder whose name says nothing"
    if not is_code:
        return
    lines = data.split(b"\n")
    if not any(SPDX.encode() in line for line in lines[:3]):
        yield f"{name}: no line '{SPDX}' at the top"
    if len(lines) > LONGEST_CODE_LINES:
        yield f"{name}: {len(lines)} lines, more than {LONGEST_CODE_LINES}"
    for number, line in enumerate(lines, 1):
        if name not in TOLERANCE_FILES and TYPED_TOLERANCE.search(line):
            yield f"{name}:{number}: a typed tolerance; use tests/number_close.h, tests/tolerance.h or tests/tolerance.py"
        if any(byte > 126 for byte in line):
            yield f"{name}:{number}: not ASCII"
            break


def main(arguments):
    root = pathlib.Path(arguments[0] if arguments else ".").resolve()
    names = subprocess.run(["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True).stdout.decode().split("\0")
    files = [name for name in names if name and (root / name).is_file()]
    problems = [problem for name in files for problem in problems_of(name, (root / name).read_bytes())]
    print("\n".join(problems) if problems else f"{len(files)} tracked files are in order")
    return 1 if problems or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
