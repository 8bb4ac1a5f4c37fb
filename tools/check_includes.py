# SPDX-License-Identifier: Apache-2.0
"""The include rule: which layer may include which, which room of a layer which other room of it, where torch may be included at all, and
which torch headers are too heavy.

usage: check_includes.py [ROOT]
CMakeLists.txt links the layers by the same table as LAYERS. A room is a folder of a layer. A room includes only the rooms that its row in
ROOMS names, so that neither layers nor rooms form circles. docs/development/rooms.md shows both tables, and is compared with them.
Every folder of src/ has a README.md of at most README_LINES lines, whose links lead to existing files.
"""
import fnmatch
import pathlib
import re
import subprocess
import sys

LAYERS = {
    "core": set(),
    "observe": {"core"},
    "config": {"core"},
    "ops": {"core"},
    "data": {"core", "observe", "config", "ops"},
    "model": {"core", "config", "ops"},
    "launch": {"core"},
    "parallel": {"core", "observe", "config", "ops", "model", "launch"},
    "plan": {"core", "observe", "config"},  # and the *_cost.h of ops and model
    "train": {"core", "observe", "config", "data", "ops", "model", "parallel"},
}
LAYERS["verify"] = LAYERS["train"] | {"train"}
LAYERS["bench"] = LAYERS["verify"] | {"plan"}  # the times of links
# Rooms of one layer: what each may include of the others. Layers that are not here have one room, or rooms that do not include each other.
ROOMS = {
    "core": {"core/fault"},
    "core/archive": {"core"},
    "core/process": {"core"},
    "observe/events": {"observe/image"},
    "observe/plot": {"observe/image"},
    "observe/timeline": {"observe/plot"},
    "observe/report": {"observe/events", "observe/image", "observe/log", "observe/plot"},
    "config/schema": {"config/yaml"},
    "config/deepspeed": {"config/schema", "config/yaml"},
    "config/flags": {"config/schema", "config/yaml"},
    "config/draft": {"config/flags", "config/schema", "config/yaml"},
    "config/validate": {"config/draft", "config/schema", "config/yaml"},
    "config/resolve": {"config/deepspeed", "config/draft", "config/flags", "config/schema", "config/validate", "config/yaml"},
    "config/print": {"config/draft", "config/flags", "config/resolve", "config/schema", "config/yaml"},
    "config/help": {"config/draft", "config/flags", "config/resolve", "config/schema", "config/yaml"},
    "launch": {"launch/batch", "launch/elastic", "launch/process"},
    "launch/doctor": {"launch", "launch/batch"},
    "launch/elastic": {"launch/process"},
    "ops/arithmetic": {"ops/base"},
    "ops/cpu/elementwise": {"ops/arithmetic", "ops/base", "ops/cpu/lanes"},
    "ops/cpu/convolution": {"ops/base", "ops/cpu/lanes"},
    "ops/cpu/matrix": {"ops/base", "ops/cpu/convolution", "ops/cpu/lanes"},
    "ops/cpu/attention": {"ops/arithmetic", "ops/base", "ops/cpu/convolution", "ops/cpu/elementwise", "ops/cpu/lanes"},
    "ops/cpu": {"ops/arithmetic", "ops/base", "ops/cpu/attention", "ops/cpu/convolution", "ops/cpu/elementwise", "ops/cpu/matrix"},
    "ops/device": {"ops/arithmetic"},
    "ops/loss": {"ops/arithmetic", "ops/base", "ops/device"},
    "ops/norm": {"ops/base", "ops/cpu/elementwise", "ops/device"},
    "ops/random": {"ops/arithmetic", "ops/cpu/elementwise"},
    "ops/sample": {"ops/arithmetic"},
    "ops/sht": {"ops/base"},
    "ops/update": {"ops/arithmetic", "ops/device"},
    "ops/gemm": {"ops/base", "ops/cpu/elementwise", "ops/cpu/matrix", "ops/device", "ops/norm"},
    "ops/convolution": {"ops/base", "ops/cpu/convolution", "ops/cpu/lanes", "ops/device", "ops/gemm"},
    "ops/attention": {"ops/base", "ops/cpu/attention", "ops/cpu/lanes", "ops/gemm", "ops/random"},
    "ops/cuda": {"ops/arithmetic", "ops/base", "ops/convolution", "ops/device", "ops/loss", "ops/norm", "ops/gemm", "ops/update"},
    "data/formats": {"data/check", "data/storage"},
    "data/formats/hdf5": {"data/check", "data/formats", "data/storage"},
    "data/formats/zarr": {"data/formats", "data/storage"},
    "data/formats/netcdf": {"data/formats", "data/storage"},
    "data/formats/genericio": {"data/storage"},
    "data/sample": {"data/storage"},
    "data/sample/channels": {"data/sample", "data/storage"},
    "data/cf": {"data/formats", "data/sample", "data/storage"},
    "data/datasets": {"data/cf", "data/formats", "data/sample", "data/sample/channels", "data/storage"},
    "data/online": {"data/datasets", "data/formats", "data/sample", "data/storage"},
    "data/forecast": {"data/cf", "data/datasets", "data/formats", "data/pipeline", "data/sample", "data/sample/channels", "data/storage"},
    "data/pipeline": {"data/sample", "data/storage"},
    "data/tools": {"data/cf", "data/check", "data/formats", "data/formats/genericio", "data/formats/hdf5", "data/ingest", "data/ingest/source", "data/sample", "data/datasets",
                   "data/storage"},
    "data/ingest/source": {"data/check", "data/formats/genericio", "data/sample"},
    "data/ingest/component": {"data/ingest/source", "data/storage"},
    "data/ingest": {"data/formats", "data/formats/hdf5", "data/ingest/source", "data/sample", "data/sample/channels"},
    "data/ingest/box": {"data/check", "data/formats", "data/formats/genericio", "data/formats/hdf5", "data/ingest", "data/ingest/source"},
    "data/simulate": {"data/formats/hdf5"},
    "data/simulate/globe": {"data/formats", "data/formats/hdf5", "data/sample", "data/simulate"},
    "data/simulate/universe": {"data/formats", "data/formats/hdf5", "data/simulate"},
    "model/layers": {"model/base"},
    "model/unet": {"model/base", "model/layers"},
    "model/vit": {"model/base", "model/layers"},
    "model/afno": {"model/base", "model/layers"},
    "model/sfno": {"model/base", "model/layers"},
    "model/swin": {"model/base", "model/layers"},
    "model": {"model/afno", "model/base", "model/sfno", "model/swin", "model/unet", "model/vit"},
    "parallel/comm": {"parallel/mesh"},
    "parallel/c10d": {"parallel/comm", "parallel/shared_memory", "parallel/store"},
    "parallel/cuda": {"parallel/c10d"},
    "parallel/elastic": {"parallel/store"},
    "parallel/pipeline": {"parallel/comm", "parallel/mesh", "parallel/shard"},
    "parallel/shard": {"parallel/c10d", "parallel/comm", "parallel/mesh"},
    "parallel/sharding": {"parallel/comm", "parallel/mesh", "parallel/shard"},
    "parallel/tokens": {"parallel/comm", "parallel/mesh", "parallel/shard", "parallel/spatial"},
    "parallel/spatial": {"parallel/comm", "parallel/mesh"},
    "parallel/plans": {"parallel/comm", "parallel/mesh", "parallel/shard", "parallel/spatial", "parallel/tokens"},
    "train/checkpoint": {"train/checkpoint/format"},
    "train/learn": {"train/optim"},
    "train/device": {"train/learn", "train/optim"},
    "train/offload": {"train/optim"},
    "train/step": {"train/checkpoint", "train/checkpoint/format", "train/device", "train/learn", "train/offload", "train/optim", "train/recompute", "train/rollout"},
    "train/interchange": {"train/checkpoint", "train/checkpoint/format"},
    "train/monitor": {"train/checkpoint", "train/checkpoint/format", "train/learn", "train/step"},
    "train/nodes": {"train/checkpoint", "train/checkpoint/format"},
    "train/health": {"train/checkpoint", "train/learn", "train/optim", "train/step"},
    "train/replay": {"train/checkpoint", "train/learn", "train/rollout"},
    "train/run": {"train/benchy", "train/checkpoint", "train/checkpoint/format", "train/device", "train/elastic", "train/health", "train/inject", "train/interchange",
                  "train/learn", "train/monitor", "train/nodes", "train/offload", "train/optim", "train/profile", "train/replay", "train/rollout", "train/step"},
    "train/elastic": {"train/checkpoint"},
    "train/evaluate": {"train/checkpoint", "train/device", "train/interchange", "train/learn", "train/rollout", "train/run", "train/step"},
    "train/forecast": {"train/evaluate", "train/learn", "train/rollout"},
    "train/coupling": {"train/device", "train/evaluate", "train/interchange", "train/learn", "train/run"},
    "train/mosaic": {"train/evaluate"},
    "train/skill": {"train/evaluate", "train/learn"},
    "bench/memory": {"bench/step"},
    "verify/engine": {"verify/cases"},
    "verify": {"verify/cases", "verify/engine"},
}
NO_TORCH = {"core", "observe", "config", "launch", "plan"}
# Parsers of foreign bytes outside these layers, and costs, which the planner includes.
NO_TORCH_FILES = ["src/data/check/*", "src/data/storage/*", "src/data/formats/*", "src/data/ingest/*", "src/data/simulate/*", "src/*_cost.h", "apps/launcher.cpp",
                  "apps/check_files.cpp", "src/train/offload/spill_file.*", "src/train/offload/block_*", "src/parallel/elastic/*", "src/parallel/pipeline/schedule*"]
