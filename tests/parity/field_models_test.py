# SPDX-License-Identifier: Apache-2.0
"""`welkin verify` on models of fields that field_models.py computes in float64: outputs, losses, gradients of the input and of every weight, some
steps. And `welkin plan estimate` against torch's counts of parameters and FLOPs."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from case_writer import sum_bound, write_safetensors
from field_models import build, relative_l2

BINARY = os.environ["WELKIN_BINARY"]
AFNO = {"model": "afno", "embed_dim": 16, "depth": 2, "num_blocks": 4, "patch_size": 2, "mlp_ratio": 2.0, "sparsity_threshold": 0.01}
SFNO = {"model": "sfno", "embed_dim": 8, "depth": 3, "scale_factor": 2, "mlp_ratio": 2.0, "model_grid_type": "equiangular"}
SWIN = {"model": "swin", "embed_dim": 16, "depth": 2, "num_heads": 4, "patch_size": 2, "mlp_ratio": 2.0, "window_size": [2, 4]}
UNET = {"model": "unet2d", "width": 4, "scales": 2}
CASES = {
    "afno": ((3, 2), (8, 12), AFNO),
    "afno_of_odd_grids": ((2, 2), (10, 14), AFNO | {"depth": 1, "num_blocks": 2}),
    "afno_taller_than_wide": ((2, 3), (16, 6), AFNO | {"sparsity_threshold": 0.0}),
    "sfno": ((3, 2), (12, 24), SFNO),
    "sfno_gaussian": ((2, 3), (8, 14), SFNO | {"model_grid_type": "legendre-gauss", "depth": 2}),
    "swin": ((3, 2), (8, 16), SWIN),
    "swin_of_one_band": ((2, 2), (6, 24), SWIN | {"window_size": [3, 3], "depth": 3}),
    "swin_of_windows_around_the_globe": ((2, 2), (12, 8), SWIN | {"window_size": [3, 4]}),
    "unet2d": ((3, 2), (8, 16), UNET),
    "unet2d_of_three_scales": ((2, 3), (16, 24), UNET | {"scales": 3, "width": 2}),
    "sfno_of_one_block": ((2, 2), (6, 12), SFNO | {"depth": 1, "scale_factor": 1}),
}


def spread_weights(model, generator):
    """Larger than initial ones, so that every branch shows."""
    for name, weight in model.named_parameters():
        fan = weight[0].numel() if weight.dim() > 1 else 1
        values = torch.randn(weight.shape, generator=generator, dtype=torch.float64) * (0.3 if weight.dim() == 1 else (1 / fan) ** 0.5)
        is_norm = "norm" in name and name.endswith("weight")
        with torch.no_grad():
            weight.copy_((values + (1.0 if is_norm else 0.0)).float())


def zero_gradients(model):
    """A bias in front of an instance norm moves all points of a channel alike, which the norm takes away again; one of a key all logits of a row."""
    noise = {name: [0, weight.numel()] for name, weight in model.named_parameters() if name.endswith("mlp.fwd.2.bias")}
    keys = {name: [weight.numel() // 3, 2 * weight.numel() // 3] for name, weight in model.named_parameters() if name.endswith("attn.qkv.bias")}
    return noise | keys


def write_case(folder, channels, grid, keys, batch=2, steps=3):
    folder.mkdir(parents=True)
    generator = torch.Generator().manual_seed(3)
    model = build(channels, grid, keys).double()
    spread_weights(model, generator)
    x, target = (torch.randn(batch, count, *grid, generator=generator, dtype=torch.float64).float().double() for count in channels)
    weights = {name: weight.detach().float().numpy() for name, weight in model.named_parameters()}
    x.requires_grad_()
    output = model(x)
    loss = relative_l2(output, target)
    loss.backward()
    single = lambda tensor: tensor.detach().float().numpy()
    outputs = {"output": single(output), "loss": single(loss.reshape(1)), "loss_f64": loss.detach().reshape(1).numpy()}
    grads = {name: single(weight.grad) for name, weight in model.named_parameters()} | {"input": single(x.grad)}
    optimizer, losses = {"name": "SGD", "lr": 0.05, "momentum": 0.9}, []
    sgd = torch.optim.SGD(model.parameters(), lr=optimizer["lr"], momentum=optimizer["momentum"])
    for _ in range(steps + 1):
        sgd.zero_grad()
        step_loss = relative_l2(model(x), target)
        losses.append(step_loss.item())
        step_loss.backward()
        if len(losses) <= steps:
            sgd.step()
    trajectory = {"final." + name: single(weight) for name, weight in model.named_parameters()} | {"loss": np.array(losses)}
    length = int(np.prod(grid)) * max(channels[0], keys.get("embed_dim", 1))
    bound = 2 * sum_bound(length)
    meta = {"kind": "model", "model": {"constructor": keys}, "batch": batch, "input_shape": list(x.shape), "target_shape": list(target.shape),
            "dtype": "float32", "optimizer": optimizer, "loss": "l2_loss", "parameters": sum(w.size for w in weights.values()),
            "recommended_tolerance": {"forward": {"rel_l2": bound, "max_over_max": 6 * bound}, "loss": {"rel": 2e-6},
                                      "gradients": {"rel_l2": bound, "max_over_max": 6 * bound},
                                      "trajectory": {"loss_rel": 1e-5, "weights_rel_l2": 1e-4}}}
    if noise := zero_gradients(model):
        meta["noise_only_params"] = {"ranges": noise}
    files = {"weights": weights, "inputs": {"input": single(x), "target": single(target)}, "outputs": outputs, "grads": grads, "trajectory": trajectory}
    for stem, tensors in files.items():
        write_safetensors(folder / f"{stem}.safetensors", tensors)
    meta["files"] = {stem: {name: {"shape": list(v.shape), "dtype": str(v.dtype)} for name, v in files[stem].items()} for stem in ("outputs", "grads", "trajectory")}
    (folder / "meta.json").write_text(json.dumps(meta))
    return model


def welkin(*words):
    done = subprocess.run([BINARY, *map(str, words)], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise AssertionError(done.stderr + done.stdout[-3000:])
    return done.stdout


class FieldModels(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory(prefix="welkin-field-models-")
        self.addCleanup(kept.cleanup)
        self.root = pathlib.Path(kept.name)

    def test_values_and_gradients(self):
        for name, (channels, grid, keys) in CASES.items():
            with self.subTest(name):
                model = write_case(self.root / name, channels, grid, keys)
                report = json.loads(welkin("verify", "--case", self.root / name, "--json", "-"))
                rows = {(row["part"], row["tensor"]): row for row in report["cases"][0]["rows"]}
                self.assertTrue(report["passed"])
                tensors = {tensor for _, tensor in rows}
                for parameter in ["output", "input", "loss", *dict(model.named_parameters())]:
                    self.assertIn(parameter, tensors)
                noise = zero_gradients(model)
                worst = max(row["rel_l2"] for (part, tensor), row in rows.items()
                            if part in ("forward", "gradient") and tensor not in noise and row["rel_l2"] is not None)
                self.assertLess(worst, 1e-5, "what two computations in float32 and float64 may differ by")

    def test_estimates_are_torchs_counts(self):
        """Parameters, FLOPs of a forward pass and of a training step of one sample; torch counts what we count, matmuls and convolutions."""
        for name, (channels, grid, keys) in CASES.items():
            with self.subTest(name):
                run = keys | {"img_size": list(grid), "n_in_channels": channels[0], "n_out_channels": channels[1], "data_loader_config": "synthetic",
                              "limit_nsamples": 4, "limit_nsamples_val": 2, "global_batch_size": 2, "num_iters": 2}
                (self.root / "run.yaml").write_text("run:\n" + "".join(f"  {key}: {value}\n" for key, value in run.items()))
                work = json.loads(welkin("plan", "estimate", "--yaml_config", self.root / "run.yaml", "--config", "run", "--device", "cpu", "--json", "-"))["work"]
                model = build(channels, grid, keys)
                spread_weights(model, torch.Generator().manual_seed(1))
                self.assertEqual(round(work["parameters"]["value"] * 1e6), sum(weight.numel() for weight in model.parameters()))
                with FlopCounterMode(display=False) as forward:
                    output = model(torch.zeros(1, channels[0], *grid))
                with FlopCounterMode(display=False) as backward:
                    output.sum().backward()
                counts = {"forward pass of a sample": forward.get_total_flops(),
                          "training step of a sample": forward.get_total_flops() + backward.get_total_flops()}
                for figure, count in counts.items():
                    self.assertEqual(round(work[figure]["value"] * 1e9), count, figure)

    def test_an_error_is_seen(self):
        write_case(self.root / "wrong", *CASES["afno"])
        meta = json.loads((self.root / "wrong/meta.json").read_text())
        meta["model"]["constructor"]["sparsity_threshold"] = 0.02
        (self.root / "wrong/meta.json").write_text(json.dumps(meta))
        done = subprocess.run([BINARY, "verify", "--case", self.root / "wrong"], capture_output=True, text=True, timeout=300)
        self.assertNotEqual(done.returncode, 0)


if __name__ == "__main__":
    unittest.main()
