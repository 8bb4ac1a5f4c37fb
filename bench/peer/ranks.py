# SPDX-License-Identifier: Apache-2.0
"""Ranks of PyTorch over Gloo that make steps for a while: what sharded.py and pipeline.py share. A rank is an object with step() and parameters."""
import json
import os
import pathlib
import statistics
import time

import torch
import torch.distributed as dist


def seconds_of_window(rank, seconds):
    """Of a step; all ranks make as many steps."""
    steps, begun = 0, time.perf_counter()
    going = torch.ones(1)
    while going.item():
        rank.step()
        steps += 1
        going.fill_(float(time.perf_counter() - begun < seconds))
        dist.broadcast(going, 0)
    return (time.perf_counter() - begun) / steps


def of_slowest(values):
    """The largest of each over all ranks."""
    largest = torch.tensor(values)
    dist.all_reduce(largest, dist.ReduceOp.MAX)
    return largest.tolist()


def time_steps(rank, arguments):
    """Seconds of a step in each window, those of the slowest rank."""
    for _ in range(2):
        rank.step()
    return of_slowest([seconds_of_window(rank, arguments.window_seconds) for _ in range(arguments.windows)])


def report(rank, windows, path, figures):
    """Rank 0 writes them; then this process ends."""
    if dist.get_rank() == 0:
        common = {"program": "torch", "torch": torch.__version__, "ranks": dist.get_world_size(), "parameters": rank.parameters,
                  "step_s": statistics.median(windows), "step_s_windows": windows}
        pathlib.Path(path).write_text(json.dumps({**common, **figures}))
    dist.barrier()
    os._exit(0)  # destroy_process_group() waits without end, now and then, for ranks that have gone already