HEAVY = {"torch/torch.h", "torch/nn.h", "torch/all.h", "ATen/ATen.h"}
MODULE_HEADER = "torch/nn/module.h"  # 8 s to compile
MODULE_HEADER_FILES = ["src/model/*", "src/train/*", "src/bench/*", "src/verify/*", "src/parallel/*", "cmake/*", "tests/*", "examples/*", "apps/*"]
README_LINES = 12  # src/README.md is exempt
README_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
README_FILE = re.compile(r"`([A-Za-z0-9_]+\.(?:h|cuh|cpp|cu|md))`")
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


def room_problem(room, header):
    """What is wrong with a header of the same layer in a file of that room, or None."""
    target = header.rpartition("/")[0]
    if target == room or target.split("/")[0] != room.split("/")[0] or target in ROOMS.get(room, set()):
        return None
    return f"room {room} may not include room {target}: {header}"


def circles(table):
    """Rows of a table that lead back to themselves."""
    for start in table:
        seen, ahead = set(), set(table[start])
        while ahead:
            room = ahead.pop()
            seen.add(room)
            ahead |= table.get(room, set()) - seen
        if start in seen:
            yield f"tools/check_includes.py: the table leads from {start} back to it"


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
            problem = layer_problem(name, layer, header) or room_problem("/".join(parts[1:-1]), header)
        if problem is not None:
            yield f"{name}: {problem}"


