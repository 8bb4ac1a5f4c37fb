# SPDX-License-Identifier: Apache-2.0
"""What several twins are made of. Shapes: B samples, C channels, H latitudes, W longitudes, N tokens, E width of a token."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch.nn import functional

EPSILON = 1e-6  # of all norms
Keys = dict[str, Any]


class PatchEmbed(nn.Module):
    """(B, C, H, W) -> (B, N, E)"""

    def __init__(self, channels: int, width: int, patch: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(channels, width, patch, patch)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.proj(x).flatten(2).transpose(1, 2)


def unpatchify(x: torch.Tensor, rows: int, columns: int, patch: int) -> torch.Tensor:
    """(B, N, patch * patch * C) -> (B, C, H, W); of a token's features the channel runs fastest."""
    channels = x.shape[-1] // patch ** 2
    fields = x.reshape(-1, rows, columns, patch, patch, channels).permute(0, 5, 1, 3, 2, 4)
    return fields.reshape(-1, channels, rows * patch, columns * patch)


def mlp_width(keys: Keys) -> int:
    return round(keys["embed_dim"] * keys["mlp_ratio"])


class Mlp(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc2(functional.gelu(self.fc1(x)))


class PatchModel(nn.Module):
    """(B, C, H, W) -> (B, C', H, W): blocks over the tokens of patches. H and W divide by the patch; `block` gets its number, the rows and the
    columns of tokens."""

    def __init__(self, channels: tuple[int, int], grid: tuple[int, ...], keys: Keys, block: Callable[[int, int, int], nn.Module], *,
                 has_positions: bool = True, has_norm: bool = True) -> None:
        super().__init__()
        width, self.patch = keys["embed_dim"], keys["patch_size"]
        self.rows, self.columns = (edge // self.patch for edge in grid)
        if has_positions:
            self.pos_embed = nn.Parameter(torch.zeros(1, self.rows * self.columns, width))
        self.patch_embed = PatchEmbed(channels[0], width, self.patch)
        self.blocks = nn.ModuleList(block(number, self.rows, self.columns) for number in range(keys["depth"]))
        if has_norm:
            self.norm = nn.LayerNorm(width, eps=EPSILON)
        self.head = nn.Linear(width, self.patch ** 2 * channels[1], bias=False)
        self.has_positions, self.has_norm = has_positions, has_norm

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patch_embed(x)
        if self.has_positions:
            x = x + self.pos_embed
        for block in self.blocks:
            x = block(x)
        return unpatchify(self.head(self.norm(x) if self.has_norm else x), self.rows, self.columns, self.patch)


class Residual(nn.Module):
    """Adds the newest input step to what a model predicts: to each target channel the input channel that is the same quantity, if any (-1: none)."""

    def __init__(self, model: nn.Module, earlier: list[int]) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("channel", torch.tensor([max(0, number) for number in earlier]), persistent=False)
        self.register_buffer("is_there", torch.tensor([float(number >= 0) for number in earlier]).view(-1, 1, 1), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(x) + x.index_select(1, self.channel) * self.is_there

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """The names are those of the model."""
        return self.model.load_state_dict(state_dict, strict, assign)

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return self.model.state_dict(*args, **kwargs)


class Fourier(nn.Module):
    """The real transform along one dim of `points`, the first `waves` wavenumbers, by products with its matrices; `norm` is their factor."""

    def __init__(self, points: int, waves: int, norm: float) -> None:
        super().__init__()
        angle = torch.arange(points, dtype=torch.float64)[:, None] * torch.arange(waves, dtype=torch.float64) * (2 * math.pi / points)
        twice = torch.full((waves,), 2.0, dtype=torch.float64)  # a wavenumber stands for its negative, too
        twice[0] = 1
        if 2 * (waves - 1) == points:
            twice[-1] = 1
        matrices = {"cos": angle.cos() * norm, "sin": angle.sin() * norm, "cos_back": angle.cos() * twice, "sin_back": angle.sin() * twice}
        for name, matrix in matrices.items():
            self.register_buffer(name, matrix.float(), persistent=False)

    def analyse(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(..., points) -> real and imaginary parts (..., waves)"""
        return x @ self.cos, -(x @ self.sin)

    def synthesise(self, re: torch.Tensor, im: torch.Tensor) -> torch.Tensor:
        """(..., waves) -> (..., points); not scaled"""
        return re @ self.cos_back.t() - im @ self.sin_back.t()
