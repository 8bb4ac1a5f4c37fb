# SPDX-License-Identifier: Apache-2.0
"""The models of src/model/ in plain PyTorch: the same names, shapes and numbers, to read, to fine-tune and to export.

A twin takes the state dict of its native model as it is. Fourier transforms and spherical harmonics are products with fixed matrices, so
that TorchScript, torch.export and ONNX need no complex numbers. Dropout is left out: a twin computes what the model does in evaluation.
"""
from __future__ import annotations

import fnmatch
from typing import Any

from torch import nn

from welkin._errors import ConfigError
from welkin.twins.afno import Afno
from welkin.twins.layers import Residual
from welkin.twins.sfno import Sfno
from welkin.twins.swin import Swin
from welkin.twins.unet import Unet2d, Unet3d
from welkin.twins.vit import Vit

MODELS: dict[str, type[nn.Module]] = {"vit": Vit, "afno": Afno, "sfno": Sfno, "swin": Swin, "unet2d": Unet2d, "unet3d": Unet3d}


def build(config: dict[str, Any], spec: dict[str, Any]) -> nn.Module:
    """The twin of Model.config and Model.spec, with weights of PyTorch's: normalised (B, C, ...) -> (B, C', ...). ConfigError for models of plug-ins."""
    keys = config["model"]
    name = keys["model"]
    if name not in MODELS:
        raise ConfigError(f"[python] this model has no twin in PyTorch: model={name}. Built-in models have one: {', '.join(MODELS)}.")
    inputs, targets = (spec[side]["shape"] for side in ("input", "target"))
    model = MODELS[name]((inputs[0], targets[0]), tuple(inputs[1:]), keys)
    if not keys.get("residual"):
        return model
    earlier = spec["earlier"] or [spec["newest"] + number for number in range(targets[0])]
    names = spec["target"]["channels"]
    is_left_out = [any(fnmatch.fnmatchcase(name, pattern) for pattern in keys.get("residual_except") or []) for name in names]
    return Residual(model, [-1 if left_out else number for number, left_out in zip(earlier, is_left_out)])
