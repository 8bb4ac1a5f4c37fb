# SPDX-License-Identifier: Apache-2.0
"""Whether what the documents name exists: paths, links and the headings they lead to, names in a source file, verbs of `welkin`, flags. The
help texts of the built programs are the truth.

usage: check_docs.py ROOT WELKIN_BINARY
A path is anything with a slash in backticks or in a link. A command is a line of a code block, or backticks, that begins with welkin
(or build/release/welkin, ./quickstart.sh, ./test.sh). A flag alone in backticks must be one of some verb. "`a` and `B::c` in `src/d.cpp`" says
that a and c stand in that file. Lists and tables have an empty line around them: without it some readers of Markdown show them as running text.
"""
import pathlib
import re
import shlex
import subprocess
import sys

FENCE = re.compile(r"^```.*?\n(.*?)^```", re.MULTILINE | re.DOTALL)
BACKTICKS = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)]*))?\)")
NAMES_IN_FILE = re.compile(r"((?:`[^`\n]+`(?:, | and ))*`[^`\n]+`) in `((?:src|apps|tests|tools)/[^`\n]+\.\w+)`")
PATH = re.compile(r"^(?:\./)?[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)*/?$")
ITEM = re.compile(r"[-*] |\d+\. ")
FLAG = re.compile(r"--[A-Za-z][A-Za-z0-9_-]*")
SCRIPTS = ("./quickstart.sh", "./test.sh")
FOREIGN_FLAGS = {"--prefix", "--strip", "--preset", "--install", "--target", "--build", "--gtest_filter"}  # of cmake, ctest, GoogleTest


class Programs:
    """The flags and verbs of the programs, asked once each."""

    def __init__(self, root, binary):
        self.root, self.binary, self.asked = root, binary, {}
        usage = self.help_of([str(binary)])
        self.verbs = re.findall(r"^  ([a-z]+(?: [a-z]+)?)  +\S", usage.split("verbs:")[-1], re.MULTILINE)

    def help_of(self, command):
        key = " ".join(command)
        if key not in self.asked:
            form = "--help=all" if command[0] == str(self.binary) else "--help"
            done = subprocess.run([*command, form], cwd=self.root, capture_output=True, text=True, timeout=60)
            self.asked[key] = done.stdout + done.stderr
        return self.asked[key]

    def flags(self, verb=None):
        """With the --no-... form of switches where the help text says that they have one, and with the flags of the kinds of a verb
        or studies whose help names them (`welkin data simulate nbody --help`, `welkin bench --scaling weak --help`)."""
        command = [str(self.binary), *(verb.split() if verb else [])]
        text = self.help_of(command)
        for kind in re.findall(rf"welkin {verb} ([-a-z_ ]+) --help", " ".join(text.split())):
            text += self.help_of([*command, *kind.split()])
        flags = set(FLAG.findall(text)) | {"--help"}
        return flags | {flag.replace("--", "--no-", 1) for flag in flags} if "--no-..." in text else flags

    def script_flags(self, script):
        return set(FLAG.findall(self.help_of([str(self.root / script)])))

    def every_flag(self):
        flags = self.flags() | FOREIGN_FLAGS
        for verb in self.verbs:
            flags |= self.flags(verb)
        for script in SCRIPTS:
            if (self.root / script).exists():
                flags |= self.script_flags(script)
        return flags


def commands_in(text):
    """Command lines of the code blocks (joined over trailing backslashes) and of the backticks in running text."""
    for block in FENCE.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            yield line.strip().removeprefix("$ ")
    for quoted in BACKTICKS.findall(FENCE.sub("", text)):
        yield quoted.strip()


def words_of(command):
    try:
        return shlex.split(command, comments=True)
    except ValueError:
        return command.split()


def flags_of(words):
    found = []
    for word in words:
        if word in ("|", ">", ">>", "&&", ";"):
            break
        match = FLAG.match(word)
        if match:
            found.append(match.group(0))
    return found


def check_command(words, programs):
    while words and re.match(r"^[A-Z_]+=", words[0]):  # VARIABLE=value before the program
        words = words[1:]
    if words and words[0] in SCRIPTS:
        known = programs.script_flags(words[0])
        return [f"{words[0]} has no flag {flag}" for flag in flags_of(words[1:]) if flag not in known]
    if not words or words[0].split("/")[-1] != "welkin" or len(words) == 1:
        return []
    rest = words[1:]
    while rest and rest[0].startswith("--"):  # options before the verb
        if rest[0] not in programs.flags():
            return [f"welkin has no option {rest[0]}"]
        rest = rest[2:] if rest[0] in ("--torch", "--plugin") else rest[1:]
    if not rest or not re.match(r"^[a-z]+$", rest[0]):  # VERB, ...: a placeholder
        return []
    verb = next((verb for verb in programs.verbs if rest[: len(verb.split())] == verb.split()), None)
    if verb is None:
        if len(rest) == 1 and any(known.startswith(rest[0] + " ") for known in programs.verbs):
            return []
        return [f"no such verb: welkin {' '.join(rest[:2])}"]
    own, inner = (rest[: rest.index("--")], rest[rest.index("--") + 1 :]) if "--" in rest else (rest, [])
    known = programs.flags(verb)
    problems = [f"welkin {verb} has no flag {flag}" for flag in flags_of(own) if flag not in known]
    return problems + (check_command(["welkin", *inner], programs) if inner else [])  # welkin launch ... -- VERB ...


