# SPDX-License-Identifier: Apache-2.0
"""The Spack package against what it repeats: the packages and the torch of tools/setup.sh, and the options and archives of CMake.

It is read as a syntax tree, so that no Spack is needed. Where `spack` is on the path, Spack itself checks and concretises it too.
"""
import ast
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["WELKIN_SOURCE_DIR"]).resolve()
REPOSITORY = SOURCE / "packaging/spack/spack_repo/welkin"
RECIPE = REPOSITORY / "packages/welkin/package.py"

# Each package of tools/setup.sh: what Spack calls it, or why Spack needs none.
SPACK_NAMES = {
    "g++": "cxx", "cmake": "cmake", "ninja-build": "ninja", "python3": "python", "libhdf5-dev": "hdf5", "libaec-dev": "libaec", "zlib1g-dev": "zlib",
    "libyaml-dev": "libyaml", "libblosc-dev": "c-blosc", "libsnappy-dev": "snappy", "liblz4-dev": "lz4", "libzstd-dev": "zstd", "libpng-dev": "libpng",
    "libxxhash-dev": "xxhash", "libsodium-dev": "libsodium", "libcli11-dev": "cli11", "nlohmann-json3-dev": "nlohmann-json", "libeccodes-dev": "eccodes",
    "libnetcdf-dev": "netcdf-c"}
NOT_OF_SPACK = {
    "ca-certificates": "pip fetches torch with it", "git": "fetches the source, which Spack does with its own", "ccache": "Spack's own is used, if any",
    "python3-venv": "for torch's wheel; torch is a package", "libjs-dygraphs": "Spack has none: a variant names the folder"}
# What no package of Debian stands for.
OF_SPACK_ALONE = {
    "c": "Debian's g++ brings gcc", "binutils": "Debian's g++ brings objcopy", "py-torch": "the wheel of tools/setup.sh", "cuda": "the nvcc of tools/setup.sh"}
# The package of each archive that cmake/WelkinStaticLibraries.cmake takes in.
ARCHIVES = {"libhdf5.a": "hdf5", "libsz.a": "libaec", "libaec.a": "libaec", "libz.a": "zlib", "libyaml.a": "libyaml", "libpng.a": "libpng",
            "libsodium.a": "libsodium", "libblosc.a": "c-blosc", "libsnappy.a": "snappy", "liblz4.a": "lz4", "libzstd.a": "zstd"}
INDEPENDENT_BY_ITSELF = {"hdf5"}  # its CMake says so
ONE_KIND_OF_LIBRARY = {"snappy": "~shared", "lz4": "libs=static", "zstd": "libs=static", "libpng": "libs=static"}  # packages that may leave the archive out


def text_of(name):
    return (SOURCE / name).read_text()


def constant(node):
    """The text of a string, with {} where a formatted one has values."""
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return node.value if isinstance(node, ast.Constant) else None


class Recipe:
    """The calls of the recipe: name of the function, positional constants, named constants."""

    def __init__(self, text):
        tree = ast.parse(text)
        self.package, = (node for node in tree.body if isinstance(node, ast.ClassDef))
        self.calls = []
        for node in ast.walk(self.package):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
                self.calls.append((name, [constant(value) for value in node.args], {word.arg: constant(word.value) for word in node.keywords}))

    def named(self, *names):
        return [(arguments, words) for name, arguments, words in self.calls if name in names]

    def dependencies(self):
        """{package: [what is asked of it, with the condition behind it]}"""
        found = {}
        for arguments, words in self.named("depends_on"):
            package, rest = re.fullmatch(r"([a-z0-9-]+)(.*)", arguments[0]).groups()
            found.setdefault(package, []).append((rest.strip(), words.get("when")))
        for arguments, _ in self.named("generator"):  # a build system of CMake depends on the generator that it names
            found.setdefault(arguments[0], []).append(("", None))
        return found

    def asked_of(self, package):
        return " ".join(rest for rest, condition in self.dependencies()[package] if condition is None)


