# SPDX-License-Identifier: Apache-2.0
"""`import welkin`: what is refused, each as an error of Welkin; statistics that a package needs; states that are no next input."""
import json
import shutil
import struct
import unittest
import warnings

import python_test
from python_test import BINARY, VIT, run

import numpy as np
import torch
import welkin
from tolerance import rounds_to


class Refusals(python_test.PythonCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trained = welkin.train(VIT, log_root=cls.root / "logs", progress=False)
        cls.model = cls.trained.load()

    def test_fields_of_other_channels_are_not_spread_over_all(self):
        one, three = torch.zeros(2, 1, 16, 32), torch.zeros(2, 3, 16, 32)
        for call, x in ((self.model.predict, one), (self.model.normalize, one), (self.model.denormalize, one), (self.model.predict, three[0]),
                        (self.model, three.to_sparse()), (self.model.normalize, three.to_sparse())):
            with self.assertRaisesRegex(welkin.ConfigError, r"\[python\] these are no fields of the model: shape=\(.*wanted=\(B, [32], 16, 32\)\. Give a dense"):
                call(x)
        for call in (self.model, self.model.predict):
            with self.assertRaisesRegex(welkin.ConfigError, r"these are no fields of the model: type=ndarray.*torch\.from_numpy"):
                call(three.numpy())

    def test_an_exported_file_takes_its_channels_alone(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the exporters' about themselves
            for ending in ("ts", "pt2"):
                welkin.export(self.model, self.root / f"model.{ending}")
        x = torch.zeros(2, 3, 16, 32)
        loaded = torch.jit.load(str(self.root / "model.ts"))
        self.assertEqual(tuple(loaded(x).shape), (2, 2, 16, 32))
        with self.assertRaises(RuntimeError):
            loaded(x[:, :1])
        with self.assertRaises(Exception):
            torch.export.load(str(self.root / "model.pt2")).module()(x[:, :1])

    def test_a_sample_that_there_is_not_is_an_index_error(self):
        data = self.model.dataset()
        size = len(data)
        for wanted in ([-size - 1], [-999], [size], [0, size]):
            with self.assertRaises(IndexError):
                data.read(wanted)
        with self.assertRaises(TypeError):
            data.read([0.5])
        self.assertTrue(torch.equal(data.read([-1])[0][0], data[size - 1][0]))
        self.assertTrue(torch.equal(data.read(np.array([1]))[0], data.read(torch.tensor([1]))[0]))
        self.assertEqual(data.location(-1), data.location(size - 1))

    def test_damaged_files_are_checkpoint_errors(self):
        place = self.root / "damaged"
        for index in ("{nope", "[]", '{"config": 3}', "[" * 100000):
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            (place / "index.json").write_text(index)
            with self.assertRaises(welkin.CheckpointError, msg=index[:20]):
                welkin.load(place)
        file = self.root / "damaged.safetensors"
        for content in (b"x", struct.pack("<Q", 5) + b"abcde", struct.pack("<Q", 2) + b"[]", struct.pack("<Q", 1 << 62), struct.pack("<Q", 2) + b"{}",
                        struct.pack("<Q", 19) + b'{"__metadata__": 1}', struct.pack("<Q", 3) + b"\xff\xff\xff"):
            file.write_bytes(content)
            with self.assertRaises(welkin.CheckpointError, msg=content):
                welkin.load(file)

    def test_a_place_that_cannot_be_written_is_a_config_error(self):
        with self.assertRaisesRegex(welkin.ConfigError, r"\[export\] the file cannot be written: path=/proc/x/m\.ts, reason="):
            welkin.export(self.model, "/proc/x/m.ts")

    def test_an_interrupt_in_the_last_step_is_one(self):
        def interrupt(event):
            if event["kind"] == "epoch" and event["step"] >= event["total_steps"]:
                raise KeyboardInterrupt

        with self.assertRaisesRegex(welkin.Interrupted, "interrupted in its last step: the run is complete") as caught:
            self.train(VIT, "last", callback=interrupt)
        self.assertTrue(caught.exception.run.completed)


class Statistics(python_test.PythonCase):
    """Simulated weather; the runs differ in how channels are transformed."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.fields = cls.root / "fields"
        words = ["--grid", "16x32", "--truncation", "10", "--years", "1", "--years_test", "1", "--steps", "8", "--spin_up_days", "1", "--quiet"]
        done = run(BINARY, "data", "simulate", "weather", "--out", cls.fields, *words)
        assert done.returncode == 0, done.stderr
        names = ["t2m", "u10m", "tcwv"]
        cls.config = {"model": "vit", "embed_dim": 16, "depth": 1, "num_heads": 2, "patch_size": 4, "img_size": [16, 32], "in_channels": names, "out_channels": names,
                      "global_batch_size": 2, "num_iters": 2, "lr": 1e-3, "device": "cpu", "threads": 1, "run_num": "00", "data_root": str(cls.fields),
                      "train_data_path": "/data/train", "valid_data_path": "/data/valid", "inf_data_path": "/data/test",
                      "global_means_path": "/data/stats/global_means.npy", "global_stds_path": "/data/stats/global_stds.npy"}

    def program(self, *words):
        done = run(BINARY, *words)
        return done.returncode, done.stdout, done.stderr

    def test_a_package_has_all_that_its_normalisation_needs(self):
        ranges = self.fields / "ranges"  # the simulation writes no lowest and highest values
        self.assertEqual(self.program("data", "stats", self.fields / "train", "--out", ranges)[0], 0)
        trained = self.train(self.config | {"normalization": ["tcwv=minmax", "t2m=standard"], "global_means_path": "/data/ranges/global_means.npy",
                                            "global_stds_path": "/data/ranges/global_stds.npy"}, "minmax")
        package = self.root / "minmax.welkin"
        code, _, said = self.program("ckpt", "package", trained.folder, package)
        self.assertEqual(code, 0, said)
        own, packed = trained.load(split="test"), welkin.load(package)
        x, _ = own.dataset(normalized=False).read([0])
        self.assertTrue(torch.equal(own.predict(x), packed.predict(x)))
        code, _, said = self.program("evaluate", package, "--split", "test", "--data_root", self.fields)
        self.assertEqual(code, 0, said)
        for ending in ("safetensors", "pt"):
            code, _, said = self.program("ckpt", "export", package, self.root / f"packed.{ending}")
            self.assertEqual((code, said), (0, ""))
        header = (self.root / "packed.safetensors").read_bytes()
        metadata = json.loads(header[8:8 + struct.unpack("<Q", header[:8])[0]])["__metadata__"]
        self.assertEqual(json.loads(metadata["welkin.normalization"])["input"]["channels"], self.config["in_channels"])

    def test_a_deviation_of_nothing_is_a_damaged_package(self):
        trained = self.train(self.config, "plain")
        package = self.root / "plain.welkin"
        self.assertEqual(self.program("ckpt", "package", trained.folder, package)[0], 0)
        facts = json.loads((package / "package.json").read_text())
        facts["spec"]["input_std"] = [0.0, 1.0, 1.0]
        (package / "package.json").write_text(json.dumps(facts))
        with self.assertRaisesRegex(welkin.DataError, "the specification of the data is damaged.*input: a deviation that is not positive"):
            welkin.load(package)

    def test_a_prediction_that_is_no_next_input_is_refused(self):
        trained = self.train(self.config | {"log_channels_in": [2]}, "logs")
        about = "channel=tcwv, logarithm of the input (log_channels_in)=ln(1 + x / 1), of the target (log_channels_out)=none"
        for words in (("evaluate", trained.folder, "--rollout_steps", "2", "--split", "test"),
                      ("predict", trained.folder, "--rollout_steps", "2", "--split", "test", "--output", self.root / "p"),
                      ("forecast", trained.folder, "--steps", "2", "--split", "test", "--output", self.root / "f.nc")):
            code, _, said = self.program(*words)
            self.assertEqual(code, 2, said)
            self.assertIn(about, said)
        self.assertEqual(self.program("forecast", trained.folder, "--steps", "1", "--split", "test", "--output", self.root / "f.nc")[0], 0)
        for setting in ({"multistep": 2}, {"residual": True}, {"replay_buffer": 2}):
            with self.assertRaises(welkin.ConfigError) as caught:
                self.train(self.config | {"log_channels_in": [2]} | setting, "refused")
            self.assertIn(about, str(caught.exception))
        self.assertFalse((self.root / "refused").exists(), "nothing is written before")
        self.train(self.config | {"log_channels_in": [2], "residual": True, "residual_except": ["tcwv"]}, "excepted")

    def test_persistence_is_that_of_the_files(self):
        for name, setting in (("log", {"log_channels_in": [2]}), ("both", {"log_channels_in": [2], "log_channels_out": [2]}), ("clip", {"clip_in": [0, 280]})):
            model = self.train(self.config | setting, "persistence_" + name).load(split="test")
            scores = model.scores()["channels"]
            pairs = [(x, y) for x, y in model.dataset(normalized=False)]
            weights = torch.cos(torch.deg2rad(torch.tensor(model.spec["latitude"], dtype=torch.float64)))
            weights = (weights / weights.mean()).view(-1, 1)
            for channel, title in enumerate(self.config["in_channels"]):
                score = scores[title]["persistence"]
                if name == "clip":
                    self.assertIsNone(score["rmse"])
                    continue
                shown = torch.log1p if name == "both" and channel == 2 else torch.Tensor.double
                before, after = (torch.stack([shown(pair[side][channel].double()) for pair in pairs]) for side in (0, 1))
                wanted = ((after - before) ** 2 * weights).mean().sqrt()
                deviation = model.spec["target"]["std"][channel]
                # Both the input and the target were rounded where they are as large as the values themselves.
                rounds_to(score["rmse"], wanted.item() / deviation, 16, scale=after.abs().max().item() / deviation, message=f"{name} {channel}")


if __name__ == "__main__":
    unittest.main()
