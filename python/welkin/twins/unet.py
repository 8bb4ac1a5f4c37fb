# SPDX-License-Identifier: Apache-2.0
"""The U-Nets of fields (Ronneberger et al. 2015, arXiv:1505.04597, under the names of milesial/Pytorch-UNet) and of boxes (the N-body tutorials);
src/model/unet/."""
from __future__ import annotations

import torch
from torch import nn

from welkin.twins.layers import EPSILON, Keys

_USUAL_SCALES = 4


class PeriodicConv(nn.Conv2d):
    """3 x 3 around the globe along longitude, zeros beyond the poles."""

    def __init__(self, channels: int, out: int) -> None:
        super().__init__(channels, out, 3, padding=(1, 0), bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(torch.cat([x[..., -1:], x, x[..., :1]], dim=-1))


def double_conv(channels: int, out: int) -> nn.Sequential:
    norms = [nn.InstanceNorm2d(out, eps=EPSILON, affine=True) for _ in range(2)]
    return nn.Sequential(PeriodicConv(channels, out), norms[0], nn.ReLU(), PeriodicConv(out, out), norms[1], nn.ReLU())


class Named(nn.Module):
    """Modules under the names that parameters lead through."""

    def __init__(self, **modules: nn.Module) -> None:
        super().__init__()
        for name, module in modules.items():
            self.add_module(name, module)


class Unet2d(nn.Module):
    """(B, C, H, W) -> (B, C', H, W); both edges divide by 2^scales."""

    def __init__(self, channels: tuple[int, int], grid: tuple[int, ...], keys: Keys) -> None:
        super().__init__()
        self.scales, width = keys["scales"] or _USUAL_SCALES, keys["width"]
        self.inc = Named(double_conv=double_conv(channels[0], width))
        for i in range(1, self.scales + 1):
            pooled = nn.Sequential(nn.MaxPool2d(2), Named(double_conv=double_conv(width << (i - 1), width << i)))
            self.add_module(f"down{i}", Named(maxpool_conv=pooled))
        for i in range(1, self.scales + 1):
            wide = width << (self.scales - i + 1)
            self.add_module(f"up{i}", Named(up=nn.ConvTranspose2d(wide, wide // 2, 2, 2), conv=Named(double_conv=double_conv(wide, wide // 2))))
        self.outc = Named(conv=nn.Conv2d(width, channels[1], 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skips = [self.inc.get_submodule("double_conv")(x)]
        for i in range(1, self.scales + 1):
            pool, block = self.get_submodule(f"down{i}.maxpool_conv").children()
            skips.append(block.get_submodule("double_conv")(pool(skips[-1])))
        x = skips.pop()
        for i in range(1, self.scales + 1):
            level = self.get_submodule(f"up{i}")
            joined = torch.cat([skips.pop(), level.get_submodule("up")(x)], dim=1)
            x = level.get_submodule("conv.double_conv")(joined)
        return self.outc.get_submodule("conv")(x)


class Unet3d(nn.Module):
    """(B, C, D, H, W) -> (B, C', D, H, W) in (-1, 1); edges divide by 2^scales."""

    def __init__(self, channels: tuple[int, int], grid: tuple[int, ...], keys: Keys) -> None:
        super().__init__()
        self.scales, width = keys["scales"] or (6 if keys["full_scale"] else 5), keys["width"]
        at = [channels[0]] + [width << min(scale, 3) for scale in range(self.scales)]
        for scale in range(1, self.scales + 1):
            down = nn.Conv3d(at[scale - 1], at[scale], 4, 2, 1)
            self.add_module(f"conv_down{scale}", nn.Sequential(down, nn.LeakyReLU(0.01)))
        for scale in range(self.scales, 1, -1):
            entering = at[scale] * (1 if scale == self.scales else 2)
            self.add_module(f"conv_up{scale}", nn.Sequential(nn.ConvTranspose3d(entering, at[scale - 1], 4, 2, 1), nn.ReLU()))
        self.conv_last = nn.ConvTranspose3d(2 * width, channels[1], 4, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skips = []
        for scale in range(1, self.scales + 1):
            x = self.get_submodule(f"conv_down{scale}")(x)
            skips.append(x)
        skips.pop()  # the deepest is the way itself
        for scale in range(self.scales, 1, -1):
            x = torch.cat([self.get_submodule(f"conv_up{scale}")(x), skips.pop()], dim=1)
        return torch.tanh(self.conv_last(x))
