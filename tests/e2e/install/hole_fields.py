# SPDX-License-Identifier: Apache-2.0
"""Fields of which some points have no value, and a configuration of a model of them."""
import h5py
import numpy as np

HEIGHT, WIDTH, STEPS = 8, 16, 12
CONFIG = {"model": "vit", "dataset": "era5", "img_size": [HEIGHT, WIDTH], "patch_size": 4, "embed_dim": 16, "depth": 1, "num_heads": 2, "dt": 1,
          "n_in_channels": 3, "n_out_channels": 3, "global_batch_size": 2, "num_iters": 3, "lr": 0.001, "optimizer": "Adam", "residual": True,
          "residual_except": ["rain"], "normalization": ["t2m=minmax", "rain=log:1e-3"], "train_data_path": "/data/train",
          "valid_data_path": "/data/valid", "inf_data_path": "/data/valid", "global_means_path": "/data/stats/global_means.npy",
          "global_stds_path": "/data/stats/global_stds.npy"}


def write_hole_fields(root):
    random = np.random.default_rng(3)
    for part in ("train", "valid"):
        (root / part).mkdir(parents=True)
        fields = random.normal(size=(STEPS, 3, HEIGHT, WIDTH)) * np.reshape([3, 2, 1], (3, 1, 1)) + np.reshape([280, 290, 0], (3, 1, 1))
        fields[:, 2] = np.exp(fields[:, 2]) * 1e-3
        fields[:, 1, 2:5, 3:9] = np.nan  # sea surface temperature over land
        with h5py.File(root / part / "2001.h5", "w") as file:
            file["fields"] = fields.astype(np.float32)
            file["fields"].attrs["channels"], file["fields"].attrs["units"] = ["t2m", "sst", "rain"], ["K", "K", "m"]
            file["fields"].attrs["missing"], file["fields"].attrs["_FillValue"] = "hole", np.float32(np.nan)
            file["latitude"], file["longitude"] = np.linspace(78.75, -78.75, HEIGHT), np.arange(WIDTH) * 360.0 / WIDTH
