#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Peak of tensors and time of a step with each value of activation_checkpointing, measured and predicted: docs/results/memory.md.

usage: bench/memory.py [--welkin PROGRAM] [--threads N] [--windows N] [--seconds S] [--model vit|unet]\n\nA table in Markdown on standard output.
Exit code 1 where a budget is exceeded, or a predicted peak is more than 5 % off; times are shown and not judged.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = {
    "vit": ["--config", "vit", "--set", "img_size=[64,128]", "--set", "embed_dim=96", "--set", "depth=6", "--set", "global_batch_size=8"],
    "unet": ["--config", "unet", "--set", "width=8", "--set", "scales=4"],
}
MODES = {"vit": ["none", "mlp", "attention", "blocks"], "unet": ["none", "pattern:levels\\.3", "blocks"]}
SHARES = (0.3, 0.7)  # of the way from the least peak to that of `none`
TOLERANCE = 0.05
GIB = 1 << 30


def bench(options, model, mode):
    """The figures of one run; the limit is far away, and makes the program count."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [options.welkin, "bench", "--yaml_config", ROOT / "bench/speed/speed.yaml", *MODELS[model], "--mode", "synthetic", "--device", "cpu",
                   "--threads", options.threads, "--memory_limit_gib", 1024, "--windows", options.windows, "--window_seconds", options.seconds, "--activation_checkpointing", mode,
                   "--json", file.name]
        subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
        return json.load(open(file.name))


def row(mode, figures):
    """Cells, and the relative error of the predicted peak (0 where nothing was predicted)."""
    peak, step = figures["step_tensors_peak_bytes"], figures["step_s"]
    predicted = figures.get("predicted_step_tensors_peak_bytes")
    cells = [f"`{mode}`", f"{peak / 2**20:.0f}", f"{step:.3f}"]
    if predicted is None:
        return cells + ["", ""], 0
    off, slow = peak / predicted - 1, step / figures["predicted_step_s"] - 1
    return cells + [f"{predicted / 2**20:.0f} ({100 * off:+.1f} %)", f"{figures['predicted_step_s']:.3f} ({100 * slow:+.1f} %)"], abs(off)


def measure(options, model):
    """Whether the bytes are as predicted."""
    print(f"| {model} | peak MiB | step s | predicted MiB (measured is off by) | predicted s |\n| --- | --- | --- | --- | --- |", flush=True)
    peaks, is_good = {}, True
    for mode in MODES[model]:
        figures = bench(options, model, mode)
        peaks[mode] = figures["step_tensors_peak_bytes"]
        print("| " + " | ".join(row(mode, figures)[0]) + " |", flush=True)
    least, most = min(peaks.values()), peaks["none"]
    for share in SHARES:
        budget = (least + share * (most - least)) / GIB
        figures = bench(options, model, f"budget:{budget:.4f}")
        cells, off = row(f"budget:{budget:.4f}", figures)
        print("| " + " | ".join(cells) + " |", flush=True)
        is_good = is_good and off <= TOLERANCE and figures["step_tensors_peak_bytes"] <= budget * GIB * (1 + TOLERANCE)
    return is_good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--welkin", default=ROOT / "build/release/welkin")
    parser.add_argument("--threads", default=1, type=int)
    parser.add_argument("--seconds", default=5, type=float)
    parser.add_argument("--windows", default=5, type=int)
    parser.add_argument("--model", choices=list(MODELS))
    options = parser.parse_args()
    results = [measure(options, model) for model in ([options.model] if options.model else MODELS)]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
