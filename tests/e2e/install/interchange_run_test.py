#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A run of welkin goes on in PyTorch, and the other way round: weights bit for bit, the next optimizer step within float32's rounding."""
import json
import pathlib
import sys
import tempfile
import unittest
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import safetensors  # noqa: E402
import torch  # noqa: E402
from interchange_case import InterchangeCase, module_of, stored, train, welkin  # noqa: E402

OPTIMIZERS = {"Adam": (torch.optim.Adam, []), "AdamW": (torch.optim.AdamW, ["--set", "weight_decay=0.1"]),
              "SGD": (torch.optim.SGD, [])}
# One step of float32: rounding of the update and of the gradient that is recovered from two averages.
TOLERANCE = 2e-6


def gradients(optimizer, before, after):
    """What the step between two checkpoints has seen, from the optimizer's averages."""
    found = {}
    for name, value in after.items():
        kind, _, parameter = name.removeprefix("optimizer.").partition(".")
        if kind == "exp_avg":
            found[parameter] = (value.double() - 0.9 * before[name].double()) / 0.1
        if kind == "momentum":
            found[parameter] = value.double() - 0.9 * before[name].double()
    return found


def resumed_in_torch(path, kind):
    """Model and optimizer of PyTorch as an exported file says."""
    saved = torch.load(path, weights_only=True)
    model = module_of(saved["model_state"])
    model.load_state_dict(saved["model_state"], strict=True)
    groups = [{"params": [dict(model.named_parameters())[name] for name in group["param_names"]]}
              for group in saved["optimizer_state_dict"]["param_groups"]]
    optimizer = OPTIMIZERS[kind][0](groups, lr=0.5)  # overwritten by what is loaded
    optimizer.load_state_dict(saved["optimizer_state_dict"])
    return saved, model, optimizer


class Run(InterchangeCase):
    def assert_close(self, got, wanted):
        self.assertEqual(sorted(got), sorted(wanted))
        for name in wanted:
            error = (got[name] - wanted[name]).abs().max().item()
            self.assertLessEqual(error, TOLERANCE * max(1.0, wanted[name].abs().max().item()), name)

    def expect_the_same_training(self, kind):
        flags = ["--set", f"optimizer={kind}", "--set", "betas=[0.9, 0.95]", *OPTIMIZERS[kind][1]]
        steps = train(self.folder, self.folder / "logs", *flags) / "checkpoints"
        exported = self.folder / "five.pt"
        welkin("ckpt", "export", steps / "step_5", exported, "--format", "pt", "--optimizer")
        saved, model, optimizer = resumed_in_torch(exported, kind)
        self.assertEqual((saved["iters"], saved["epoch"]), (5, 1))
        seen = gradients(kind, stored(steps / "step_5", "optimizer.safetensors"), stored(steps / "step_6", "optimizer.safetensors"))
        for name, parameter in model.named_parameters():
            parameter.grad = seen[name].float()
        optimizer.step()
        self.assert_close(dict(model.state_dict()), stored(steps / "step_6"))

        # PyTorch's step 6 goes back, and welkin takes step 7.
        back = self.folder / "six.pt"
        torch.save({"model_state": model.state_dict(), "optimizer_state_dict": optimizer.state_dict(), "iters": 6, "epoch": 1}, back)
        root = self.folder / "back"
        out = welkin("ckpt", "import", back, root / "run/1GPU/00", "--run", "--yaml_config", self.folder / "run.yaml", "--config", "run",
                     "--log_root", root, *flags)
        self.assertIn("of the optimizer, step 6", out)
        resumed = train(self.folder, root, *flags, "--resume") / "checkpoints"
        self.assert_close(stored(resumed / "step_7"), stored(steps / "step_7"))
        self.assertFalse((resumed / "step_5").exists())

    def test_adam(self):
        self.expect_the_same_training("Adam")

    def test_adamw_with_two_groups(self):
        self.expect_the_same_training("AdamW")

    def test_sgd(self):
        self.expect_the_same_training("SGD")


