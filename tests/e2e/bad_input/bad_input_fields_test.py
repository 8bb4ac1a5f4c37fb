# SPDX-License-Identifier: Apache-2.0
"""Yearly files of fields and their statistics that are wrong: each is refused with exit code 3 before training begins, with the file, the
values and the remedy, and no run folder is left."""
import shutil
import unittest

import h5py
import numpy as np
from bad_input_case import BINARY, CHANNELS, DATA, DONE, FIELDS, HEIGHT, USAGE, WIDTH, YEAR_STEPS, BadInputCase, truncate, write_fields, write_statistics

SHAPE = (YEAR_STEPS, CHANNELS, HEIGHT, WIDTH)


class BadFields(BadInputCase):
    one_process = True

    def setUp(self):
        super().setUp()
        self.make_fields()
        self.year = self.data / "train/2000.h5"

    def refuse(self, *parts, keys=(), code=DATA, arguments=()):
        return self.refuse_training({**FIELDS, **dict(keys)}, code, *parts, arguments=arguments)

    def replace(self, *arguments, **options):
        """Another file of the year; chunked where `options` say so."""
        write_fields(self.year, *arguments, **options)

    def test_all_missing_paths_are_reported_together(self):
        shutil.rmtree(self.data / "train")
        (self.data / "stats/global_stds.npy").unlink()
        message = self.refuse(f"train_data_path={self.data}/train", f"global_stds_path={self.data}/stats/global_stds.npy", "--data_root DIR",
                              "welkin data simulate", "welkin data ingest")
        self.assertNotIn("valid_data_path", message)

    def test_check_data_makes_missing_paths_an_error(self):
        shutil.rmtree(self.data / "train")
        self.refuse("train_data_path=", "--data_root DIR", arguments=("--dry_run", "--check_data"))

    def test_folder_without_years(self):
        self.year.unlink()
        self.refuse("no training files: path=", "pattern=*.h5", "welkin data simulate")

    def test_truncated_file(self):
        truncate(self.year)
        self.refuse(str(self.year), "truncated", "whole")

    def test_file_that_ends_inside_its_header(self):
        truncate(self.year, 0.01)
        self.refuse(str(self.year), "cannot open as HDF5", "Check that the file is whole")

    def test_empty_file(self):
        truncate(self.year, 0)
        self.refuse(str(self.year), "cannot open as HDF5", "Check that the file is whole")

    def test_file_of_another_kind(self):
        self.year.write_text("temperature,wind\n" * 100)
        self.refuse(str(self.year), "cannot open as HDF5")

    def test_folder_with_the_name_of_a_year(self):
        (self.data / "train/2002.h5").mkdir()
        message = self.refuse(f"cannot open: path={self.data}/train/2002.h5, reason=this is a folder")
        self.assertNotIn("\n", message)

    def test_filter_that_is_not_built_in(self):
        values = np.zeros(SHAPE, np.float32)
        self.replace(values, chunks=(1, CHANNELS, HEIGHT, WIDTH), compression="lzf")
        done = self.train(FIELDS)
        message = self.assert_refused(done, DATA, f"a filter that cannot be undone: path={self.year}, dataset=fields, filter=32000 (lzf)",
                                      "h5repack -f GZIP=4")
        self.assertNotIn("plugin", message)

    def test_values_of_validation_that_are_not_finite(self):
        values = np.random.default_rng(1).normal(size=SHAPE).astype(np.float32)
        values[3, 1, 2, 2] = np.nan
        write_fields(self.data / "valid/2001.h5", values)
        done = self.train({**FIELDS, "num_iters": 12})
        self.assertEqual(done.returncode, DONE, done.stderr)
        text = (self.run_folder / "out.log").read_text()
        self.assertIn("Avg val loss=nan\n", text)
        self.assertEqual(text.count("the validation loss is not finite"), 1, text)
        self.assertRegex(text, r"the validation loss is not finite: iteration=\d+, samples=2, nan_policy=off\. No best checkpoint can be chosen")
        evaluated = self.run_command([BINARY, "evaluate", self.run_folder, "--checkpoint", "newest"])
        self.assertEqual(evaluated.returncode, DONE, evaluated.stderr)
        self.assertIn("the loss is not finite: ", evaluated.stdout + evaluated.stderr)

    def test_wrong_dataset_name(self):
        self.replace(name="temperature")
        self.refuse(f"no such data set: path={self.year}, dataset=fields", "The file holds: temperature")

    def test_wrong_rank(self):
        self.replace(np.zeros(SHAPE[:3], np.float32))
        self.refuse(f"fields of wrong shape: path={self.year}", "shape=(12, 3, 8)", "(time, channel, lat, lon)")

    def test_empty_axis(self):
        self.replace(np.zeros((0, *SHAPE[1:]), np.float32))
        self.refuse("fields of wrong shape", "shape=(0, 3, 8, 16)")

    def test_too_few_channels(self):
        for year in self.data.glob("*/*.h5"):
            write_fields(year, np.zeros((YEAR_STEPS, 2, HEIGHT, WIDTH), np.float32))
        self.refuse(f"too few channels: path={self.year}, channels=2, n_in_channels=3, n_out_channels=3", "Set n_in_channels")

    def test_grid_smaller_than_the_crop(self):
        self.refuse(f"the grid is smaller than img_size: path={self.year}, grid=8 x 16, img_size=16 x 16", "Set img_size to at most the grid",
                    keys={"img_size": [16, 16]})

    def test_the_crop_that_is_proposed_for_a_smaller_grid_suits_the_model(self):
        for path in self.data.glob("*/*.h5"):
            write_fields(path, np.random.default_rng(3).normal(size=(YEAR_STEPS, CHANNELS, 9, 19)))  # with both poles, as ERA5
        proposals = (({"img_size": [12, 16]}, "[8,16]"), ({"img_size": [12, 16], "patch_size": 2}, "[8,18]"),
                     ({"img_size": [16, 32], "model": "unet2d", "scales": 3}, "[8,16]"))
        for keys, proposal in proposals:
            self.refuse("grid=9 x 19", f"as in --set 'img_size={proposal}'.", keys=keys)
            done = self.train({**FIELDS, **keys}, "--log_root", self.root / keys.get("model", "vit") / proposal, "--num_iters", "1", "--set", f"img_size={proposal}")
            self.assertEqual(done.returncode, DONE, done.stderr)

    def test_years_of_different_grids(self):
        write_fields(self.data / "train/2002.h5", np.zeros((YEAR_STEPS, CHANNELS, HEIGHT, 24), np.float32))
        self.refuse("files of one folder differ", "train/2002.h5, first=", "difference in shape: 3 x 8 x 16 and 3 x 8 x 24", "one kind")

    def test_wrong_dtype(self):
        self.replace(np.full(SHAPE, b"12.5"))
        self.refuse(f"the data set holds no numbers: path={self.year}, dataset=fields, dtype=string", "float32")
        self.replace(np.zeros(SHAPE, [("u", "f4"), ("v", "f4")]))
        self.refuse("dtype=compound")

    def test_doubles_and_integers_are_converted(self):
        for dtype in (np.float64, np.dtype(">f4"), np.int16):
            self.replace(np.random.default_rng(3).integers(-3, 4, SHAPE).astype(dtype))
            done = self.train(FIELDS, "--log_root", str(self.root / np.dtype(dtype).name), "--num_iters", "1")
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_year_with_too_few_steps(self):
        self.replace(np.zeros((2, *SHAPE[1:]), np.float32))
        self.refuse(f"a year with too few steps: path={self.year}, steps=2, needed=3, dt=2", "reduce dt or history", keys={"dt": 2})

    def test_batch_larger_than_the_data(self):
        self.refuse("the batch is larger than the data: global_batch_size=64, training samples=11", "smaller global_batch_size, or more data",
                    keys={"global_batch_size": 64}, code=USAGE)

    def test_after_a_refusal_the_corrected_run_starts(self):
        self.refuse("global_batch_size=64", keys={"global_batch_size": 64}, code=USAGE)
        done = self.train(FIELDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.run_folder / "out.log").exists())

    def test_gap_in_the_times(self):
        with h5py.File(self.year, "a") as file:
            file["time"] = np.array([*range(6), *range(9, 15)], np.int64) * 6
        self.refuse(f"the times of a file are not evenly spaced: path={self.year}, step=5, difference=24, shortest=6", "welkin data ingest")
        with h5py.File(self.year, "a") as file:
            file["time"].attrs["units"] = "hours since 1900-01-01"
        self.refuse(f"the times of a file are not evenly spaced: path={self.year}, step=5, seconds=86400, shortest=21600", "welkin data ingest")

    def test_coordinates_that_do_not_fit(self):
        with h5py.File(self.year, "a") as file:
            file["latitude"] = np.linspace(90, -90, HEIGHT + 1)
        self.refuse("a coordinate does not fit the fields", "dataset=latitude, values=9, expected=8")


