# SPDX-License-Identifier: Apache-2.0
"""The installed folder: small, relocatable, and in need of nothing but the C and C++ libraries and a torch 2.11.0.

It is installed, moved, and run from another folder with an empty environment; what the loader opens then is read from LD_DEBUG, so a
library of the build's packages that slipped in would be seen even on a machine that has it.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from referring_files import refer_elsewhere, write_with_references

BINARY = pathlib.Path(os.environ["WELKIN_BINARY"])
SOURCE = pathlib.Path(os.environ["WELKIN_SOURCE_DIR"])
LIMIT_BYTES = 32 << 20
OPTIONAL = {"libwelkin_ingest.so", "libwelkin_cuda.so"}
SYSTEM = re.compile(r"^(ld-linux.*|libc|libm|libdl|librt|libutil|libpthread|libstdc\+\+|libgcc_s)\.so(\.\d+)*$")
OWN = re.compile(r"^libwelkin\.so$")
TORCH = re.compile(r"^lib(c10|torch_cpu|gomp)\.so(\.\d+)?$")


def run(command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600, **options)


def cached(name):
    """A value of the build's CMake cache."""
    return re.search(rf"^{name}:\w+=(.*)$", (BINARY.parent / "CMakeCache.txt").read_text(), re.MULTILINE).group(1)


def torch_package():
    """The torch that the build used, asked of the same python."""
    code = "import importlib.util as u, os; print(os.path.dirname(u.find_spec('torch').origin))"
    return pathlib.Path(run([cached("WELKIN_PYTHON"), "-c", code]).stdout.strip())


def dynamic_section(path):
    text = run(["readelf", "-dW", path]).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", text), text


