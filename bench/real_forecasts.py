#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rollouts on real fields: five models side by side, five days over the UK, an ensemble, a field with holes (docs/results/real-data.md).

usage: bench/real_forecasts.py --shared FOLDER --work FOLDER [--welkin PROGRAM] [--seeds N] [--json FILE]

FOLDER of --shared holds cmip6-picontrol-monthly and era5-uk-t2m-hourly. What is made lies in --work, and what is there already is not made again.
Tables in Markdown on standard output. Nothing else may run meanwhile: models are compared at equal time, too.
"""
import argparse
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
# At about as many parameters as the ViT of config/real-data/cmip6.yaml. The row that the others crop is a pole, which weighs nothing.
MODELS = {
    "ViT": [],
    "AFNO": ["model=afno", "num_blocks=4", "embed_dim=112"],
    "Swin": ["model=swin", "window_size=[3,6]"],
    "SFNO": ["model=sfno", "img_size=[19,36]", "embed_dim=72"],
    "U-Net": ["model=unet2d", "width=68", "scales=1"],
}
STEPS = 400  # of the preset
MONTHS = 12
LEADS = (1, 6, 12, 24, 48, 72, 120)  # hours, over the UK
SPREAD_LEADS = (1, 3, 6, 12, 18, 24)  # hours, of an ensemble
AMPLITUDES = (0, 0.1, 0.2, 0.4)  # of perturbations of the start, in deviations
CRPS = ["ensemble_members=4", "dropout=0.2", "loss=mae"]  # trained for the CRPS of four members that dropout makes


class Bench:
    def __init__(self, options):
        self.options, self.work = options, options.work
        self.work.mkdir(parents=True, exist_ok=True)

    def welkin(self, *words):
        command = [str(word) for word in (self.options.welkin, *words)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.work)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    def ingest(self, name, source, *flags):
        if not (self.work / name).exists():
            self.welkin("data", "ingest", source, "--out", name, *flags)

    def train(self, name, yaml, preset, data, settings, seed=0):
        """The run's folder, and the seconds that its training steps took."""
        folder = self.work / "logs" / preset / "1GPU" / name
        if not (folder / "checkpoints").exists():
            sets = [word for setting in (*settings, f"seed={seed}") for word in ("--set", setting)]
            self.welkin("train", "--yaml_config", ROOT / "config/real-data" / yaml, "--config", preset, "--data_root", data, "--log_root", "logs",
                        "--run_num", name, "--device", "cpu", *sets)
        log = (folder / "out.log").read_text()
        return folder, sum(float(seconds) for seconds in re.findall(r"Time taken for epoch \d+ is (\S+) sec", log))

    def forecast(self, run, name, steps, *flags):
        path = self.work / f"{name}.zarr"
        if not path.exists():
            self.welkin("forecast", run, "--steps", steps, "--output", path, "--device", "cpu", *(flags or ("--from", "all")))
        return path

    def scores(self, run, forecast, *flags):
        file = self.work / "scores.json"
        self.welkin("evaluate", run, "--forecast", forecast, "--json", file, "--device", "cpu", *flags)
        return json.loads(file.read_text())


def rows_of(scores, forecast, score, season="all"):
    return {row["channel"]: row for row in scores["scores"] if (row["forecast"], row["score"], row["season"]) == (forecast, score, season)}


def pooled(scores, deviations, forecast="forecast", key="values"):
    """Root mean square over the channels, in deviations of the training part, by lead."""
    rows = rows_of(scores, forecast, "rmse")
    return np.sqrt(np.mean([(np.array(rows[name][key]) / deviation) ** 2 for name, deviation in deviations.items()], axis=0))


