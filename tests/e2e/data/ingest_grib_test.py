# SPDX-License-Identifier: Apache-2.0
"""`welkin data ingest` on GRIB messages made here with the Python package eccodes (skipped without it): editions, scanning orders, missing
points, several fields in one message, and files that are bad."""
import unittest

import numpy as np
from ingest_runner import IngestCase, component_is_built, run_all
from tolerance import within

PACKED, PACKED_COARSELY = 1e-3, 1e-2  # ranges of up to 60 and 600 in 16 bits

try:
    import eccodes
except ImportError:
    eccodes = None


def reason_to_skip():
    if not component_is_built():
        return "the ingest component is not built: ecCodes or netCDF-C is not installed"
    return "" if eccodes else "the Python package eccodes is not installed"


@unittest.skipIf(reason_to_skip(), reason_to_skip())
class Grib(IngestCase):
    HEIGHT, WIDTH = 3, 4

    def message(self, values, edition=2, hour=0, **keys):
        """An encoded 2 m temperature on 20..10 N, 350..5 E."""
        handle = eccodes.codes_grib_new_from_samples(f"regular_ll_sfc_grib{edition}")
        settings = {"Ni": self.WIDTH, "Nj": self.HEIGHT, "latitudeOfFirstGridPointInDegrees": 20, "latitudeOfLastGridPointInDegrees": 10,
                    "longitudeOfFirstGridPointInDegrees": 350, "longitudeOfLastGridPointInDegrees": 5, "iDirectionIncrementInDegrees": 5,
                    "jDirectionIncrementInDegrees": 5, "dataDate": 20010101, "dataTime": hour * 100, "shortName": "2t", **keys}
        for key, value in settings.items():
            eccodes.codes_set(handle, key, value)
        eccodes.codes_set(handle, "packingType", "grid_simple")
        eccodes.codes_set(handle, "bitsPerValue", 16)
        eccodes.codes_set_values(handle, values.ravel().astype(np.float64))
        data = eccodes.codes_get_message(handle)
        eccodes.codes_release(handle)
        return data

    def write(self, *messages):
        path = self.root / "in.dat"  # the name says nothing
        path.write_bytes(b"".join(messages))
        return path

    def north_first(self):
        return 280.0 + np.arange(12).reshape(3, 4)

    def test_several_levels_and_times(self):
        values = lambda level, hour: 220.0 + level / 20 + hour + np.arange(12).reshape(3, 4)  # noqa: E731
        path = self.write(*(self.message(values(level, hour), hour=hour, typeOfLevel="isobaricInhPa", level=level, shortName="t")
                            for hour in (6, 0) for level in (500, 1000, 850)))
        self.ingest(path)
        fields, channels = self.fields("train/2001.h5"), self.channels("train/2001.h5")
        self.assertEqual(sorted(channels), ["t1000", "t500", "t850"])
        for c, channel in enumerate(channels):
            within(fields[:, c], [values(int(channel[1:]), hour) for hour in (0, 6)], PACKED, "the packing of the file")

    def test_both_editions_in_one_file_out_of_order(self):
        field = self.north_first()
        path = self.write(self.message(field + 1, edition=1, hour=1), self.message(field, edition=2, hour=0))
        self.ingest(path)
        fields = self.fields("train/2001.h5")
        within(fields[:, 0], [field, field + 1], PACKED, "the packing of the file")
        self.assertEqual(self.channels("train/2001.h5"), ["t2m"])
        np.testing.assert_array_equal(self.dataset("train/2001.h5", "longitude"), [-10, -5, 0, 5])
        np.testing.assert_array_equal(self.dataset("train/2001.h5", "latitude"), [20, 15, 10])

    def test_scanning_orders(self):
        field = self.north_first()
        south = {"jScansPositively": 1, "latitudeOfFirstGridPointInDegrees": 10, "latitudeOfLastGridPointInDegrees": 20}
        west = {"iScansNegatively": 1, "longitudeOfFirstGridPointInDegrees": 5, "longitudeOfLastGridPointInDegrees": 350}
        orders = [({}, field), (south, field[::-1]), (west, field[:, ::-1]), ({"jPointsAreConsecutive": 1}, field.T), ({**south, **west}, field[::-1, ::-1])]
        path = self.write(*(self.message(values, hour=hour, **keys) for hour, (keys, values) in enumerate(orders)))
        self.ingest(path)
        within(self.fields("train/2001.h5")[:, 0], [field] * len(orders), PACKED, "the packing of the file")

    def test_missing_points(self):
        field = self.north_first()
        field[1, 2] = 9999
        path = self.write(*(self.message(field, hour=hour, bitmapPresent=1, missingValue=9999) for hour in range(2)))
        self.assertIn("points without a value: channel=t2m, time=2001-01-01T00:00:00, points=1 of 12", self.refused(path))
        self.ingest(path, "--missing", "mask")
        fields = self.fields("train/2001.h5")
        self.assertEqual(self.channels("train/2001.h5"), ["t2m"])
        self.assertTrue(np.isnan(fields[:, 0, 1, 2]).all())
        self.assertEqual(np.isnan(fields).sum(), 2)
        mask = self.dataset("train/2001.h5", "static")
        self.assertEqual((mask.shape, mask.sum(), mask[0, 1, 2]), ((1, 3, 4), 11, 0))
        mean = (self.north_first().sum() - self.north_first()[1, 2]) / 11
        within(self.statistics("global_means"), mean, PACKED_COARSELY, "the packing of the file")

    def test_several_fields_in_one_message(self):
        field = self.north_first()
        multi = eccodes.codes_grib_multi_new()
        for hour in range(3):
            handle = eccodes.codes_new_from_message(self.message(field + hour, hour=hour))
            eccodes.codes_grib_multi_append(handle, 1, multi)
        path = self.root / "in.dat"
        with open(path, "wb") as file:
            eccodes.codes_grib_multi_write(multi, file)
        self.ingest(path)
        within(self.fields("train/2001.h5")[:, 0], [field, field + 1, field + 2], PACKED, "the packing of the file")

    def test_levels_of_another_kind(self):
        keys = {"shortName": "t", "typeOfLevel": "hybrid"}
        path = self.write(*(self.message(self.north_first() + level, hour=hour, **keys, level=level) for hour in (0, 1) for level in (60, 61)))
        self.ingest(path)
        self.assertEqual(self.channels("train/2001.h5"), ["t_60", "t_61"])

    def test_bad_files(self):
        whole = self.message(self.north_first())
        self.assertIn("cannot read a file: path=", self.refused(self.write(whole, whole[: len(whole) // 2])))
        for left in (1, 2, 3):  # which ecCodes takes for padding
            self.assertIn("the file ends within a message", self.refused(self.write(whole, whole[:left])))
        damaged = bytearray(whole)
        damaged[-4:] = b"7778"  # the message must end in 7777
        self.assertIn("cannot read a file: path=", self.refused(self.write(whole, bytes(damaged))))


if __name__ == "__main__":
    run_all("__main__")
