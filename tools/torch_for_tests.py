# SPDX-License-Identifier: Apache-2.0
"""Makes the torch wheel of .venv importable from Python in .venv-test, for the tests that compare with PyTorch itself.

usage: torch_for_tests.py SITE_PACKAGES_WITH_TORCH SITE_PACKAGES_OF_THE_TESTS
libtorch_python.so is linked to all of CUDA, 2 GB that a machine without GPU does not have (tools/setup.sh). So the tests get a folder of
links to the wheel's files and, for each library that is missing, an empty one of its name; all symbols that are then undefined lead to one
function that ends the process. Only code for GPUs calls them. The wheel itself is not touched.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# What `import torch` loads.
LOADED = ["libtorch_python.so", "libtorch.so", "libtorch_cpu.so", "libtorch_cuda.so", "libc10.so", "libc10_cuda.so", "libshm.so",
          "libcaffe2_nvrtc.so", "libtorch_nvshmem.so"]
SYSTEM = re.compile(r"^(lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+)\.so|ld-linux)")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def needed(library):
    return re.findall(r"\(NEEDED\)\s+Shared library: \[(.+)\]", run("readelf", "-dW", str(library)))


def symbols(library, defined):
    """Names of dynamic symbols without their versions."""
    text = run("nm", "-D", "--defined-only" if defined else "--undefined-only", str(library))
    names = {line.split()[-1].split("@")[0] for line in text.splitlines() if line.strip()}
    return names


def link_package(source, target):
    shutil.rmtree(target, ignore_errors=True)
    subprocess.run(["cp", "-rs", str(source.resolve()), str(target)], check=True)


def missing_libraries(libraries, present):
    wanted = {name for library in libraries for name in needed(library)}
    return sorted(name for name in wanted if name not in present and not SYSTEM.match(name))


def undefined_symbols(libraries, others):
    have = set()
    for library in [*libraries, *others]:
        have |= symbols(library, defined=True)
    want = set().union(*(symbols(library, defined=False) for library in libraries))
    prefixes = ("cu", "cublas", "cudnn", "cufft", "cusparse", "cusolver", "curand", "nccl", "nvshmem", "nvrtc", "nvJitLink", "nvtx", "nvToolsExt")
    return sorted(name for name in want - have if name.startswith(prefixes))


def build(folder, names, undefined):
    """The first library defines everything, the others nothing."""
    with tempfile.TemporaryDirectory() as scratch:
        source = pathlib.Path(scratch) / "stand_in.c"
        lines = ["#include <stdlib.h>", "static void welkin_no_cuda(void) { abort(); }"]
        lines += [f"void {name}(void) __attribute__((alias(\"welkin_no_cuda\")));" for name in undefined]
        for index, name in enumerate(names):
            source.write_text("\n".join(lines) if index == 0 else "")
            run("gcc", "-shared", "-fPIC", "-w", "-fno-builtin", f"-Wl,-soname,{name}", "-o", str(folder / name), str(source))


def main(arguments):
    site, tests = (pathlib.Path(argument).resolve() for argument in arguments)
    for package in ("torch", "torchgen", "functorch", "nvidia"):
        link_package(site / package, tests / package)
    libraries = [site / "torch/lib" / name for name in LOADED]
    shipped = [path for path in (site / "torch/lib").glob("*.so*")] + list((site / "nvidia").glob("**/lib/*.so*"))
    missing = missing_libraries(libraries, {path.name for path in shipped})
    if any(name.startswith("libcublas.so") for name in missing):  # otherwise only the driver's, which the system has
        folder = tests / "nvidia/cu13/lib"
        build(folder, missing, undefined_symbols(libraries, [path for path in shipped if path not in libraries]))
    done = subprocess.run([str(tests.parents[2] / "bin/python3"), "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
