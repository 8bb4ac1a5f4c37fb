# SPDX-License-Identifier: Apache-2.0
"""Array formats against the software that made them: what zarr, h5py with hdf5plugin, lmdb, tarfile and numpy write is read by
`welkin data convert` to the bit, what it writes is read by them, and damaged files are refused with file and place.
"""
import io
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import unittest
import warnings

import h5py
import hdf5plugin
import lmdb
import netCDF4
import numpy as np

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import numcodecs
    import xarray
    import zarr

warnings.filterwarnings("ignore", module="zarr|numcodecs")
BINARY = os.environ["WELKIN_BINARY"]
RANDOM = np.random.default_rng(5)
DTYPES = ["float32", "float64", "float16", "int16", "uint8", "int32", ">f4", ">i2"]


def values(dtype, shape=(5, 3, 7, 11)):
    """Values that every type holds exactly, smooth enough to compress, with NaN and infinity in the floats."""
    array = (np.arange(np.prod(shape)).reshape(shape) % 251).astype(dtype)
    if array.dtype.kind == "f":
        array += RANDOM.standard_normal(shape).astype(array.dtype)
        array.flat[3], array.flat[17] = np.nan, -np.inf
    return array


def npy_bytes(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


class Formats(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)

    def convert(self, source, name, kind, *flags):
        target = self.root / name
        done = subprocess.run([BINARY, "data", "convert", str(source), str(target), "--format", kind, *flags],
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(str(target), done.stdout)
        return target

    def refuse(self, source, *words):
        done = subprocess.run([BINARY, "data", "convert", str(source), str(self.root / "refused.h5"), "--format", "hdf5"],
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertFalse((self.root / "refused.h5").exists())

    def assert_equal_arrays(self, source, wanted):
        """The arrays of a file, through HDF5, are the wanted ones to the bit."""
        target = self.convert(source, f"through-{len(list(self.root.iterdir()))}.h5", "hdf5")
        with h5py.File(target) as file:
            for name, array in wanted.items():
                self.assert_same(file[name][()], array, name)

    def assert_same(self, found, array, name):
        little = array.astype(array.dtype.newbyteorder("<"))
        self.assertEqual(found.dtype, little.dtype, name)
        self.assertEqual(found.shape, little.shape, name)
        np.testing.assert_array_equal(found, little, err_msg=name)

    def test_zarr2(self):
        group = zarr.open_group(self.root / "a.zarr", mode="w", zarr_format=2)
        compressors = {"none": None, "zlib": numcodecs.Zlib(1), "gzip": numcodecs.GZip(1), "zstd": numcodecs.Zstd(3),
                       "lz4": numcodecs.LZ4(), "blosclz": numcodecs.Blosc("blosclz", 5, numcodecs.Blosc.SHUFFLE),
                       "bits": numcodecs.Blosc("zstd", 5, numcodecs.Blosc.BITSHUFFLE),
                       "blosczlib": numcodecs.Blosc("zlib", 5, numcodecs.Blosc.NOSHUFFLE)}
        wanted = {}
        for dtype, (name, compressor) in itertools.product(DTYPES, compressors.items()):
            key = f"{name}/{dtype.replace('>', 'big_')}"
            odd = len(wanted) % 2
            array = group.create_array(key, shape=(5, 3, 7, 11), dtype=dtype, compressors=compressor, filters=None,
                                       chunks=(2, 3, 4, 5) if odd else (5, 1, 7, 11), order="F" if len(wanted) % 3 == 0 else "C",
                                       chunk_key_encoding={"name": "v2", "separator": "/" if odd else "."})
            wanted[key] = values(dtype)
            array[...] = wanted[key]
        shuffled = group.create_array("shuffled", shape=(5, 3, 7, 11), dtype="f4", compressors=numcodecs.Zlib(1), chunks=(2, 2, 7, 11),
                                      filters=[numcodecs.Shuffle(4)])
        wanted["shuffled"] = shuffled[...] = values("float32")
        holes = group.create_array("holes", shape=(7, 9), dtype="f4", chunks=(2, 4), fill_value=-1.5)
        holes[2:3, 5:] = 4
        wanted["holes"] = holes[...]
        self.assert_equal_arrays(self.root / "a.zarr", wanted)

    def test_zarr3(self):
        group = zarr.open_group(self.root / "a.zarr", mode="w", zarr_format=3)
        compressors = {"none": None, "gzip": zarr.codecs.GzipCodec(level=1), "zstd": zarr.codecs.ZstdCodec(level=3),
                       "zstdsum": [zarr.codecs.ZstdCodec(level=1, checksum=True), zarr.codecs.Crc32cCodec()],
                       "blosc": zarr.codecs.BloscCodec(cname="lz4", shuffle="bitshuffle"),
                       "blosclz": zarr.codecs.BloscCodec(cname="blosclz", shuffle="shuffle")}
        wanted = {}
        for dtype, (name, compressor), sharded in itertools.product(DTYPES, compressors.items(), (False, True)):
            key = f"{name}/{'shards' if sharded else 'plain'}/{dtype.replace('>', 'big_')}"
            options = {"shards": (4, 4, 8, 12)} if sharded else {}
            array = group.create_array(key, shape=(5, 3, 7, 11), dtype=dtype, compressors=compressor, chunks=(2, 2, 4, 6), **options)
            wanted[key] = values(dtype)
            array[...] = wanted[key]
        turned = group.create_array("turned", shape=(5, 3, 7, 11), dtype="f4", chunks=(2, 3, 4, 5), compressors=None,
                                    filters=[zarr.codecs.TransposeCodec(order=(2, 0, 3, 1))], fill_value=np.nan)
        wanted["turned"] = turned[...] = values("float32")
        holes = group.create_array("holes", shape=(9, 9), dtype="f4", chunks=(2, 2), shards=(4, 4), fill_value=np.nan)
        holes[2:3, 5:6] = 4
        wanted["holes"] = holes[...]
        self.assert_equal_arrays(self.root / "a.zarr", wanted)

    def test_hdf5_filters(self):
        wanted = {}
        with h5py.File(self.root / "a.h5", "w") as file:
            filters = {"zstd": hdf5plugin.Zstd(), "lz4": hdf5plugin.LZ4(nbytes=64), "blosclz": hdf5plugin.Blosc("blosclz"),
                       "blosc": hdf5plugin.Blosc("zstd", shuffle=hdf5plugin.Blosc.BITSHUFFLE), "deflate": {"compression": "gzip"},
                       "checked": {"compression": "gzip", "shuffle": True, "fletcher32": True}, "none": {}}
            for dtype, (name, options) in itertools.product(DTYPES, filters.items()):
                key = f"{name}/{dtype.replace('>', 'big_')}"
                wanted[key] = values(dtype)
                file.create_dataset(key, data=wanted[key], chunks=(2, 3, 4, 5), **options)
        self.assert_equal_arrays(self.root / "a.h5", wanted)

    def test_npy_raw_tar_and_lmdb(self):
        for dtype, order in (("float32", "F"), ("float64", "C"), ("float16", "F"), ("int16", "C"), (">f4", "F")):
            array = values(dtype)
            np.save(self.root / "a.npy", np.asarray(array, order=order))
            (self.root / "a.raw").write_bytes(b"12345678" + array.tobytes(order))
            (self.root / "a.raw.json").write_text(json.dumps({"shape": array.shape, "dtype": array.dtype.str, "order": order, "offset": 8}))
            with tarfile.open(self.root / "a.tar", "w", format=tarfile.PAX_FORMAT if order == "C" else tarfile.GNU_FORMAT) as tar:
                for i, sample in enumerate(array):
                    for name in ("x", "y"):
                        data = npy_bytes(np.asarray(sample if name == "x" else -sample, order=order))
                        info = tarfile.TarInfo(f"{'long' * 40}/{i:06d}.{name}.npy")
                        info.size = len(data)
                        tar.addfile(info, io.BytesIO(data))
            with lmdb.open(str(self.root / "a.lmdb"), map_size=1 << 24) as base, base.begin(write=True) as transaction:
                for i, sample in enumerate(array):
                    transaction.put(f"{i:06d}.x.npy".encode(), npy_bytes(np.asarray(sample, order=order)))
            for source, name in (("a.npy", "fields"), ("a.raw", "fields"), ("a.tar", "x"), ("a.lmdb", "x")):
                with self.subTest(dtype=dtype, order=order, source=source):
                    self.assert_equal_arrays(self.root / source, {name: array})
            shutil.rmtree(self.root / "a.lmdb")

    def source_file(self):
        """A yearly file with names, units and coordinates."""
        fields = (RANDOM.standard_normal((6, 3, 8, 12)) * [[[[1.0]], [[1e-4]], [[300.0]]]] + [[[[0.0]], [[1e-3]], [[5e4]]]]).astype("f4")
        with h5py.File(self.root / "2000.h5", "w") as file:
            file["fields"] = fields
            file["fields"].attrs["channels"] = ["t", "q", "z"]
            file["time"] = np.arange(6, dtype="i8") * 21600
            file["latitude"] = np.linspace(90, -90, 8)
        return fields

    def read_back(self, path, kind, name="fields"):
        """What the format's own software reads."""
        if kind == "hdf5":
            with h5py.File(path) as file:
                return file[name][()]
        if kind in ("zarr2", "zarr3"):
            return zarr.open_group(path, mode="r")[name][...]
        if kind == "npy":
            return np.load(path)
        if kind == "raw":
            facts = json.loads((path.parent / f"{path.name}.json").read_text())["arrays"][name]
            return np.memmap(path, facts["dtype"], "r", facts["offset"], tuple(facts["shape"]))
        if kind == "webdataset":
            with tarfile.open(path) as tar:
                names = [member for member in tar.getnames() if member.endswith(f"{name}.npy")]
                return np.stack([np.load(io.BytesIO(tar.extractfile(member).read())) for member in names])
        with lmdb.open(str(path), readonly=True, lock=False) as base, base.begin() as transaction:
            pairs = [(key, value) for key, value in transaction.cursor() if key.endswith(f"{name}.npy".encode())]
            return np.stack([np.load(io.BytesIO(value)) for _, value in pairs])

    def test_every_format_is_written_for_its_own_software_and_read_back(self):
        fields = self.source_file()
        for kind in ("hdf5", "zarr2", "zarr3", "npy", "raw", "webdataset", "lmdb"):
            compressions = ("none", "gzip", "zstd", "blosc", "lz4") if kind in ("hdf5", "zarr2", "zarr3") else ("none",)
            for compress in compressions:
                with self.subTest(kind=kind, compress=compress):
                    chunk = ("--chunk", "2,3,5,7") if kind in ("hdf5", "zarr2", "zarr3") else ()
                    path = self.convert(self.root / "2000.h5", f"{kind}-{compress}", kind, "--compress", compress, *chunk)
                    np.testing.assert_array_equal(self.read_back(path, kind), fields)
                    if compress not in ("none", "lz4"):
                        continue  # read in the tests above
                    back = self.convert(path, f"{kind}-{compress}-back.h5", "hdf5")
                    with h5py.File(back) as file:
                        np.testing.assert_array_equal(file["fields"], fields)
                        np.testing.assert_array_equal(file["time"], np.arange(6) * 21600)
                        self.assertEqual([text.decode() if isinstance(text, bytes) else text for text in file["fields"].attrs["channels"]],
                                         ["t", "q", "z"])

    def test_xarray_opens_what_is_made_of_a_netcdf_file(self):
        """Axes have names, times and places are those of the region, and values that were declared missing still are."""
        fields = RANDOM.standard_normal((6, 8, 12)).astype("f4")
        fields[2, 3, 4] = -9999
        with h5py.File(self.root / "a.nc", "w") as file:
            file["expver"] = np.int32(1)
            for name, values, units in (("time", np.arange(6) * 6, "hours since 2001-01-01"), ("lat", np.linspace(70, -70, 8), "degrees_north"),
                                        ("lon", np.arange(12) * 30.0, "degrees_east")):
                file[name] = values
                file[name].make_scale(name)
                file[name].attrs["units"] = units
            file["t2m"] = fields
            file["t2m"].attrs["_FillValue"] = np.float32(-9999)
            for axis, name in enumerate(("time", "lat", "lon")):
                file["t2m"].dims[axis].attach_scale(file[name])
        expected = np.where(fields == -9999, np.nan, fields)[1:5, 2:, :6]
        for kind in ("zarr2", "zarr3"):
            with self.subTest(kind=kind), xarray.open_dataset(self.convert(self.root / "a.nc", kind, kind, "--region", "1:5,2:,:6"), engine="zarr") as data:
                np.testing.assert_array_equal(data.t2m.values, expected)
                self.assertEqual(data.t2m.dims, ("time", "lat", "lon"))
                self.assertTrue(np.isnan(data.t2m.encoding["_FillValue"]))
                np.testing.assert_array_equal(data.time.values, np.datetime64("2001-01-01", "ns") + np.arange(1, 5) * np.timedelta64(6, "h"))
                np.testing.assert_array_equal(data.lat.values, np.linspace(70, -70, 8)[2:])
                np.testing.assert_array_equal(data.lon.values, np.arange(6) * 30.0)
                self.assertEqual(data.expver.item(), 1)
        with h5py.File(self.convert(self.root / "a.nc", "b.h5", "hdf5", "--region", "1:5,2:,:6")) as file:
            np.testing.assert_array_equal(file["t2m"][()], expected)
            self.assertTrue(np.isnan(file["t2m"].attrs["_FillValue"]))
            np.testing.assert_array_equal(file["lat"][()], np.linspace(70, -70, 8)[2:])

    def test_netcdf4_knows_the_dimensions_of_hdf5_output(self):
        fields = self.source_file()
        with h5py.File(self.root / "2000.h5", "a") as file:
            file["time"].attrs["units"] = "seconds since 2001-01-01"
            file["static"] = fields[0, :2]
        with xarray.open_dataset(self.convert(self.root / "2000.h5", "a.h5", "hdf5", "--compress", "zstd"), engine="netcdf4") as data:
            self.assertEqual(data.fields.dims, ("time", "channel", "latitude", "lon"))
            self.assertEqual(sorted(data.variables), ["fields", "latitude", "static", "time"])
            self.assertEqual(data.static.dims, ("static_channel", "latitude", "lon"))
            np.testing.assert_array_equal(data.fields.values, fields)
            np.testing.assert_array_equal(data.latitude.values, np.linspace(90, -90, 8))
            np.testing.assert_array_equal(data.fields.isel(channel=1).sel(time="2001-01-01T06").values, fields[1, 1])
        with h5py.File(self.root / "a.h5") as file:
            self.assertTrue(file["latitude"].is_scale)
            self.assertEqual([dim[0].name for dim in file["fields"].dims], ["/time", "/channel", "/latitude", "/lon"])
            self.assertIn(file["fields"], [file[reference] for reference, _ in file["latitude"].attrs["REFERENCE_LIST"]])
        # A second conversion does not take what stands for a dimension for an array.
        with xarray.open_zarr(self.convert(self.root / "a.h5", "b.zarr", "zarr3"), consolidated=False) as data:
            self.assertEqual(sorted(data.variables), ["fields", "latitude", "static", "time"])

    def test_netcdf4_knows_the_dimensions_of_boxes_and_groups(self):
        boxes = {"Nbody": RANDOM.standard_normal((4, 6, 6, 6)).astype("f4"), "Hydro": RANDOM.standard_normal((5, 6, 6, 6)).astype("f4")}
        with h5py.File(self.root / "box.h5", "w") as file:
            for name, values in boxes.items():
                file[name] = values
        for kind, engine in (("hdf5", "netcdf4"), ("zarr2", "zarr"), ("zarr3", "zarr")):
            with self.subTest(kind=kind), xarray.open_dataset(self.convert(self.root / "box.h5", f"box-{kind}", kind), engine=engine) as data:
                for name, values in boxes.items():
                    self.assertEqual(data[name].dims, (f"{name}_channel", "depth", "height", "width"))
                    np.testing.assert_array_equal(data[name].values, values)
        values = RANDOM.standard_normal((3, 8, 12)).astype("f4")
        with netCDF4.Dataset(self.root / "c.nc", "w") as file:
            for name, size in (("time", None), ("lat", 8), ("lon", 12), ("letters", 3)):
                file.createDimension(name, size)
            file.createVariable("lat", "f8", ("lat",))[:] = np.arange(8)
            group = file.createGroup("surface")
            group.createVariable("t", "f4", ("time", "lat", "lon"))[:] = values
        with netCDF4.Dataset(self.convert(self.root / "c.nc", "c.h5", "hdf5")) as file:
            self.assertEqual(file["surface/t"].dimensions, ("time", "lat", "lon"))
            np.testing.assert_array_equal(file["surface/t"][:], values)

    def test_empty_attributes_and_files_of_coordinates(self):
        with netCDF4.Dataset(self.root / "a.nc", "w") as file:
            file.comment = ""
            file.createDimension("x", 4)
            file.createVariable("x", "f8", ("x",))[:] = [1, 2, 4, 8]
            file["x"].note = ""
        with h5py.File(self.root / "a.nc", "a") as file:
            file["x"].attrs["nothing"] = h5py.Empty("f4")
        for kind in ("hdf5", "zarr2", "zarr3"):
            path = self.convert(self.root / "a.nc", f"x-{kind}", kind)
            np.testing.assert_array_equal(self.read_back(path, kind, "x"), [1, 2, 4, 8])
        with h5py.File(self.root / "x-hdf5") as file:
            self.assertEqual(file["x"].attrs["nothing"].shape, None)
        with tarfile.open(self.root / "others.tar", "w") as tar:
            tar.addfile(tarfile.TarInfo("0.pth"))
        done = subprocess.run([BINARY, "data", "convert", str(self.root / "others.tar"), str(self.root / "x.h5"), "--format", "hdf5", "--array", "x"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 3)
        self.assertIn("The file holds no array of numbers that is read. Members and keys of archives are npy files (KEY.fields.npy)", done.stderr)
        done = subprocess.run([BINARY, "data", "convert", str(self.root / "a.nc"), str(self.root / "x.npy"), "--format", "npy"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 3)
        self.assertIn("reason=it holds arrays of one axis only. Choose --format hdf5, zarr2 or zarr3", done.stderr)

    def test_filters_of_zarr_that_only_round(self):
        source = values("float32")
        group = zarr.open_group(self.root / "round.zarr", mode="w", zarr_format=2)
        for name, filters in (("bits", numcodecs.BitRound(8)), ("digits", numcodecs.Quantize(2, "<f4")), ("delta", numcodecs.Delta("<f4"))):
            group.create_array(name, shape=source.shape, dtype="f4", chunks=(2, 3, 4, 5), filters=[filters], compressors=numcodecs.Zlib())[...] = source
        with h5py.File(self.convert(self.root / "round.zarr", "round.h5", "hdf5", "--array", "bits", "--array", "digits")) as file:
            np.testing.assert_array_equal(file["bits"], group["bits"][...])
            np.testing.assert_array_equal(file["digits"], group["digits"][...])
        done = subprocess.run([BINARY, "data", "convert", str(self.root / "round.zarr"), str(self.root / "x.h5"), "--format", "hdf5", "--array", "delta"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 3)
        self.assertIn("a codec that cannot be undone: path=" + str(self.root / "round.zarr") + ", dataset=delta, codec=delta. Write the array again with blosc",
                      done.stderr)

    def test_packed_and_narrow_types_keep_their_bounds(self):
        fields = self.source_file()
        span = fields.max(axis=(0, 2, 3)) - fields.min(axis=(0, 2, 3))
        for kind in ("hdf5", "zarr3", "raw", "lmdb"):
            packed = self.convert(self.root / "2000.h5", f"packed-{kind}", kind, "--dtype", "int16")
            self.assertEqual(self.read_back(packed, kind).dtype, np.int16)
            with h5py.File(self.convert(packed, f"{kind}-unpacked.h5", "hdf5")) as file:
                error = np.abs(file["fields"][()].astype("f8") - fields).max(axis=(0, 2, 3))
            self.assertTrue((error <= span / 65534 / 2 * 1.001 + np.abs(fields).max(axis=(0, 2, 3)) * 2.0**-23).all(), (kind, error))
        half = self.convert(self.root / "2000.h5", "half", "npy", "--dtype", "float16", "--region", "1:3,0:2,:,2:5")
        np.testing.assert_array_equal(np.load(half), fields[1:3, :2, :, 2:5].astype("f2"))
        brain = self.convert(self.root / "2000.h5", "brain", "zarr3", "--dtype", "bfloat16")
        with h5py.File(self.convert(brain, "brain.h5", "hdf5", "--dtype", "float32")) as file:
            bits = fields.view("u4").astype("u8")
            rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype("u4").view("f4")
            np.testing.assert_array_equal(file["fields"][()], rounded)

    def test_damaged_files_are_refused_with_their_place(self):
        group = zarr.open_group(self.root / "a.zarr", mode="w", zarr_format=3)
        array = group.create_array("x", shape=(4, 64), dtype="f4", chunks=(2, 64), compressors=zarr.codecs.ZstdCodec(checksum=True))
        array[...] = RANDOM.standard_normal((4, 64))
        chunk = self.root / "a.zarr/x/c/1/0"
        whole = chunk.read_bytes()
        chunk.write_bytes(whole[:-9])
        self.refuse(self.root / "a.zarr", "x/c/1/0", "dataset=x", "chunk=(1, 0)", "zstd")
        chunk.write_bytes(bytes(whole[:60]) + bytes([whole[60] ^ 4]) + whole[61:])
        self.refuse(self.root / "a.zarr", "x/c/1/0", "chunk=(1, 0)", "zstd")
        metadata = json.loads((self.root / "a.zarr/x/zarr.json").read_text())
        for key, value, word in (("shape", [1 << 62, 1 << 62], "no machine"), ("shape", [-1, 3], "no size"), ("shape", "x", "shape"),
                                 ("chunk_grid", {"name": "regular", "configuration": {"chunk_shape": [1 << 40, 64]}}, "chunk of more"),
                                 ("chunk_grid", {"name": "regular", "configuration": {"chunk_shape": [0, 64]}}, "below 1")):
            (self.root / "a.zarr/x/zarr.json").write_text(json.dumps({**metadata, key: value}))
            self.refuse(self.root / "a.zarr", str(self.root / "a.zarr"), word)
        with tarfile.open(self.root / "a.tar", "w") as tar:
            for i in range(3):
                data = npy_bytes(np.zeros((4, 5)))
                info = tarfile.TarInfo(f"{i}.npy")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
        whole = (self.root / "a.tar").read_bytes()
        for damaged, word in ((whole[:1400], "offset="), (whole[:1024] + b"x" + whole[1025:], "checksum"),
                              (whole[:512] + b"?" + whole[513:], "member=0.npy, offset=512")):
            (self.root / "a.tar").write_bytes(damaged)
            self.refuse(self.root / "a.tar", "a.tar", word)
        with lmdb.open(str(self.root / "a.lmdb"), map_size=1 << 24) as base, base.begin(write=True) as transaction:
            for i in range(3):
                transaction.put(f"{i}.npy".encode(), npy_bytes(np.zeros((40, 50))))
        whole = (self.root / "a.lmdb/data.mdb").read_bytes()
        for size, word in ((9000, "page="), (len(whole) - 8192, "truncated")):
            (self.root / "a.lmdb/data.mdb").write_bytes(whole[:size])
            self.refuse(self.root / "a.lmdb", "data.mdb", word)
        (self.root / "a.raw").write_bytes(bytes(100))
        (self.root / "a.raw.json").write_text('{"shape": [5, 6], "dtype": "float32", "offset": 4}')
        self.refuse(self.root / "a.raw", "a.raw", "truncated", "bytes_needed=120")


if __name__ == "__main__":
    unittest.main()
