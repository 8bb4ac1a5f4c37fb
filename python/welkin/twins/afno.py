# SPDX-License-Identifier: Apache-2.0
"""FourCastNet (Guibas et al. 2022, arXiv:2111.13587; Pathak et al. 2022, arXiv:2202.11214); src/model/afno/."""
from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional

from welkin.twins.layers import EPSILON, Fourier, Keys, Mlp, PatchModel, mlp_width


class FourierFilter(nn.Module):
    """(B, N, E): a two-layer network of complex weights on every wavenumber, block by block of channels; the input is added."""

    def __init__(self, width: int, blocks: int, threshold: float, rows: int, columns: int) -> None:
        super().__init__()
        self.rows, self.columns, self.blocks, self.threshold = rows, columns, blocks, threshold
        size = width // blocks
        for name, shape in {"w1": (size, size), "b1": (size,), "w2": (size, size), "b2": (size,)}.items():
            self.register_parameter(name, nn.Parameter(torch.zeros(2, blocks, *shape)))
        self.waves = min(rows // 2 + 1, columns // 2 + 1)  # along longitude; the others are zeros
        self.along = Fourier(columns, self.waves, 1 / math.sqrt(columns))
        angle = torch.arange(rows, dtype=torch.float64)[:, None] * torch.arange(rows, dtype=torch.float64) * (2 * math.pi / rows)
        self.register_buffer("cos", (angle.cos() / math.sqrt(rows)).float(), persistent=False)
        self.register_buffer("sin", (angle.sin() / math.sqrt(rows)).float(), persistent=False)

    def multiply(self, re: torch.Tensor, im: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(B, H, M, K, I) times (2, K, I, O), plus (2, K, O)"""
        parts = [torch.einsum("bhmki,kio->bhmko", part, w[number]) for part in (re, im) for number in (0, 1)]
        return parts[0] - parts[3] + b[0], parts[1] + parts[2] + b[1]

    def spectrum(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(B, H, W, E) -> both parts (B, H, M, E)"""
        re, im = (part.permute(0, 3, 2, 1) for part in self.along.analyse(x.permute(0, 1, 3, 2)))  # (B, M, E, H)
        re, im = re @ self.cos + im @ self.sin, im @ self.cos - re @ self.sin
        return re.permute(0, 3, 1, 2), im.permute(0, 3, 1, 2)

    def field(self, re: torch.Tensor, im: torch.Tensor) -> torch.Tensor:
        """(B, H, M, E) -> (B, H, W, E)"""
        re, im = re.permute(0, 2, 3, 1), im.permute(0, 2, 3, 1)
        re, im = re @ self.cos - im @ self.sin, im @ self.cos + re @ self.sin
        waves = self.along.synthesise(re.permute(0, 3, 2, 1), im.permute(0, 3, 2, 1))
        return waves.permute(0, 1, 3, 2) / math.sqrt(self.columns)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens, width = x.shape[1], x.shape[2]
        re, im = (part.reshape(-1, self.rows, self.waves, self.blocks, width // self.blocks)
                  for part in self.spectrum(x.reshape(-1, self.rows, self.columns, width)))
        re, im = (functional.relu(part) for part in self.multiply(re, im, self.w1, self.b1))
        re, im = (functional.softshrink(part, self.threshold) for part in self.multiply(re, im, self.w2, self.b2))
        re, im = (part.reshape(-1, self.rows, self.waves, width) for part in (re, im))
        return self.field(re, im).reshape(-1, tokens, width) + x


class Block(nn.Module):
    def __init__(self, keys: Keys, rows: int, columns: int) -> None:
        super().__init__()
        width = keys["embed_dim"]
        self.norm1 = nn.LayerNorm(width, eps=EPSILON)
        self.filter = FourierFilter(width, keys["num_blocks"], keys["sparsity_threshold"], rows, columns)
        self.norm2 = nn.LayerNorm(width, eps=EPSILON)
        self.mlp = Mlp(width, mlp_width(keys))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.filter(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Afno(PatchModel):
    def __init__(self, channels: tuple[int, int], grid: tuple[int, ...], keys: Keys) -> None:
        super().__init__(channels, grid, keys, lambda number, rows, columns: Block(keys, rows, columns), has_norm=False)
