# SPDX-License-Identifier: Apache-2.0
"""Names in unnamed namespaces: sources of one folder are compiled as one unit, so two of them may not define the same name there.

usage: check_names.py [ROOT]
CMake runs it when it configures, so that a clash is said with its two files instead of as an error of the compiler in a generated one.
Functions count by name and parameters, since overloads are allowed. It reads clang-format's layout: definitions begin in column 0.
"""
import collections
import pathlib
import re
import sys

FOLDERS = ("apps", "tests/unit", "tests/distributed", "tests/parity",
           *(f"src/{layer}" for layer in ("ops", "data", "model", "parallel", "train", "bench", "verify")))  # what includes torch
ALONE = re.compile(r"/(ops/cpu|ops/cuda|train/profile|data/ingest/component)/")  # compiled file by file
OPEN, CLOSE = re.compile(r"^namespace \{"), re.compile(r"^\}  // namespace$")
TYPE = re.compile(r"^(?:class|struct|enum class|enum|union) (\w+)(?: final)?(?: :[^:].*)? ?\{")
VALUE = re.compile(r"^(?:inline |static |thread_local )*(?:constexpr |const )[\w:<>,&* ]*?[ &*](\w+)(?:\[\w*\])?(?:\{| =|;)")
FUNCTION = re.compile(r"^(?!\s|return|using|static_assert|TEST|namespace|typedef|friend|template)[\w:<>,&*\[\] ]*?[ &*](\w+)\((.*)$")


def definitions(text):
    """(name, line number) of what the unnamed namespaces of a file define."""
    inside, lines = False, text.split("\n")
    for number, line in enumerate(lines, 1):
        if OPEN.match(line):
            inside = True
        elif CLOSE.match(line):
            inside = False
        elif inside:
            for pattern in (TYPE, VALUE):
                if match := pattern.match(line):
                    yield match.group(1), number
                    break
            else:
                if (match := FUNCTION.match(line)) and not line.rstrip().endswith(";"):
                    parameters = " ".join([match.group(2), *lines[number:number + 6]]).split("{")[0]
                    yield match.group(1) + "(" + re.sub(r"\s+", " ", parameters), number


def main(arguments):
    root = pathlib.Path(arguments[0] if arguments else ".").resolve()
    seen = collections.defaultdict(dict)  # by folder and name: file, line
    problems = []
    files = [path for folder in FOLDERS for path in sorted((root / folder).rglob("*.cpp"))]
    for path in files:
        name = path.relative_to(root).as_posix()
        if ALONE.search("/" + name):
            continue
        room = seen[path.parent]
        own = {}
        for defined, number in definitions(path.read_text(encoding="utf-8", errors="replace")):
            if defined in room:
                other, line = room[defined]
                problems.append(f"{name}:{number}: {defined.split('(')[0]} is also defined in {other}:{line}, and the files of a folder "
                                "share one unit of compilation. Give one of them another name, or share it.")
            own[defined] = (name, number)
        room.update(own)
    print("\n".join(problems) if problems else f"unnamed namespaces of {len(files)} sources have names of their own")
    return 1 if problems or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
