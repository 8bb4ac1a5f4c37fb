# SPDX-License-Identifier: Apache-2.0
"""`welkin predict --mosaic`: a whole box from crops is what the crops are at their centres, the same on any number of ranks."""
import re
import unittest

import h5py
import numpy as np
import xarray

from bad_input_case import BINARY, BOXES, DONE, EDGE, USAGE, BadInputCase
from png_picture import panels
from tolerance import rounds_to, within


class Mosaic(BadInputCase):
    one_process = True

    def run_it(self, *words, code=DONE):
        done = self.run_command([BINARY, *words])
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def trained(self, keys):
        self.make_boxes()
        done = self.train(keys)
        self.assertEqual(done.returncode, DONE, done.stderr)

    def mosaic(self, name, *flags, ranks=0):
        launcher = ["launch", "-n", str(ranks), "--bind", "off", "--"] if ranks else []
        self.run_it(*launcher, "predict", self.run_folder, "--device", "cpu", "--mosaic", self.root / name, *flags)
        path = self.root / name
        data = xarray.open_zarr(path, consolidated=True) if path.suffix == ".zarr" else xarray.open_dataset(path)
        return data.prediction.load()

    @staticmethod
    def names(box):
        names = box.attrs["channels"]  # of netCDF a list in one text
        return re.split(r"[,\s]+", names) if isinstance(names, str) else names

    def check_picture(self, name, box, channel):
        """Of the plane in the middle: the ends of the colours are lettered beside them."""
        shown = panels((self.root / f"{name}_{self.names(box)[channel]}.png").read_bytes())
        with h5py.File(self.data / "valid.h5") as file:
            nbody, target = file["Nbody"][0, EDGE // 2], file["Hydro"][channel, EDGE // 2]
        widest = np.abs(box.values[channel, EDGE // 2] - target).max()
        titles = list(shown)[-4:]
        self.assertEqual(titles[1:], ["target", "prediction", "prediction - target"])
        self.assertTrue(titles[0].startswith("input: "), titles)
        for ends, values in zip(map(shown.get, titles), (nbody, target, target, np.array([-widest, widest]))):
            within(ends, [values.min(), values.max()], 5e-4, "half of the last of the four digits that a colour bar has")

    def test_is_the_crops_at_their_centres(self):
        self.trained(BOXES)
        box = self.mosaic("box.nc", "--overlap", "3")
        self.assertEqual(dict(box.sizes), {"channel": 5, "z": EDGE, "y": EDGE, "x": EDGE})
        self.check_picture("box", box, channel=0)
        np.testing.assert_array_equal(box, self.mosaic("again.zarr", "--overlap", "3", "--channels", self.names(box)[1], ranks=3))
        self.check_picture("again", box, channel=1)
        for ranks in (2, 4):  # one replica of two blocks, and two
            blocks = self.mosaic(f"blocks{ranks}.zarr", "--overlap", "3", "--spatial", "2x1x1", ranks=ranks)
            rounds_to(blocks, box, 256, scale=np.abs(box).max())
        # Without an overlap each cell is that of one crop: a file that holds a crop alone gives the same.
        apart = self.mosaic("apart.nc", "--overlap", "0").values
        with h5py.File(self.data / "valid.h5") as file:
            nbody, hydro = file["Nbody"][:, 8:, :8, 8:], file["Hydro"][:, 8:, :8, 8:]
        with h5py.File(self.root / "crop.h5", "w") as file:
            file["Nbody"], file["Hydro"] = nbody, hydro
        alone = self.mosaic("alone.nc", "--set", f"val_path={self.root / 'crop.h5'}", "--set", "box_size=[16,8]", "--overlap", "0").values
        rounds_to(apart[:, 8:, :8, 8:], alone, 256, scale=np.abs(alone).max())
        # Blended cells lie between those of the crops; at the centres of crops, which begin at 0, 4 and 8, nothing is blended.
        crop = self.root / "corner.h5"
        with h5py.File(self.data / "valid.h5") as file, h5py.File(crop, "w") as out:
            out["Nbody"], out["Hydro"] = file["Nbody"][:, :8, :8, :8], file["Hydro"][:, :8, :8, :8]
        corner = self.mosaic("corner.nc", "--set", f"val_path={crop}", "--set", "box_size=[16,8]", "--overlap", "0").values
        rounds_to(box.values[:, 3, 3, 3], corner[:, 3, 3, 3], 256, scale=np.abs(corner).max())

    def test_says_how_to_go_back_to_the_matter(self):
        """The attributes of predictions.h5; a channel's name may be no file's."""
        self.make_boxes()
        names = ["rho/mean", "b", "c", "d", "e"]
        for part in ("train", "valid"):
            with h5py.File(self.data / f"{part}.h5", "a") as file:
                file["Hydro"].attrs.update({"channels": names, "transform": ["log10", *["identity"] * 4], "offset": [-0.5, *[0.0] * 4],
                                            "scale": [0.25, 2.0, 1.0, 1.0, 1.0]})
        done = self.train(BOXES)
        self.assertEqual(done.returncode, DONE, done.stderr)
        for name in ("box.zarr", "box.nc"):
            box = self.mosaic(name)
            self.assertEqual(self.names(box), names)
            self.assertIn("log10", box.attrs["transform"])
            self.assertEqual(list(box.attrs["offset"]), [-0.5, 0, 0, 0, 0])
            self.assertEqual(list(box.attrs["scale"]), [0.25, 2, 1, 1, 1])
        self.assertTrue((self.root / "box_rho_mean.png").exists())
        self.run_it("predict", self.run_folder, "--device", "cpu", "--samples", "1", "--output", self.root / "samples")
        self.assertEqual([path.name for path in (self.root / "samples").glob("*.png")], ["sample_0_rho_mean.png"])

    def test_refusals(self):
        self.trained(BOXES)
        self.mosaic("box.nc")
        refused = self.run_command([BINARY, "predict", self.run_folder, "--device", "cpu", "--mosaic", self.root / "box.nc"])
        self.assert_refused(refused, USAGE, "the output is there already")
        refused = self.run_command([BINARY, "predict", self.run_folder, "--device", "cpu", "--mosaic", self.root / "b.nc", "--overlap", "4"])
        self.assert_refused(refused, USAGE, "overlap=4, crop=8")
        refused = self.run_command([BINARY, "predict", self.run_folder, "--device", "cpu", "--overlap", "2"])
        self.assert_refused(refused, USAGE, "this flag belongs to --mosaic: --overlap. Give --mosaic FILE, or leave it out")
        for flag in (("--output", "folder"), ("--samples", "2"), ("--rollout_steps", "2"), ("--animate", "apng")):
            refused = self.run_command([BINARY, "predict", self.run_folder, "--device", "cpu", "--mosaic", self.root / "b.nc", *flag])
            self.assert_refused(refused, USAGE, f"this flag belongs to predictions of samples: --mosaic, {flag[0]}. Leave one of them out")
        refused = self.run_command([BINARY, "predict", self.run_folder, "--device", "cpu", "--mosaic", self.root / "b.h5"])
        self.assert_refused(refused, USAGE, ".zarr or .nc")


if __name__ == "__main__":
    unittest.main()
