# SPDX-License-Identifier: Apache-2.0
"""`welkin data ingest` on every folder of real data. Reference values: the numbers of each SOURCE.md, and single points, means and deviations
computed in double precision with the Python packages netCDF4 1.7 and eccodes 2.50 (named where they stand)."""
import unittest

import h5py
import numpy as np
from ingest_runner import DATA, IngestCase, component_is_built, run_all
from tolerance import as_stated, rounds_to, within

THREE_DIGITS = (5e-4, "half of the last digit of SOURCE.md")


def needs(folder):
    if not component_is_built():
        return unittest.skip("the ingest component is not built: ecCodes or netCDF-C is not installed")
    return unittest.skipUnless((DATA / folder).is_dir(), f"no folder {folder} in the shared data ($WELKIN_SHARED/data)")


def error_over_deviation(prediction, truth, fields):
    return np.sqrt(np.mean((prediction - truth) ** 2)) / fields.std()


def persistence(fields, lead):
    return error_over_deviation(fields[:-lead], fields[lead:], fields)


class Real(IngestCase):
    @needs("era5-uk-t2m-hourly")
    def test_uk_baselines(self):
        self.ingest(DATA / "era5-uk-t2m-hourly")
        t2m = self.fields("train/2019.h5").astype(np.float64)
        self.assertEqual(t2m.shape, (744, 1, 33, 49))
        for lead, expected in ((1, 0.204), (6, 0.855), (24, 0.817)):  # SOURCE.md
            within(persistence(t2m, lead), expected, *THREE_DIGITS)
        time_mean = self.statistics("time_means").astype(np.float64)
        within(error_over_deviation(time_mean, t2m, t2m), 0.866, *THREE_DIGITS)
        for place, expected in (((0, 0, 0, 0), 282.4248046875), ((743, 0, 32, 48), 281.454833984375), ((400, 0, 10, 20), 280.639892578125)):
            self.assertEqual(t2m[place], expected)  # eccodes
        rounds_to(self.statistics("global_means")[0, 0, 0, 0], 280.7740586, 2)
        rounds_to(self.statistics("global_stds")[0, 0, 0, 0], 2.2879162, 2)
        self.assertEqual(self.channels("train/2019.h5"), ["t2m"])

    @needs("era5-uk-t2m-hourly")
    def test_uk_last_week_held_back(self):
        self.ingest(DATA / "era5-uk-t2m-hourly" / "era5-2mt-2019-03-uk.grib", "--variables", "2t", "--valid_last", "168h", "--crop", "32x48")
        train, valid = self.fields("train/2019.h5"), self.fields("valid/2019.h5")
        self.assertEqual((train.shape, valid.shape), ((576, 1, 32, 48), (168, 1, 32, 48)))
        rounds_to(self.statistics("time_means")[0, 0], train[:, 0].mean(0, dtype=np.float64), 1)
        rounds_to(self.statistics("global_means").ravel(), train.mean(dtype=np.float64), 1)
        rounds_to(self.statistics("global_stds").ravel(), train.std(dtype=np.float64), 1)
        times = np.concatenate([self.dataset("train/2019.h5", "time"), self.dataset("valid/2019.h5", "time")])
        np.testing.assert_array_equal(times, np.arange(744) * 3600 + np.datetime64("2019-03-01", "s").astype(np.int64))
        np.testing.assert_array_equal(self.dataset("train/2019.h5", "latitude"), 58 - 0.25 * np.arange(32))
        np.testing.assert_array_equal(self.dataset("train/2019.h5", "longitude"), -10 + 0.25 * np.arange(48))

    @needs("era5-aachen-hourly")
    def test_aachen_packed_variables(self):
        folder = DATA / "era5-aachen-hourly"
        report = self.ingest(folder, "--circular", "wd10,wd100", "--valid_fraction", "0.2")
        self.assertIn("times=140, first=2015-01-01T00:00:00, last=2015-01-06T19:00:00, step=1 h", report)
        fields = np.concatenate([self.fields("train/2015.h5"), self.fields("valid/2015.h5")])
        channels = self.channels("train/2015.h5")
        self.assertEqual(fields.shape, (140, 13, 13, 11))
        count = 0
        for path in folder.glob("*.nc"):  # netCDF-4 is HDF5: h5py gives the packed integers
            with h5py.File(path) as file:
                name = (set(file) - {"time", "latitude", "longitude"}).pop()
                packed, attributes = file[name][:].astype(np.float64), file[name].attrs
                values = packed * attributes.get("scale_factor", 1.0) + attributes.get("add_offset", 0.0)
            for suffix, function in (("_sin", np.sin), ("_cos", np.cos)) if name.startswith("wd") else (("", None),):
                # What is rounded to float32 is the angle, up to 2 pi, and then its sine.
                scaled = values if function is None else np.deg2rad(values)
                expected = scaled if function is None else function(scaled)
                rounds_to(fields[:, channels.index(name + suffix)], expected, 4, scale=scaled)
                count += 1
        self.assertEqual(count, 13)
        for name, lead, expected in (("t2m", 1, 0.221), ("sp", 1, 0.042), ("ssrd", 1, 0.451), ("t2m", 6, 0.886), ("ws10", 6, 0.760)):  # SOURCE.md
            within(persistence(fields[:, channels.index(name)].astype(np.float64), lead), expected, *THREE_DIGITS)

    @needs("era5-asia-levels-hourly")
    def test_asia_levels_and_constant_channels(self):
        report = self.ingest(DATA / "era5-asia-levels-hourly")
        channels, fields = self.channels("train/2022.h5"), self.fields("train/2022.h5")
        self.assertEqual(fields.shape, (3, 66, 45, 133))
        levels = ("100", "125", "150", "175", "200", "225", "250", "300", "350")
        self.assertEqual(channels, [name + level for name in ("z", "pv", "r", "q", "t", "u", "v") for level in levels] + ["ssrd", "tsr", "ttr"])
        points = {("z100", 0, 0, 0): 157013.16571231288, ("z350", 2, 44, 132): 78589.73107537423, ("pv200", 1, 20, 60): 6.413420951294621e-06,
                  ("t100", 0, 0, 0): 217.9815040248314, ("t350", 2, 44, 132): 227.79019377250626, ("ttr", 2, 44, 132): -776466.7146628416}
        for (name, *place), expected in points.items():  # netCDF4
            rounds_to(fields[(place[0], channels.index(name), *place[1:])], expected, 4)
        means, deviations = (self.statistics(name).ravel() for name in ("global_means", "global_stds"))
        for name, mean, deviation in (("z200", 113474.96822926535, 907.4695146213766), ("pv200", 7.3354389624e-06, 8.942948735793877e-07)):
            rounds_to(means[channels.index(name)], mean, 4)
            rounds_to(deviations[channels.index(name)], deviation, 4, scale=mean)  # values near the mean are rounded
        for name in ("ssrd", "tsr"):
            self.assertIn(f"constant in the training part: channel={name}, value=0", report)
            self.assertEqual(deviations[channels.index(name)], 1.0)

    @needs("era5-global-ensemble-12h")
    def test_ensemble_members(self):
        self.ingest(DATA / "era5-global-ensemble-12h", "--variables", "t,z", "--patch", "4")
        files = sorted(path.name for path in (self.out / "train").iterdir())
        self.assertEqual(files, [f"member{member:03}_2017.h5" for member in range(10)])
        self.assertEqual(self.channels("train/member000_2017.h5"), ["t500", "t850", "z500", "z850"])
        fields = np.stack([self.fields("train/" + name) for name in files]).astype(np.float64)
        self.assertEqual(fields.shape, (10, 4, 4, 60, 120))
        points = {(0, 0, 0, 0, 0): 233.3096923828125, (0, 0, 0, 30, 60): 271.5968017578125, (9, 3, 3, 0, 0): 13251.69140625,
                  (9, 3, 3, 59, 119): 12885.19140625, (4, 1, 1, 30, 60): 291.65570068359375}
        for place, expected in points.items():  # eccodes
            self.assertEqual(fields[place], np.float32(expected))
        for channel, expected in enumerate((0.184, 0.163, 0.136, 0.247)):  # SOURCE.md, with the row at the south pole
            state = fields[:, :, channel]
            within(error_over_deviation(state[:, :-1], state[:, 1:], state), expected, 0.002, "the row at the south pole")

    @needs("cmip6-picontrol-monthly")
    def test_cmip6_months(self):
        report = self.ingest(DATA / "cmip6-picontrol-monthly", "--valid_from", "0121-01-01")
        self.assertIn("step=1 month, calendar=proleptic_gregorian", report)
        self.assertIn("left out: variable=areacella, reason=it has no time", report)
        fields = np.concatenate([self.fields("train/0101.h5"), self.fields("valid/0121.h5")])
        channels = self.channels("train/0101.h5")
        self.assertEqual(fields.shape, (300, 4, 19, 36))
        np.testing.assert_array_equal(self.dataset("train/0101.h5", "latitude"), 90 - 10.0 * np.arange(19))
        for name in channels:
            path = next((DATA / "cmip6-picontrol-monthly").glob(f"{name}_*.nc"))
            with h5py.File(path) as file:  # south first there, north first here
                np.testing.assert_array_equal(fields[:, channels.index(name)], file[name][:][:, ::-1])
        self.assertEqual(self.dataset("train/0101.h5", "time")[0], -58978584000)  # cftime: 0101-01-16 12:00
        for name, month, year in (("tas", 0.201, 0.108), ("rlut", 0.354, 0.271), ("rsdt", 0.477, 0.010), ("rsut", 0.594, 0.169)):  # SOURCE.md
            channel = fields[:, channels.index(name)].astype(np.float64)
            within(persistence(channel, 1), month, *THREE_DIGITS)
            within(persistence(channel, 12), year, *THREE_DIGITS)

    @needs("cmip6-picontrol-monthly")
    def test_a_field_without_time_is_static_when_named(self):
        self.ingest(DATA / "cmip6-picontrol-monthly", "--variables", "areacella:area,tas")
        self.assertEqual(self.channels("train/0101.h5"), ["tas"])
        with h5py.File(self.out / "train/0101.h5") as file:
            static = file["static"]
            self.assertEqual([str(text) for text in static.attrs["channels"].astype(str)], ["area"])
            area = static[0].astype(np.float64)
        ratio = area[1:18, 0] / area[9, 0]
        within(ratio, np.cos(np.deg2rad(np.arange(80, -90, -10))), 0.01, "SOURCE.md: cosine of latitude, of cells with an extent")

    @needs("echam5-global-t-6hourly")
    def test_echam5_netcdf3(self):
        self.ingest(DATA / "echam5-global-t-6hourly", "--variables", "tC:tsurf")
        fields = self.fields("train/2001.h5").astype(np.float64)
        self.assertEqual(fields.shape, (40, 1, 96, 192))
        for place, expected in (((0, 0, 0, 0), -30.761672973632812), ((39, 0, 95, 191), -33.720367431640625), ((17, 0, 40, 100), 11.106689453125)):
            self.assertEqual(fields[place], expected)  # netCDF4
        within(persistence(fields, 1), 0.102, *THREE_DIGITS)  # SOURCE.md
        within(persistence(fields, 4), 0.134, *THREE_DIGITS)
        within(error_over_deviation(self.statistics("time_means").astype(np.float64), fields, fields), 0.143, *THREE_DIGITS)
        as_stated(self.dataset("train/2001.h5", "latitude")[0], "88.57216851")
        self.assertEqual(self.dataset("train/2001.h5", "longitude")[0], -180.0)

    @needs("erainterim-global-3d")
    def test_erainterim_as_state_and_as_box(self):
        folder = DATA / "erainterim-global-3d"
        self.assertIn("no gapless piece is long enough: part=train, min_steps=2", self.refused(folder))
        self.ingest(folder, "--min_steps", "1")
        fields, channels = self.fields("train/2005.h5"), self.channels("train/2005.h5")
        self.assertEqual(fields.shape, (1, 111, 121, 240))
        volumes = {}
        for name in ("t", "u", "v"):
            with h5py.File(folder / f"2005-01-23-0000-{name}.nc") as file:
                attributes = file[name].attrs
                volumes[name] = file[name][:] * attributes["scale_factor"] + attributes["add_offset"]
                for k, level in enumerate(file["level"][:]):
                    rounds_to(fields[0, channels.index(f"{name}{level}")], volumes[name][k], 4, scale=volumes[name][k])
        self.out = self.root / "box"
        self.ingest("--box", folder, "--input", "u,v", "--target", "t", "--valid_axis", "2", "--valid_fraction", "0.25")
        self.check_box({"Nbody": [volumes["u"], volumes["v"]], "Hydro": [volumes["t"]]}, axis=2, extents=(180, 60))

    def check_box(self, expected, axis, extents):
        """Both parts, scaled back, are the volumes; the training part is of order one."""
        with h5py.File(self.out / "train.h5") as train, h5py.File(self.out / "valid.h5") as valid:
            for name, volumes in expected.items():
                self.assertEqual((train[name].shape[axis + 1], valid[name].shape[axis + 1]), extents)
                for c, volume in enumerate(volumes):
                    scale, offset = (float(train[name].attrs[key][c]) for key in ("scale", "offset"))
                    whole = np.concatenate([train[name][c], valid[name][c]], axis=axis).astype(np.float64) * scale + offset
                    rounds_to(whole, volume, 16, scale=volume)
                    self.assertTrue(0.4 < train[name][c].astype(np.float64).std() < 2)  # the components of a vector share one scale

    @unittest.skipUnless((DATA / "enzo-cosmology-ic-32").is_dir(), "no folder enzo-cosmology-ic-32 in the shared data ($WELKIN_SHARED/data)")
    def test_enzo_box_keeps_the_order_of_axes(self):
        folder = DATA / "enzo-cosmology-ic-32"
        inputs = ",".join(f"ParticleDisplacements_{axis}:d{axis}" for axis in "zyx")
        self.ingest("--box", folder, "--input", inputs, "--target", "GridDensity:density", "--vector", "dz,dy,dx", "--periodic", "--valid_fraction", "0.5")
        volumes = {}
        for path in folder.glob("*.h5"):
            with h5py.File(path) as file:
                volumes.update({name: file[name][0] for name in file})
        expected = {"Nbody": [volumes[f"ParticleDisplacements_{axis}"] for axis in "zyx"], "Hydro": [volumes["GridDensity"]]}
        self.check_box(expected, axis=0, extents=(16, 16))
        with h5py.File(self.out / "train.h5") as train, h5py.File(self.out / "valid.h5") as valid:
            displacement, density = (np.concatenate([train[name][:], valid[name][:]], axis=1) for name in ("Nbody", "Hydro"))
            self.assertEqual(list(train["Nbody"].attrs["periodic"].astype(str)), ["0", "1", "1"])

        def agreement(axes):  # central differences of the periodic box
            divergence = sum(np.roll(displacement[c], -1, a) - np.roll(displacement[c], 1, a) for c, a in enumerate(axes))
            return np.corrcoef(-divergence.ravel(), density.ravel())[0, 1]

        self.assertGreater(agreement((0, 1, 2)), 0.93)
        self.assertLess(agreement((2, 1, 0)), 0.6)

    @unittest.skipUnless((DATA / "nyx-slab").is_dir(), "no folder nyx-slab in the shared data ($WELKIN_SHARED/data)")
    def test_nyx_slab(self):
        names = ("dark_matter_density", "baryon_density", "temperature")
        self.ingest("--box", DATA / "nyx-slab", "--input", names[0], "--target", "native_fields/baryon_density,temperature", "--log", ",".join(names),
                    "--shape", "1x64x512")
        with h5py.File(DATA / "nyx-slab" / "z255_32.h5") as file, h5py.File(self.out / "train.h5") as train:
            for group, names in (("Nbody", names[:1]), ("Hydro", names[1:])):
                attributes = train[group].attrs
                self.assertEqual(train[group].shape, (len(names), 1, 64, 512))
                self.assertEqual(list(attributes["transform"].astype(str)), ["log10"] * len(names))
                for c, name in enumerate(names):
                    logarithm = train[group][c].astype(np.float64) * float(attributes["scale"][c]) + float(attributes["offset"][c])
                    stored = file[f"native_fields/{name}"][:].reshape(1, 64, 512).astype(np.float64)
                    rounds_to(10**logarithm, np.maximum(stored, stored[stored > 0].min()), 8 * 12 * 2.3)  # of a logarithm up to 12, through 10**


if __name__ == "__main__":
    run_all("__main__")
