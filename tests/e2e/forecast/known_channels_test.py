# SPDX-License-Identifier: Apache-2.0
"""What a forecast beyond the data knows: channels that are static by their role, masks of points with a value; and states whose files have other
channels than those of training."""
import shutil
import unittest

import h5py
import numpy as np
import xarray

from bad_input_case import DATA
from forecast_case import CHANNELS, HEIGHT, KEYS, UNITS, WIDTH, ForecastCase

BY_ROLES = {**KEYS, "n_in_channels": 0, "n_out_channels": 0}


class KnownChannels(ForecastCase):
    def opened(self, path):
        return xarray.open_dataset(path, decode_timedelta=True).load()

    def same(self, one, other, names):
        for name in names:
            np.testing.assert_array_equal(self.opened(one)[name].values, self.opened(other)[name].values, name)

    def states(self, change=None, first=0, last=None, name="states"):
        """The held-back states from `first` to `last`, changed by change(fields, attributes of fields)."""
        folder = self.folder / name
        folder.mkdir()
        with h5py.File(self.data / "valid/2001.h5") as old, h5py.File(folder / "2001.h5", "w") as file:
            fields, attributes = old["fields"][first:last], dict(old["fields"].attrs)
            if change:
                fields = change(fields, attributes)
            file["fields"] = fields
            file["fields"].attrs.update(attributes)
            file["time"] = old["time"][first:last]
            file["time"].attrs.update(old["time"].attrs)
            file["latitude"], file["longitude"] = old["latitude"][:], old["longitude"][:]
        return folder


class StaticByRole(KnownChannels):
    keys = {**BY_ROLES, "roles": ["u10=static"]}

    @classmethod
    def prepare(cls, path):
        with h5py.File(path, "a") as file:
            file["fields"][:, 1] = np.linspace(-1, 2, HEIGHT * WIDTH).reshape(HEIGHT, WIDTH)

    def test_it_stays_beyond_the_data(self):
        cut = self.forecast("cut.nc", "--states", self.states(last=9), "--steps", "4")
        whole = self.forecast("whole.nc", "--split", "valid", "--from", str(self.opened(cut).init_time.values[0])[:13], "--steps", "4")
        self.same(cut, whole, ["t2m", "z500"])

    def test_one_that_changes_is_refused(self):
        def change(fields, _):
            fields[-1, 1, 2, 3] += 1
            return fields
        self.refused(DATA, "--states", self.states(change), "--output", self.folder / "x.nc",
                     parts=["a static channel is not the same at the first and the last time: channel=u10", "roles: [NAME=forcing]"])


class MasksThatChange(KnownChannels):
    """The channel z500 is the mask of t2m, whose holes move."""
    keys = {**BY_ROLES, "residual": True}

    @classmethod
    def prepare(cls, path):
        random = np.random.default_rng(4)
        with h5py.File(path, "a") as file:
            is_hole = random.random((len(file["time"]), HEIGHT, WIDTH)) < 0.3
            file["fields"][:, 0] = np.where(is_hole, np.nan, file["fields"][:, 0])
            file["fields"][:, 2] = ~is_hole
            file["fields"].attrs.update({"missing": "hole", "roles": ["prognostic", "prognostic", "forcing"], "mask_of": ["", "", "t2m"]})

    def test_that_of_the_start_holds_at_every_lead(self):
        made = self.forecast("made.nc", "--states", self.states(last=9), "--steps", "4")
        holes = np.isnan(self.opened(made).t2m.values[:, 0])
        with h5py.File(self.data / "valid/2001.h5") as file:
            mask = file["fields"][8, 2]
        self.assertTrue(all((each == (mask == 0)).all() for each in holes))
        # As forcing that is the same at all times from the start on. Training files of this kind are not at hand: the channel is no mask there.
        other = self.root / "no_mask"
        if not other.exists():
            shutil.copytree(self.data, other)
            for path in other.glob("*/*.h5"):
                with h5py.File(path, "a") as file:
                    del file["fields"].attrs["mask_of"]

        def keep(fields, attributes):
            del attributes["mask_of"]
            fields[9:, 2] = mask
            return fields
        folder = self.states(keep, last=14, name="forcing")
        start = str(self.opened(made).init_time.values[0])[:13]
        output = self.folder / "given.nc"
        self.call("forecast", self.run_folder, "--device", "cpu", "--states", folder, "--from", start, "--steps", "4", "--output", output, "--set",
                  f"train_data_path={other}/train")
        self.same(made, output, ["t2m", "u10"])

    def test_scores_know_the_holes_without_the_start(self):
        made = self.forecast("made.nc", "--split", "valid", "--from", "2001-03-02", "--steps", "3")
        later = self.states(first=5)  # 2001-03-02T06 on
        done = self.call("evaluate", self.run_folder, "--device", "cpu", "--forecast", made, "--states", later, "--bootstrap", "0")
        self.assertNotIn("Not finite", done.stdout)
        with h5py.File(self.data / "valid/2001.h5") as file:
            fields = file["fields"][:, 0]
        points = int((~np.isnan(fields[4]) & ~np.isnan(fields[5])).sum())
        self.assertRegex(done.stdout, rf"t2m \[K\] +6 .* {points} of {HEIGHT * WIDTH}")


class OtherChannels(KnownChannels):
    keys = {**BY_ROLES, "roles": ["u10=diagnostic"]}

    @staticmethod
    def named(names):
        """The channels of these names; one that the run does not know is noise."""
        def change(fields, attributes):
            noise = np.random.default_rng(9).normal(size=fields[:, 0].shape)
            attributes["channels"] = names
            attributes["units"] = [UNITS[CHANNELS.index(name)] if name in CHANNELS else "1" for name in names]
            return np.stack([fields[:, CHANNELS.index(name)] if name in CHANNELS else noise for name in names], 1).astype(np.float32)
        return change

    def test_they_are_found_by_name(self):
        wanted = self.forecast("wanted.nc", "--states", self.states(last=9), "--steps", "3", "--members", "2", "--perturb", "gaussian:amplitude=0.1")
        for names in (["z500", "t2m", "u10"], ["more", "u10", "t2m", "z500"], ["t2m", "z500"], ["z500", "more", "t2m"]):
            name = "_".join(names)
            made = self.forecast(f"{name}.nc", "--states", self.states(self.named(names), last=9, name=name), "--steps", "3", "--members", "2",
                                 "--perturb", "gaussian:amplitude=0.1")
            self.same(made, wanted, CHANNELS)

    def test_an_input_that_is_absent_is_named(self):
        self.refused(DATA, "--states", self.states(self.named(["t2m", "u10"])), "--output", self.folder / "x.nc",
                     parts=["a channel that the model takes is not in these files: channel=z500"])

    def test_scores_need_every_channel(self):
        made = self.forecast("made.nc", "--split", "valid", "--from", "2001-03-02", "--steps", "2")
        done = self.call("evaluate", self.run_folder, "--device", "cpu", "--forecast", made, "--states", self.states(self.named(["t2m", "z500"])), code=DATA)
        self.assertIn("a score needs every channel that the model predicts: channel=u10", done.stderr)


if __name__ == "__main__":
    unittest.main()