@unittest.skipIf("sanitize" in BINARY.name or cached("WELKIN_SANITIZE"), "a build with sanitizers is not installed")
class InstalledFolder(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.root)
        done = run(["cmake", "--install", BINARY.parent, "--prefix", cls.root / "first", "--strip"])
        assert done.returncode == 0, done.stderr
        cls.prefix = cls.root / "moved here"  # another name, with a blank
        (cls.root / "first").rename(cls.prefix)
        cls.elsewhere = cls.root / "elsewhere"
        cls.elsewhere.mkdir()
        cls.torch = torch_package()

    def welkin(self, *arguments, **environment):
        environment.setdefault("WELKIN_TORCH", str(self.torch))
        return run([self.prefix / "bin" / "welkin", *arguments], cwd=self.elsewhere, env=environment)

    def test_size(self):
        total = sum(path.stat().st_size for path in self.prefix.rglob("*") if path.is_file() and path.name not in OPTIONAL)
        self.assertLessEqual(total, LIMIT_BYTES)

    def test_needs_system_and_torch_only(self):
        for name, allowed in (("bin/welkin", [SYSTEM]), ("libexec/welkin-check-files", [SYSTEM]), ("lib/libwelkin.so", [SYSTEM, TORCH]),
                              ("lib/libwelkin_python.so", [SYSTEM, TORCH, OWN])):
            needed, text = dynamic_section(self.prefix / name)
            self.assertEqual([item for item in needed if not any(pattern.match(item) for pattern in allowed)], [], name)
            self.assertNotRegex(text, r"\((RPATH|RUNPATH|TEXTREL)\)", name)

    def test_holds_no_path_of_the_build(self):
        for name in ("bin/welkin", "libexec/welkin-check-files", "lib/libwelkin.so", "lib/libwelkin_python.so"):
            data = (self.prefix / name).read_bytes()
            self.assertNotIn(str(SOURCE).encode() + b"/", data, name)

    def test_the_modulefile_finds_the_folder_from_its_own_place(self):
        version = self.welkin("--version").stdout.split()[1]
        place = self.prefix / "share/welkin/modulefiles/welkin" / version
        script = "\n".join((
            f"set ModulesCurrentModulefile {{{place}}}",
            "proc module-whatis text {}", "proc conflict name {}",
            "proc prepend-path {name path} {puts $name=$path}",
            f"source {{{place}}}"))
        done = run(["tclsh"], input=script) if shutil.which("tclsh") else None
        if done is None:
            self.skipTest("tclsh is not installed")
        self.assertEqual(done.stdout.split("\n"), [f"PATH={self.prefix}/bin", f"MANPATH={self.prefix}/share/man", f"CMAKE_PREFIX_PATH={self.prefix}", ""], done.stderr)

    def test_runs_anywhere_with_an_empty_environment(self):
        done = self.welkin("--version")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^welkin \d+\.\d+\.\d+$")

    def test_manual_and_completion_are_the_programs_own(self):
        for path, form in (("man/man1/welkin.1", "man"), ("bash-completion/completions/welkin", "bash"), ("zsh/site-functions/_welkin", "zsh")):
            done = self.welkin("completion", form)
            self.assertEqual((done.returncode, done.stderr), (0, ""), form)
            self.assertEqual((self.prefix / "share" / path).read_text(), done.stdout, path)

    def test_opens_nothing_of_the_builds_packages(self):
        done = self.welkin("--version", LD_DEBUG="files")
        opened = set(re.findall(r"file=(.+?) \[\d+\];  (?:needed|dynamically loaded)", done.stderr))
        names = {pathlib.PurePath(path).name for path in opened}
        self.assertIn("libtorch_cpu.so", names)
        allowed = {path.name for path in self.torch.parent.rglob("*.so*")} | {"libwelkin.so"} | OPTIONAL
        self.assertEqual({name for name in names if not SYSTEM.match(name) and name not in allowed and "libcuda" not in name}, set())

    def test_looks_at_files_in_a_process_of_its_own(self):
        path = self.root / "damaged.h5"
        write_with_references(path)
        refer_elsewhere(path)
        done = self.welkin("data", "inspect", path)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn(f"[hdf5] a damaged file: path={path}, reason=a process that read it ended with signal 11", done.stderr)

    def test_without_the_program_that_opens_files_first_it_says_so(self):
        """Once, and where a file is read by a library that a damaged one could end."""
        program, aside = self.prefix / "libexec/welkin-check-files", self.root / "aside"
        sound, array = self.root / "sound.h5", self.root / "sound.npy"
        write_with_references(sound)
        done = self.welkin("data", "convert", sound, array, "--format", "npy")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        program.rename(aside)
        self.addCleanup(aside.rename, program)
        self.assertEqual(self.welkin("data", "inspect", array).stderr, "")
        done = self.welkin("data", "inspect", sound, sound)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "warning: a damaged file may end this process, since the program that opens files first is not there: "
                                      f"program=welkin-check-files, searched={self.prefix}/lib {self.prefix}/libexec. Install it there.\n")
        second = self.welkin("data", "inspect", sound, LOCAL_RANK="1", RANK="1", WORLD_SIZE="2", LOCAL_WORLD_SIZE="2", MASTER_ADDR="localhost", MASTER_PORT="1")
        self.assertEqual((second.returncode, second.stderr), (0, ""), "another process of the node says it")
        if (self.prefix / "lib/libwelkin_ingest.so").exists():
            (self.root / "a.grib").write_bytes(b"GRIB" + bytes(64) + b"7777")
            self.assertIn("warning: a damaged file may end", self.welkin("data", "ingest", self.root / "a.grib", "--out", self.root / "out").stderr)

    def test_without_torch_it_says_what_to_do(self):
        done = self.welkin("--version", WELKIN_TORCH=str(self.elsewhere))
        self.assertEqual(done.returncode, 2)
        self.assertIn("no torch in the folder named by WELKIN_TORCH", done.stderr)
        self.assertIn("pip install torch==2.11.0", done.stderr)

    def test_the_page_of_plugins_is_true(self):
        page = (SOURCE / "docs/guide/plugins.md").read_text()
        folder = self.root / "mine"
        folder.mkdir()
        for name, text in re.findall(r"`([\w.]+)`:\n\n```\w+\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
            (folder / name).write_text(text)
        self.assertEqual(sorted(path.name for path in folder.iterdir()), ["CMakeLists.txt", "mine.cpp"])
        build, use = re.search(r"^```sh\n(.*)\n(.*)\n```$", page, re.MULTILINE).groups()
        places = {"PREFIX": str(self.prefix), "PYTHON": cached("WELKIN_PYTHON")}
        quoted = [line.replace("$PREFIX", '"$PREFIX"').replace("$PYTHON", '"$PYTHON"') for line in (build, use)]
        done = run(["bash", "-c", quoted[0]], cwd=folder, env=os.environ | places)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = run(["bash", "-c", quoted[1]], cwd=folder, env=os.environ | places | {"WELKIN_TORCH": str(self.torch)})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("mean_absolute", done.stdout)

    def test_plugin_builds_against_it(self):
        shutil.copytree(SOURCE / "tests/e2e/install/plugin", self.root / "plugin")
        build = self.root / "plugin" / "build"
        done = run(["cmake", "-S", self.root / "plugin", "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}",
                    f"-DWELKIN_PYTHON={cached('WELKIN_PYTHON')}", "-G", "Ninja"])
        self.assertEqual(done.returncode, 0, done.stderr)
        done = run(["cmake", "--build", build])
        self.assertEqual(done.returncode, 0, done.stdout)
        done = self.welkin("--plugin", build / "libplugin.so", "train", "--help")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the plug-in of the test was registered", done.stderr)
        self.refuses_other_headers(build / "libplugin.so")

    def refuses_other_headers(self, library):
        """As if it had been built with the headers of another version: nothing of it is called."""
        content = library.read_bytes()
        stamp = re.search(rb"welkin [0-9.]+, headers [0-9a-f]{16}", content).group()
        other = library.with_name("libother.so")
        other.write_bytes(content.replace(stamp, stamp[:-4] + b"0000"))
        done = self.welkin("--plugin", other, "train", "--help")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("was built with another Welkin: plugin=", done.stderr)
        self.assertNotIn("the plug-in of the test was registered", done.stderr)


class ContainerRecipe(unittest.TestCase):
    """What a build of the image would stumble over, without building it: docs/guide/containers.md says how it was built."""

    def setUp(self):
        text = (SOURCE / "packaging/container/Containerfile").read_text()
        self.lines = [line for line in text.replace("\\\n", " ").splitlines() if line and not line.startswith("#")]

    def words(self, instruction):
        return [line.split()[1:] for line in self.lines if line.split()[0] == instruction]

    def test_its_packages_exist_and_it_ends_as_a_user_without_rights(self):
        wanted = {word for words in self.words("RUN") if "apt-get" in words for word in " ".join(words).partition("--no-install-recommends")[2].partition("&&")[0].split()}
        self.assertIn("libeccodes0", wanted)
        if shutil.which("apt-cache"):
            known = run(["apt-cache", "pkgnames"]).stdout.split()
            self.assertEqual(wanted - set(known), set())
        self.assertEqual(self.words("USER"), [["welkin"]])
        self.assertLess(max(i for i, line in enumerate(self.lines) if line.startswith("RUN")), self.lines.index("USER welkin"))

    def test_its_torch_is_that_of_the_build(self):
        setup = (SOURCE / "tools/setup.sh").read_text()
        recipe = "\n".join(self.lines)
        for package in re.findall(r"nvidia-cuda-(?:cupti|runtime)==[\d.]+", setup):
            self.assertIn(package, recipe)
        self.assertIn("torch==" + re.search(r"^torch_version=(.*)$", setup, re.MULTILINE).group(1), recipe)

    def test_the_builder_gets_what_git_tracks(self):
        with tempfile.TemporaryDirectory() as folder:
            fake = pathlib.Path(folder) / "podman"
            fake.write_text('#!/bin/sh\necho "$@"\nfor last; do :; done\nls "$last" "$last/dist"\n')
            fake.chmod(0o755)
            wheel = pathlib.Path(folder) / "welkin-1.whl"
            wheel.touch()
            done = run([SOURCE / "tools/container.sh", "--cpu", "--wheel", wheel, "--base", "debian:12"], env={"PATH": f"{folder}:/usr/bin:/bin"})
        self.assertRegex(done.stdout, r"^build --build-arg GPU=0 --tag welkin --build-arg BASE=debian:12 --file \S+/Containerfile /", done.stderr)
        self.assertIn("welkin-1.whl", done.stdout)
        self.assertIn("quickstart.sh", done.stdout)
        self.assertNotIn("build\n", done.stdout)


if __name__ == "__main__":
    sys.exit(unittest.main())
