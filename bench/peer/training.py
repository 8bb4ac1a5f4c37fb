# SPDX-License-Identifier: Apache-2.0
"""One training step of a model on samples that stay where they are, with the switches that PyTorch offers."""
import contextlib
import dataclasses

import torch

from models import Unet3d, Vit, mean_absolute, relative_l2

PRECISIONS = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}


@dataclasses.dataclass
class Switches:
    """Defaults are PyTorch's own, with the fused optimizer."""
    precision: str = "fp32"            # of autocast; weights stay float32
    channels_last: bool = False        # memory format of the model and the input
    compile: bool = False              # torch.compile of the model
    compile_mode: str = "default"
    attention: str = "sdpa"            # sdpa: scaled_dot_product_attention; math: its formula
    matmul_precision: str = "highest"  # torch.set_float32_matmul_precision
    optimizer: str = "fused"           # fused, foreach, single
    checkpoint_blocks: bool = False    # torch.utils.checkpoint around each block of the ViT
    device: str = "cpu"


@dataclasses.dataclass
class Shapes:
    """Of a model and a batch. img_size and patch and so on are the ViT's, width, scales and box the U-Net's."""
    model: str = "unet"
    batch: int = 4
    in_channels: int = 0  # 0: the model's own default
    out_channels: int = 0
    img_size: tuple = (360, 720)
    patch: int = 8
    embed_dim: int = 384
    depth: int = 12
    num_heads: int = 8
    box: int = 64
    width: int = 64
    scales: int = 6

    def channels(self):
        default = (20, 20) if self.model == "vit" else (4, 5)
        return self.in_channels or default[0], self.out_channels or default[1]

    def grid(self):
        return self.img_size if self.model == "vit" else (self.box,) * 3


def build_model(shapes, switches):
    channels = dict(zip(("in_channels", "out_channels"), shapes.channels()))
    if shapes.model == "vit":
        return Vit(img_size=shapes.img_size, patch=shapes.patch, embed_dim=shapes.embed_dim, depth=shapes.depth, num_heads=shapes.num_heads,
                   fused_attention=switches.attention == "sdpa", checkpoint_blocks=switches.checkpoint_blocks, **channels)
    return Unet3d(width=shapes.width, scales=shapes.scales, **channels)


class Training:
    """`step()` does one optimizer step and returns its loss as a tensor, so that nothing waits for a GPU."""

    def __init__(self, shapes, switches):
        self.switches = switches
        torch.set_float32_matmul_precision(switches.matmul_precision)
        if switches.device == "cuda":
            torch.backends.cudnn.benchmark = True
        torch.manual_seed(1)
        is_vit = shapes.model == "vit"
        self.model = build_model(shapes, switches).to(switches.device)
        in_channels, out_channels = shapes.channels()
        self.input = torch.randn(shapes.batch, in_channels, *shapes.grid(), device=switches.device)
        self.target = torch.randn(shapes.batch, out_channels, *shapes.grid(), device=switches.device)
        if switches.channels_last:
            layout = torch.channels_last if is_vit else torch.channels_last_3d
            self.model, self.input = self.model.to(memory_format=layout), self.input.to(memory_format=layout)
        kind = {"fused": {"fused": True}, "foreach": {"foreach": True}, "single": {"foreach": False}}[switches.optimizer]
        betas = (0.9, 0.95) if is_vit else (0.9, 0.999)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4, betas=betas, **kind)
        self.scaler = torch.amp.GradScaler(switches.device, enabled=switches.precision == "fp16")
        self.loss = relative_l2 if is_vit else mean_absolute
        self.after_backward = lambda: None
        self.forward = torch.compile(self.model, mode=switches.compile_mode) if switches.compile else self.model

    def autocast(self):
        dtype = PRECISIONS[self.switches.precision]
        return contextlib.nullcontext() if dtype is None else torch.autocast(self.switches.device, dtype)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        with self.autocast():
            loss = self.loss(self.forward(self.input), self.target)
        self.scaler.scale(loss).backward()
        self.after_backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.detach()

    def parameters(self):
        return sum(parameter.numel() for parameter in self.model.parameters())
