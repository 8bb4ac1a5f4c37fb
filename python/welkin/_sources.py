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
    text: object = ""
    try:
        if path.is_dir() and (path / "index.json").exists():
            text = _object(json.loads((path / "index.json").read_text())).get("config", "")
        elif path.suffix == ".safetensors":
            text = _safetensors_metadata(path).get("welkin.config", "")
        elif path.is_file() and zipfile.is_zipfile(path):
            text = _archived(path, "extra/config.yaml")
    except (ValueError, OSError, RecursionError, zipfile.BadZipFile) as error:  # JSON and UTF-8 are ValueErrors
        raise CheckpointError(f"[python] it is damaged: path={path}, reason={error}. Fetch it again, or give another.") from error
    if not isinstance(text, str) or not text:
        raise CheckpointError(f"[python] it does not say which configuration it is of: path={path}. Give the run folder, with checkpoint={str(path)!r}.")
    return text


def _object(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ValueError("no JSON object where one belongs")
    return value


def _safetensors_metadata(path: pathlib.Path) -> dict[str, object]:
    size = path.stat().st_size
    with path.open("rb") as file:
        length, = struct.unpack("<Q", file.read(8).ljust(8, b"\0"))
        if not 0 < length <= min(_LARGEST_HEADER, size - 8):
            raise ValueError(f"a header of {length} bytes in a file of {size}")
        return _object(_object(json.loads(file.read(length))).get("__metadata__", {}))


def _archived(path: pathlib.Path, ending: str) -> str:
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith(ending)]
        if names and archive.getinfo(names[0]).file_size > _LARGEST_HEADER:
            raise ValueError(f"{names[0]} is larger than {_LARGEST_HEADER} bytes")
        return archive.read(names[0]).decode() if names else ""
