#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One rank of PyTorch's pipelines (torch.distributed.pipelining) on CPUs over Gloo: the ViT of models.py cut into stages, on samples that stay
where they are. Started once per rank by torchrun; rank 0 writes JSON.

usage: pipeline.py --schedule gpipe|1f1b|interleaved|zero_bubble --micro_batches M --json FILE [--embed_dim E --depth D ...]
"""
import argparse
import os
import pathlib
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B, ScheduleInterleavedZeroBubble

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from models import Vit, relative_l2  # noqa: E402
from ranks import report, time_steps  # noqa: E402

ONE_STAGE = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}
STAGES = {"interleaved": ScheduleInterleaved1F1B, "zero_bubble": ScheduleInterleavedZeroBubble}
CHUNKS = {"interleaved": 2}  # stages of a rank


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedule", choices=(*ONE_STAGE, *STAGES), required=True)
    parser.add_argument("--micro_batches", type=int, required=True, help="of one sample")
    parser.add_argument("--embed_dim", type=int, default=384)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--num_heads", type=int, default=6)
    parser.add_argument("--patch", type=int, default=8)
    parser.add_argument("--img_size", type=int, nargs=2, default=(64, 128))
    parser.add_argument("--channels", type=int, default=4)
    parser.add_argument("--windows", type=int, default=5)
    parser.add_argument("--window_seconds", type=float, default=1.0)
    parser.add_argument("--json", required=True)
    return parser.parse_args()


class StageOfVit(nn.Module):
    """Blocks begin .. end - 1 of the model; the first stage embeds, the last one has norm and head."""

    def __init__(self, vit, begin, end):
        super().__init__()
        self.is_first, self.is_last = begin == 0, end == len(vit.blocks)
        self.blocks = nn.ModuleList(vit.blocks[begin:end])
        if self.is_first:
            self.patch_embed, self.pos_embed = vit.patch_embed, vit.pos_embed
        if self.is_last:
            self.norm, self.head = vit.norm, vit.head
            self.fields_of = vit.unpatchify

    def forward(self, x):
        if self.is_first:
            x = self.patch_embed(x) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        return self.fields_of(self.head(self.norm(x))) if self.is_last else x.contiguous()  # Gloo sends no other


class Rank:
    def __init__(self, arguments):
        torch.manual_seed(1)
        size, place = dist.get_world_size(), dist.get_rank()
        vit = Vit(img_size=arguments.img_size, patch=arguments.patch, in_channels=arguments.channels, out_channels=arguments.channels,
                  embed_dim=arguments.embed_dim, depth=arguments.depth, num_heads=arguments.num_heads)
        self.parameters = sum(parameter.numel() for parameter in vit.parameters())
        count = size * CHUNKS.get(arguments.schedule, 1)
        cuts = [i * arguments.depth // count for i in range(count + 1)]
        numbers = range(place, count, size)
        modules = [StageOfVit(vit, cuts[number], cuts[number + 1]) for number in numbers]
        stages = [PipelineStage(module, number, count, torch.device("cpu")) for module, number in zip(modules, numbers)]
        settings = {"n_microbatches": arguments.micro_batches, "loss_fn": relative_l2}
        self.schedule = ONE_STAGE[arguments.schedule](stages[0], **settings) if arguments.schedule in ONE_STAGE else STAGES[arguments.schedule](stages, **settings)
        parameters = [parameter for module in modules for parameter in module.parameters()]
        self.optimizer = torch.optim.Adam(parameters, lr=1e-4, betas=(0.9, 0.95), fused=True)
        shape = (arguments.micro_batches, arguments.channels, *arguments.img_size)
        self.given = (torch.randn(shape),) if place == 0 else ()
        self.target = torch.randn(shape) if place == size - 1 else None

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        self.schedule.step(*self.given, target=self.target, losses=[] if self.target is not None else None)
        self.optimizer.step()


def main():
    arguments = parse()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = Rank(arguments)
    windows = time_steps(rank, arguments)
    report(rank, windows, arguments.json, {"schedule": arguments.schedule, "micro_batches": arguments.micro_batches})


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
