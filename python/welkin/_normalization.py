# SPDX-License-Identifier: Apache-2.0
"""What takes values of files to what a model is called with, and back: clip, log(1 + x / eps), (x - mean) / std, by channel.

Everything is tensors of float32 and plain operators, so that an exported model holds it. A mean is two numbers whose sum it is: values
far from 0, as temperatures in kelvin, lose nothing to the rounding of their mean.
"""
from __future__ import annotations

from typing import Any

import torch
from torch import nn


def _expm1(y: torch.Tensor) -> torch.Tensor:
    """exp(y) - 1 by operators that ONNX has: near 0 by the tangent, which loses no digits there."""
    half = torch.tanh(y / 2)
    return torch.where(y.abs() < 1, 2 * half / (1 - half), torch.exp(y) - 1)


class Normalization(nn.Module):
    """Of one side of a specification (Model.spec["input"]) whose fields have `dims` dims.

    `fill`: what points without a value (NaN) become, normalised, one for each channel; an empty list: 0. None: they stay NaN.
    """

    def __init__(self, side: dict[str, Any], dims: int, fill: list[float] | None = None) -> None:
        super().__init__()
        channels = len(side["channels"])
        mean = torch.tensor(side["mean"] or [0.0] * channels, dtype=torch.float64)
        logs = torch.zeros(channels, dtype=torch.bool)
        eps = torch.ones(channels, dtype=torch.float64)
        for place, name in enumerate(side["log1p"]):
            number = side["channels"].index(name)
            logs[number] = True
            eps[number] = side["log1p_eps"][place] if side["log1p_eps"] else 1.0
        self.has_logs, self.has_scale = bool(logs.any()), bool(side["mean"])
        self.clip = tuple(float(bound) for bound in side["clip"])
        rest = mean - mean.float().double()
        scale = torch.tensor(side["std"] or [1.0] * channels, dtype=torch.float64)
        for name, value in {"mean": mean, "rest": rest, "scale": scale, "eps": eps}.items():
            self.register_buffer(name, value.float().view(channels, *[1] * dims), persistent=False)
        self.register_buffer("logs", logs.view(channels, *[1] * dims), persistent=False)
        self.fills = fill is not None
        self.register_buffer("fill", torch.tensor(fill or [0.0] * channels).view(channels, *[1] * dims), persistent=False)

    def _on(self, x: torch.Tensor) -> Normalization:
        return self if self.mean.device == x.device else self.to(x.device)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, C, ...) as the files have it -> normalised."""
        own = self._on(x)
        if self.clip:
            x = x.clamp(*self.clip)
        if self.has_logs:
            x = torch.where(own.logs, torch.log1p(x / own.eps), x)
        x = ((x - own.mean) - own.rest) / own.scale if self.has_scale else x
        return torch.where(torch.isnan(x), own.fill, x) if self.fills else x

    def undo(self, y: torch.Tensor) -> torch.Tensor:
        """The other way; what was clipped stays so."""
        own = self._on(y)
        if self.has_scale:
            y = y * own.scale + own.rest + own.mean
        return torch.where(own.logs, _expm1(y) * own.eps, y) if self.has_logs else y
