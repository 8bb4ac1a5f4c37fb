# SPDX-License-Identifier: Apache-2.0
"""The spherical Fourier neural operator (Bonev et al. 2023, arXiv:2306.03838) in the form of makani; src/model/sfno/."""
from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional

from welkin.twins.layers import EPSILON, Fourier, Keys, mlp_width


def quadrature(rows: int, grid: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines of colatitudes from north to south and their weights: Gauss and Legendre's (Golub and Welsch 1969), or Clenshaw and Curtis's."""
    if grid == "legendre-gauss":
        number = torch.arange(1, rows, dtype=torch.float64)
        beside = number / (4 * number ** 2 - 1).sqrt()
        nodes, vectors = torch.linalg.eigh(torch.diag(beside, 1) + torch.diag(beside, -1))
        return nodes.flip(0), 2 * vectors[0].flip(0) ** 2
    last = rows - 1
    angle = math.pi * torch.arange(rows, dtype=torch.float64) / last
    weights = torch.ones(rows, dtype=torch.float64)
    for wave in range(1, last // 2 + 1):
        weights -= (1 if 2 * wave == last else 2) / (4 * wave ** 2 - 1) * (2 * wave * angle).cos()
    weights *= 2 / last
    weights[0] /= 2
    weights[-1] /= 2
    return angle.cos(), weights


def legendre_functions(orders: int, degrees: int, nodes: torch.Tensor) -> torch.Tensor:
    """(orders, degrees, nodes): orthonormal over the sphere, by the recurrence in the degree (Holmes and Featherstone 2002)."""
    table = torch.zeros(orders, degrees, len(nodes), dtype=torch.float64)
    sine = (1 - nodes ** 2).clamp(min=0).sqrt()
    diagonal = torch.full_like(nodes, math.sqrt(1 / (4 * math.pi)))
    for m in range(min(orders, degrees)):
        if m > 0:
            diagonal = -diagonal * sine * math.sqrt((2 * m + 1) / (2 * m))
        table[m, m] = diagonal
        for degree in range(m + 1, degrees):
            factor = math.sqrt((4 * degree ** 2 - 1) / (degree ** 2 - m ** 2))
            before = math.sqrt(((degree - 1) ** 2 - m ** 2) / (4 * (degree - 1) ** 2 - 1))
            table[m, degree] = factor * (nodes * table[m, degree - 1] - (before * table[m, degree - 2] if degree > m + 1 else 0))
    return table


class SphericalTransform(nn.Module):
    """Fields (B, C, H, W) from and to coefficients (B, C, L, M), as two real parts."""

    def __init__(self, rows: int, columns: int, degrees: int, orders: int, grid: str) -> None:
        super().__init__()
        nodes, weights = quadrature(rows, grid)
        functions = legendre_functions(orders, degrees, nodes)
        self.around = Fourier(columns, orders, 1 / columns)
        self.register_buffer("there", (functions * (2 * math.pi * weights)).float(), persistent=False)
        self.register_buffer("back", functions.float(), persistent=False)

    def analyse(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        re, im = self.around.analyse(x)
        return torch.einsum("bchm,mlh->bclm", re, self.there), torch.einsum("bchm,mlh->bclm", im, self.there)

    def synthesise(self, re: torch.Tensor, im: torch.Tensor) -> torch.Tensor:
        waves = (torch.einsum("bclm,mlh->bchm", part, self.back) for part in (re, im))
        return self.around.synthesise(*waves)


class SpectralConv(nn.Module):
    def __init__(self, width: int, degrees: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(width, width, degrees, 2))

    def forward(self, re: torch.Tensor, im: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        w = self.weight
        parts = [torch.einsum("bilm,iol->bolm", part, w[..., number]) for part in (re, im) for number in (0, 1)]
        return parts[0] - parts[3], parts[1] + parts[2]


class Filter(nn.Module):
    def __init__(self, width: int, degrees: int) -> None:
        super().__init__()
        self.filter = SpectralConv(width, degrees)


class PointwiseMlp(nn.Module):
    def __init__(self, channels: int, hidden: int, out: int, last_bias: bool = True) -> None:
        super().__init__()
        self.fwd = nn.Sequential(nn.Conv2d(channels, hidden, 1), nn.GELU(), nn.Conv2d(hidden, out, 1, bias=last_bias))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fwd(x)


class Block(nn.Module):
    """Figure 4 of the paper; `entry` and `exit` are the transforms before and behind the filter."""

    def __init__(self, width: int, hidden: int, degrees: int, entry: SphericalTransform, exit: SphericalTransform) -> None:
        super().__init__()
        self.transforms = (entry, exit)  # shared by blocks, and so none's own
        self.norm0, self.norm1 = (nn.InstanceNorm2d(width, eps=EPSILON, affine=True) for _ in range(2))
        self.filter = Filter(width, degrees)
        self.outer_skip, self.mlp = nn.Conv2d(width, width, 1, bias=False), PointwiseMlp(width, hidden, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        entry, exit = self.transforms
        re, im = entry.analyse(x)
        skipped = x if entry is exit else exit.synthesise(re, im)
        y = self.mlp(functional.gelu(self.norm0(exit.synthesise(*self.filter.filter(re, im)))))
        return self.norm1(y) + self.outer_skip(skipped)


class Sfno(nn.Module):
    """(B, C, H, W) -> (B, C', H, W)"""

    def __init__(self, channels: tuple[int, int], grid: tuple[int, ...], keys: Keys) -> None:
        super().__init__()
        width, depth, hidden = keys["embed_dim"], keys["depth"], mlp_width(keys)
        rows, columns = (edge // keys["scale_factor"] for edge in grid)
        orders = min(rows, columns // 2 + 1)
        self.encoder = PointwiseMlp(channels[0], width, width, last_bias=False)
        self.outer = SphericalTransform(grid[0], grid[1], rows, orders, keys["model_grid_type"])
        self.inner = SphericalTransform(rows, columns, rows, orders, "legendre-gauss")
        ways = [(self.inner if i else self.outer, self.inner if i + 1 < depth else self.outer) for i in range(depth)]
        self.blocks = nn.ModuleList(Block(width, hidden, rows, *way) for way in ways)
        self.decoder = PointwiseMlp(width, width, channels[1], last_bias=False)
        self.residual_transform = nn.Conv2d(channels[0], channels[1], 1, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.encoder(x)
        for block in self.blocks:
            y = block(y)
        return self.decoder(y) + self.residual_transform(x)
