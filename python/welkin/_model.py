# SPDX-License-Identifier: Apache-2.0
"""A trained model on torch's tensors."""
from __future__ import annotations

import json
import pathlib
import tempfile
import warnings as python_warnings
from collections.abc import Iterable
from typing import Any

import torch

from welkin import _native
from welkin._dataset import Dataset
from welkin._errors import ConfigError, DataError, raised
from welkin._normalization import Normalization
from welkin._sources import find_source
from welkin._words import setting_words

Path = str | pathlib.Path


def load(path: Path, *, checkpoint: Path | int | None = None, ema: bool = False, split: str = "valid", device: str | None = None,
         plugins: Iterable[Path] = (), **overrides: Any) -> Model:
    """The model of a run folder, a checkpoint of one (step_N, .safetensors, .pt), or a model package.

    checkpoint: "best" (smallest validation loss, the default), "newest", a step, or a path. ema: the moving average of weights.
    split: train, valid or test, the part of the data that scores() and dataset() mean. device: "cpu" or "cuda"; that of the run when not
    given. overrides: keys of the configuration, for instance data_root="/where/the/files/are/now". A package needs no data.
    ConfigError, DataError and CheckpointError as `welkin evaluate`.
    """
    with tempfile.TemporaryDirectory() as scratch:
        source = find_source(pathlib.Path(path), pathlib.Path(scratch))
        words = [str(source.folder), "--split", split]
        chosen = source.checkpoint if checkpoint is None else checkpoint
        words += [] if chosen is None else ["--checkpoint", str(chosen)]
        words += ["--ema"] if ema else []
        words += setting_words(overrides | ({} if device is None else {"device": device}))
        with raised():
            model = Model(_native.classes().Model(words, [str(plugin) for plugin in plugins]))
        model.run_folder = None if source.folder == pathlib.Path(scratch) else source.folder
        return model


def _check_channels(x: Any, side: dict[str, Any]) -> None:
    """A tensor of one channel would be spread over all of them by what works channel by channel."""
    if not isinstance(x, torch.Tensor) or x.layout != torch.strided or x.dim() != 1 + len(side["shape"]) or x.shape[1] != side["shape"][0]:
        raise _refused(x, side)


def _refused(x: Any, side: dict[str, Any]) -> ConfigError:
    wanted = "(B, " + ", ".join(map(str, side["shape"])) + ")"
    given = f"shape={tuple(x.shape)}, layout={x.layout}" if isinstance(x, torch.Tensor) else f"type={type(x).__name__}"
    remedy = "Give a dense tensor of this shape." if isinstance(x, torch.Tensor) else "Give a torch.Tensor: torch.from_numpy() makes one of an array."
    return ConfigError(f"[python] these are no fields of the model: {given}, wanted={wanted}. {remedy}")


class Model:
    """What load() gives. Calls of several threads take turns; Python's other threads run meanwhile."""

    def __init__(self, native: Any) -> None:
        self._native = native
        facts = json.loads(native.facts())
        self.config: dict[str, Any] = facts["config"]
        self.spec: dict[str, Any] = facts["spec"]
        self.checkpoint = pathlib.Path(facts["checkpoint"])
        self.run_folder: pathlib.Path | None = pathlib.Path(facts["run_folder"])  # None: weights without a run
        self.step, self.batch_size, self.split = int(facts["step"]), int(facts["batch_size"]), str(facts["split"])
        self.device = torch.device(facts["device"])
        self.channels: dict[str, list[str]] = {side: self.spec[side]["channels"] for side in ("input", "target")}
        self.units: dict[str, list[str]] = {side: self.spec[side]["units"] for side in ("input", "target")}
        self.grid: tuple[int, ...] = tuple(self.spec["input"]["shape"][1:])
        self.fill: list[float] | None = self.spec["fill"] if facts["fills_points"] else None  # of points without a value; None: there are none
        self._input, self._target = Normalization(self.spec["input"], len(self.grid), self.fill), Normalization(self.spec["target"], len(self.grid))
        for warning in facts["warnings"]:
            python_warnings.warn(warning, stacklevel=3)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Normalised (B, C, ...) float32 on the model's device -> normalised (B, C', ...), as training sees both.

        The tensor is taken as it is, without a copy. Where it requires a gradient, the result has one; else no graph is recorded.
        """
        if not isinstance(x, torch.Tensor) or x.layout != torch.strided:  # the shape is the native model's to check
            raise _refused(x, self.spec["input"])
        with raised():
            result: torch.Tensor = self._native.forward(x)
        return result

    def normalize(self, x: torch.Tensor) -> torch.Tensor:
        """Inputs (B, C, ...) in the values of the files -> what the model is called with.

        Points without a value (NaN) get what the run's nan_policy put there in training, where it is hole or mask. Else a DataError.
        """
        _check_channels(x, self.spec["input"])
        if self.fill is None and bool(torch.isnan(x).any()):
            raise DataError("[python] the input has points without a value, and the run takes none: nan_policy is neither hole nor mask. Fill them.")
        return self._input(x)

    def denormalize(self, y: torch.Tensor) -> torch.Tensor:
        """Predictions (B, C', ...) of a call -> values as the files have them."""
        _check_channels(y, self.spec["target"])
        return self._target.undo(y)

    def predict(self, x: torch.Tensor) -> torch.Tensor:
        """Inputs in the values of the files -> predictions in the values of the files, as an exported model."""
        _check_channels(x, self.spec["input"])
        return self.denormalize(self(self.normalize(x.to(self.device, torch.float32))))

    def dataset(self, split: str | None = None, *, normalized: bool = True) -> Dataset:
        """The run's train, valid or test data; that of load() when not given."""
        with raised():
            return Dataset(self._native.dataset(self.split if split is None else split), normalized)

    def scores(self) -> dict[str, Any]:
        """Scores over every sample of the split beside persistence and the time mean, as `welkin evaluate --json` writes them."""
        with raised():
            scores: dict[str, Any] = json.loads(self._native.scores())
        return scores

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Parameters and buffers by PyTorch's names. They are the model's own memory, detached: what is written there it computes with."""
        return {name: tensor.detach() for name, tensor in zip(self._native.tensor_names(), self._native.tensors())}

    def __repr__(self) -> str:
        shapes = " -> ".join(str(tuple(self.spec[side]["shape"])) for side in ("input", "target"))
        return f"<welkin.Model {self.config['model']['model']} of step {self.step}, {shapes}, on {self.device}>"