def page_problems(root):
    """Rows of the page about rooms that are not those of the tables; folders that it lacks."""
    page = root / "docs/development/rooms.md"
    if not page.is_file():
        return
    rows = re.findall(r"^\| `src/([a-z0-9_/]+)/` \|(?:.*\|)? ([a-z0-9_/, -]+) \|$", page.read_text(encoding="utf-8"), re.MULTILINE)
    shown = [(name, set() if cell == "-" else set(cell.split(", "))) for name, cell in rows]
    wanted = [(name, row) for name, row in LAYERS.items()]
    wanted += [(name, ROOMS.get(name, set())) for name in sorted({path.parent.relative_to(root / "src").as_posix() for path in (root / "src").rglob("*.h")})
               if not name.endswith("gloo_abi/gloo")]
    for name, row in wanted:
        if (name, row) not in shown:
            yield f"docs/development/rooms.md: no row of src/{name}/ that ends in: {', '.join(sorted(row)) or '-'}"


def readme_problems(root):
    """Folders of src/ with tracked sources, of their own or below, whose README.md is absent, too long, or names files that do not exist."""
    names = subprocess.run(["git", "ls-files", "-z", "src"], cwd=root, check=True, capture_output=True).stdout.decode().split("\0")
    sources = [pathlib.PurePosixPath(name) for name in names if name.endswith((".h", ".cuh", ".cpp", ".cu")) and (root / name).is_file()]
    for folder in sorted({parent for source in sources for parent in source.parents if parent.parts}):
        readme = root / folder / "README.md"
        if not readme.is_file():
            yield f"{folder}: no README.md"
            continue
        text = readme.read_text(encoding="utf-8")
        lines = len(text.splitlines())
        if lines > README_LINES and folder.as_posix() != "src":
            yield f"{folder}/README.md: {lines} lines, more than {README_LINES}"
        for name in dict.fromkeys(README_LINK.findall(text) + README_FILE.findall(text)):
            if "://" not in name and not (readme.parent / name).exists():
                yield f"{folder}/README.md: no such file: {name}"


def main(arguments):
    root = pathlib.Path(arguments[0] if arguments else ".").resolve()
    files = [path for folder in ("src", "apps", "tests", "examples", "bench") for path in sorted((root / folder).rglob("*"))
             if path.suffix in (".h", ".cpp", ".cu", ".cuh")]
    unknown = sorted({path.relative_to(root).parts[1] for path in files if path.relative_to(root).parts[0] == "src"} - set(LAYERS))
    problems = [f"src/{name}: no such layer" for name in unknown] + [*circles(LAYERS), *circles(ROOMS), *page_problems(root), *readme_problems(root)]
    for path in files:
        if path.relative_to(root).parts[0] == "src" and path.relative_to(root).parts[1] in unknown:
            continue
        problems += check_file(root, path)
    print("\n".join(problems) if problems else f"includes of {len(files)} files follow the table")
    return 1 if problems or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
