# SPDX-License-Identifier: Apache-2.0
"""Every optimizer against another implementation in float64: torch.optim where it has one, else the paper's equations in numpy.

Several parameters, a rate for each step, weight decay that spares some, gradients that are scaled as clipping does it, a skipped step.
"""
import json
import math
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import numpy as np

from case_writer import write_safetensors

try:
    import torch
except ImportError:
    torch = None

BINARY = os.environ["WELKIN_BINARY"]
RATES, SKIPPED, SCALE = [0.01, 0.02, 0.015, 0.01, 0.005, 0.02], [2], 0.5
SHAPES = {"body.weight": (24, 40), "tall.weight": (56, 8), "kernel.weight": (6, 5, 3, 3), "large.weight": (80, 64), "norm.weight": (24,), "norm.bias": (24,)}
DECAYS = {name: name.endswith(".weight") and len(shape) > 1 for name, shape in SHAPES.items()}
LENGTH = max(math.prod(shape) for shape in SHAPES.values())


def inputs():
    random = np.random.default_rng(7)
    start = {name: (0.3 * random.normal(size=shape)).astype(np.float32) for name, shape in SHAPES.items()}
    start["norm.bias"][:] = 0  # a norm of zero
    return start, {name: random.normal(size=(len(RATES), *shape)).astype(np.float32) for name, shape in SHAPES.items()}


def steps(grads, name):
    """(t from 1, rate, gradient in float64) of the steps that count."""
    taken = [i for i in range(len(RATES)) if i not in SKIPPED]
    return [(t, RATES[i], SCALE * grads[name][i].astype(np.float64)) for t, i in enumerate(taken, 1)]


def adamw(p, grads, name, keys):
    """Loshchilov and Hutter, arXiv:1711.05101, algorithm 2."""
    (b1, b2), eps, decay, m, v = keys["betas"], keys["eps"], keys["weight_decay"] * DECAYS[name], 0, 0
    for t, rate, g in steps(grads, name):
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        p = p - rate * (m / (1 - b1 ** t) / (np.sqrt(v / (1 - b2 ** t)) + eps) + decay * p)
    return p


def lion(p, grads, name, keys):
    """Chen et al., arXiv:2302.06675, algorithm 2."""
    (b1, b2), decay, m = keys["betas"], keys["weight_decay"] * DECAYS[name], 0
    for _, rate, g in steps(grads, name):
        p = p - rate * (np.sign(b1 * m + (1 - b1) * g) + decay * p)
        m = b2 * m + (1 - b2) * g
    return p


def lamb(p, grads, name, keys):
    """You et al., arXiv:1904.00962, algorithm 2 with phi(x) = x; no scaling of biases and norms, as the authors' code has it."""
    (b1, b2), eps, decay, m, v = keys["betas"], keys["eps"], keys["weight_decay"] * DECAYS[name], 0, 0
    for t, rate, g in steps(grads, name):
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        update = m / (1 - b1 ** t) / (np.sqrt(v / (1 - b2 ** t)) + eps) + decay * p
        of_p, of_update = np.linalg.norm(p), np.linalg.norm(update)
        ratio = of_p / of_update if DECAYS[name] and of_p > 0 and of_update > 0 else 1
        p = p - rate * (np.clip(ratio, keys.get("lamb_min_ratio", 0), keys.get("lamb_max_ratio", np.inf)) if DECAYS[name] else ratio) * update
    return p


def lars(p, grads, name, keys):
    """You et al., arXiv:1708.03888, algorithm 1; biases and norms take the rate as it is, without decay."""
    decay, velocity = keys["weight_decay"] * DECAYS[name], 0
    for _, rate, g in steps(grads, name):
        of_p, of_g = np.linalg.norm(p), np.linalg.norm(g)
        local = keys["trust_coefficient"] * of_p / (of_g + keys["weight_decay"] * of_p) if DECAYS[name] and of_p > 0 and of_g > 0 else 1
        velocity = keys["momentum"] * velocity + rate * local * (g + decay * p)
        p = p - velocity
    return p


def by_torch(p, grads, name, make, matrix):
    """`make` gives an optimizer of torch.optim for a parameter; more than two dims are a matrix of the first."""
    shape = p.shape
    value = torch.nn.Parameter(torch.from_numpy(p.reshape(shape[0], -1) if matrix and p.ndim > 1 else p).clone())
    optimizer = make(value)
    for _, rate, g in steps(grads, name):
        for group in optimizer.param_groups:
            group["lr"] = rate
        value.grad = torch.from_numpy(g).reshape(value.shape)
        optimizer.step()
    return value.detach().numpy().reshape(shape)


