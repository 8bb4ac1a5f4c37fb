# SPDX-License-Identifier: Apache-2.0
"""What is measured against what, and the goals. A row is one configuration; its checks turn the figures into met or not met."""
import dataclasses

from sides import RATE

# The peer's flags for the presets of speed.yaml; that both sides have the same parameters is checked in every run.
SHAPES = {
    "unet": ["--model", "unet"],
    "vit": ["--model", "vit"],
    "unet_short": ["--model", "unet", "--scales", "5", "--box", "32"],
    "vit_short": ["--model", "vit", "--depth", "2"],
    "unet_quick": ["--model", "unet", "--width", "8", "--scales", "3", "--box", "16"],
    "vit_quick": ["--model", "vit", "--img_size", "48", "96", "--embed_dim", "96", "--num_heads", "2", "--depth", "2"],
}
CHANNELS_LAST, COMPILE, MEDIUM = ["--channels_last"], ["--compile"], ["--matmul_precision", "medium"]
USED = "eager"  # the peer as users run it
ADAM_BYTES = 16  # per parameter: weight, gradient, two averages
PRECISION = "--float32_matmul_precision"  # our side's switch of the same name
BF16_PAYS = 1.5  # bf16 GEMM over fp32 GEMM


@dataclasses.dataclass
class Row:
    name: str
    model: str  # unet, vit
    batch: int
    precision: str
    peers: dict  # name -> flags
    checks: list = dataclasses.field(default_factory=list)  # functions of (row's figures, all rows' figures) -> Check
    flags: tuple = ()  # of our side, beside the preset's


@dataclasses.dataclass
class Check:
    what: str
    goal: str
    measured: float | None  # None: not measured
    met: bool | None        # None: cannot be said
    note: str = ""


def at_least(what, bound, value, note="", unit="x"):
    return Check(what, f">= {bound}{unit}", value, None if value is None else value >= bound, note)


def at_most(what, bound, value, note="", unit="x"):
    return Check(what, f"<= {bound}{unit}", value, None if value is None else value <= bound, note)


def ratio_to(figures, peer):
    found = figures["ratios"].get(peer)
    return found["median"] if found else None


def best_of(figures, names):
    """The fastest of these peers, by name."""
    measured = [name for name in names if RATE in figures["peers"].get(name, {})]
    return max(measured, key=lambda name: figures["peers"][name][RATE], default=None)


def against_best(bound, what, names=None):
    def check(figures, _):
        best = best_of(figures, names or figures["peers"])
        return at_least(what, bound, ratio_to(figures, best) if best else None, f"best: {best}")
    return check


def against(bound, what, peer):
    return lambda figures, _: at_least(what, bound, ratio_to(figures, peer))


def share_of_peak(bound):
    """Nominal FLOPs over the best matmul of matrices that our side has measured in any window of the row."""
    def check(figures, _):
        ours = figures["ours"]
        peak, flops = ours.get("peak_fp32_flops_per_s"), ours.get("train_flops_per_sample")
        return at_least("share of the peak of matmuls", bound, ours[RATE] * flops / peak if peak and flops else None, "nominal FLOPs", unit="")
    return check


def bf16_gain(figures):
    """Best bf16 matmul over the best fp32 matmul, as our own side has measured them."""
    fp32, bf16 = (figures["ours"].get(f"peak_{name}_flops_per_s") for name in ("fp32", "bf16"))
    return bf16 / fp32 if fp32 and bf16 else None


def in_bf16(check, fp32_row):
    """The goal where bf16 pays on this processor; elsewhere bf16 must be no slower than our own fp32."""
    def checked(figures, every):
        gain = bf16_gain(figures)
        if gain is None or gain >= BF16_PAYS:
            result = check(figures, every)
            matmuls = f"bf16 matmuls {gain:.2f}x fp32's here" if gain else "matmuls not measured"
            result.note = "; ".join(filter(None, [result.note, matmuls]))
            return result
        fp32 = every.get(fp32_row, {}).get("ours", {}).get(RATE)
        bf16 = figures["ours"].get(RATE)
        return at_least("bf16 over our own fp32", 1.0, bf16 / fp32 if fp32 and bf16 else None, f"bf16 matmuls only {gain:.2f}x fp32's here")
    return checked


