# SPDX-License-Identifier: Apache-2.0
"""Intervals of scores and of their differences against a moving-block bootstrap in numpy, and seasons of more than one month."""
import json
import unittest

import h5py
import numpy as np
import xarray

from forecast_case import CHANNELS, HEIGHT, LATITUDE, LONGITUDE, UNITS, WIDTH, ForecastCase, epoch_seconds, write_dated_fields
from tolerance import within

DAYS, BLOCK, REPLICATES = 60, 5, 4000
# A bound at 2.5 percent of R draws deviates by sqrt(0.025 * 0.975 / R) over the density there: 0.043 deviations for 4000, where
# the interval is 3.9 wide. Five of these, of the program's draws and as much again of numpy's.
SHARE = 0.08


def weights():
    rows = np.deg2rad(LATITUDE[::-1])
    borders = np.concatenate([[-np.pi / 2], (rows[:-1] + rows[1:]) / 2, [np.pi / 2]])
    area = np.diff(np.sin(borders))[::-1]
    return np.tile((area / area.mean())[:, None], (1, WIDTH)) / (HEIGHT * WIDTH)


def interval(statistic, count, block, seed=0):
    """Of statistic(cases) under the moving-block bootstrap: blocks of neighbours, drawn until there are as many cases as before."""
    random = np.random.default_rng(seed)
    drawn = [statistic(np.concatenate([np.arange(first, first + block) for first in random.integers(0, count - block + 1, -(-count // block))])[:count])
             for _ in range(REPLICATES)]
    return np.percentile(drawn, [2.5, 97.5])


class Intervals(ForecastCase):
    """One forecast a day from 14 February on, of which the weather makes one like the next."""
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.states = cls.root / "states"
        path = write_dated_fields(cls.states / "2001.h5", epoch_seconds(2001, 2, 14), steps=4 * DAYS + 4, seed=7)
        with h5py.File(path) as file:
            fields = file["fields"][:].astype(float)
        starts = np.datetime64("2001-02-14", "ns") + np.arange(DAYS) * np.timedelta64(24, "h")
        leads = np.arange(1, 4) * np.timedelta64(6, "h").astype("timedelta64[ns]")
        cls.truth = np.stack([[fields[4 * day + lead + 1, 0] for lead in range(3)] for day in range(DAYS)])
        random = np.random.default_rng(5)
        slow = np.cumsum(random.normal(size=(2, DAYS)), 1)[:, :, None, None, None] * 0.2 + 0.5
        cls.fields = [cls.truth + each * random.normal(size=cls.truth.shape) for each in slow]
        cls.files = []
        for number, made in enumerate(cls.fields):
            data = xarray.Dataset({CHANNELS[0]: (("init_time", "lead_time", "latitude", "longitude"), made.astype(np.float32), {"units": UNITS[0]})},
                                  {"init_time": starts, "lead_time": leads, "latitude": LATITUDE, "longitude": LONGITUDE})
            cls.files.append(cls.root / f"{number}.zarr")
            data.to_zarr(cls.files[-1], zarr_format=2)
        path = cls.root / "scores.json"
        cls.call("evaluate", cls.run_folder, "--device", "cpu", "--states", cls.states, "--forecast", cls.files[0], "--second", cls.files[1], "--bootstrap",
                 REPLICATES, "--bootstrap_block", BLOCK, "--json", path)
        cls.scores = json.loads(path.read_text())
        cls.errors = [made.astype(np.float32) - cls.truth for made in cls.fields]

    def row(self, table, **key):
        found = [row for row in self.scores[table] if all(row[name] == value for name, value in key.items())]
        self.assertEqual(len(found), 1, key)
        return found[0]

    def mean(self, values, cases):
        return (values[cases] * weights()).sum((-2, -1)).mean(0)

    def compare(self, row, statistic, cases, block):
        for lead in range(3):
            low, high = interval(lambda drawn: statistic(cases[drawn])[lead], len(cases), block)
            within(row["values"][lead], statistic(cases)[lead], 1e-5, "the score itself")
            for name, wanted in (("low", low), ("high", high)):
                self.assertLess(abs(row[name][lead] - wanted), SHARE * (high - low), (name, lead, row[name][lead], low, high))

    def rmse(self, number, cases):
        return np.sqrt(self.mean(self.errors[number] ** 2, cases))

    def test_of_a_score_in_blocks(self):
        self.assertEqual(self.scores["bootstrap"], {"replicates": REPLICATES, "block": BLOCK})
        every = np.arange(DAYS)
        self.compare(self.row("scores", forecast="forecast", score="rmse", region="global", season="all"), lambda cases: self.rmse(0, cases), every, BLOCK)
        wide, narrow = (interval(lambda drawn: self.rmse(0, drawn)[0], DAYS, block) for block in (BLOCK, 1))
        self.assertGreater(wide[1] - wide[0], 1.3 * (narrow[1] - narrow[0]), "days depend on each other: blocks matter in this test")

    def test_of_paired_differences(self):
        self.compare(self.row("differences", forecast="forecast - second", score="rmse", region="global", season="all"),
                     lambda cases: self.rmse(0, cases) - self.rmse(1, cases), np.arange(DAYS), BLOCK)
        self.compare(self.row("differences", forecast="forecast - second", score="mae", region="global", season="all"),
                     lambda cases: self.mean(abs(self.errors[0]), cases) - self.mean(abs(self.errors[1]), cases), np.arange(DAYS), BLOCK)

    def test_of_a_season_with_two_months(self):
        spring = np.arange(15, DAYS)  # from 1 March on, into April
        self.compare(self.row("scores", forecast="forecast", score="rmse", region="global", season="MAM"), lambda cases: self.rmse(0, cases), spring, BLOCK)
        winter = np.arange(15)
        row = self.row("scores", forecast="forecast", score="rmse", region="global", season="DJF")
        within(row["values"], self.rmse(0, winter), 1e-5, "of February")


if __name__ == "__main__":
    unittest.main()