class BadStatistics(BadInputCase):
    one_process = True

    def setUp(self):
        super().setUp()
        self.make_fields()

    def refuse(self, *parts):
        return self.refuse_training(FIELDS, DATA, "welkin data stats", *parts)

    def test_nan(self):
        write_statistics(self.data / "stats", mean=[0, np.nan, 0])
        self.refuse(f"a mean that is not finite: path={self.data}/stats/global_means.npy, channel=1 (channel1), value=nan")
        write_statistics(self.data / "stats", std=[1, 1, np.inf])
        self.refuse(f"a standard deviation that is not finite: path={self.data}/stats/global_stds.npy, channel=2", "value=inf")

    def test_zero_or_negative_deviation(self):
        write_statistics(self.data / "stats", std=[1, 0, 1])
        self.refuse("a standard deviation that is not positive", "global_stds.npy, channel=1", "value=0", "channels that never change")
        write_statistics(self.data / "stats", std=[-1, 1, 1])
        self.refuse("a standard deviation that is not positive", "channel=0", "value=-1")

    def test_wrong_shape(self):
        np.save(self.data / "stats/global_means.npy", np.zeros((1, 5, 1, 1), np.float32))
        self.refuse("statistics do not fit the fields", "global_means.npy, shape=(1, 5, 1, 1), expected=(1, 3, 1, 1)")
        np.save(self.data / "stats/global_means.npy", np.zeros((CHANNELS, HEIGHT, WIDTH), np.float32))
        self.refuse("shape=(3, 8, 16), expected=(1, 3, 1, 1)")

    def refuse_npy(self, *parts):
        return self.refuse_training(FIELDS, DATA, "global_means.npy", *parts)

    def test_wrong_dtype(self):
        np.save(self.data / "stats/global_means.npy", np.full((1, CHANNELS, 1, 1), "a"))
        self.refuse_npy("unsupported type U1", "numpy.save")

    def test_pickle_is_never_read(self):
        np.save(self.data / "stats/global_means.npy", np.array([[[[{}]]] * CHANNELS], object), allow_pickle=True)
        self.refuse_npy("unsupported type O", "numpy.save")

    def test_truncated_and_foreign(self):
        path = self.data / "stats/global_means.npy"
        truncate(path, 0.95)
        self.refuse_npy("bytes")
        truncate(path, 0.1)
        self.refuse_npy("npy")
        path.write_text("0.0 0.0 0.0\n")
        self.refuse_npy("npy")


if __name__ == "__main__":
    unittest.main()