def memory(bound, less_parameters):
    """Resident peak over eager's; for the U-Net of what is neither there before the model nor weights, gradients and averages."""
    def rest(figures):
        peak = figures.get("resident_peak_bytes")
        if not less_parameters or peak is None:
            return peak
        before, parameters = figures.get("resident_before_model_bytes"), figures.get("parameters")
        return peak - before - ADAM_BYTES * parameters if before and parameters else None

    def check(figures, _):
        ours, theirs = rest(figures["ours"]), rest(figures["peers"].get(USED, {}))
        what = "resident peak less start and 16 B/parameter, over eager's" if less_parameters else "resident peak over eager's"
        return at_most(what, bound, ours / theirs if ours is not None and theirs else None)
    return check


def comparable(row, vectors):
    """The row without peers where PyTorch multiplies bfloat16 number by number, a hundred times slower than float32: on x86-64 without AVX-512. Minutes per step would
    say nothing; the goal there is a ratio to our own fp32. Nor is there anything to compare where rounding is allowed and no processor's tiles would gain from it:
    another row has the same figures."""
    is_slow = row.precision == "bf16" and "avx2" in vectors and "avx512f" not in vectors
    is_another_row = PRECISION in row.flags and "amx_bf16" not in vectors
    return dataclasses.replace(row, peers={}) if is_slow or is_another_row else row


UNET = {USED: [], "channels_last": CHANNELS_LAST, "compile": COMPILE}
MEDIUM_PEERS = {"medium": MEDIUM, "medium_compile": MEDIUM + COMPILE}
VIT = {USED: [], **MEDIUM_PEERS}
FULL = [
    Row("unet_batch4_fp32", "unet", 4, "fp32", UNET,
        [against_best(1.8, "samples/s over the best peer"), share_of_peak(0.70), memory(0.6, less_parameters=True)]),
    Row("unet_batch4_bf16", "unet", 4, "bf16", UNET, [in_bf16(against_best(1.8, "samples/s over the peer's best bf16"), "unet_batch4_fp32")]),
    Row("unet_batch1_fp32", "unet", 1, "fp32", {USED: [], "channels_last": CHANNELS_LAST}, [against_best(2.5, "samples/s over the best peer")]),
    Row("vit_batch1_fp32", "vit", 1, "fp32", VIT,
        [against(2.3, "samples/s over default eager", USED), against_best(1.35, "samples/s over the tuned peer", ["medium", "medium_compile"]),
         memory(0.6, less_parameters=False)]),
    # Both sides may round operands of float32 matmuls; only a processor with AMX does.
    Row("vit_batch1_medium", "vit", 1, "fp32", MEDIUM_PEERS, [against_best(1.35, "samples/s over the tuned peer, operands rounded on both sides")],
        flags=(PRECISION, "medium")),
    # Ours keeps 16 bits of operands, the tuned peer 8.
    Row("vit_batch1_high", "vit", 1, "fp32", VIT,
        [against(2.3, "samples/s over default eager, operands of 16 bits on our side", USED),
         against_best(1.35, "samples/s over the tuned peer, operands of 16 bits on our side and 8 on theirs", ["medium", "medium_compile"])],
        flags=(PRECISION, "high")),
    Row("vit_batch1_bf16", "vit", 1, "bf16", {USED: [], "compile": COMPILE},
        [in_bf16(against(2.2, "samples/s over eager bf16", USED), "vit_batch1_fp32")]),
    Row("vit_batch1_checkpointed", "vit", 1, "fp32", {USED: ["--checkpoint_blocks"]}, flags=("--activation_checkpointing", "blocks")),
]
# Small enough for CI: without torch.compile, which alone would take the time of all.
SHORT = [
    Row("unet_short_fp32", "unet", 4, "fp32", {USED: [], "channels_last": CHANNELS_LAST}),
    Row("unet_short_bf16", "unet", 4, "bf16", {USED: [], "channels_last": CHANNELS_LAST}),
    Row("vit_short_fp32", "vit", 1, "fp32", {USED: [], "medium": MEDIUM}),
    Row("vit_short_bf16", "vit", 1, "bf16", {USED: []}),
]


@dataclasses.dataclass
class Sizes:
    rows: list
    suffix: str          # of the preset's name
    rounds: int
    seconds: float       # of a window
    warmup_steps: dict   # by model


SIZES = {
    "full": Sizes(FULL, "", 3, 2.0, {"unet": 2, "vit": 1}),
    "short": Sizes(SHORT, "_short", 4, 1.0, {"unet": 2, "vit": 2}),
    "quick": Sizes([dataclasses.replace(row, peers={name: flags for name, flags in row.peers.items() if COMPILE[0] not in flags}) for row in FULL],
                   "_quick", 1, 0.05, {"unet": 1, "vit": 1}),
}
