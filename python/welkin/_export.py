# SPDX-License-Identifier: Apache-2.0
"""A trained model as one file for programs without Welkin: TorchScript, torch.export or ONNX, with its normalisation inside.

Its twin in PyTorch (welkin.twins) takes the weights, is compared with the native model, written, read again and compared once more.
"""
from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import os
import pathlib
import sys
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from welkin import twins
from welkin._errors import ConfigError, WelkinError
from welkin._model import Model, load
from welkin._normalization import Normalization

OPSET = 17
_ENDINGS = {".ts": "torchscript", ".torchscript": "torchscript", ".pt2": "torch.export", ".onnx": "onnx"}
# Of the largest difference by the largest value, normalised. A run in half precision rounds every product to its own digits.
_BOUNDS = {"none": 2e-5, "fp16": 2.0 ** -7, "bf16": 2.0 ** -4}


@dataclasses.dataclass(frozen=True)
class Exported:
    """What export() gives back: the file, its format, and the differences that were found, by the largest value, normalised."""

    path: pathlib.Path
    format: str
    opset: int | None  # of ONNX
    twin_difference: float  # of the twin from the native model
    file_difference: float | None  # of the file that was read again from the native model; None: nothing here can run it


class Physical(nn.Module):
    """(B, C, ...) in the values of the data's files -> predictions in the same."""

    def __init__(self, model: nn.Module, spec: dict[str, Any], fill: list[float] | None) -> None:
        super().__init__()
        dims = len(spec["input"]["shape"]) - 1
        self.channels: int = spec["input"]["shape"][0]
        self.entry, self.model, self.exit = Normalization(spec["input"], dims, fill), model, Normalization(spec["target"], dims)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x, = x.split([self.channels], dim=1)  # a view; other channels are an error in the file too, and not spread over all
        return self.exit.undo(self.model(self.entry(x)))


def export(model: Model | str | pathlib.Path, path: str | pathlib.Path, *, format: str | None = None) -> Exported:
    """Writes `path`: .ts (TorchScript, torch.jit.load), .pt2 (torch.export.load) or .onnx (opset 17), else as `format` says.

    The file's input "input" is (B, C, ...) float32 in the values of the data's files, its output "prediction" (B, C', ...) likewise, for any B.
    Channels, units, grid and provenance are in it as JSON, "welkin.json". WelkinError, and no file, where it does not compute what the native
    model does. An .onnx file is checked where onnxruntime is installed, else a warning says that it was not.
    """
    model = model if isinstance(model, Model) else load(model)
    path = pathlib.Path(path)
    format = format or _ENDINGS.get(path.suffix, "")
    if format not in _WRITERS:
        raise ConfigError(f"[export] the name of the file says no format: path={path}. Name it .ts, .pt2 or .onnx, or give format: {', '.join(_WRITERS)}.")
    twin = twin_of(model)
    physical = Physical(twin, model.spec, model.fill).eval()
    example = example_input(model)
    wanted = _normalized(model, model.predict(example).cpu())
    with torch.no_grad():
        difference = _compare(model, "its twin", physical(example), wanted)
    write, run = _WRITERS[format]
    with _folder_beside(path) as scratch:
        file = pathlib.Path(scratch) / ("model" + path.suffix)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the exporters' about themselves
            write(physical, example, file, json.dumps(about(model)))
            result = run(file, example[:1])
        written = None if result is None else _compare(model, "the file", result, wanted[:1])
        try:
            os.replace(file, path)
        except OSError as error:
            raise _unwritable(path, error) from error
    if written is None:
        warnings.warn(f"[export] {path} was not checked, since onnxruntime is not installed: python3 -m pip install onnxruntime", stacklevel=2)
    return Exported(path, format, OPSET if format == "onnx" else None, difference, written)


def _unwritable(path: pathlib.Path, error: OSError) -> ConfigError:
    return ConfigError(f"[export] the file cannot be written: path={path}, reason={error.strerror or error}. Give a place where files may be made.")


def _folder_beside(path: pathlib.Path) -> tempfile.TemporaryDirectory[str]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryDirectory(dir=path.parent, prefix=".welkin-export-")
    except OSError as error:
        raise _unwritable(path, error) from error


def twin_of(model: Model) -> nn.Module:
    """Its twin on the CPU with its weights, in evaluation mode."""
    twin = twins.build(model.config, model.spec)
    twin.load_state_dict({name: value.cpu().clone() for name, value in model.state_dict().items()})
    return twin.eval()


def about(model: Model) -> dict[str, Any]:
    """What a file says of the model in it."""
    sides = {side: {key: model.spec[side][key] for key in ("channels", "units", "shape", "transform", "offset", "scale")} for side in ("input", "target")}
    return sides | {"geometry": model.spec["geometry"], "latitude": model.spec["latitude"], "longitude": model.spec["longitude"],
                    "model": model.config["model"], "step": model.step, "checkpoint": model.checkpoint.name, "normalisation": "inside"}


def example_input(model: Model, samples: int = 2) -> torch.Tensor:
    """(B, C, ...) in the values of the files: random fields of the training data's means and deviations."""
    generator = torch.Generator().manual_seed(0)
    side = model.spec["input"]
    noise = torch.randn(samples, *side["shape"], generator=generator)
    fields = Normalization(side, len(side["shape"]) - 1).undo(noise)
    if model.fill is not None:  # the file holds the filling too
        fields[..., 0] = float("nan")
    return fields