class SpackPackage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.recipe = Recipe(RECIPE.read_text())
        cls.setup = text_of("tools/setup.sh")
        cls.cmake = text_of("CMakeLists.txt") + "".join(path.read_text() for path in sorted((SOURCE / "cmake").glob("*.cmake")))

    def test_repository_has_the_form_that_spack_demands(self):
        words = dict(re.findall(r"^  (\w+): (\S+)$", (REPOSITORY / "repo.yaml").read_text(), re.MULTILINE))
        self.assertEqual(words["namespace"], REPOSITORY.name)
        self.assertRegex(words["api"], r"^v2\.\d+$")
        self.assertEqual(self.recipe.package.name, "Welkin")
        self.assertIn("CMakePackage", [base.id for base in self.recipe.package.bases])

    def test_source_is_the_clone_around_it(self):
        place, = (ast.unparse(node.value) for node in self.recipe.package.body if isinstance(node, ast.Assign) and node.targets[0].id == "git")
        up = int(re.fullmatch(r"pathlib\.Path\(__file__\)\.resolve\(\)\.parents\[(\d+)\]\.as_uri\(\)", place).group(1))
        self.assertEqual(RECIPE.parents[up], SOURCE)

    def test_every_package_of_the_build_is_asked_for(self):
        listed = re.search(r"^build_packages=\((.*?)\)$", self.setup, re.MULTILINE | re.DOTALL).group(1).split()
        self.assertEqual(set(listed), set(SPACK_NAMES) | set(NOT_OF_SPACK))
        self.assertEqual(set(self.recipe.dependencies()), set(SPACK_NAMES.values()) | set(OF_SPACK_ALONE))

    def test_torch_is_that_of_the_build(self):
        version = re.search(r"^torch_version=(.*)$", self.setup, re.MULTILINE).group(1)
        self.assertEqual(re.search(r"@(\S+)", self.recipe.asked_of("py-torch")).group(1), version)
        self.assertIn("+gloo", self.recipe.asked_of("py-torch"), "ranks on CPUs")
        conditions = {condition: rest for rest, condition in self.recipe.dependencies()["py-torch"]}
        self.assertIn("+nccl", conditions["+cuda"], "ranks on GPUs")

    def test_tools_have_the_versions_that_cmake_wants(self):
        self.assertEqual(self.recipe.asked_of("cmake"), "@" + re.search(r"cmake_minimum_required\(VERSION ([\d.]+)\)", self.cmake).group(1) + ":")
        self.assertEqual(self.recipe.dependencies()["cuda"], [("@" + re.search(r'MATCHES "release (\d+)', self.cmake).group(1), "+cuda")])

    def test_archives_are_static_and_position_independent(self):
        libraries = text_of("cmake/WelkinStaticLibraries.cmake")
        taken = {word for words in re.findall(r"ARCHIVES ([\w. ]+)\)", libraries) for word in words.split()}
        self.assertEqual(taken, set(ARCHIVES))
        for package in sorted(set(ARCHIVES.values())):
            asked = self.recipe.asked_of(package)
            self.assertTrue(package in INDEPENDENT_BY_ITSELF or "+pic" in asked or "cflags=-fPIC" in asked, f"{package}: {asked}")
            self.assertIn(ONE_KIND_OF_LIBRARY.get(package, ""), asked, package)
        self.assertIn("+szip", self.recipe.asked_of("hdf5"))
        self.assertIn("~mpi", self.recipe.asked_of("hdf5"), "its archive needs the libraries of MPI otherwise")

    def test_options_of_cmake_exist(self):
        named = {arguments[0] for arguments, _ in self.recipe.named("define", "define_from_variant")}
        known = set(re.findall(r"(?:option|set|find_program|find_path|find_file|find_library)\((WELKIN_\w+)", self.cmake))
        self.assertEqual(named - known, set())
        self.assertGreaterEqual(named, {"WELKIN_PYTHON", "WELKIN_CUDA", "WELKIN_BUILD_INGEST", "WELKIN_BUILD_PYTHON", "WELKIN_DYGRAPHS"})

    def test_variants_have_the_defaults_of_cmake(self):
        variants = {arguments[0]: words for arguments, words in self.recipe.named("variant")}
        self.assertEqual(set(variants), {"ingest", "python", "dygraphs"})  # cuda and cuda_arch come with CudaPackage
        self.assertIn("CudaPackage", [base.id for base in self.recipe.package.bases])
        bound = {arguments[1]: arguments[0] for arguments, _ in self.recipe.named("define_from_variant")}
        self.assertEqual(set(bound), {"cuda", "ingest", "python"})
        for variant, option in bound.items():
            default = re.search(rf'option\({option} "[^"]*" (ON|OFF)\)', self.cmake).group(1) == "ON"
            self.assertEqual(variants.get(variant, {"default": False})["default"], default, variant)
        self.assertIn(f"PATHS {variants['dygraphs']['default']} ", self.cmake)

    def test_python_package_is_where_it_is_taken_from(self):
        for arguments, _ in self.recipe.named("join_path"):
            if arguments[1:] == ["python", "welkin"]:
                self.assertTrue((SOURCE / "python/welkin/__init__.py").exists())
                return
        self.fail("python/welkin is not installed")

    def test_spack_accepts_and_concretises_it(self):
        if shutil.which("spack") is None:
            self.skipTest("spack is not on the path")
        with tempfile.TemporaryDirectory() as scope:
            (pathlib.Path(scope) / "repos.yaml").write_text(f"repos:\n  welkin: {REPOSITORY}\n")
            tools = ["import", *(tool for tool in ("isort", "black", "flake8") if shutil.which(tool))]
            for command in (["style", "--tool", ",".join(tools), RECIPE], ["audit", "packages", "welkin"], ["spec", "welkin"]):
                done = subprocess.run(["spack", "-C", scope, *map(str, command)], capture_output=True, text=True, timeout=500)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        version = re.search(r"^torch_version=(.*)$", self.setup, re.MULTILINE).group(1)
        self.assertIn(f"^py-torch@{version}", done.stdout)


if __name__ == "__main__":
    sys.exit(unittest.main())
