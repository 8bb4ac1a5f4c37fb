# SPDX-License-Identifier: Apache-2.0
"""The tables "Ladder of switches" and "Roofline per layer" of docs/results/speed.md in Markdown, measured here and now. `bench/compare --tables` calls it.

usage: tables.py --welkin PROGRAM --peer_python PROGRAM [--sizes full|quick] [--threads N] [--markdown FILE]
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from compare import machine  # noqa: E402
from rows import SHAPES  # noqa: E402

# preset, batch, seconds of a window: three of whole steps, after a warm-up of half of that.
MODELS = {"full": [("unet", 4, 1.0), ("vit", 1, 1.0)], "quick": [("unet_quick", 4, 0.05), ("vit_quick", 1, 0.05)]}
MIB = 2**20


def bench(arguments, preset, batch, seconds, *words):
    """The JSON of `welkin bench`."""
    command = [arguments.welkin, "bench", "--yaml_config", HERE / "speed.yaml", "--config", preset, "--json", "-", "--windows", "3", "--window_seconds", seconds,
               "--warmup_seconds", seconds / 2, "--threads", arguments.threads, "--set", f"global_batch_size={batch}", *words]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}: exit code {done.returncode}: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout)


def peer_layers(arguments, preset, batch, seconds):
    """Seconds of PyTorch's eager layers, by our names."""
    command = [arguments.peer_python, HERE.parent / "peer/measure.py", *SHAPES[preset], "--batch", batch, "--threads", arguments.threads, "--layers", "--windows",
               "1", "--window_seconds", seconds, "--json", "-"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"the peer: exit code {done.returncode}: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout)["layers"]


def row(*cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def ladder_rows(model, trials):
    """A rung that changes nothing on this device has no figures, and says why."""
    lines, below = [], None
    for trial in trials:
        if "samples_per_s" not in trial:
            lines.append(row(model, trial["name"], "-", "-", "-", trial["note"]))
            continue
        rate = trial["samples_per_s"]
        ratio = f"{rate / below:.2f}" if below else ""
        lines.append(row(model, trial["name"], f"{rate:.4g}", ratio, f"{trial['peak_bytes'] / MIB:.0f} MiB", trial["note"]))
        below = rate
    return lines


def single_rows(model, trials):
    """Each against the first row, which is the configuration itself."""
    measured = [trial for trial in trials if "samples_per_s" in trial]
    first = measured[0]["samples_per_s"]
    return [row(model, trial["name"], f"{trial['samples_per_s']:.4g}", f"{trial['samples_per_s'] / first:.2f}", f"{trial['peak_bytes'] / MIB:.0f} MiB")
            for trial in measured]


def pattern(name):
    return re.sub(r"(^|\.)\d+(?=\.|$)", r"\1*", name)


def grouped(layers):
    """pattern -> seconds of all its layers, both ways."""
    sums = {}
    for name, (forward, backward) in layers.items():
        sums[pattern(name)] = sums.get(pattern(name), 0) + forward + backward
    return sums


def roofline_rows(found, before, batch):
    lines = []
    for layer in found["layers"]:
        flops = layer["flops"]
        seconds = before.get(layer["name"])
        after = layer["forward_seconds"] + layer["backward_seconds"]
        name = layer["name"] + (f" ({layer['count']})" if layer["count"] > 1 else "")
        rates = [f"{flops / s * 1e-9:.0f}" if flops and s else "-" for s in (seconds, after)]
        lines.append(row(name, f"{flops / batch * 1e-9:.3g}", f"{layer['bytes'] / batch / 1e6:.3g}", f"{layer['attainable_flops_per_s'] * 1e-9:.0f}",
                         layer["bound"], *rates, f"{100 * layer['mfu']:.0f}", f"{seconds * 1e3:.3g}" if seconds else "-",
                         f"{after * 1e3:.3g}"))
    return lines


def tables(arguments):
    facts = machine(arguments.threads)
    where = f"{facts['cpu']}, {facts['threads']} threads, commit {facts['commit']}, {facts['date']}, load {facts['load_before']:.1f} before it began"
    ladder, single, roofline, peaks = [], [], [], []
    for preset, batch, seconds in MODELS[arguments.sizes]:
        ladder += ladder_rows(preset, bench(arguments, preset, batch, seconds, "--ladder")["rows"])
        single += single_rows(preset, bench(arguments, preset, batch, seconds, "--explore")["rows"])
        found = bench(arguments, preset, batch, seconds, "--layers")
        roofline += roofline_rows(found, grouped(peer_layers(arguments, preset, batch, 2 * seconds)), batch)
        peaks.append(f"{found['peak_fp32_flops_per_s'] * 1e-9:.0f} GF/s")
    return "\n".join([
        "## Ladder of switches", f"Measured by `bench/compare --tables` on {where}. The tutorials' switches one after the other, each row with all above it:", "",
        row("model", "switch", "samples/s", "ratio to the row above", "peak memory", ""), row(*["---"] * 6), *ladder, "",
        "One switch at a time, each against the first row:", "",
        row("model", "switch", "samples/s", "ratio to the first", "peak memory"), row(*["---"] * 5), *single, "",
        "## Roofline per layer",
        f"The same run, float32; matmuls reached {' and '.join(peaks)} in it. \"Before\" is PyTorch eager with its own kernels, layer by layer (bench/peer/layers.py),", "\"after\" are ours; forward and backward together, nominal FLOPs, so that a kernel which skips taps on the padding may exceed the roof.", "",
        row("layer", "GFLOP per sample", "MB per sample", "roof, GF/s", "bound", "before, GF/s", "after, GF/s", "% of peak", "before, ms", "after, ms"), row(*["---"] * 10),
        *roofline, ""])


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--welkin", required=True)
    parser.add_argument("--peer_python", required=True)
    parser.add_argument("--sizes", choices=MODELS, default="full")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--check_words", action="store_true", help="only see whether these words are understood")
    arguments = parser.parse_args(words)
    if arguments.threads < 1:
        parser.error(f"at least one thread: --threads {arguments.threads}")
    return arguments


def main(words):
    arguments, begun = parse(words), time.monotonic()
    if arguments.check_words:
        return 0
    text = tables(arguments)
    print(text, flush=True)
    if arguments.markdown:
        arguments.markdown.parent.mkdir(parents=True, exist_ok=True)
        arguments.markdown.write_text(text)
        print(f"{arguments.markdown}: {(time.monotonic() - begun) / 60:.1f} minutes", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
