#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast PyTorch trains one of the two models here: the figures of `welkin bench --mode synthetic`, under the same names.

usage: measure.py [--model vit|unet] [switches, shapes: see --help] [--json FILE|-] [--serve | --layers]
--layers: `layers` in the JSON, seconds per step of each layer, forward and backward.
--serve: prints one line of JSON with the facts of the set-up when the warm-up is over, then answers every line "SECONDS" on standard input
with one line for a window of at least so long. bench/compare runs both sides in turns that way.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import statistics
import sys
import time

BEGUN = time.perf_counter()

import torch  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from layers import LayerTimer  # noqa: E402
from training import Shapes, Switches, Training  # noqa: E402


def resident(field):
    """VmRSS or VmHWM of this process, in bytes."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith(field + ":"))
    return int(line.split()[1]) * 1024


WARM_UP_PEAK = [0]  # of tensors on the GPU, before the windows


def forget_warm_up_peak(device):
    if device == "cuda":
        WARM_UP_PEAK[0] = torch.cuda.max_memory_allocated()
        torch.cuda.reset_peak_memory_stats()


def wait(device):
    if device == "cuda":
        torch.cuda.synchronize()


def window(training, shapes, seconds):
    """Samples per second of whole steps that fill at least `seconds`."""
    device, samples, begun = training.switches.device, 0, time.perf_counter()
    while samples == 0 or time.perf_counter() - begun < seconds:
        training.step()
        samples += shapes.batch
        if device == "cuda" and samples % (16 * shapes.batch) == 0:
            wait(device)  # the clock is to see what the queue hides
    wait(device)
    return samples / (time.perf_counter() - begun)


def memory(device):
    figures = {"resident_peak_bytes": resident("VmHWM")}
    if device == "cuda":
        figures["step_tensors_peak_bytes"] = torch.cuda.max_memory_allocated()
        figures["peak_device_bytes"] = max(WARM_UP_PEAK[0], figures["step_tensors_peak_bytes"])
    return figures


def facts(arguments, shapes, switches, training, before):
    return {"mode": "synthetic", "program": "torch", "torch": torch.__version__, "threads": torch.get_num_threads(), "shapes": dataclasses.asdict(shapes),
            "switches": dataclasses.asdict(switches), "parameters": training.parameters(), "resident_before_model_bytes": before,
            "capability": torch.backends.cpu.get_cpu_capability(), "warmup_steps": arguments.warmup_steps}


def rates(windows):
    name = "synthetic_samples_per_s"
    middle, least, most = statistics.median(windows), min(windows), max(windows)
    return {name: middle, f"{name}_spread": (most - least) / middle, f"{name}_min": least, f"{name}_max": most, f"{name}_windows": windows}


def serve(training, shapes, said):
    print(json.dumps({"ready": True, **said}), flush=True)
    device = training.switches.device
    for line in sys.stdin:
        # What was free while the other side worked may have to be brought back from the host, or from the GPU: not counted, as on the other side.
        for _ in range(2 if device == "cuda" else 1):
            training.step()
        wait(device)
        rate = window(training, shapes, float(line))
        figures = {**rates([rate]), **memory(device)}
        if device == "cuda":
            torch.cuda.empty_cache()
        print(json.dumps(figures), flush=True)


def run(arguments, training, shapes, said):
    windows = [window(training, shapes, arguments.window_seconds) for _ in range(arguments.windows)]
    result = {**said, **rates(windows), **memory(training.switches.device)}
    if arguments.json and arguments.json != "-":
        pathlib.Path(arguments.json).write_text(json.dumps(result, indent=2) + "\n")
    elif arguments.json:
        print(json.dumps(result, indent=2))
    else:
        print(f"SYNTHETIC: {statistics.median(windows):.4g} samples/s ({min(windows):.4g} to {max(windows):.4g} in {len(windows)} windows), peak "
              f"{result['resident_peak_bytes'] / 2**30:.2f} GiB resident")


def time_layers(training, said, seconds):
    timer, steps, begun = LayerTimer(training.model), 0, time.perf_counter()
    training.after_backward = timer.end
    training.step()
    timer.clear()
    while steps == 0 or time.perf_counter() - begun < seconds:
        training.step()
        steps += 1
    said["layers"] = timer.per_step(steps)


def fields_as_flags(parser, kind):
    for field in dataclasses.fields(kind):
        flag = "--" + field.name
        if field.type is bool:
            parser.add_argument(flag, action="store_true")
        elif field.type is tuple:
            parser.add_argument(flag, type=int, nargs=2, default=field.default)
        else:
            parser.add_argument(flag, type=field.type, default=field.default)


def of_flags(kind, arguments):
    values = {field.name: getattr(arguments, field.name) for field in dataclasses.fields(kind)}
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    fields_as_flags(parser, Shapes)
    fields_as_flags(parser, Switches)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--warmup_steps", type=int, default=2)
    parser.add_argument("--windows", type=int, default=5)
    parser.add_argument("--window_seconds", type=float, default=1.0)
    parser.add_argument("--json", metavar="FILE|-")
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--layers", action="store_true")
    return parser.parse_args(words)


def main(words):
    arguments = parse(words)
    torch.set_num_threads(arguments.threads)
    shapes, switches = of_flags(Shapes, arguments), of_flags(Switches, arguments)
    before = resident("VmRSS")
    training = Training(shapes, switches)
    training.step()
    wait(switches.device)
    said = facts(arguments, shapes, switches, training, before)
    said["start_to_first_step_s"] = time.perf_counter() - BEGUN
    for _ in range(arguments.warmup_steps - 1):
        training.step()
    wait(switches.device)
    forget_warm_up_peak(switches.device)
    if arguments.layers:
        time_layers(training, said, arguments.window_seconds)
    if arguments.serve:
        serve(training, shapes, said)
    else:
        run(arguments, training, shapes, said)


if __name__ == "__main__":
    main(sys.argv[1:])
