# SPDX-License-Identifier: Apache-2.0
"""The two models of src/model/ as a PyTorch user writes them: same parameter names, shapes, order and initial distributions.

Shapes: B samples, C channels, N tokens, E width of a token. Nothing here is tuned; what an expert switches on is training.py's.
"""
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


class Attention(nn.Module):
    """Self-attention over (B, N, E); query, key and value by one matrix (SC23's files) or by three (DL4SCI25's)."""

    def __init__(self, width, num_heads, joint_qkv, fused):
        super().__init__()
        self.num_heads, self.fused = num_heads, fused
        for name in ["qkv"] if joint_qkv else ["q", "k", "v"]:
            self.add_module(name, nn.Linear(width, 3 * width if joint_qkv else width))
        self.joint_qkv = joint_qkv
        self.proj = nn.Linear(width, width)

    def project(self, x):
        return self.qkv(x).chunk(3, dim=-1) if self.joint_qkv else (self.q(x), self.k(x), self.v(x))

    def forward(self, x):
        q, k, v = (one.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for one in self.project(x))
        if self.fused:
            mixed = functional.scaled_dot_product_attention(q, k, v)
        else:
            mixed = (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).softmax(dim=-1) @ v
        return self.proj(mixed.transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.fc1 = nn.Linear(width, hidden)
        self.fc2 = nn.Linear(hidden, width)

    def forward(self, x):
        return self.fc2(functional.gelu(self.fc1(x)))


class Block(nn.Module):
    """Pre-norm. The order of registration is that of the files with joint or separate matrices."""

    def __init__(self, width, num_heads, joint_qkv, fused, mlp_ratio):
        super().__init__()
        if joint_qkv:
            self.attn = Attention(width, num_heads, joint_qkv, fused)
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        if not joint_qkv:
            self.attn = Attention(width, num_heads, joint_qkv, fused)
        self.mlp = Mlp(width, mlp_ratio * width)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class PatchEmbed(nn.Module):
    def __init__(self, in_channels, width, patch):
        super().__init__()
        self.proj = nn.Conv2d(in_channels, width, kernel_size=patch, stride=patch)

    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)


class Vit(nn.Module):
    """(B, in_channels, H, W) -> (B, out_channels, H, W); H and W divisible by the patch."""

    def __init__(self, img_size=(360, 720), patch=8, in_channels=20, out_channels=20, embed_dim=384, depth=12, num_heads=8, mlp_ratio=4,
                 joint_qkv=False, fused_attention=True, checkpoint_blocks=False):
        super().__init__()
        self.patch, self.out_channels, self.checkpoint_blocks = patch, out_channels, checkpoint_blocks
        self.grid = (img_size[0] // patch, img_size[1] // patch)
        self.pos_embed = nn.Parameter(torch.empty(1, self.grid[0] * self.grid[1], embed_dim))
        self.patch_embed = PatchEmbed(in_channels, embed_dim, patch)
        self.blocks = nn.ModuleList(Block(embed_dim, num_heads, joint_qkv, fused_attention, mlp_ratio) for _ in range(depth))
        self.norm = nn.LayerNorm(embed_dim, eps=1e-6)
        self.head = nn.Linear(embed_dim, patch * patch * out_channels, bias=False)
        nn.init.normal_(self.pos_embed, std=0.02)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=0.02)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def unpatchify(self, x):
        """Features of a token are (row, column, channel), the channel fastest."""
        fields = x.unflatten(1, self.grid).unflatten(-1, (self.patch, self.patch, self.out_channels))
        return fields.permute(0, 5, 1, 3, 2, 4).flatten(4, 5).flatten(2, 3)

    def forward(self, x):
        x = self.patch_embed(x) + self.pos_embed
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpoint_blocks else block(x)
        return self.unpatchify(self.head(self.norm(x)))


class Unet3d(nn.Module):
    """(B, in_channels, D, H, W) -> (B, out_channels, D, H, W); edges divisible by 2^scales."""

    def __init__(self, in_channels=4, out_channels=5, width=64, scales=6):
        super().__init__()
        self.scales = scales
        channels = [in_channels] + [width << min(scale, 3) for scale in range(scales)]
        box = {"kernel_size": 4, "stride": 2, "padding": 1}
        for scale in range(1, scales + 1):
            down = nn.Conv3d(channels[scale - 1], channels[scale], **box)
            self.add_module(f"conv_down{scale}", nn.Sequential(down, nn.LeakyReLU(0.01, inplace=True)))
        for scale in range(scales, 1, -1):
            entering = channels[scale] * (1 if scale == scales else 2)
            up = nn.ConvTranspose3d(entering, channels[scale - 1], **box)
            self.add_module(f"conv_up{scale}", nn.Sequential(up, nn.ReLU(inplace=True)))
        self.conv_last = nn.ConvTranspose3d(2 * width, out_channels, **box)
        for module in self.modules():
            if isinstance(module, (nn.Conv3d, nn.ConvTranspose3d)):
                nn.init.normal_(module.weight, std=0.02)
                nn.init.zeros_(module.bias)

    def forward(self, x):
        skips = []
        for scale in range(1, self.scales + 1):
            x = self.get_submodule(f"conv_down{scale}")(x)
            skips.append(x)
        skips.pop()  # the deepest is the way itself
        for scale in range(self.scales, 1, -1):
            x = torch.cat([self.get_submodule(f"conv_up{scale}")(x), skips.pop()], dim=1)
        return torch.tanh(self.conv_last(x))


def relative_l2(output, target):
    """Mean over the samples of |output - target| / |target|, norms over all of a sample."""
    difference = (output - target).flatten(1).norm(dim=1)
    return (difference / target.flatten(1).norm(dim=1)).mean()


def mean_absolute(output, target):
    return (output - target).abs().mean()
