# SPDX-License-Identifier: Apache-2.0
"""Which run folder and which checkpoint a path means."""
from __future__ import annotations

import dataclasses
import json
import pathlib
import struct
import zipfile

from welkin._errors import CheckpointError, ConfigError

_LARGEST_HEADER = 1 << 28


@dataclasses.dataclass(frozen=True)
class Source:
    folder: pathlib.Path  # holds config.yaml
    checkpoint: pathlib.Path | None = None  # otherwise the folder's


def find_source(path: pathlib.Path, scratch: pathlib.Path) -> Source:
    """`scratch`: where the configuration of a checkpoint goes that stands in no run folder."""
    if (path / "config.yaml").exists():
        return Source(path)
    if not path.exists():
        raise ConfigError(f"[python] there is no such run, checkpoint or package: path={path}. Give a run folder, step_N of its checkpoints, or a file.")
    run = path.resolve().parent.parent
    if (run / "config.yaml").exists() and (path / "index.json").exists():
        return Source(run, path)
    (scratch / "config.yaml").write_text(_saved_config(path))
    return Source(scratch, path.resolve())


def _saved_config(path: pathlib.Path) -> str:
    text = ""
    if path.is_dir() and (path / "index.json").exists():
        text = json.loads((path / "index.json").read_text()).get("config", "")
    elif path.suffix == ".safetensors":
        text = _safetensors_metadata(path).get("welkin.config", "")
    elif path.is_file() and zipfile.is_zipfile(path):
        text = _archived(path, "extra/config.yaml")
    if not text:
        raise CheckpointError(f"[python] it does not say which configuration it is of: path={path}. Give the run folder, with checkpoint={str(path)!r}.")
    return text


def _safetensors_metadata(path: pathlib.Path) -> dict[str, str]:
    with path.open("rb") as file:
        length, = struct.unpack("<Q", file.read(8).ljust(8, b"\0"))
        header = json.loads(file.read(length)) if 0 < length < _LARGEST_HEADER else {}
    metadata: dict[str, str] = header.get("__metadata__", {})
    return metadata


def _archived(path: pathlib.Path, ending: str) -> str:
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith(ending)]
        return archive.read(names[0]).decode() if names else ""
