#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scores of `welkin evaluate --forecast` against those of WeatherBench2's own code (Rasp et al. 2024, arXiv:2308.15560) on the same files:
RMSE of the ensemble's mean, anomaly correlation, continuous ranked probability score.

    welkin evaluate RUN --forecast forecast.zarr --climatology climatology.zarr --states DIR --json scores.json
    bench/weatherbench2_scores.py --weatherbench2 weatherbench2 --scores scores.json --forecast forecast.zarr --climatology climatology.zarr --states DIR

--weatherbench2 names a copy of its sources: it is not on PyPI. It needs numpy, scipy, xarray, zarr, h5py and fsspec. Ends with 1 where a score differs by more than a part in 10^5."""
import argparse
import json
import pathlib
import sys

import h5py
import numpy as np
import xarray

SAME = 1e-5
BY_START = ("init_time", "lead_time")


def opened(path):
    return xarray.open_zarr(path, consolidated=False) if pathlib.Path(path).is_dir() else xarray.open_dataset(path, decode_timedelta=True)


def truth_of(folder, valid):
    """The states of training files at the forecast's times, NaN where there is none."""
    parts = []
    for path in sorted(pathlib.Path(folder).glob("*.h5")):
        with h5py.File(path) as file:
            times = np.datetime64("1970-01-01", "s") + file["time"][:].astype("timedelta64[s]")
            axes = {"valid": times.astype("datetime64[ns]"), "latitude": file["latitude"][:], "longitude": file["longitude"][:]}
            names = [name.decode() if isinstance(name, bytes) else name for name in file["fields"].attrs["channels"]]
            parts.append(xarray.Dataset({name: (("valid", "latitude", "longitude"), file["fields"][:, c]) for c, name in enumerate(names)}, axes))
    states = xarray.concat(parts, "valid").sortby("valid")
    return states.reindex(valid=np.unique(valid.values)).sel(valid=valid)


def scores_of_weatherbench2(source, forecast, climatology, truth):
    sys.path.insert(0, source)
    from weatherbench2 import metrics
    mean = forecast.mean("number") if "number" in forecast.dims else forecast
    found = {"rmse": np.sqrt(metrics.MSE().compute(mean, truth, skipna=True)), "acc": metrics.ACC(climatology).compute(mean, truth, skipna=True)}
    if "number" in forecast.dims:
        found["crps"] = metrics.CRPS(ensemble_dim="number").compute(forecast, truth, skipna=True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("weatherbench2", "scores", "forecast", "climatology", "states"):
        parser.add_argument(f"--{name}", required=True)
    asked = parser.parse_args()
    forecast = opened(asked.forecast).load()
    valid = forecast["valid_time"]
    names = [name for name, data in forecast.data_vars.items() if set(BY_START) <= set(data.dims) and "latitude" in data.dims]
    forecast = forecast[names].assign_coords(valid_time=valid).sortby("latitude")
    states = truth_of(asked.states, valid).reset_coords(drop=True).assign_coords(latitude=opened(asked.forecast).latitude).sortby("latitude")
    truth = states[names].assign_coords(forecast.coords)
    forecast = forecast.where(truth.notnull())  # a start without a truth has no spread either
    climatology = opened(asked.climatology).load().sortby("latitude")
    rows = {(row["score"], row["channel"]): np.array(row["values"], float) for row in json.loads(pathlib.Path(asked.scores).read_text())["scores"]
            if (row["forecast"], row["region"], row["season"]) == ("forecast", "global", "all")}
    worst = 0.0
    for score, values in scores_of_weatherbench2(asked.weatherbench2, forecast, climatology, truth).items():
        for name in names:
            theirs, ours = values[name].values, rows[score, name]
            difference = float(np.nanmax(np.abs(ours - theirs)) / np.nanmax(np.abs(theirs)))
            worst = max(worst, difference)
            print(f"{score:5} {name:12} welkin {ours[0]:.7f} weatherbench2 {theirs[0]:.7f} at the first lead, largest difference {difference:.1e}")
    print(f"largest difference {worst:.1e} of the largest value, bound {SAME:.0e}")
    return int(not worst <= SAME)


if __name__ == "__main__":
    sys.exit(main())
