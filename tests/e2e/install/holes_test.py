# SPDX-License-Identifier: Apache-2.0
"""`import welkin`: models of fields of which some points have no value."""
import unittest

import h5py
import numpy as np
import torch
from hole_fields import CONFIG, write_hole_fields
from python_test import BINARY, VIT, PythonCase, run
from tolerance import rounds_to

import welkin  # which python_test has found


class Holes(PythonCase):
    """With a channel that is predicted as it is and one by its logarithm."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        write_hole_fields(cls.root / "fields")
        done = run(BINARY, "data", "stats", cls.root / "fields/train", "--out", cls.root / "fields/stats")
        assert done.returncode == 0, done.stderr
        cls.trained = welkin.train(CONFIG | {"data_root": cls.root / "fields", "device": "cpu", "run_num": "00"}, log_root=cls.root / "logs", progress=False)
        cls.model = cls.trained.load()
        done = run(BINARY, "predict", cls.trained.folder, "--samples", "2", "--output", cls.root / "pictures")
        assert done.returncode == 0, done.stderr
        with h5py.File(cls.root / "pictures/predictions.h5") as file:
            cls.wanted, cls.samples = file["prediction"][...], [int(sample) for sample in file["sample"]]
        cls.files = cls.model.dataset(normalized=False).read(cls.samples)[0]

    def check(self, got):
        self.assertTrue(torch.isfinite(got).all())
        for channel in range(3):
            known = ~np.isnan(self.wanted[:, channel])
            rounds_to(got.numpy()[:, channel][known], self.wanted[:, channel][known], 64, scale=self.wanted[:, channel][known], message=f"channel {channel}")

    def test_points_without_a_value_are_filled_as_in_training(self):
        self.assertTrue(torch.isnan(self.files).any())
        rounds_to(self.model.normalize(self.files), self.model.dataset().read(self.samples)[0], 8, scale=1)
        self.check(self.model.predict(self.files))

    def test_so_are_they_in_a_file(self):
        for ending in ("ts", "onnx"):
            path = self.root / f"holes.{ending}"
            welkin.export(self.model, path)
            if ending == "ts":
                self.check(torch.jit.load(str(path))(self.files).detach())
            else:
                import onnxruntime
                self.check(torch.from_numpy(onnxruntime.InferenceSession(str(path)).run(None, {"input": self.files.numpy()})[0]))

    def test_the_twin_leaves_out_what_the_residual_does(self):
        twin = welkin.twins.build(self.model.config, self.model.spec)
        twin.load_state_dict(self.model.state_dict())
        x = self.model.dataset().read([0, 1])[0]
        with torch.no_grad():
            rounds_to(twin.eval()(x), self.model(x), 64, scale=1)

    def test_a_run_that_takes_none_refuses_them(self):
        model = self.train(VIT, "whole").load()
        x = model.dataset(normalized=False).read([0])[0]
        x[0, 0, 0, 0] = float("nan")
        with self.assertRaisesRegex(welkin.DataError, "the input has points without a value, and the run takes none"):
            model.predict(x)


if __name__ == "__main__":
    unittest.main()
