# SPDX-License-Identifier: Apache-2.0
"""Boxes (HDF5 and npy) that are wrong: each is refused before training begins, with the file, the values and the remedy, and no run folder is
left."""
import unittest

import h5py
import numpy as np
from bad_input_case import BOXES, DATA, DONE, EDGE, USAGE, BadInputCase, truncate, write_box

INPUT, TARGET = (4, EDGE, EDGE, EDGE), (5, EDGE, EDGE, EDGE)


class BadBoxes(BadInputCase):
    one_process = True

    def setUp(self):
        super().setUp()
        self.make_boxes()
        self.box = self.data / "train.h5"

    def refuse(self, *parts, keys=(), code=DATA):
        return self.refuse_training({**BOXES, **dict(keys)}, code, *parts)

    def test_missing_file(self):
        self.box.unlink()
        self.refuse(f"train_path={self.box}", "--data_root DIR", "welkin data simulate")

    def test_truncated_file(self):
        for loader in "lowmem", "inmem":
            truncate(self.box, 0.9)
            self.refuse(str(self.box), "truncated", keys={"data_loader_config": loader})

    def test_wrong_dataset_name(self):
        with h5py.File(self.box, "a") as file:
            file.move("Hydro", "hydro")
        self.refuse(f"no such data set: path={self.box}, dataset=Hydro", "The file holds: Nbody, hydro")

    def test_soft_links_are_followed(self):
        with h5py.File(self.box, "a") as file:
            file.move("Nbody", "deep/down")
            file["Nbody"] = h5py.SoftLink("/deep/down")
        done = self.train(BOXES)
        self.assertEqual(done.returncode, DONE, done.stderr)

    def test_links_into_other_files_are_not_followed(self):
        with h5py.File(self.box, "a") as file:
            del file["Nbody"]
            file["Nbody"] = h5py.ExternalLink("valid.h5", "/Nbody")
        self.refuse(f"links into other files are not followed: path={self.box}, dataset=Nbody, target=valid.h5:/Nbody", "Copy the data")
        with h5py.File(self.box, "a") as file:
            file.move("Nbody", "other")
            file["Nbody"] = h5py.SoftLink("/other")
        self.refuse(f"no such data set: path={self.box}, dataset=Nbody", "The file holds: Hydro")

    def test_a_crop_that_is_bad_is_replaced_by_another_crop(self):
        values = np.random.default_rng(3).normal(size=INPUT).astype(np.float32)
        values[2, 8, 8, 8] = np.nan
        write_box(self.box, nbody=values)
        done = self.train({**BOXES, "Nsamples": 16, "nan_policy": "error", "bad_samples": "skip"})
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertIn("a sample was skipped: index=", (self.run_folder / "out.log").read_text())
        write_box(self.box, nbody=np.full(INPUT, np.nan, np.float32))
        done = self.train({**BOXES, "nan_policy": "error", "bad_samples": "skip"}, "--run_num", "01")
        self.assert_refused(done, DATA, "16 bad samples in a row")

    def test_wrong_rank(self):
        write_box(self.box, nbody=np.zeros(INPUT[1:], np.float32))
        self.refuse(f"a box of wrong shape: path={self.box}, dataset=Nbody, shape=(16, 16, 16)", "(C, D, H, W)")

    def test_input_and_target_differ(self):
        write_box(self.box, hydro=np.zeros((5, EDGE, EDGE, 12), np.float32))
        self.refuse(f"input and target boxes differ: source={self.box}, input=(16, 16, 16), target=(16, 16, 12)", "same cells")

    def test_too_few_channels(self):
        write_box(self.box, hydro=np.zeros((3, EDGE, EDGE, EDGE), np.float32))
        self.refuse(f"the box has too few channels: source={self.box}, channels=3, wanted=5", "Set N_in_channels and N_out_channels")

    def test_box_smaller_than_the_crop(self):
        small = np.zeros((4, 6, 6, 6), np.float32), np.zeros((5, 6, 6, 6), np.float32)
        write_box(self.box, *small)
        self.refuse(f"the crop does not fit in the box: source={self.box}, data_size=8, box=(6, 6, 6)", "Reduce data_size")

    def test_wrong_dtype(self):
        write_box(self.box, nbody=np.full(INPUT, b"1"))
        self.refuse(f"the data set holds no numbers: path={self.box}, dataset=Nbody, dtype=string", "float32")

    def test_batch_larger_than_the_data(self):
        self.refuse("run.yaml:", "the batch is larger than the data of an epoch: global_batch_size=8", "Nsamples=4", "smaller batch or more samples",
                    keys={"global_batch_size": 8}, code=USAGE)

    def test_no_validation_samples(self):
        self.refuse("Nsamples_val", keys={"Nsamples_val": 0}, code=USAGE)


class BadNpyBoxes(BadInputCase):
    one_process = True

    KEYS = {**BOXES, "data_loader_config": "dali-lowmem",
            **{f"{part}_path_npy_{side}": f"/data/{part}_{side}.npy" for part in ("train", "val") for side in ("data", "label")}}

    def setUp(self):
        super().setUp()
        for part in "train", "val":
            np.save(self.data / f"{part}_data.npy", np.ones((EDGE, EDGE, EDGE, 4), np.float32))
            np.save(self.data / f"{part}_label.npy", np.ones((EDGE, EDGE, EDGE, 5), np.float32))
        self.box = self.data / "train_data.npy"

    def refuse(self, *parts):
        return self.refuse_training(self.KEYS, DATA, *parts)

    def test_all_missing_twins_are_reported_together(self):
        self.box.unlink()
        (self.data / "val_label.npy").unlink()
        self.refuse(f"train_path_npy_data={self.box}", "val_path_npy_label=", "--data_root DIR")

    def test_truncated_file(self):
        truncate(self.box)
        self.refuse(f"the file does not have the size of its array: path={self.box}, shape=(16, 16, 16, 4), npy_byte=128, bytes_expected=65536", "truncated")

    def test_wrong_dtype(self):
        np.save(self.box, np.ones((EDGE, EDGE, EDGE, 4), np.complex64))
        self.refuse(f"path={self.box}", "unsupported type c8", "numpy.save")

    def test_wrong_rank(self):
        np.save(self.box, np.ones((EDGE, EDGE, EDGE), np.float32))
        self.refuse(f"a box of wrong shape: path={self.box}, shape=(16, 16, 16)", "(D, H, W, C)")


if __name__ == "__main__":
    unittest.main()
