#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that PyTorch itself writes, read by `welkin ckpt`: element types, views, layouts of state dicts, wrappers' prefixes, the legacy
format; and files that are made to do harm."""
import argparse
import collections
import os
import pathlib
import sys
import unittest
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import numpy as np  # noqa: E402
import torch  # noqa: E402
from interchange_case import InterchangeCase, stored, welkin  # noqa: E402

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]


def views():
    base = torch.arange(24.0)
    tied = torch.rand(3, 2, generator=torch.Generator().manual_seed(1))
    return {"transposed": base.view(4, 6).t(), "offset": base[5:9], "every_third": base[1::3], "permuted": base.view(2, 3, 4).permute(2, 0, 1),
            "empty": torch.zeros(0, 3), "scalar": torch.tensor(2.5), "expanded": torch.tensor([1.0, 2.0]).expand(3, 2), "tied.a": tied, "tied.b": tied,
            "channels_last": torch.arange(120.0).view(2, 3, 4, 5).to(memory_format=torch.channels_last), "parameter": torch.nn.Parameter(torch.ones(2))}


class Harm:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


class Formats(InterchangeCase):
    def imported(self, value, *flags, legacy=False, name="file.pt"):
        path = self.folder / name
        torch.save(value, path, _use_new_zipfile_serialization=not legacy)
        out = self.folder / "out"
        if out.exists():
            welkin("ckpt", "verify", out)
            for file in out.iterdir():
                file.unlink()
            out.rmdir()
        self.said = welkin("ckpt", "import", path, out, *flags)
        return stored(out)

    def refused(self, value, code=3, name="bad.pt"):
        path = self.folder / name
        if isinstance(value, bytes):
            path.write_bytes(value)
        else:
            torch.save(value, path)
        out = self.folder / "out"
        said = welkin("ckpt", "import", path, out, code=code)
        self.assertFalse(out.exists())
        return said

    def test_every_element_type(self):
        wanted = {str(dtype): (torch.arange(6).view(2, 3) % 2 if dtype == torch.bool else torch.arange(6).view(2, 3) - 2).to(dtype) for dtype in DTYPES}
        for legacy in (False, True):
            self.assert_same_bits(self.imported(wanted, "--as_stored", legacy=legacy), wanted)
        floats = {name: value.float() if value.is_floating_point() else value for name, value in wanted.items()}
        self.assert_same_bits(self.imported(wanted), floats)

    def test_views_shared_and_empty_storages(self):
        wanted = {name: value.detach().contiguous() for name, value in views().items()}
        for legacy in (False, True):
            self.assert_same_bits(self.imported(views(), legacy=legacy), wanted)

    def test_rounding_of_float64_is_said(self):
        self.imported({"pi": torch.tensor([np.pi], dtype=torch.float64)})
        self.assertIn("note: rounded from float64 to float32: pi", self.said)

    def test_layouts_and_prefixes(self):
        weights = collections.OrderedDict([("blocks.0.w", torch.randn(2, 3)), ("blocks.1.w", torch.randn(3))])
        ddp = {f"module.{name}": value for name, value in weights.items()}
        compiled = {f"_orig_mod.{name}": value for name, value in weights.items()}
        inner = {name.replace("blocks.", "blocks._orig_mod."): value for name, value in weights.items()}
        both = {f"module._orig_mod.{name}": value for name, value in weights.items()}
        for value in (weights, ddp, compiled, inner, both, {"model_state": ddp, "epoch": 3}, {"state_dict": weights, "loss": np.float64(0.5)},
                      {"model": both, "iters": 9, "args": None}, {"something": weights, "version": "x"}, {"a": ddp, "b": compiled}):
            flags = ["--key", "b"] if "a" in value else []
            self.assert_same_bits(self.imported(value, *flags, name="file.tar"), dict(weights))

    def test_what_is_beside_the_weights_is_listed(self):
        self.imported({"model": {"w": torch.ones(1)}, "iters": 9, "epoch": 2, "loss": np.float32(0.5), "name": "mine"})
        listing = welkin("ckpt", "inspect", self.folder / "file.pt")
        for line in ("format  torch\n", "iters: 9", "loss: 0.5", "name: mine"):
            self.assertIn(line, listing)
        self.assertIn("iteration: 9", welkin("ckpt", "inspect", self.folder / "out"))

    def test_an_optimizer_that_does_not_match_is_left_out_and_said(self):
        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.Adam([model.weight], amsgrad=True)
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        self.imported({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
        self.assertIn("note: the optimizer's state is left out: ", self.said)
        self.assertIn("0 of the optimizer", self.said)

    def test_weights_from_torch_without_names_of_parameters(self):
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, betas=(0.8, 0.9))
        model(torch.ones(1, 3)).sum().backward()
        optimizer.step()
        self.imported({"model_state": model.state_dict(), "optimizer_state_dict": optimizer.state_dict()})
        states = stored(self.folder / "out", "optimizer.safetensors")
        for index, (name, _) in enumerate(model.named_parameters()):
            self.assertTrue(torch.equal(states[f"optimizer.exp_avg.{name}"], optimizer.state_dict()["state"][index]["exp_avg"]), name)
        self.assertEqual(states["optimizer.steps"].item(), 1)
        path = self.folder / "again.pt"
        welkin("ckpt", "export", self.folder / "out", path, "--format", "pt", "--optimizer")
        group = torch.load(path, weights_only=True)["optimizer_state_dict"]["param_groups"][0]
        self.assertEqual((group["lr"], group["betas"], group["decoupled_weight_decay"]), (0.01, (0.8, 0.9), True))

    def test_harm_is_refused_and_not_done(self):
        witness = self.folder / "witness"
        for legacy in (False, True):
            torch.save({"w": torch.ones(1), "x": Harm(witness)}, self.folder / "bad.pt", _use_new_zipfile_serialization=not legacy)
            said = welkin("ckpt", "import", self.folder / "bad.pt", self.folder / "out", code=3)
            self.assertIn("the file calls something that is not allowed: name=posix.system", said)
            self.assertIn("Nothing of it was run", said)
            self.assertFalse(witness.exists() or (self.folder / "out").exists())

    def test_other_objects_are_refused(self):
        self.assertIn("name=argparse.Namespace", self.refused({"w": torch.ones(1), "args": argparse.Namespace(a=1)}))
        self.assertIn("name=torch.nn.modules.linear.Linear", self.refused(torch.nn.Linear(1, 1)))
        self.assertIn("name=torch.ComplexFloatStorage", self.refused({"w": torch.ones(1, dtype=torch.complex64)}))
        self.assertIn("_rebuild_sparse_tensor", self.refused({"w": torch.eye(2).to_sparse()}))
        self.assertIn("it holds no dictionary", self.refused([torch.ones(1)], code=5))
        self.assertIn("it holds no state dict", self.refused({"epoch": 3}, code=5))
        self.assertIn("it holds several state dicts: a, b", self.refused({"a": {"w": torch.ones(1)}, "b": {"w": torch.ones(1)}}, code=5))

    def test_cut_and_repacked_files_are_refused(self):
        good = self.folder / "good.pt"
        torch.save({"w": torch.arange(1000.0)}, good)
        self.assertIn("cut short", self.refused(good.read_bytes()[:-100]))
        repacked = self.folder / "bad.pt"
        with zipfile.ZipFile(good) as source, zipfile.ZipFile(repacked, "w", zipfile.ZIP_DEFLATED) as target:
            for entry in source.namelist():
                target.writestr(entry, source.read(entry))
        self.assertIn("an entry is compressed", self.refused(repacked.read_bytes()))
        with zipfile.ZipFile(good) as source, zipfile.ZipFile(repacked, "w") as target:
            for entry in source.namelist():
                target.writestr(entry, b"big" if entry.endswith("byteorder") else source.read(entry))
        self.assertIn("big endian", self.refused(repacked.read_bytes()))


if __name__ == "__main__":
    unittest.main()
