# SPDX-License-Identifier: Apache-2.0
"""`welkin forecast` and `welkin predict` with a model that is divided over ranks, whatever layout has trained it: the fields of one process."""
import unittest

import h5py
import numpy as np

from bad_input_case import CHECKPOINT, OTHER, USAGE
from forecast_case import KEYS, ForecastCase
from forecast_test import opened, tree_bytes
from tolerance import rounds_to

MEMBERS = ("--split", "valid", "--from", "2001-03-02,2001-03-03", "--steps", "3", "--members", "3", "--perturb", "sphere:amplitude=0.2,length_km=2000",
           "--local_batch_size", "2")
LAYOUTS = ((2, "--tensor_parallel", "2"), (2, "--context_parallel", "2"), (2, "--pipeline_parallel", "2"),
           (4, "--tensor_parallel", "2"), (4, "--tensor_parallel", "2", "--pipeline_parallel", "2"))


class DividedModels(ForecastCase):
    keys = {**KEYS, "embed_dim": 256, "depth": 4, "num_iters": 2, "ema_decay": 0.5}

    def assert_close(self, path, expected, what):
        found, wanted = opened(path).to_dataarray(), opened(expected).to_dataarray()
        self.assertEqual(found.sizes, wanted.sizes)
        rounds_to(found.values, wanted.values, 256, scale=np.abs(wanted.values).max(), message=str(what))

    def test_members_are_those_of_one_process(self):
        for flags in ((), ("--with_dropout", "--ema")):
            one = self.forecast(f"one{len(flags)}.zarr", *MEMBERS, *flags)
            for number, (ranks, *layout) in enumerate(LAYOUTS):
                with self.subTest(layout=layout, ranks=ranks, flags=flags):
                    path = self.forecast(f"divided{number}{len(flags)}.zarr", *MEMBERS, *layout, *flags, ranks=ranks)
                    self.assert_close(path, one, layout)

    def test_bred_members(self):
        flags = ("--split", "valid", "--from", "2001-03-03", "--members", "3", "--perturb", "bred:amplitude=0.1,cycles=3")
        self.assert_close(self.forecast("two.nc", *flags, "--tensor_parallel", "2", ranks=2), self.forecast("one.nc", *flags), "bred")

    def test_a_rank_needs_the_memory_of_its_part(self):
        """12 MiB of weights, of which a rank has half."""
        limited = ("--split", "valid", "--local_batch_size", "1", "--memory_limit_gib", "0.01")
        done = self.call("forecast", self.run_folder, "--device", "cpu", "--output", self.folder / "x.nc", *limited, code=OTHER)
        self.assertIn("[memory] tensors would take more memory than the limit allows", done.stderr)
        one = self.forecast("one.nc", *limited[:-2])
        for axis in ("--pipeline_parallel", "--tensor_parallel"):
            self.assert_close(self.forecast(f"{axis[2:]}.nc", *limited, axis, "2", ranks=2), one, axis)

    def test_a_file_that_an_earlier_version_began_is_refused(self):
        """Its arrays do not declare NaN as the value of a missing point."""
        output = self.folder / "begun.zarr"
        (self.folder / "begun.zarr.unfinished").mkdir()
        (self.folder / "begun.zarr.unfinished" / "request.txt").write_text("checkpoint of an earlier version\n")
        self.refused(USAGE, "--output", output, *MEMBERS, parts=["another forecast was begun there", "checkpoint of an earlier version"])

    def test_pictures_are_those_of_one_process(self):
        flags = ("predict", self.run_folder, "--device", "cpu", "--samples", "2", "--rollout_steps", "2", "--output")
        self.call(*flags, self.folder / "one")
        for axis in ("--tensor_parallel", "--pipeline_parallel"):
            done = self.call("launch", "-n", "2", "--bind", "off", "--", *flags, self.folder / axis[2:], axis, "2")
            self.assertEqual(done.stdout.count("checkpoint "), 1, "one rank speaks for all")
            with h5py.File(self.folder / "one/predictions.h5") as one, h5py.File(self.folder / axis[2:] / "predictions.h5") as two:
                rounds_to(two["prediction"][:], one["prediction"][:], 256, scale=np.abs(one["prediction"][:]).max())
            self.assertEqual(tree_bytes(self.folder / axis[2:]).keys(), tree_bytes(self.folder / "one").keys())

    def test_what_cannot_be_is_refused(self):
        new = ("--device", "cpu", "--output", self.folder / "new.nc")
        ranks = ("launch", "-n", "2", "--bind", "off", "--")
        for words, code, wanted in (
                ((*ranks, "predict", self.run_folder), USAGE, "one process runs this verb: ranks=2"),
                (("launch", "-n", "4", "--bind", "off", "--", "predict", self.run_folder, "--tensor_parallel", "2"), USAGE,
                 "one replica of the model makes these samples: ranks=4, of a replica=2"),
                ((*ranks, "forecast", self.run_folder, *new, "--pipeline_parallel", "4"), USAGE, "does not divide the number of ranks"),
                ((*ranks, "forecast", self.run_folder, *new, "--shard", "full"), USAGE, "replicas have whole weights, no training state is shared out"),
                ((*ranks, "forecast", self.run_folder, *new, "--tensor_parallel", "2", "--checkpoint", "77"), CHECKPOINT, "there is no such checkpoint"),
                (("data", "climatology", self.run_folder, "--output", self.folder / "new.nc", "--tensor_parallel", "2"), USAGE,
                 "each process of this verb holds a whole model: tensor_parallel=2, context_parallel=1"),
                (("forecast", self.run_folder, *new, "--tensor_parallel", "2"), USAGE, "does not divide the number of processes")):
            self.assertIn(wanted, self.call(*words, code=code).stderr)
            self.assertFalse((self.folder / "new.nc").exists())


if __name__ == "__main__":
    unittest.main()