def _normalized(model: Model, y: torch.Tensor) -> torch.Tensor:
    side = model.spec["target"]
    return Normalization(side, len(side["shape"]) - 1)(y)


def _compare(model: Model, what: str, got: torch.Tensor, wanted: torch.Tensor) -> float:
    # Both were rounded in the values of the files, where a kelvin is a third of a deviation and 290 of them lose 3e-5: that is no difference.
    side = Normalization(model.spec["target"], got.dim() - 2)
    largest = got.abs().amax(dim=[0, *range(2, got.dim())]).view_as(side.scale)
    rounding = 2 * torch.finfo(torch.float32).eps * torch.where(side.logs, torch.ones_like(largest), largest) / (side.scale if side.has_scale else 1)
    beyond = ((_normalized(model, got) - wanted).abs() - rounding).clamp(min=0)
    difference = float(beyond.max() / wanted.abs().max().clamp(min=1e-6)) if bool(torch.isfinite(got).all()) else float("nan")
    bound = _BOUNDS.get(str(model.config.get("precision", {}).get("amp_mode") or "none"), _BOUNDS["none"])
    if not difference <= bound:  # also where it is not a number
        raise WelkinError(f"[export] {what} does not compute what the native model does: difference={difference:.3g}, bound={bound:.3g}. "
                          "Nothing was written. Please report it with the configuration of the run.")
    return difference


def _write_torchscript(physical: nn.Module, example: torch.Tensor, file: pathlib.Path, about: str) -> None:
    with torch.no_grad():
        traced = torch.jit.trace(physical, example, check_trace=False)
    torch.jit.save(traced, str(file), _extra_files={"welkin.json": about})


def _run_torchscript(file: pathlib.Path, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        result: torch.Tensor = torch.jit.load(str(file))(x)
    return result


def _write_exported(physical: nn.Module, example: torch.Tensor, file: pathlib.Path, about: str) -> None:
    with torch.no_grad():
        program = torch.export.export(physical, (example,), dynamic_shapes={"x": {0: torch.export.Dim("batch", min=1)}})
    torch.export.save(program, str(file), extra_files={"welkin.json": about})


def _run_exported(file: pathlib.Path, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        result: torch.Tensor = torch.export.load(str(file)).module()(x)
    return result


def _write_onnx(physical: nn.Module, example: torch.Tensor, file: pathlib.Path, about: str) -> None:
    if importlib.util.find_spec("onnx") is None:
        raise ConfigError("[export] torch writes ONNX with the package onnx, which is not installed. Install it: python3 -m pip install onnx onnxruntime.")
    # The exporter of TorchScript: it is part of torch, where the newer one wants further packages.
    torch.onnx.export(physical, (example,), str(file), dynamo=False, opset_version=OPSET, input_names=["input"], output_names=["prediction"],
                      dynamic_axes={"input": {0: "batch"}, "prediction": {0: "batch"}})
    with file.open("ab") as model:
        model.write(_onnx_metadata("welkin.json", about))


def _onnx_metadata(key: str, value: str) -> bytes:
    """One more entry of ModelProto.metadata_props (field 14, of StringStringEntryProto): protobuf messages are joined by joining their bytes."""
    entry = _protobuf_text(1, key) + _protobuf_text(2, value)
    return bytes([14 << 3 | 2]) + _varint(len(entry)) + entry


def _protobuf_text(field: int, text: str) -> bytes:
    return bytes([field << 3 | 2]) + _varint(len(text.encode())) + text.encode()


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def _run_onnx(file: pathlib.Path, x: torch.Tensor) -> torch.Tensor | None:
    if importlib.util.find_spec("onnxruntime") is None:
        return None
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    return torch.from_numpy(session.run(["prediction"], {"input": x.numpy()})[0])


_Writer = Callable[[nn.Module, torch.Tensor, pathlib.Path, str], None]
_Runner = Callable[[pathlib.Path, torch.Tensor], "torch.Tensor | None"]
_WRITERS: dict[str, tuple[_Writer, _Runner]] = {"torchscript": (_write_torchscript, _run_torchscript), "torch.export": (_write_exported, _run_exported),
                                                "onnx": (_write_onnx, _run_onnx)}


def main(arguments: list[str]) -> int:
    """`welkin ckpt export CKPT OUT.onnx` of the wheel; the exit code."""
    parser = argparse.ArgumentParser(prog="welkin ckpt export", description="A model for programs without Welkin, with its normalisation inside.")
    parser.add_argument("ckpt", metavar="CKPT", help="run folder, checkpoint or package")
    parser.add_argument("out", metavar="OUT", help=".ts (TorchScript), .pt2 (torch.export) or .onnx (opset 17)")
    parser.add_argument("--checkpoint", help="of a run folder: best (default), newest, or a step")
    parser.add_argument("--ema", action="store_true", help="the moving average of weights that the run kept")
    asked = parser.parse_args(arguments)
    try:
        done = export(load(asked.ckpt, checkpoint=asked.checkpoint, ema=asked.ema), asked.out)
    except WelkinError as error:
        print(f"welkin: {error}", file=sys.stderr)
        return error.exit_code
    checked = "not checked" if done.file_difference is None else f"difference from the native model {done.file_difference:.1e}"
    print(f"{asked.ckpt} -> {done.path}, {done.format}, {checked}")
    return 0