def adafactor(p, grads, name, keys):
    if not keys["adafactor_factored"]:  # torch factors whatever has two dims
        shape, flat = p.shape, {name: grads[name].reshape(len(RATES), -1)}
        return adafactor(p.reshape(-1), flat, name, keys | {"adafactor_factored": True}).reshape(shape)
    decay = keys["weight_decay"] * DECAYS[name]
    return by_torch(p, grads, name, lambda value: torch.optim.Adafactor(
        [value], beta2_decay=keys["adafactor_decay"], eps=(keys["eps"], keys["adafactor_min_scale"]), d=keys["adafactor_clip"], weight_decay=decay), matrix=True)


def muon(p, grads, name, keys):
    if not DECAYS[name] or name.startswith("tall"):
        return adamw(p, grads, name, keys)
    return by_torch(p, grads, name, lambda value: torch.optim.Muon(
        [value], weight_decay=keys["weight_decay"], momentum=keys["momentum"], nesterov=keys["muon_nesterov"], ns_steps=keys["muon_steps"],
        adjust_lr_fn=keys["muon_scale"]), matrix=True)


class OptimizerCases(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="welkin-optimizers-"))
        self.addCleanup(shutil.rmtree, self.root)

    def check(self, update, *configs):
        start, grads = inputs()
        tensors = {f"start.{name}": value for name, value in start.items()} | {f"grads.{name}": value for name, value in grads.items()}
        for k, keys in enumerate(configs):
            keys |= {"rates": RATES, "skipped": SKIPPED, "gradient_scale": SCALE, "reduction_length": keys.get("reduction_length", LENGTH)}
            tensors |= {f"opt{k}.{name}": update(value.astype(np.float64), grads, name, keys) for name, value in start.items()}
        write_safetensors(self.root / "data.safetensors", tensors)
        meta = {"kind": "optimizer", "parameters": [{"name": name, "decays": decays} for name, decays in DECAYS.items()], "configs": configs}
        (self.root / "meta.json").write_text(json.dumps(meta))
        done = subprocess.run([BINARY, "verify", "--case", self.root, "--json", "-"], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout[-3000:])
        rows = json.loads(done.stdout)["cases"][0]["rows"]
        self.assertEqual(sum(row["verdict"] == "pass" for row in rows), 2 * len(SHAPES) * len(configs))

    def test_adamw(self):
        self.check(adamw, {"name": "AdamW", "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1})

    def test_lion(self):
        self.check(lion, {"name": "Lion", "betas": [0.9, 0.99], "weight_decay": 0.1})

    def test_lamb(self):
        self.check(lamb, {"name": "LAMB", "betas": [0.9, 0.999], "eps": 1e-6, "weight_decay": 0.1}, {"name": "LAMB", "betas": [0.8, 0.9], "eps": 1e-6, "weight_decay": 0},
                   {"name": "LAMB", "betas": [0.9, 0.999], "eps": 1e-6, "weight_decay": 0.1, "lamb_min_ratio": 0.9, "lamb_max_ratio": 1.1})

    def test_lars(self):
        self.check(lars, {"name": "LARS", "momentum": 0.9, "trust_coefficient": 0.02, "weight_decay": 0.05})

    @unittest.skipIf(torch is None, "no torch in this Python")
    def test_adafactor(self):
        keys = {"name": "Adafactor", "eps": 2.0 ** -23, "adafactor_decay": -0.8, "adafactor_clip": 1.0, "adafactor_min_scale": 1e-3, "weight_decay": 0.1}
        self.check(adafactor, keys | {"adafactor_factored": True}, keys | {"adafactor_factored": False},
                   keys | {"adafactor_factored": True, "adafactor_min_scale": 0.5, "weight_decay": 0})

    @unittest.skipIf(torch is None, "no torch in this Python")
    def test_muon(self):
        # torch's iteration is in bfloat16; in the type of the gradient it is the same rule.
        self.addCleanup(setattr, torch.Tensor, "bfloat16", torch.Tensor.bfloat16)
        torch.Tensor.bfloat16 = lambda tensor: tensor.clone()
        # Five steps of the iteration multiply what is small, roundings too, by up to 3.4445 each: 3.4445^5 of an update that is a
        # hundredth of the weights.
        keys = {"name": "Muon", "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.1, "momentum": 0.95, "muon_steps": 5, "muon_nesterov": True,
                "muon_scale": "match_rms_adamw", "muon_except": ["tall*"]}
        self.check(muon, dict(keys), keys | {"muon_scale": "original", "muon_nesterov": False, "muon_steps": 3, "momentum": 0.8})


if __name__ == "__main__":
    unittest.main()
