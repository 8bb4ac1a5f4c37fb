# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over the sources that changed lately, newest first, for a bounded time.

usage: tidy_changed.py [--base COMMIT] [--minutes M]
Without --base: what differs from origin/main, or on main itself what the commits of the last day changed. Files for which the time did
not suffice are named, and the exit code is then 75 where there are no findings.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "tidy"
NOT_REACHED = 75  # exit code, as in .ci/run
BATCHED = {"src/ops", "src/data", "src/model", "src/parallel", "src/train", "src/bench", "src/verify", "apps"}


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def find_base():
    head = git("rev-parse", "HEAD").strip()
    upstream = subprocess.run(["git", "merge-base", "HEAD", "origin/main"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    if upstream and upstream != head:
        return upstream
    newest = int(git("log", "-1", "--format=%ct"))
    older = git("rev-list", "-1", f"--before={newest - 86400}", "HEAD").strip()
    return older or git("hash-object", "-t", "tree", "/dev/null").strip()  # a young repository: everything


def changed_sources(base):
    names = set(git("diff", "--name-only", "--diff-filter=d", base, "HEAD", "--", "src", "apps").split())
    names = [name for name in names if name.endswith(".cpp") and "/cuda/" not in name and "/ingest/component/" not in name]
    age = {}
    for number, line in enumerate(git("log", "--name-only", "--format=", "-200").split()):
        age.setdefault(line, number)
    return sorted(names, key=lambda name: age.get(name, 1 << 30))


def configure():
    options = os.environ.get("WELKIN_CMAKE_OPTIONS", "").split()
    python = ROOT / ".venv" / "bin" / "python3"
    subprocess.run(["cmake", "--preset", "tidy", f"-DWELKIN_PYTHON={python}", *options], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def batches_of(names):
    """At most eight files of one folder at a time where it includes torch and is built in batches anyway: its headers cost 40 s, be it for
    one file or for eight."""
    batches = {}
    for name in names:
        layer = "/".join(name.split("/")[:2]) if name.startswith("src/") else "apps"
        group = batches.setdefault(name.rpartition("/")[0], [[]])  # a folder shares one scope (tools/check_names.py)
        if len(group[-1]) == (8 if layer in BATCHED else 1):
            group.append([])
        group[-1].append(name)
    return sorted((batch for group in batches.values() for batch in group), key=lambda batch: names.index(batch[0]))


def compile_flags():
    """The flags of each file from the build's compile commands, without compiler, input and output."""
    flags = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        kept = [word for word in words if re.match(r"^-(I|isystem|std|D|f(?!ile-prefix)|W|m)", word) or words[words.index(word) - 1] == "-isystem"]
        flags[os.path.relpath(entry["file"], ROOT)] = [word for word in kept if not word.startswith(("-ffp-contract", "-fopenmp"))]
    return flags


def tidy(program, label, batch, flags, deadline):
    """[(files, clang-tidy's exit code, or None where the time did not suffice)], findings printed. Files of a batch may share a name that none
    of them sees alone, so a batch that does not compile is looked at file by file."""
    left = deadline - time.monotonic()
    if left <= 1:
        return [(batch, None)]
    source = BUILD / f"batch_{label}.cpp"
    source.write_text("".join(f'#include "{ROOT / name}"\n' for name in batch))
    command = [program, "--quiet", f"--config-file={ROOT / '.clang-tidy'}", source, "--", *max((flags[name] for name in batch), key=len), "-Wno-unknown-warning-option"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=left)
    except subprocess.TimeoutExpired:
        return [(batch, None)]
    if len(batch) > 1 and "[clang-diagnostic-error]" in done.stdout:
        return sum((tidy(program, f"{label}_{number}", [name], flags, deadline) for number, name in enumerate(batch)), [])
    if done.returncode:
        print(done.stdout, flush=True)
    return [(batch, done.returncode)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base")
    parser.add_argument("--minutes", type=float, default=6)
    arguments = parser.parse_args()
    program = shutil.which("clang-tidy-14") or shutil.which("clang-tidy")
    if program is None:
        sys.exit("tidy_changed.py: clang-tidy is not installed")
    deadline = time.monotonic() + 60 * arguments.minutes
    configure()
    flags = compile_flags()
    names = [name for name in changed_sources(arguments.base or find_base()) if name in flags]
    batches = batches_of(names)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = sum(pool.map(lambda item: tidy(program, item[0], item[1], flags, deadline), enumerate(batches)), [])
    bad = sum(1 for _, code in results if code)
    late = [name for batch, code in results if code is None for name in batch]
    print(f"clang-tidy: {len(names) - len(late)} of {len(names)} changed files looked at, {bad} of {len(results)} batches with findings")
    if late:
        print(f"no time left for: {' '.join(late)}")
    return 1 if bad else NOT_REACHED if late else 0


if __name__ == "__main__":
    sys.exit(main())
