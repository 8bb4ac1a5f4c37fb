# SPDX-License-Identifier: Apache-2.0
"""The PyTorch models that bench/compare runs against are ours: names, sizes, outputs and gradients, from reference cases and from a run."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE = pathlib.Path(os.environ["WELKIN_SOURCE_DIR"])
sys.path[:0] = [str(pathlib.Path(__file__).parent), str(SOURCE / "tests"), str(SOURCE / "bench/peer")]

import h5py  # noqa: E402
import numpy_models  # noqa: E402
import torch  # noqa: E402
from case_writer import read_safetensors, write_model_case  # noqa: E402
from layers import LayerTimer  # noqa: E402
from models import Unet3d, Vit, mean_absolute, relative_l2  # noqa: E402
from tolerance import ROUNDOFF  # noqa: E402
from training import Shapes, Switches, Training, build_model  # noqa: E402

BINARY = os.environ["WELKIN_BINARY"]
GOLDENS = pathlib.Path(os.environ.get("WELKIN_GOLDENS") or SOURCE.parent / "shared/goldens")
LARGEST_LOGARITHM = 14  # of the U-Net's density term
RUNS = {
    "vit": """
run: {model: vit, embed_dim: 16, depth: 2, num_heads: 2, patch_size: 8, img_size: [16, 32], n_in_channels: 3, n_out_channels: 2,
  data_loader_config: synthetic, limit_nsamples: 8, limit_nsamples_val: 2, global_batch_size: 4, num_iters: 2, lr: 1E-3, warmup: 0, expdir: /logs}
""",
    "unet": """
run: {model: unet3d, width: 4, scales: 3, data_size: 16, box_size: [32, 32], Nsamples: 8, Nsamples_val: 2, global_batch_size: 4, num_epochs: 1,
  data_loader_config: synthetic, lr_schedule: {scaling: none, start_lr: 2.E-4, end_lr: 0., warmup_steps: 0}, expdir: /logs}
