# SPDX-License-Identifier: Apache-2.0
"""The models of fields in PyTorch, from their papers, under the parameter names of their authors' code. Products of complex numbers are written
as real ones, so that torch's FLOP counter sees what they are. Functions of Legendre and quadratures are numpy's, not ours."""
import numpy as np
import torch
from numpy.polynomial import legendre
from torch import nn
from torch.nn import functional


class PatchEmbed(nn.Module):
    def __init__(self, channels, width, patch):
        super().__init__()
        self.proj = nn.Conv2d(channels, width, patch, patch)

    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)


def unpatchify(x, rows, columns, patch):
    x = x.reshape(len(x), rows, columns, patch, patch, -1)
    return x.permute(0, 5, 1, 3, 2, 4).reshape(len(x), -1, rows * patch, columns * patch)


class Mlp(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x):
        return self.fc2(functional.gelu(self.fc1(x)))


class FourierFilter(nn.Module):
    """Guibas et al. 2022, section 4, in the form of FourCastNet (Pathak et al. 2022)."""

    def __init__(self, width, num_blocks, threshold, grid):
        super().__init__()
        self.grid, self.num_blocks, self.threshold = grid, num_blocks, threshold
        size = width // num_blocks
        shapes = {"w1": (2, num_blocks, size, size), "b1": (2, num_blocks, size), "w2": (2, num_blocks, size, size), "b2": (2, num_blocks, size)}
        for name, shape in shapes.items():
            self.register_parameter(name, nn.Parameter(torch.empty(shape)))

    def multiply(self, re, im, w, b):
        product = lambda a, w: torch.einsum("...bi,bio->...bo", a, w)
        return product(re, w[0]) - product(im, w[1]) + b[0], product(im, w[0]) + product(re, w[1]) + b[1]

    def forward(self, x):
        height, width = self.grid
        spectrum = torch.fft.rfft2(x.unflatten(1, self.grid), dim=(1, 2), norm="ortho")
        kept = height // 2 + 1
        parts = spectrum[:, :, :kept].unflatten(3, (self.num_blocks, -1))
        re, im = (functional.relu(part) for part in self.multiply(parts.real, parts.imag, self.w1, self.b1))
        re, im = (functional.softshrink(part, self.threshold) for part in self.multiply(re, im, self.w2, self.b2))
        out = torch.zeros_like(spectrum)
        out[:, :, :kept] = torch.complex(re, im).flatten(3)
        return torch.fft.irfft2(out, s=(height, width), dim=(1, 2), norm="ortho").flatten(1, 2) + x