class Weights(InterchangeCase):
    @classmethod
    def setUpClass(cls):
        cls.keep = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.keep.cleanup)
        cls.shared = pathlib.Path(cls.keep.name)
        cls.run_folder = train(cls.shared, cls.shared / "logs")
        cls.newest = cls.run_folder / "checkpoints/step_7"

    def export(self, name, *flags):
        path = self.folder / name
        welkin("ckpt", "export", self.newest, path, *flags)
        return path

    def test_there_and_back_bit_for_bit(self):
        first = self.export("first.pt", "--format", "pt")
        weights = torch.load(first, weights_only=True)
        model = module_of(weights)
        model.load_state_dict(weights, strict=True)
        self.assertEqual(list(weights), json.loads((self.newest / "index.json").read_text())["parameters"])
        self.assert_same_bits(weights, stored(self.newest))
        self.assertEqual(list(torch.load(first, weights_only=True, mmap=True)), list(weights))
        second = self.folder / "second.pt"
        torch.save(model.state_dict(), second)
        welkin("ckpt", "import", second, self.folder / "back")
        self.assertIn("with equal bits, 0 different", welkin("ckpt", "diff", self.newest, self.folder / "back"))
        again = self.folder / "again.pt"
        welkin("ckpt", "export", self.folder / "back", again, "--format", "pt")
        self.assert_same_bits(torch.load(again, weights_only=True), weights)

    def test_the_name_says_the_format(self):
        self.assert_same_bits(stored(self.folder, self.export("weights.safetensors").name), stored(self.newest))
        for ending in ("pt", "pth", "ckpt"):
            self.assert_same_bits(torch.load(self.export(f"weights.{ending}"), weights_only=True), stored(self.newest))
        text = welkin("ckpt", "export", self.newest, self.folder / "weights.bin", code=2)
        self.assertIn("the name of the file says no format: out=", text)
        self.assertIn("Name it .pt or .safetensors, or give --format", text)

    def test_configuration_and_normalization_go_along(self):
        with safetensors.safe_open(self.export("weights.safetensors"), framework="pt") as file:
            metadata = file.metadata()
        with zipfile.ZipFile(self.export("weights.pt")) as archive:
            extra = {name.rpartition("/extra/")[2]: archive.read(name).decode() for name in archive.namelist() if "/extra/" in name}
        self.assertEqual(extra, {"config.yaml": metadata["welkin.config"], "normalization.json": metadata["welkin.normalization"]})
        self.assertIn("embed_dim", extra["config.yaml"])
        sides = json.loads(extra["normalization.json"])
        for side in ("input", "target"):
            self.assertEqual(sorted(sides[side]), ["channels", "clip", "log1p", "log1p_eps", "mean", "offset", "scale", "std", "transform", "units"])
            self.assertIn(len(sides[side]["mean"]), (0, len(sides[side]["channels"])))  # synthetic fields are normalised already

    def test_safetensors_there_and_back(self):
        path = self.export("weights.safetensors", "--format", "safetensors")
        self.assert_same_bits(stored(self.folder, "weights.safetensors"), stored(self.newest))
        welkin("ckpt", "import", path, self.folder / "back")
        welkin("ckpt", "diff", self.newest, self.folder / "back")
        both = self.export("both.safetensors", "--format", "safetensors", "--optimizer")
        welkin("ckpt", "diff", self.newest, both)

    def test_low_precision(self):
        for flag, dtype in (("bf16", torch.bfloat16), ("fp16", torch.float16)):
            for name in (f"{flag}.pt", f"{flag}.safetensors"):
                path = self.export(name, "--format", name.partition(".")[2], "--dtype", flag)
                got = torch.load(path, weights_only=True) if name.endswith("pt") else stored(self.folder, name)
                self.assert_same_bits(got, {key: value.to(dtype) for key, value in stored(self.newest).items()})
                self.assertIn("F32 / ", welkin("ckpt", "diff", self.newest, path, code=1))

    def test_scores_of_a_file_are_those_of_the_run(self):
        path = self.export("weights.pt", "--format", "pt")
        scores = []
        for which in ("newest", path):
            welkin("evaluate", self.run_folder, "--checkpoint", which, "--json", self.folder / "scores.json")
            scores.append(json.loads((self.folder / "scores.json").read_text()))
        self.assertEqual(scores[0], scores[1])

    def test_a_run_begins_with_the_weights_of_a_file(self):
        path = self.export("weights.pt", "--format", "pt")
        run = train(self.folder, self.folder / "warm", "--init_from", path, "--num_iters", "1", "--set", "lr=1E-30", "--set", "warmup=0")
        begun, given = stored(run / "checkpoints/step_1"), stored(self.newest)
        for name in given:
            self.assertLess((begun[name] - given[name]).abs().max().item(), 1e-25, name)
        self.assertIn(f"Weights are those of {path} (torch)", (run / "out.log").read_text())

    def test_weights_of_another_model_are_refused(self):
        other = self.folder / "other.pt"
        torch.save({"head.weight": torch.zeros(2)}, other)
        out = welkin("evaluate", self.run_folder, "--checkpoint", other, code=5)
        self.assertIn("the weights are not those of this model", out)

    def test_weights_of_the_other_tutorials_attention_name_the_key(self):
        separate, joint = self.folder / "separate.pt", self.folder / "joint.pt"
        welkin("ckpt", "export", self.newest, separate, "--format", "pt")
        run = train(self.folder, self.folder / "joint", "--num_iters", "1", "--set", "qkv=joint")
        welkin("ckpt", "export", run, joint, "--format", "pt")
        for folder, path, projections in ((run, separate, "separate"), (self.run_folder, joint, "joint")):
            out = welkin("evaluate", folder, "--checkpoint", path, code=5)
            self.assertIn(f"The file has {projections} projections, those of qkv={projections}. Give the configuration", out)

    def test_inspect_verify_and_damage(self):
        listing = welkin("ckpt", "inspect", self.newest)
        for word in ("format  welkin", "iteration: 7", "optimizer: Adam", "optimizer.exp_avg.", "xxh3", "mesh: ", "configuration:", "kernels.attention: ", "kernels.gemm: "):
            self.assertIn(word, listing)
        self.assertEqual(welkin("ckpt", "verify", self.run_folder).count(": whole, "), 7)
        copy = self.folder / "copy"
        welkin("ckpt", "import", self.newest, copy)
        data = bytearray((copy / "model.safetensors").read_bytes())
        data[-1] ^= 1
        (copy / "model.safetensors").write_bytes(data)
        said = welkin("ckpt", "verify", copy, code=5)
        self.assertIn("DAMAGED: [checkpoint] a file is damaged", said)
        self.assertEqual(said.count(": whole"), 0, "a damaged one is not called whole, too")


if __name__ == "__main__":
    unittest.main()