def compare_models(bench, result):
    bench.ingest("cmip6", bench.options.shared / "cmip6-picontrol-monthly", "--variables", "tas,rlut,rsdt,rsut", "--valid_fraction", "0.2")
    stds = np.load(bench.work / "cmip6/stats/global_stds.npy").ravel()
    names = ("tas", "rlut", "rsdt", "rsut")
    deviations = dict(zip(names, stds))
    block = ("--bootstrap", "1000", "--bootstrap_block", "12")  # a year at a time
    time_of, rows = {}, []
    for kind in ("equal steps", "equal time"):
        for model, settings in MODELS.items():
            found = []
            for seed in range(bench.options.seeds):
                steps = STEPS if kind == "equal steps" else round(STEPS * time_of["ViT"] / time_of[model])
                name = f"{model}-{steps}-{seed}"
                run, seconds = bench.train(name, "cmip6.yaml", "monthly", "cmip6", [*settings, f"num_iters={steps}"], seed)
                if kind == "equal steps" and seed == 0:
                    time_of[model] = seconds
                scores = bench.scores(run, bench.forecast(run, name, MONTHS), *block)
                tas = rows_of(scores, "forecast", "rmse")["tas"]
                found.append({"steps": steps, "seconds": seconds, "all": pooled(scores, deviations), "tas": np.array(tas["values"]),
                              "low": np.array(tas["low"]), "high": np.array(tas["high"])})
            log = (run / "out.log").read_text()
            parameters = int(re.search(r"(\d+) parameters", log).group(1))
            rows.append({"kind": kind, "model": model, "parameters": parameters, "steps": found[0]["steps"],
                         "seconds": statistics.median(f["seconds"] for f in found),
                         **{f"{what}_{lead}": [float(f[what][lead - 1]) for f in found] for what in ("all", "tas", "low", "high") for lead in (1, MONTHS)}})
    persistence = {"all": pooled(scores, deviations, "persistence"), "tas": np.array(rows_of(scores, "persistence", "rmse")["tas"]["values"])}
    result["models"] = rows
    print("| CMIP6, monthly | parameters | steps | s | all, 1 month | all, 12 months | tas in K, 1 month | tas in K, 12 months |\n" + "| --- " * 8 + "|")
    for row in rows:
        several = lambda key, digits: f" ({min(row[key]):.{digits}f} to {max(row[key]):.{digits}f})" if bench.options.seeds > 1 else ""  # noqa: E731
        spread = lambda key, digits: f"{statistics.median(row[key]):.{digits}f}{several(key, digits)}"  # noqa: E731
        with_interval = lambda lead: f"{spread(f'tas_{lead}', 2)}, [{row[f'low_{lead}'][0]:.2f}, {row[f'high_{lead}'][0]:.2f}]"  # noqa: E731
        print(f"| {row['model']}, {row['kind']} | {row['parameters']:,} | {row['steps']} | {row['seconds']:.0f} | {spread('all_1', 3)} | {spread('all_12', 3)} "
              f"| {with_interval(1)} | {with_interval(12)} |")
    print(f"| persistence | | | | {persistence['all'][0]:.3f} | {persistence['all'][-1]:.3f} | {persistence['tas'][0]:.2f} | {persistence['tas'][-1]:.2f} |")


def roll_out_five_days(bench, result):
    bench.ingest("uk", bench.options.shared / "era5-uk-t2m-hourly", "--valid_last", "168h")
    run, _ = bench.train("uk", "era5-uk.yaml", "lead1h", "uk", [])
    climatology = bench.work / "uk-hours.zarr"
    if not climatology.exists():  # by hour of the day: the days of a month are one window
        bench.welkin("data", "climatology", run, "--split", "train", "--output", climatology, "--window", "61")
    scores = bench.scores(run, bench.forecast(run, "uk", max(LEADS)), "--climatology", climatology, "--bootstrap", "1000", "--bootstrap_block", "24")
    table = {name: rows_of(scores, name, "rmse")["t2m"] for name in ("forecast", "persistence", "climatology")}
    result["uk"] = {name: {lead: row["values"][lead - 1] for lead in LEADS} for name, row in table.items()}
    print("\n| lead | " + " | ".join(f"{lead} h" for lead in LEADS) + " |\n" + "| --- " * (len(LEADS) + 1) + "|")
    cell = lambda row, lead: f"{row['values'][lead - 1]:.2f} [{row['low'][lead - 1]:.2f}, {row['high'][lead - 1]:.2f}]"  # noqa: E731
    for name, row in table.items():
        print(f"| {name}, RMSE in K | " + " | ".join(cell(row, lead) for lead in LEADS) + " |")