class AfnoBlock(nn.Module):
    def __init__(self, width, hidden, num_blocks, threshold, grid):
        super().__init__()
        self.norm1, self.filter = nn.LayerNorm(width, eps=1e-6), FourierFilter(width, num_blocks, threshold, grid)
        self.norm2, self.mlp = nn.LayerNorm(width, eps=1e-6), Mlp(width, hidden)

    def forward(self, x):
        x = x + self.filter(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Afno(nn.Module):
    def __init__(self, channels, grid, keys):
        super().__init__()
        self.patch, width = keys["patch_size"], keys["embed_dim"]
        self.rows, self.columns = grid[0] // self.patch, grid[1] // self.patch
        self.pos_embed = nn.Parameter(torch.empty(1, self.rows * self.columns, width))
        self.patch_embed = PatchEmbed(channels[0], width, self.patch)
        hidden = round(width * keys["mlp_ratio"])
        self.blocks = nn.ModuleList(AfnoBlock(width, hidden, keys["num_blocks"], keys["sparsity_threshold"], (self.rows, self.columns))
                                    for _ in range(keys["depth"]))
        self.head = nn.Linear(width, self.patch ** 2 * channels[1], bias=False)

    def forward(self, x):
        x = self.patch_embed(x) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        return unpatchify(self.head(x), self.rows, self.columns, self.patch)


def quadrature(rows, grid):
    """Cosines of colatitudes from north to south, and weights: those that integrate every polynomial the nodes can carry."""
    if grid == "legendre-gauss":
        nodes, weights = legendre.leggauss(rows)
        return nodes[::-1].copy(), weights[::-1].copy()
    nodes = np.cos(np.pi * np.arange(rows) / (rows - 1))
    moments = np.zeros(rows)
    moments[0] = 2  # the integral of P_0; that of the others is 0
    return nodes, np.linalg.solve(legendre.legvander(nodes, rows - 1).T, moments)


def legendre_functions(orders, degrees, nodes):
    """(orders, degrees, nodes): orthonormal over the sphere, from derivatives of Legendre polynomials."""
    table = np.zeros((orders, degrees, len(nodes)))
    for m in range(orders):
        for degree in range(m, degrees):
            derivative = legendre.legval(nodes, legendre.legder(np.eye(degrees)[degree], m))
            ratio = np.prod(np.arange(degree - m + 1, degree + m + 1, dtype=float)) if m else 1.0
            norm = np.sqrt((2 * degree + 1) / (4 * np.pi) / ratio)
            table[m, degree] = (-1) ** m * norm * np.sqrt(1 - nodes ** 2).clip(0) ** m * derivative
    return table


class SphericalTransform:
    def __init__(self, rows, columns, degrees, orders, grid):
        nodes, weights = quadrature(rows, grid)
        self.columns = columns
        self.functions = torch.from_numpy(legendre_functions(orders, degrees, nodes))
        self.weights = torch.from_numpy(2 * np.pi * weights)

    def analyse(self, x):
        waves = torch.fft.rfft(x, dim=-1, norm="forward")[..., :self.functions.shape[0]]
        table = self.functions.to(x.dtype) * self.weights.to(x.dtype)
        return tuple(torch.einsum("bchm,mlh->bclm", part, table) for part in (waves.real, waves.imag))

    def synthesise(self, re, im):
        table = self.functions.to(re.dtype)
        waves = torch.complex(*(torch.einsum("bclm,mlh->bchm", part, table) for part in (re, im)))
        return torch.fft.irfft(waves, n=self.columns, dim=-1, norm="forward")


class SpectralConv(nn.Module):
    def __init__(self, width, degrees, to):
        super().__init__()
        self.to_grid, self.weight = to, nn.Parameter(torch.empty(width, width, degrees, 2))

    def forward(self, re, im):
        product = lambda part, w: torch.einsum("bilm,iol->bolm", part, w)
        wr, wi = self.weight.unbind(-1)
        return self.to_grid.synthesise(product(re, wr) - product(im, wi), product(im, wr) + product(re, wi))


class PointwiseMlp(nn.Module):
    def __init__(self, channels, hidden, out, last_bias=True):
        super().__init__()
        self.fwd = nn.Sequential(nn.Conv2d(channels, hidden, 1), nn.GELU(), nn.Conv2d(hidden, out, 1, bias=last_bias))

    def forward(self, x):
        return self.fwd(x)


class SfnoBlock(nn.Module):
    """Bonev et al. 2023, figure 4, in the form of makani."""

    def __init__(self, width, hidden, degrees, transforms):
        super().__init__()
        self.transforms = transforms
        self.norm0, self.norm1 = (nn.InstanceNorm2d(width, eps=1e-6, affine=True) for _ in range(2))
        self.filter = nn.Module()
        self.filter.filter = SpectralConv(width, degrees, transforms[1])
        self.outer_skip, self.mlp = nn.Conv2d(width, width, 1, bias=False), PointwiseMlp(width, hidden, width)

    def forward(self, x):
        coefficients = self.transforms[0].analyse(x)
        skipped = x if self.transforms[0] is self.transforms[1] else self.transforms[1].synthesise(*coefficients)
        y = self.mlp(functional.gelu(self.norm0(self.filter.filter(*coefficients))))
        return self.norm1(y) + self.outer_skip(skipped)


class Sfno(nn.Module):
    def __init__(self, channels, grid, keys):
        super().__init__()
        width, depth = keys["embed_dim"], keys["depth"]
        inner_grid = [edge // keys["scale_factor"] for edge in grid]
        degrees = inner_grid[0]
        orders = min(degrees, inner_grid[1] // 2 + 1)
        outer = SphericalTransform(*grid, degrees, orders, keys["model_grid_type"])
        inner = SphericalTransform(*inner_grid, degrees, orders, "legendre-gauss")
        self.encoder = PointwiseMlp(channels[0], width, width, last_bias=False)
        hidden = round(width * keys["mlp_ratio"])
        self.blocks = nn.ModuleList(SfnoBlock(width, hidden, degrees, (inner if i else outer, inner if i + 1 < depth else outer)) for i in range(depth))
        self.decoder = PointwiseMlp(width, width, channels[1], last_bias=False)
        self.residual_transform = nn.Conv2d(channels[0], channels[1], 1, bias=False)

    def forward(self, x):
        y = self.encoder(x)
        for block in self.blocks:
            y = block(y)
        return self.decoder(y) + self.residual_transform(x)


class WindowAttention(nn.Module):
    """Liu et al. 2021, section 3.2, by gathering the tokens of every window one after the other; the bias of Bi et al. 2022, equation 1."""

    def __init__(self, width, heads, grid, window, shift):
        super().__init__()
        self.heads, self.window, self.bands, self.around = heads, window, grid[0] // window[0], grid[1] // window[1]
        rows = window[0] ** 2 * (2 * window[1] - 1)
        self.earth_position_bias_table = nn.Parameter(torch.empty(rows, self.bands, heads))
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        shift = [s if count > 1 else 0 for s, count in zip(shift, (self.bands, self.around))]
        row, column = (np.arange(size).repeat(window[1]) if i == 0 else np.tile(np.arange(size), window[0]) for i, size in enumerate(window))
        self.index = torch.from_numpy((row[:, None] * window[0] + row[None]) * (2 * window[1] - 1) + column[:, None] - column[None] + window[1] - 1)
        self.tokens, self.apart = [], []
        for band in range(self.bands):
            rows_of = band * window[0] + row + shift[0]
            over_the_pole = torch.from_numpy(rows_of >= grid[0])
            self.apart.append(over_the_pole[:, None] != over_the_pole[None])
            for place in range(self.around):
                columns_of = place * window[1] + column + shift[1]
                self.tokens.append(torch.from_numpy(rows_of % grid[0] * grid[1] + columns_of % grid[1]))

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        out = torch.zeros_like(x)
        for number, tokens in enumerate(self.tokens):
            band = number // self.around
            bias = self.earth_position_bias_table[self.index, band].permute(2, 0, 1).masked_fill(self.apart[band], float("-inf"))
            logits = q[:, :, tokens] @ k[:, :, tokens].transpose(-2, -1) * q.shape[-1] ** -0.5 + bias
            out = out.index_copy(1, tokens, (logits.softmax(-1) @ v[:, :, tokens]).transpose(1, 2).flatten(2))
        return self.proj(out)


class SwinBlock(nn.Module):
    def __init__(self, width, heads, hidden, grid, window, shift):
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(width, eps=1e-6), WindowAttention(width, heads, grid, window, shift)
        self.norm2, self.mlp = nn.LayerNorm(width, eps=1e-6), Mlp(width, hidden)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Swin(nn.Module):
    def __init__(self, channels, grid, keys):
        super().__init__()
        self.patch, width, window = keys["patch_size"], keys["embed_dim"], keys["window_size"]
        self.grid = [edge // self.patch for edge in grid]
        self.patch_embed = PatchEmbed(channels[0], width, self.patch)
        hidden, half = round(width * keys["mlp_ratio"]), [edge // 2 for edge in window]
        self.blocks = nn.ModuleList(SwinBlock(width, keys["num_heads"], hidden, self.grid, window, half if i % 2 else [0, 0]) for i in range(keys["depth"]))
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.head = nn.Linear(width, self.patch ** 2 * channels[1], bias=False)

    def forward(self, x):
        x = self.patch_embed(x)
        for block in self.blocks:
            x = block(x)
        return unpatchify(self.head(self.norm(x)), *self.grid, self.patch)


class PeriodicConv(nn.Conv2d):
    def __init__(self, channels, out):
        super().__init__(channels, out, 3, padding=(1, 0), bias=False)

    def forward(self, x):
        return super().forward(functional.pad(x, (1, 1, 0, 0), mode="circular"))


def double_conv(channels, out):
    norms = [nn.InstanceNorm2d(out, eps=1e-6, affine=True) for _ in range(2)]
    return nn.Sequential(PeriodicConv(channels, out), norms[0], nn.ReLU(), PeriodicConv(out, out), norms[1], nn.ReLU())


def named(**modules):
    holder = nn.Module()
    for name, module in modules.items():
        holder.add_module(name, module)
    return holder


class Unet2d(nn.Module):
    """Ronneberger et al. 2015, figure 1, with the names of milesial/Pytorch-UNet."""

    def __init__(self, channels, grid, keys):
        super().__init__()
        self.scales, width = keys["scales"], keys["width"]
        self.inc = named(double_conv=double_conv(channels[0], width))
        for i in range(1, self.scales + 1):
            pooled = nn.Sequential(nn.MaxPool2d(2), named(double_conv=double_conv(width << (i - 1), width << i)))
            self.add_module(f"down{i}", named(maxpool_conv=pooled))
        for i in range(1, self.scales + 1):
            wide = width << (self.scales - i + 1)
            self.add_module(f"up{i}", named(up=nn.ConvTranspose2d(wide, wide // 2, 2, 2), conv=named(double_conv=double_conv(wide, wide // 2))))
        self.outc = named(conv=nn.Conv2d(width, channels[1], 1))

    def forward(self, x):
        skips = [self.inc.double_conv(x)]
        for i in range(1, self.scales + 1):
            pool, block = getattr(self, f"down{i}").maxpool_conv
            skips.append(block.double_conv(pool(skips[-1])))
        x = skips.pop()
        for i in range(1, self.scales + 1):
            level = getattr(self, f"up{i}")
            x = level.conv.double_conv(torch.cat([skips.pop(), level.up(x)], 1))
        return self.outc.conv(x)


MODELS = {"afno": Afno, "sfno": Sfno, "swin": Swin, "unet2d": Unet2d}


def build(channels, grid, keys):
    return MODELS[keys["model"]](channels, grid, keys)


def relative_l2(output, target):
    return ((output - target).flatten(1).norm(dim=1) / target.flatten(1).norm(dim=1)).mean()