def ignored(root, path):
    return subprocess.run(["git", "check-ignore", "-q", path], cwd=root).returncode == 0


def check_path(root, document, path):
    if "://" in path or path.startswith(("/", "~")):
        return []
    for base in (root, document.parent):
        if (base / path).exists():
            return []
    clean = path.removeprefix("./")
    top = clean.split("/")[0]
    if ignored(root, clean) or ignored(root, top + "/"):
        return []  # something that a command writes
    return [f"no such path: {path}"]


def anchors_of(text):
    """What a link to a heading is called, as the web interfaces of git show Markdown."""
    found = []
    for heading in re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        found.append(slug if slug not in found else f"{slug}-{sum(re.fullmatch(rf'{re.escape(slug)}(-[0-9]+)?', other) is not None for other in found)}")
    return found


def check_link(root, document, path, anchor):
    problems = check_path(root, document, path) if path else []
    target = document.parent / path if path else document
    if anchor and not problems and target.suffix == ".md" and target.is_file() and anchor not in anchors_of(target.read_text(encoding="utf-8")):
        problems.append(f"no such heading: {path}#{anchor}")
    return problems


def check_names(root, names, path):
    if not (root / path).is_file():
        return [f"no such path: {path}"]
    text = (root / path).read_text(encoding="utf-8")
    words = [(name, re.findall(r"\w+", name)) for name in BACKTICKS.findall(names)]
    return [f"{path} has no {name}" for name, parts in words if parts and not re.search(rf"\b{parts[-1]}\b", text)]


def tracked_tops(root):
    names = subprocess.run(["git", "ls-files"], cwd=root, check=True, capture_output=True, text=True).stdout.splitlines()
    return {name.split("/")[0] for name in names}


def kind_of(line, kind_above):
    if ITEM.match(line) or (line.startswith("  ") and kind_above == "list"):
        return "list"
    return "table" if line.startswith("|") else "" if not line.strip() or line.startswith(("#", "<")) else "text"


def check_blocks(text):
    """Lists and tables that begin in the middle of a paragraph, and tables that do not end before the next one."""
    above, fenced = "", False
    for line in text.splitlines():
        fence = line.startswith("```")
        kind = "" if fence or fenced else kind_of(line, above)
        if above and kind and kind != above and (kind, above) != ("text", "list"):
            yield f"needs an empty line above: {line[:60]}"
        above, fenced = kind, fenced != fence


def check_messages(root, document):
    """The messages that the page about troubles explains: the first column of its tables stands in a source, as far as it is one literal."""
    if document.name != "troubleshooting.md":
        return
    sources = "\n".join(path.read_text(encoding="utf-8") for top in ("src", "apps") for path in sorted((root / top).rglob("*.cpp")))
    for message in re.findall(r"^\| `([^`]+)` \|", document.read_text(encoding="utf-8"), re.MULTILINE):
        if message not in sources:
            yield f"no source says: {message}"


def check_document(root, document, programs, tops):
    text = document.read_text(encoding="utf-8")
    prose = FENCE.sub("", text)
    problems = [*check_blocks(text), *check_messages(root, document)]
    for path, anchor in LINK.findall(prose):
        problems += check_link(root, document, path, anchor)
    for names, path in NAMES_IN_FILE.findall(prose):
        problems += check_names(root, names, path)
    for quoted in BACKTICKS.findall(prose):
        if FLAG.fullmatch(quoted.split("=")[0].split(" ")[0]) and quoted.split("=")[0].split(" ")[0] not in programs.every_flag():
            problems.append(f"no verb has the flag {quoted}")
        # Only what begins like something of this repository: `a/b` may as well be a ratio or a tensor name.
        if "/" in quoted and PATH.match(quoted) and quoted.removeprefix("./").split("/")[0] in tops:
            problems += check_path(root, document, quoted)
    for command in commands_in(text):
        problems += check_command(words_of(command), programs)
    return [f"{document.relative_to(root)}: {problem}" for problem in dict.fromkeys(problems)]


def main(arguments):
    root, binary = pathlib.Path(arguments[0]).resolve(), pathlib.Path(arguments[1]).resolve()
    programs = Programs(root, binary)
    tops = tracked_tops(root)
    documents = [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md")), *sorted((root / "examples").rglob("*.md"))]
    documents += [page for top in ("src", "apps", "tests", "bench") for page in sorted((root / top).rglob("README.md"))]
    problems = [problem for document in documents for problem in check_document(root, document, programs, tops)]
    print("\n".join(problems) if problems else f"{len(documents)} documents name only what exists")
    return 1 if problems or not documents else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
