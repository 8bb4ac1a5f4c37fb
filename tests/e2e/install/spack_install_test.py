#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`spack install welkin`, and what is installed used as the guide says: loaded, run, trained, imported, tested by `spack test`.

WELKIN_SPACK_ROOT names a Spack 1.x whose own settings say where the packages of Spack are; it stays as it is. The dependencies are those of
Debian, registered as externals, and the torch of the build. Everything else goes into a folder of the test's own. Spack compiles all of
Welkin: half an hour of two cores.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from install_test import SOURCE, cached, torch_package
from spack_test import RECIPE, SPACK_NAMES, Recipe
from wheel_test import TRAIN

SPACK = pathlib.Path(os.environ["WELKIN_SPACK_ROOT"]) if "WELKIN_SPACK_ROOT" in os.environ else None
LIMIT_S = 3 * 3600
DEBIAN = {"c": None, "cxx": None} | {spack: debian for debian, spack in SPACK_NAMES.items() if spack not in ("cxx", "python")} | {"binutils": "binutils"}


def why_not():
    if SPACK is None:
        return "WELKIN_SPACK_ROOT names no Spack"
    if not (SPACK / "bin/spack").exists():
        return f"no Spack there: WELKIN_SPACK_ROOT={SPACK}"
    missing = [name for name in DEBIAN.values() if name and not version_of(name)]
    return f"these packages are not installed: {' '.join(missing)}" if missing else None


def version_of(package):
    """Without Debian's epoch and revision; empty where it is not installed."""
    done = subprocess.run(["dpkg-query", "-W", "-f=${Version}", package], capture_output=True, text=True, check=False)
    return re.match(r"(?:\d+:)?((?:\d+(?:\.\d+)*)?)", done.stdout).group(1)


def externals():
    """packages.yaml: what the package asks for, as the system has it."""
    recipe = Recipe(RECIPE.read_text())
    found = {}
    for package, debian in DEBIAN.items():
        if debian:
            asked = re.sub(r"@\S+", "", recipe.asked_of(package)).strip()
            found[package] = (f"{package}@{version_of(debian)} {asked}".strip(), "/usr")
    compiler = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True, check=True).stdout.strip()
    code = "import sys; print(sys.base_prefix, '%d.%d.%d' % sys.version_info[:3])"
    base, version = subprocess.run([cached("WELKIN_PYTHON"), "-c", code], capture_output=True, text=True, check=True).stdout.split()
    found["python"] = (f"python@{version}", base)
    torch = re.search(r"@(\S+) (\S+)", recipe.asked_of("py-torch"))
    found["py-torch"] = (f"py-torch@{torch.group(1)} ~cuda{torch.group(2)} %python@{version}", torch_package().parents[3])
    found["glibc"] = (f"glibc@{version_of('libc6')}", "/usr")
    found["gmake"] = (f"gmake@{version_of('make')}", "/usr")
    rows = [f"  {name}: {{buildable: false, externals: [{{spec: '{spec}', prefix: {prefix}}}]}}" for name, (spec, prefix) in found.items()]
    rows.append(f"  gcc: {{buildable: false, externals: [{{spec: \"gcc@{compiler} languages:='c,c++'\", prefix: /usr, "
                "extra_attributes: {compilers: {c: /usr/bin/gcc, cxx: /usr/bin/g++}}}]}")
    rows += ["  c: {require: [gcc]}", "  cxx: {require: [gcc]}"]
    return "packages:\n" + "\n".join(rows) + "\n"


