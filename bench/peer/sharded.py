#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One rank of PyTorch's data parallelism on CPUs over Gloo: plain (DistributedDataParallel), with the optimizer's state shared out
(ZeroRedundancyOptimizer, ZeRO 1) and with weights, gradients and states shared out (fully_shard, ZeRO 3). The ViT of models.py on samples that
stay where they are. Started once per rank by torchrun; rank 0 writes JSON.

usage: sharded.py --kind ddp|zero1|full --json FILE [--embed_dim E --depth D ...] [--windows N --window_seconds S]
"""
import argparse
import os
import pathlib
import sys

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from measure import resident  # noqa: E402
from models import Vit, relative_l2  # noqa: E402
from ranks import of_slowest, report, time_steps  # noqa: E402


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=("ddp", "zero1", "full"), required=True)
    parser.add_argument("--embed_dim", type=int, default=384)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--num_heads", type=int, default=6)
    parser.add_argument("--patch", type=int, default=8)
    parser.add_argument("--img_size", type=int, nargs=2, default=(64, 128))
    parser.add_argument("--channels", type=int, default=4)
    parser.add_argument("--batch", type=int, default=1, help="samples of a rank")
    parser.add_argument("--windows", type=int, default=5)
    parser.add_argument("--window_seconds", type=float, default=1.0)
    parser.add_argument("--json", required=True)
    return parser.parse_args()


class Rank:
    def __init__(self, arguments):
        torch.manual_seed(1)
        model = Vit(img_size=arguments.img_size, patch=arguments.patch, in_channels=arguments.channels, out_channels=arguments.channels,
                    embed_dim=arguments.embed_dim, depth=arguments.depth, num_heads=arguments.num_heads)
        self.parameters = sum(parameter.numel() for parameter in model.parameters())
        settings = {"lr": 1e-4, "betas": (0.9, 0.95), "fused": True}
        if arguments.kind == "full":
            for block in model.blocks:
                fully_shard(block)
            self.model = fully_shard(model)
            self.optimizer = torch.optim.Adam(self.model.parameters(), **settings)
        else:
            self.model = DistributedDataParallel(model, gradient_as_bucket_view=True)
            self.optimizer = (ZeroRedundancyOptimizer(self.model.parameters(), torch.optim.Adam, **settings) if arguments.kind == "zero1"
                              else torch.optim.Adam(self.model.parameters(), **settings))
        shape = (arguments.batch, arguments.channels, *arguments.img_size)
        self.input, self.target = torch.randn(shape), torch.randn(shape)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        relative_l2(self.model(self.input), self.target).backward()
        self.optimizer.step()


def main():
    arguments = parse()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    before = resident("VmRSS")
    rank = Rank(arguments)
    windows = time_steps(rank, arguments)
    peak = of_slowest([float(resident("VmHWM") - before)])
    report(rank, windows, arguments.json, {"kind": arguments.kind, "peak_bytes": peak[0]})


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