""",
}


def peer_of(constructor, weights):
    if "embed_dim" not in constructor:
        return Unet3d(constructor["in_channels"], constructor["N_out_channels"], constructor["width"], 6 if constructor["full_scale"] else 5)
    return Vit(constructor["img_size"], constructor["patch_size"], constructor["in_chans"], constructor["out_chans"], constructor["embed_dim"],
               constructor["depth"], constructor["num_heads"], int(constructor["mlp_ratio"]), joint_qkv="blocks.0.attn.qkv.weight" in weights)


def loss_of(meta, output, target):
    if not isinstance(meta["loss"], dict):
        return relative_l2(output, target)
    density = [torch.exp(LARGEST_LOGARITHM * fields[:, 0]) for fields in (output, target)]
    return mean_absolute(output, target) + meta["loss"]["lambda_rho"] * mean_absolute(*density)


def tensors_of(path):
    return {name: torch.from_numpy(value) for name, value in read_safetensors(path).items()}


class ReferenceCases(unittest.TestCase):
    def assert_close(self, name, got, wanted, bounds):
        difference = (got.double() - wanted.double())
        self.assertLessEqual(difference.norm().item(), bounds["rel_l2"] * wanted.double().norm().item(), name)
        self.assertLessEqual(difference.abs().max().item(), bounds["max_over_max"] * wanted.abs().max().item(), name)

    def check(self, folder):
        meta = json.loads((folder / "meta.json").read_text())
        weights, inputs = tensors_of(folder / "weights.safetensors"), tensors_of(folder / "inputs.safetensors")
        model = peer_of(meta["model"]["constructor"], weights)
        self.assertEqual(sum(parameter.numel() for parameter in model.parameters()), meta["parameters"])
        model.load_state_dict(weights, strict=True)
        output = model(inputs["input"])
        loss = loss_of(meta, output, inputs["target"])
        loss.backward()
        outputs, bounds = tensors_of(folder / "outputs.safetensors"), meta["recommended_tolerance"]
        self.assert_close("output", output.detach(), outputs["output"], bounds["forward"])
        self.assertLessEqual(abs(loss.item() / outputs["loss"].item() - 1), bounds["loss"]["rel"])
        noise = meta.get("noise_only_params", {}).get("ranges", {})
        stored, compared = tensors_of(folder / "grads.safetensors"), 0
        for name, parameter in model.named_parameters():
            if name in noise or name not in stored:
                continue
            self.assert_close(name, parameter.grad, stored[name], bounds["gradients"])
            compared += 1
        self.assertGreater(compared, len(weights) // 2)

    def test_generated_cases(self):
        cases = {"joint": (numpy_models.Vit((3, 2), (12, 20), 4, 24, 2, 3, joint=True), {}),
                 "separate": (numpy_models.Vit((2, 4), (10, 15), 5, 30, 1, 5, joint=False, mlp_ratio=2), {}),
                 "unet": (numpy_models.Unet((2, 3), 3, 0.02), {"piecewise": True, "grid": (32, 32, 64)})}
        with tempfile.TemporaryDirectory() as kept:
            for name, (model, options) in cases.items():
                with self.subTest(name):
                    self.check(write_model_case(pathlib.Path(kept) / name, model, 2, {"name": "Adam", "lr": 1e-3}, **options))

    @unittest.skipUnless((GOLDENS / "vit25_small").is_dir(), "no reference cases: set WELKIN_GOLDENS")
    def test_shared_cases(self):
        for name in ("vit25_small", "vit25_nonsquare", "vit23_small", "unet_narrow"):
            with self.subTest(name):
                self.check(GOLDENS / name)


class Sizes(unittest.TestCase):
    def test_full_sizes(self):
        """The published counts of both models."""
        counts = {116977029: {"model": "unet"}, 66644357: {"model": "unet", "scales": 5}, 23832960: {"model": "vit"},
                  350135808: {"model": "vit", "embed_dim": 1536}, 365849088: {"model": "vit", "embed_dim": 1536, "patch": 4}}
        for count, shapes in counts.items():
            with torch.device("meta"):
                model = build_model(Shapes(**shapes), Switches())
            self.assertEqual(sum(parameter.numel() for parameter in model.parameters()), count, shapes)


SMALL = {"vit": Shapes("vit", batch=2, img_size=(24, 48), embed_dim=48, depth=2, num_heads=2), "unet": Shapes("unet", batch=2, box=16, width=8, scales=3)}


class SwitchesKeepTheModel(unittest.TestCase):
    """Every variant of the peer does the same work: equal losses over some steps, within its precision."""

    def losses(self, model, **switches):
        training = Training(SMALL[model], Switches(**switches))
        return torch.stack([training.step() for _ in range(3)])

    def test_losses(self):
        fp32, bf16 = 256 * ROUNDOFF["fp32"], 4 * ROUNDOFF["bf16"]
        variants = [({"channels_last": True}, fp32), ({"attention": "math"}, fp32), ({"optimizer": "single"}, fp32),
                    ({"matmul_precision": "medium"}, bf16), ({"precision": "bf16"}, bf16)]
        for model in SMALL:
            plain = self.losses(model)
            self.assertLess(plain[-1].item(), plain[0].item(), "it learns")
            for switches, bound in variants:
                with self.subTest(model=model, switches=switches):
                    self.assertLess((self.losses(model, **switches) / plain - 1).abs().max().item(), bound)


class LayersOfAPeer(unittest.TestCase):
    """bench/peer/layers.py: every layer has its time, and all together do not take longer than the step."""

    def test_times(self):
        some = {"vit": ("patch_embed", "blocks.1.attn.core", "blocks.0.mlp.fc2", "norm", "head"), "unet": ("conv_down1", "conv_up3", "conv_last")}
        for model, names in some.items():
            training = Training(SMALL[model], Switches())
            timer = LayerTimer(training.model)
            training.after_backward = timer.end
            begun = time.perf_counter()
            training.step()
            elapsed = time.perf_counter() - begun
            seconds = timer.per_step(1)
            self.assertEqual(set(names) - set(seconds), set())
            self.assertNotIn("blocks.0.attn", seconds)
            for name, (forward, backward) in seconds.items():
                self.assertGreater(forward, 0, name)
                self.assertGreater(backward, 0, name)
            self.assertLess(sum(sum(pair) for pair in seconds.values()), elapsed)


class WeightsOfARun(unittest.TestCase):
    """`welkin train`, `ckpt export`, `predict`: the peer takes the weights as they are and predicts the same."""

    def welkin(self, *words):
        done = subprocess.run([BINARY, *map(str, words)], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)

    def check(self, name, model):
        with tempfile.TemporaryDirectory() as kept:
            folder = pathlib.Path(kept)
            (folder / "run.yaml").write_text(RUNS[name])
            self.welkin("train", "--yaml_config", folder / "run.yaml", "--config", "run", "--log_root", folder / "logs", "--threads", "1", "--device", "cpu")
            run = folder / "logs/run/1GPU/00"
            self.welkin("ckpt", "export", run / "checkpoints/step_2", folder / "weights.pt", "--format", "pt")
            self.welkin("predict", run, "--checkpoint", "newest", "--samples", "2", "--output", folder / "out")
            weights = torch.load(folder / "weights.pt", weights_only=True)
            self.assertEqual(list(model.state_dict()), list(weights))
            model.load_state_dict(weights, strict=True)
            with h5py.File(next((folder / "out").rglob("*.h5"))) as file, torch.no_grad():
                given, wanted = (torch.from_numpy(file[key][...]) for key in ("input", "prediction"))
            got = model(given).detach()
        self.assertLess(((got - wanted).norm() / wanted.norm()).item(), 256 * ROUNDOFF["fp32"])

    def test_vit(self):
        self.check("vit", Vit((16, 32), 8, 3, 2, 16, 2, 2))

    def test_unet(self):
        self.check("unet", Unet3d(4, 5, 4, 3))


if __name__ == "__main__":
    unittest.main()
