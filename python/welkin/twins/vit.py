# SPDX-License-Identifier: Apache-2.0
"""The vision transformer (Dosovitskiy et al. 2021, arXiv:2010.11929) on fields; src/model/vit/."""
from __future__ import annotations

import torch
from torch import nn

from welkin.twins.layers import EPSILON, Keys, Mlp, PatchModel, mlp_width


class Attention(nn.Module):
    """(B, N, E); query, key and value by one matrix (qkv: joint) or three (separate)."""

    def __init__(self, width: int, heads: int, is_joint: bool) -> None:
        super().__init__()
        self.heads, self.is_joint = heads, is_joint
        if is_joint:
            self.qkv = nn.Linear(width, 3 * width)
        else:
            self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.proj = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens, width = x.shape[1], x.shape[2]
        parts = self.qkv(x).chunk(3, dim=-1) if self.is_joint else (self.q(x), self.k(x), self.v(x))
        q, k, v = (part.reshape(-1, tokens, self.heads, width // self.heads).transpose(1, 2) for part in parts)
        weights = (q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5).softmax(dim=-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(-1, tokens, width))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, is_joint: bool, hidden: int) -> None:
        super().__init__()
        if is_joint:  # registered in the order of either file's parameters
            self.attn = Attention(width, heads, is_joint)
        self.norm1, self.norm2 = (nn.LayerNorm(width, eps=EPSILON) for _ in range(2))
        if not is_joint:
            self.attn = Attention(width, heads, is_joint)
        self.mlp = Mlp(width, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Vit(PatchModel):
    def __init__(self, channels: tuple[int, int], grid: tuple[int, ...], keys: Keys) -> None:
        super().__init__(channels, grid, keys, lambda number, rows, columns: Block(keys["embed_dim"], keys["num_heads"], keys["qkv"] == "joint", mlp_width(keys)))
