# SPDX-License-Identifier: Apache-2.0
"""The Swin transformer (Liu et al. 2021, arXiv:2103.14030) with the position bias of Pangu-Weather (Bi et al. 2022, arXiv:2211.02556), whose
windows go around the globe along longitude and do not go over the poles; src/model/swin/."""
from __future__ import annotations

import torch
from torch import nn

from welkin.twins.layers import EPSILON, Keys, Mlp, PatchModel, mlp_width


class WindowAttention(nn.Module):
    """(B, N, E): attention within windows of `window` tokens, cut after a shift; a band is a row of windows."""

    def __init__(self, width: int, heads: int, grid: tuple[int, int], window: tuple[int, int], is_shifted: bool) -> None:
        super().__init__()
        self.heads, self.bands, self.around = heads, grid[0] // window[0], grid[1] // window[1]
        size = window[0] * window[1]
        self.earth_position_bias_table = nn.Parameter(torch.zeros(window[0] ** 2 * (2 * window[1] - 1), self.bands, heads))
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        row, column = torch.arange(size) // window[1], torch.arange(size) % window[1]
        pair_of_rows = row[:, None] * window[0] + row
        pair = pair_of_rows * (2 * window[1] - 1) + column[:, None] - column + window[1] - 1
        shift = [window[axis] // 2 if is_shifted and count > 1 else 0 for axis, count in enumerate((self.bands, self.around))]
        rows = torch.arange(self.bands)[:, None] * window[0] + row + shift[0]  # (bands, size)
        columns = torch.arange(self.around)[:, None] * window[1] + column + shift[1]
        tokens = (rows % grid[0])[:, None] * grid[1] + (columns % grid[1])[None]  # (bands, around, size)
        over_the_pole = rows >= grid[0]
        apart = over_the_pole[:, :, None] != over_the_pole[:, None]
        mask = torch.zeros(apart.shape).masked_fill(apart, float("-inf"))[:, None]  # (bands, 1, size, size)
        for name, value in {"pair": pair.flatten(), "tokens": tokens.flatten(), "places": tokens.flatten().argsort(), "mask": mask}.items():
            self.register_buffer(name, value, persistent=False)
        self.size = size

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        width = x.shape[2]
        parts = self.qkv(x.index_select(1, self.tokens)).reshape(-1, self.bands, self.around, self.size, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(4, 0, 2, 1, 5, 3, 6).unbind(0)  # (B, around, bands, heads, size, features)
        bias = self.earth_position_bias_table.index_select(0, self.pair).permute(1, 2, 0).reshape(self.bands, self.heads, self.size, self.size)
        logits = q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5 + (bias + self.mask)
        mixed = (logits.softmax(-1) @ v).permute(0, 2, 1, 4, 3, 5).reshape(-1, self.bands * self.around * self.size, width)
        return self.proj(mixed.index_select(1, self.places))


class Block(nn.Module):
    def __init__(self, keys: Keys, grid: tuple[int, int], is_shifted: bool) -> None:
        super().__init__()
        width, window = keys["embed_dim"], tuple(keys["window_size"])
        self.norm1 = nn.LayerNorm(width, eps=EPSILON)
        self.attn = WindowAttention(width, keys["num_heads"], grid, (window[0], window[1]), is_shifted)
        self.norm2 = nn.LayerNorm(width, eps=EPSILON)
        self.mlp = Mlp(width, mlp_width(keys))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Swin(PatchModel):
    def __init__(self, channels: tuple[int, int], grid: tuple[int, ...], keys: Keys) -> None:
        super().__init__(channels, grid, keys, lambda number, rows, columns: Block(keys, (rows, columns), number % 2 == 1), has_positions=False)
