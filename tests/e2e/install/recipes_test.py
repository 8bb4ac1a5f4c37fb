#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The recipes of CONTRIBUTING.md work as they stand. Of each recipe, in its order:

  ```cpp PATH   becomes that file
  ```diff       is applied to the sources
  ```sh         is run by a shell that finds `welkin`, in an empty folder with config/ in it
  ```text       each line must stand in what the commands have printed

The files lie in a folder of their own, in front of the tree's. Changed sources of src/ are compiled with their layer's flags and linked into
a libwelkin.so of the recipe, in front of the archives of the build; a changed test becomes a program. Nothing of the build is touched."""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

BINARY = pathlib.Path(os.environ["WELKIN_BINARY"])
SOURCE = pathlib.Path(os.environ["WELKIN_SOURCE_DIR"])
BUILD = BINARY.parent
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```", re.MULTILINE | re.DOTALL)


def recipes():
    """Blocks (language, path, text) by heading."""
    text = (SOURCE / "CONTRIBUTING.md").read_text(encoding="utf-8").split("\n## Recipes\n")[1]
    return {part.splitlines()[0]: BLOCK.findall(part) for part in text.split("\n### ")[1:]}


def run(command, folder, **options):
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command}\nexit code {done.returncode}\n{done.stdout}")
    return done.stdout


def patched(text, hunks, path):
    """`text` with each hunk's old lines, which stand there once, as its new ones."""
    for hunk in hunks:
        lines = [line or " " for line in hunk.splitlines()]  # editors take the blank of an empty line away
        old, new = ("".join(line[1:] + "\n" for line in lines if line[0] in kinds) for kinds in (" -", " +"))
        if text.count(old) != 1:
            raise AssertionError(f"{path} has these lines {text.count(old)} times:\n{old}")
        text = text.replace(old, new)
    return text