@unittest.skipIf(why_not(), why_not())
class SpackInstall(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.root, ignore_errors=True)
        cls.make_clone()
        scope = cls.root / "scope"
        scope.mkdir()
        (scope / "packages.yaml").write_text(externals())
        (scope / "repos.yaml").write_text(f"repos:\n  welkin: {cls.root}/clone/packaging/spack/spack_repo/welkin\n")
        (scope / "config.yaml").write_text(f"config:\n  install_tree: {{root: {cls.root}/opt}}\n  build_stage: [{cls.root}/stage]\n"
                                           f"  misc_cache: {cls.root}/cache\n  test_stage: {cls.root}/tests\n")
        cls.environment = {"HOME": str(cls.root), "PATH": "/usr/bin:/bin", "SPACK_DISABLE_LOCAL_CONFIG": "1", "SPACK_USER_CACHE_PATH": str(cls.root / "user"),
                           **{name: os.environ[name] for name in ("SPACK_PYTHON",) if name in os.environ}}
        began = time.monotonic()
        cls.spack("install", "welkin")
        cls.prefix = pathlib.Path(cls.spack("location", "-i", "welkin").strip())
        size = sum(path.stat().st_size for path in cls.prefix.rglob("*") if path.is_file() and not path.is_symlink())
        print(f"spack install welkin: {time.monotonic() - began:.0f} s, {size / 1e6:.1f} MB", file=sys.stderr)

    @classmethod
    def make_clone(cls):
        """What git tracks, as it lies here, as the branch main of a repository."""
        clone = cls.root / "clone"
        clone.mkdir()
        names = subprocess.run(["git", "-C", SOURCE, "ls-files", "-z"], capture_output=True, check=True).stdout.split(b"\0")
        for name in filter(None, names):
            path = os.fsdecode(name)
            (clone / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(SOURCE / path, clone / path, follow_symlinks=False)
        for words in (["init", "-q", "-b", "main"], ["add", "--all", "--force"], ["-c", "user.name=test", "-c", "user.email=test@localhost", "commit", "-q", "-m", "as it lies"]):
            subprocess.run(["git", "-C", clone, *words], check=True)

    @classmethod
    def spack(cls, *words):
        done = subprocess.run([SPACK / "bin/spack", "-C", cls.root / "scope", *words], env=cls.environment, cwd=cls.root, capture_output=True, text=True,
                              timeout=LIMIT_S, check=False)
        assert done.returncode == 0, f"spack {words}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout

    def loaded(self, command):
        """What a shell prints in which welkin is loaded, as the guide says."""
        text = f'. {SPACK}/share/spack/setup-env.sh && eval "$(spack -C {self.root}/scope load --sh welkin)" && {command}'
        done = subprocess.run(["bash", "-c", text], env=self.environment, cwd=self.root, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_a_loaded_welkin_runs(self):
        self.assertEqual(self.loaded("command -v welkin").strip(), str(self.prefix / "bin/welkin"))
        self.assertRegex(self.loaded("welkin --version"), r"^welkin \d+\.\d+\.\d+\n$")
        self.assertEqual(self.loaded("echo $WELKIN_TORCH").strip(), str(torch_package().parents[3]))

    def test_it_trains_and_measures(self):
        self.loaded(" ".join(f"'{word}'" for word in ["welkin", *TRAIN, "--log_root", f"{self.root}/logs"]))
        self.assertEqual(len(list((self.root / "logs").rglob("model.safetensors"))), 1)
        self.loaded(" ".join(f"'{word}'" for word in ["welkin", "bench", "synthetic", *TRAIN[1:], "--windows", "1",
                                                      "--window_seconds", "0.05", "--warmup_seconds", "0", "--json", f"{self.root}/rates.json"]))
        self.assertIn('"synthetic_samples_per_s"', (self.root / "rates.json").read_text())

    def test_python_imports_it_and_finds_torch(self):
        where, torch = self.loaded("python3 -c 'import welkin; print(welkin.__file__, welkin.torch_folder())'").split()
        self.assertTrue(where.startswith(str(self.prefix)), where)
        self.assertEqual(pathlib.Path(torch).resolve(), torch_package().resolve())

    def test_spack_runs_its_tests(self):
        self.spack("test", "run", "welkin")
        results = self.spack("test", "results", "-l", "--", "welkin")
        for name in ("test_version", "test_training"):
            self.assertIn(f"PASSED: Welkin::{name}", results)

    def test_what_is_linked_needs_no_library_of_the_build(self):
        """The archives are inside: of a library beside torch's and the compiler's nothing is loaded."""
        needed = subprocess.run(["readelf", "-dW", self.prefix / "lib/libwelkin.so"], capture_output=True, text=True, check=True).stdout
        names = set(re.findall(r"\(NEEDED\).*\[lib([a-zA-Z]+)", needed))
        self.assertFalse(names & {"hdf", "sz", "aec", "z", "yaml", "blosc", "snappy", "lz", "zstd", "png", "sodium"}, names)


if __name__ == "__main__":
    unittest.main()
