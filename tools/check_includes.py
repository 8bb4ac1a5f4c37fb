# SPDX-License-Identifier: Apache-2.0
"""The include rule: which layer may include which, where torch may be included at all, and which torch headers are too heavy.

usage: check_includes.py [ROOT]
The table is that of docs/design.md section 2; CMakeLists.txt links the layers by the same one.
"""
import fnmatch
import pathlib
import re
import sys

LAYERS = {
    "core": set(),
    "observe": {"core"},
    "config": {"core"},
    "ops": {"core", "observe"},
    "data": {"core", "observe", "config", "ops"},
    "model": {"core", "config", "ops"},
    "launch": {"core", "observe"},
    "parallel": {"core", "observe", "config", "data", "ops", "model", "launch"},
    "plan": {"core", "observe", "config"},  # and the *_cost.h of ops and model
    "train": {"core", "observe", "config", "data", "ops", "model", "parallel", "plan"},
}
NO_TORCH = {"core", "observe", "config", "launch", "plan"}
# Parsers of foreign bytes outside these layers, and costs, which the planner includes.
NO_TORCH_FILES = ["src/data/hdf5*", "src/data/npy*", "src/data/array_*", "src/data/stored_*", "src/data/formats/*", "src/data/ingest/*", "src/*_cost.h", "apps/launcher.cpp"]
HEAVY = {"torch/torch.h", "torch/nn.h", "torch/all.h", "ATen/ATen.h"}
MODULE_HEADER = "torch/nn/module.h"  # 8 s to compile
MODULE_HEADER_FILES = ["src/model/*", "src/train/*", "src/parallel/*", "tests/*", "examples/*", "apps/*"]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def is_torch(header):
    return header.split("/")[0] in ("torch", "ATen", "c10", "caffe2")


def matches(path, patterns):
    return any(fnmatch.fnmatch(path, pattern) for pattern in patterns)


def layer_problem(path, layer, header):
    """What is wrong with our own header in a file of that layer, or None."""
    target = header.split("/")[0]
    if target not in LAYERS or target == layer or target in LAYERS[layer]:
        return None
    if layer == "plan" and target in ("ops", "model") and header.endswith("_cost.h"):
        return None
    return f"layer {layer} may not include layer {target}: {header}"


def torch_problem(path, layer, header):
    if header in HEAVY:
        return f"too heavy a header, include what is used: {header}"
    if layer in NO_TORCH or matches(path, NO_TORCH_FILES):
        return f"no torch in this file: {header}"
    if header == MODULE_HEADER and not matches(path, MODULE_HEADER_FILES):
        return f"only models and what trains them include {header}"
    return None


def check_file(root, path):
    name = path.relative_to(root).as_posix()
    parts = name.split("/")
    layer = parts[1] if parts[0] == "src" else None
    for match in INCLUDE.finditer(path.read_text(encoding="utf-8", errors="replace")):
        header = match.group(2)
        problem = None
        if ".." in header.split("/"):
            problem = f"include paths start at src/: {header}"
        elif is_torch(header):
            problem = torch_problem(name, layer, header)
        elif layer is not None and header.startswith("apps/"):
            problem = f"nothing includes apps/: {header}"
        elif layer is not None:
            problem = layer_problem(name, layer, header)
        if problem is not None:
            yield f"{name}: {problem}"


def main(arguments):
    root = pathlib.Path(arguments[0] if arguments else ".").resolve()
    files = [path for folder in ("src", "apps", "tests", "examples", "bench") for path in sorted((root / folder).rglob("*"))
             if path.suffix in (".h", ".cpp", ".cu", ".cuh")]
    unknown = sorted({path.relative_to(root).parts[1] for path in files if path.relative_to(root).parts[0] == "src"} - set(LAYERS))
    problems = [f"src/{name}: no such layer" for name in unknown]
    for path in files:
        if path.relative_to(root).parts[0] == "src" and path.relative_to(root).parts[1] in unknown:
            continue
        problems += check_file(root, path)
    print("\n".join(problems) if problems else f"includes of {len(files)} files follow the table")
    return 1 if problems or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
