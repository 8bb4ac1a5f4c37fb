# SPDX-License-Identifier: Apache-2.0
"""Names in unnamed namespaces: folders of one layer are compiled together, so no two sources of a layer may define the same name there.

usage: check_names.py [ROOT]
CMake runs it when it configures, so that a clash is said with its two files instead of as an error of the compiler in a generated one.
Functions count by name and parameters, since overloads are allowed. It reads clang-format's layout: definitions begin in column 0.
"""
import collections
import pathlib
import re
import sys

FOLDERS = ("apps", "src", "tests/unit", "tests/distributed", "tests/parity")
ALONE = re.compile(r"/(ops/cpu|data/ingest/component)/|/keys_optimization.cpp$")  # compiled file by file
OPEN, CLOSE = re.compile(r"^namespace \{"), re.compile(r"^\}  // namespace$")
TYPE = re.compile(r"^(?:class|struct|enum class|enum|union) (\w+)(?: final)?(?: :[^:].*)? ?\{")
VALUE = re.compile(r"^(?:inline |static |thread_local )*(?:constexpr |const )[\w:<>,&* ]*?[ &*](\w+)(?:\[\w*\])?(?:\{| =|;)")
ALIAS = re.compile(r"^using (\w+) = (.*);")
FUNCTION = re.compile(r"^(?!\s|return|using|static_assert|TEST|namespace|typedef|friend|template)[\w:<>,&*\[\] ]*?[ &*](\w+)\((.*)$")


def parameter_types(parameters):
    """The types of "(int64_t a, const std::map<int, int>& b) const": names and default values are not part of a signature."""
    depth, parts = 0, [""]
    for letter in re.sub(r"\s+", " ", parameters):
        depth += (letter in "(<{[") - (letter in ")>}]")
        if depth < 0:
            break
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return ",".join(re.sub(r"(?<=[\w>&*]) ?\b\w+$", "", part.split(" = ")[0].strip()) if " " in part.strip() else part.strip() for part in parts)


def definitions(text):
    """(name, line number) of what the unnamed namespaces of a file define, but for aliases."""
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
                    if pattern is VALUE:  # constexpr int kRows = 2, kColumns = 3;
                        yield from ((name, number) for name in re.findall(r", (k[A-Z]\w*) = ", line))
                    break
            else:
                if (match := FUNCTION.match(line)) and not line.rstrip().endswith(";"):
                    parameters = " ".join([match.group(2), *lines[number:number + 6]]).split("{")[0]
                    yield match.group(1) + "(" + parameter_types(parameters), number


def aliases(text):
    """(name, what it stands for, line number) of the aliases in column 0."""
    for number, line in enumerate(text.split("\n"), 1):
        if match := ALIAS.match(line):
            yield match.group(1), match.group(2), number


def public_types(text):
    """(name, line number) of the types that a header defines in column 0."""
    for number, line in enumerate(text.split("\n"), 1):
        if match := TYPE.match(line) or ALIAS.match(line):
            yield match.group(1), number


def layer_of(root, path):
    parts = path.relative_to(root).parts[:-1]
    return parts[:3] if parts[0] == "tests" else parts[:2] if parts[0] == "src" else parts[:1]


def main(arguments):
    root = pathlib.Path(arguments[0] if arguments else ".").resolve()
    seen = collections.defaultdict(dict)  # by layer and name: file, line
    meanings = collections.defaultdict(dict)  # by layer and alias: what it stands for, file, line
    problems = []

    def clash(name, number, defined, other, line):
        problems.append(f"{name}:{number}: {defined} is also defined in {other}:{line}, and the files of a layer share units of compilation. "
                        "Give one of them another name, or share it.")

    files = [path for folder in FOLDERS for path in sorted((root / folder).rglob("*.cpp"))]
    for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.h")):
        for defined, number in public_types(path.read_text(encoding="utf-8", errors="replace")):
            layer, where = layer_of(root, path), (path.relative_to(root).as_posix(), number)
            seen[layer][defined] = where
            if layer[0] == "src":
                seen["tests", "unit", layer[-1]][defined] = where
    for path in files:
        name = path.relative_to(root).as_posix()
        if ALONE.search("/" + name):
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        layer = seen[layer_of(root, path)]
        own = {}
        for defined, number in definitions(text):
            if defined in layer:
                clash(name, number, defined.split("(")[0], *layer[defined])
            own[defined] = (name, number)
        layer.update(own)
        for defined, meaning, number in aliases(text):
            other = meanings[layer_of(root, path)].setdefault(defined, (meaning, name, number))
            if other[0] != meaning:
                clash(name, number, defined, *other[1:])
    print("\n".join(problems) if problems else f"unnamed namespaces of {len(files)} sources have names of their own")
    return 1 if problems or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