class Overlay:
    """A tree of the files that a recipe changes, and what is built of them."""

    def __init__(self, folder):
        self.folder, self.sources, self.tests = folder, [], []
        (folder / "run").mkdir()
        (folder / "bin").mkdir()
        shutil.copytree(SOURCE / "config", folder / "run/config")
        self.ninja = (BUILD / "build.ninja").read_text(encoding="utf-8")
        self.commands = json.loads((BUILD / "compile_commands.json").read_text(encoding="utf-8"))

    def add(self, path, text):
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        self.note(path)

    def patch(self, text):
        for path, hunks in re.findall(r"^\+\+\+ b/(\S+)\n(.*?)(?=^--- |\Z)", text, re.MULTILINE | re.DOTALL):
            if not (self.folder / path).exists():
                self.add(path, (SOURCE / path).read_text(encoding="utf-8"))
            target = self.folder / path
            target.write_text(patched(target.read_text(encoding="utf-8"), hunks.split("@@\n")[1:], path), encoding="utf-8")
            self.note(path)

    def note(self, path):
        found = self.tests if path.startswith("tests/") else self.sources
        if path.endswith(".cpp") and path not in found:
            found.append(path)

    def flags_of(self, layer):
        """The compiler and its flags for a file of that layer, optimising less: that is quicker, and the precompiled header still fits."""
        words = next(shlex.split(one["command"]) for one in self.commands
                     if re.search(rf" -o \S*welkin_{layer}\.dir/", one["command"]) and "c++-header" not in one["command"])
        return ["-O1" if word in ("-O2", "-O3") else word for word in words[: words.index("-o")]]

    def compile(self, path):
        layer = path.split("/")[2 if path.startswith("tests/") else 1]
        command = self.flags_of(layer)
        first = next(place for place, word in enumerate(command) if word.startswith(("-I", "-isystem")))
        ours = [f"-I{self.folder / 'src'}", f"-I{SOURCE / 'src'}"]
        if path.startswith("tests/"):
            ours.append(f"-I{SOURCE / 'tests'}")
        made = self.folder / (path.replace("/", "_") + ".o")
        run([*command[:first], *ours, *command[first:], "-o", str(made), "-c", str(self.folder / path)], BUILD)
        return str(made)

    def link_words(self, target):
        """LINK_FLAGS and LINK_LIBRARIES of a target of build.ninja, which name files relative to the build folder."""
        block = re.search(rf"^build {re.escape(target)}:(.*?)^build ", self.ninja, re.MULTILINE | re.DOTALL)[1]
        found = dict(re.findall(r"^  (LINK_FLAGS|LINK_LIBRARIES) = (.*)$", block, re.MULTILINE))
        inputs = [word for word in block.split(" | ")[0].split()[1:] if word.endswith(".o")]
        return inputs, shlex.split(found.get("LINK_FLAGS", "")), shlex.split(found["LINK_LIBRARIES"].replace("$", ""))

    def build(self, with_program):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            made = dict(zip(self.sources + self.tests, pool.map(self.compile, self.sources + self.tests)))
        compiler = next(word for word in self.flags_of("data") if not word.endswith("ccache"))
        own = [made[path] for path in self.sources]
        first = ["-Wl,--allow-multiple-definition"]  # the recipe's definitions come first and count
        if own and with_program:
            inputs, flags, libraries = self.link_words("libwelkin.so")
            run([compiler, "-shared", "-fPIC", *first, "-o", str(self.folder / "bin/libwelkin.so"), *own, *inputs, *flags, *libraries], BUILD)
        for test in self.tests:
            _, flags, libraries = self.link_words(f"tests/unit_{test.split('/')[2]}")
            program = self.folder / "bin/test"
            run([compiler, *first, "-o", str(program), made[test], *own, *flags, *libraries], BUILD)
            output = run([str(program)], self.folder)
            if "[  PASSED  ]" not in output or "0 tests from" in output:
                raise AssertionError(f"no test ran: {output}")

    def program_folder(self):
        """bin with the launcher and, where the recipe changes nothing, the library of the build."""
        for file in [BINARY, *BUILD.glob("lib*.so"), *(BUILD / "examples").glob("*.so")]:
            target = self.folder / "bin" / file.name
            if not target.exists():
                shutil.copy(file, target) if file == BINARY else target.symlink_to(file)
        return self.folder / "bin"

    def shell(self, text):
        programs = self.program_folder()
        text = text.replace("--plugin lib", f"--plugin {programs}/lib")
        torch = re.search(r"(\S+)/lib/libtorch_cpu\.so", self.ninja)[1]
        return run(["bash", "-euo", "pipefail", "-c", text], self.folder / "run",
                   env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "WELKIN_TORCH": torch})


class Recipes(unittest.TestCase):
    def follow(self, heading):
        blocks = recipes()[heading]
        with tempfile.TemporaryDirectory() as folder:
            overlay = Overlay(pathlib.Path(folder))
            for language, path, text in blocks:
                if language == "cpp":
                    self.assertTrue(path, f"a block of C++ without a path: {text[:80]}")
                    overlay.add(path, text)
                elif language == "diff":
                    overlay.patch(text)
            overlay.build(with_program=any(language == "sh" for language, _, _ in blocks))
            printed = "".join(overlay.shell(text) for language, _, text in blocks if language == "sh")
        squeezed = " ".join(printed.split())
        for line in "".join(text for language, _, text in blocks if language == "text").splitlines():
            self.assertIn(" ".join(line.split()), squeezed, f"{heading}: not printed. Printed was:\n{printed}")

    def test_every_recipe_is_followed_here(self):
        tested = {name.removeprefix("test_recipe_").replace("_", " ") for name in dir(self) if name.startswith("test_recipe_")}
        self.assertEqual({heading.lower() for heading in recipes()}, tested)

    def test_recipe_a_new_channel(self):
        self.follow("A new channel")

    def test_recipe_a_new_file_format(self):
        self.follow("A new file format")

    def test_recipe_a_new_operator(self):
        self.follow("A new operator")

    def test_recipe_a_layout_test(self):
        self.follow("A layout test")


if __name__ == "__main__":
    unittest.main()