def calibrate_ensemble(bench, result):
    import xarray

    source = bench.options.shared / "era5-uk-t2m-hourly"
    bench.ingest("uk-test", source, "--valid_last", "96h", "--test_last", "96h")
    bench.ingest("uk-days", source, "--valid_last", "192h")  # the same eight days in one part
    run, _ = bench.train("uk-crps", "era5-uk.yaml", "lead1h", "uk-test", CRPS)
    part = {split: ("--split", split, "--set", "inf_data_path=/data/test") for split in ("valid", "test")}
    part["days"] = ("--states", bench.work / "uk-days/valid")

    def ensemble(split, amplitude):
        perturb = ("--perturb", f"sphere:amplitude={amplitude},length_km=300") if amplitude else ()
        how = ("--from", "all", "--members", "10", "--with_dropout", *perturb, *part[split])
        return bench.forecast(run, f"uk-crps-{split}-{amplitude}", SPREAD_LEADS[-1], *how)

    def every_second_day(first):
        """The forecasts of four of the eight days."""
        path = bench.work / f"uk-crps-days-{first}.zarr"
        if not path.exists():
            both = xarray.concat([xarray.open_zarr(ensemble(split, 0)) for split in ("valid", "test")], "init_time", data_vars="minimal").load()
            day = (both.init_time - both.init_time[0]).values // np.timedelta64(24, "h")
            both.isel(init_time=day % 2 == first).drop_encoding().to_zarr(path, zarr_format=2)
        return path

    def scores(file, split):
        found = bench.scores(run, file, *part[split], "--bootstrap", "1000", "--bootstrap_block", "6")
        return {name: rows_of(found, "forecast", name)["t2m"] for name in ("spread_skill", "crps", "rmse")}

    def calibrated(file, split, by, its_split):
        """The file with the spread that the scores of another ask for; then its own scores."""
        scores(by, its_split)
        path = file.with_name(f"{file.stem}-calibrated.zarr")
        if not path.exists():
            bench.welkin("calibrate", file, "--scores", bench.work / "scores.json", "--output", path)
        return scores(path, split)

    rows = {f"calibration days, amplitude {amplitude}": scores(ensemble("valid", amplitude), "valid") for amplitude in AMPLITUDES}
    for amplitude in (AMPLITUDES[0], AMPLITUDES[-1]):
        test = ensemble("test", amplitude)
        rows[f"test days, amplitude {amplitude}"] = scores(test, "test")
        rows[f"test days, amplitude {amplitude}, calibrated"] = calibrated(test, "test", ensemble("valid", amplitude), "valid")
    for first, name in enumerate(("days 1, 3, 5, 7", "days 2, 4, 6, 8")):
        rows[name] = scores(every_second_day(first), "days")
        rows[f"{name}, calibrated by the others"] = calibrated(every_second_day(first), "days", every_second_day(1 - first), "days")
    result["ensemble"] = {name: {score: row["values"] for score, row in found.items()} for name, found in rows.items()}
    cell = lambda row, lead: f"{row['values'][lead - 1]:.2f} [{row['low'][lead - 1]:.2f}, {row['high'][lead - 1]:.2f}]"  # noqa: E731
    for score, title in (("spread_skill", "spread over error"), ("crps", "CRPS in K")):
        print(f"\n| {title} | " + " | ".join(f"{lead} h" for lead in SPREAD_LEADS) + " |\n" + "| --- " * (len(SPREAD_LEADS) + 1) + "|")
        for name, found in rows.items():
            print(f"| {name} | " + " | ".join(cell(found[score], lead) for lead in SPREAD_LEADS) + " |")


def leave_the_sea_out(bench, result):
    """The UK's fields as a land reanalysis has them: points at sea are fill values. Land is where a day's range is above 2 K."""
    import h5py
    import xarray

    source, land = bench.work / "uk", bench.work / "uk-land-source"
    if not land.exists():
        land.mkdir()
        with h5py.File(next((source / "train").glob("*.h5"))) as train, h5py.File(next((source / "valid").glob("*.h5"))) as valid:
            fields = np.concatenate([train["fields"][:, 0], valid["fields"][:, 0]])
            latitude, longitude = train["latitude"][:], train["longitude"][:]
        days = fields[: len(fields) // 24 * 24].reshape(-1, 24, *fields.shape[1:])
        mask = (days.max(1) - days.min(1)).mean(0) > 2
        times = np.datetime64("2019-03-01", "ns") + np.arange(len(fields)) * np.timedelta64(1, "h")
        data = xarray.Dataset({"t2m": (("time", "latitude", "longitude"), np.where(mask, fields, np.nan).astype(np.float32), {"units": "K"})},
                              {"time": times, "latitude": ("latitude", latitude, {"units": "degrees_north"}),
                               "longitude": ("longitude", longitude, {"units": "degrees_east"})})
        data.to_netcdf(land / "t2m.nc", encoding={"t2m": {"_FillValue": np.float32(-9999)}})
    bench.ingest("uk-land", land, "--valid_last", "168h", "--missing", "nan")
    runs = {"land alone (nan_policy: hole)": bench.train("uk-land", "era5-uk.yaml", "lead6h", "uk-land", ["nan_policy=hole"])[0],
            "land, and the sea's mean at sea": bench.train("uk-filled", "era5-uk.yaml", "lead6h", "uk-land", ["nan_policy=mask"])[0]}
    print("\n| UK, six hours ahead | points with a value | RMSE over land, K | persistence, K |\n| --- | --- | --- | --- |")
    for name, run in runs.items():
        file = bench.work / "scores.json"
        bench.welkin("evaluate", run, "--json", file, "--device", "cpu", "--set", "nan_policy=hole")
        channel = json.loads(file.read_text())["channels"]["t2m"]
        share = channel["points"]["with_value"] / channel["points"]["all"]
        result.setdefault("land", {})[name] = channel["model"]["rmse_physical"]
        print(f"| {name} | {100 * share:.0f} % | {channel['model']['rmse_physical']:.2f} | {channel['persistence']['rmse_physical']:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--welkin", type=pathlib.Path, default=ROOT / "build/release/welkin")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--only", choices=("models", "uk", "ensemble", "land"))
    options = parser.parse_args()
    options.shared, options.work, options.welkin = options.shared.resolve(), options.work.resolve(), options.welkin.resolve()
    if not shutil.which(options.welkin):
        parser.error(f"no such program: {options.welkin}")
    bench, result, began = Bench(options), {}, time.monotonic()
    parts = {"models": compare_models, "uk": roll_out_five_days, "ensemble": calibrate_ensemble, "land": leave_the_sea_out}
    for name, part in parts.items():
        if options.only in (None, name):
            part(bench, result)
    print(f"\n{time.monotonic() - began:.0f} s")
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
