# SPDX-License-Identifier: Apache-2.0
"""Damage for the damaged_files test: bytes changed, cuts, insertions, blocks set to zero and exchanged, each a function of a random generator,
and files of every format to be damaged."""
import pathlib
import shutil
import subprocess

import h5py
import netCDF4
import numpy as np
from bad_input_case import BINARY, CHANNELS, HEIGHT, WIDTH, YEAR_STEPS
from genericio_writer import genericio

try:
    import eccodes
except ImportError:
    eccodes = None

KINDS = ("head", "bytes", "cut", "insert", "zero", "swap")
HEAD_BYTES = 6000


def change_bytes(data, limit, random):
    """Up to 20 bytes become others, which are often 0, 255 or one that stands elsewhere in the file."""
    for _ in range(random.randint(1, 20)):
        data[random.randrange(limit)] = random.choice([random.randrange(256), 0, 255, data[random.randrange(len(data))]])


def damage(whole, kind, random):
    """A damaged copy of these bytes."""
    data = bytearray(whole)
    place, length = random.randrange(len(data)), random.choice([8, 64, 512])
    if kind == "head":
        change_bytes(data, min(HEAD_BYTES, len(data)), random)
    elif kind == "bytes":
        change_bytes(data, len(data), random)
    elif kind == "cut":
        del data[place:]
    elif kind == "insert":
        data[place:place] = random.randbytes(random.randint(1, 64))
    elif kind == "zero":
        data[place:place + length] = bytes(len(data[place:place + length]))
    else:
        other = random.randrange(len(data))
        data[place:place + length], data[other:other + length] = data[other:other + length], data[place:place + length]
    return bytes(data)


def values():
    return np.random.default_rng(1).normal(size=(YEAR_STEPS, CHANNELS, HEIGHT, WIDTH)).astype(np.float32)


def write_hdf5(path, libver=None, **options):
    with h5py.File(path, "w", libver=libver) as file:
        fields = file.create_dataset("fields", data=values(), **options)
        fields.attrs["channels"] = ["u10", "v10", "t2m"]
        fields.attrs["units"] = ["m s-1", "m s-1", "K"]
        file["time"] = np.arange(YEAR_STEPS) * 21600
        file["time"].attrs["calendar"] = "standard"
        file["latitude"] = np.linspace(90, -90, HEIGHT)
        file["longitude"] = np.arange(WIDTH) * 360.0 / WIDTH


def write_netcdf(path, form):
    with netCDF4.Dataset(path, "w", format=form) as file:
        for name, size, units, points in (("time", None, "hours since 2001-01-01", np.arange(YEAR_STEPS) * 6.0),
                                          ("lat", HEIGHT, "degrees_north", np.linspace(80, -80, HEIGHT)),
                                          ("lon", WIDTH, "degrees_east", np.arange(WIDTH) * 20.0)):
            file.createDimension(name, size)
            file.createVariable(name, "f8", (name,)).units = units
            file[name][:] = points
        options = {"zlib": True} if form == "NETCDF4" else {}
        for channel, name in enumerate(("u10", "t2m")):
            file.createVariable(name, "f4", ("time", "lat", "lon"), **options).units = "K"
            file[name][:] = values()[:, channel]


def write_grib(path):
    messages = []
    for step in range(4):
        handle = eccodes.codes_grib_new_from_samples(f"regular_ll_sfc_grib{1 + step % 2}")
        for key, value in {"Ni": 4, "Nj": 3, "latitudeOfFirstGridPointInDegrees": 20, "latitudeOfLastGridPointInDegrees": 10,
                           "longitudeOfFirstGridPointInDegrees": 350, "longitudeOfLastGridPointInDegrees": 5, "iDirectionIncrementInDegrees": 5,
                           "jDirectionIncrementInDegrees": 5, "dataDate": 20010101, "dataTime": step * 600, "shortName": "2t",
                           "packingType": "grid_simple", "bitsPerValue": 16}.items():
            eccodes.codes_set(handle, key, value)
        eccodes.codes_set_values(handle, 280.0 + step + np.arange(12.0))
        messages.append(eccodes.codes_get_message(handle))
        eccodes.codes_release(handle)
    path.write_bytes(b"".join(messages))


HDF5 = {"contiguous": {}, "chunked": {"chunks": (1, 3, 8, 16)}, "deflate": {"chunks": (1, 1, 8, 16), "compression": "gzip"},
        "shuffle": {"chunks": (2, 3, 4, 16), "compression": "gzip", "shuffle": True, "fletcher32": True},
        "latest": {"libver": "latest", "chunks": (1, 1, 8, 16), "compression": "gzip"},
        "scaleoffset": {"chunks": (1, 1, 8, 16), "scaleoffset": 3}}
CONVERTED = {"npy": (), "raw": (), "webdataset": (), "lmdb": (), "zarr2": ("--chunk", "1,3,8,16", "--compress", "gzip"),
             "zarr3": ("--chunk", "1,3,8,16", "--compress", "zstd")}


def make_arrays(folder):
    """One file or folder of each format of training data."""
    for name, options in HDF5.items():
        write_hdf5(folder / f"hdf5-{name}", **options)
    ranks = [{**{axis: np.linspace(0, 99, count, dtype=np.float32) for axis in "xyz"}, "id": np.arange(count)} for count in (300, 200)]
    (folder / "genericio").write_bytes(genericio(ranks, (100.0, 100.0, 100.0), compress=True))
    for name, flags in CONVERTED.items():
        subprocess.run([BINARY, "data", "convert", folder / "hdf5-contiguous", folder / name, "--format", name, *flags], check=True,
                       capture_output=True)


def make_gridded(folder):
    write_netcdf(folder / "netcdf3", "NETCDF3_CLASSIC")
    write_netcdf(folder / "netcdf4", "NETCDF4")
    if eccodes:
        write_grib(folder / "grib")


def copy_damaged(source, target, kind, random):
    """A copy of a file (with its sidecar) or folder in which one file is damaged; which."""
    if source.is_dir():
        shutil.copytree(source, target)
        files = sorted(path for path in target.rglob("*") if path.is_file() and path.stat().st_size)
    else:
        shutil.copy(source, target)
        files = [target]
        sidecar = pathlib.Path(f"{source}.json")
        if sidecar.exists():
            files.append(pathlib.Path(f"{target}.json"))
            shutil.copy(sidecar, files[-1])
    chosen = random.choice(files)
    chosen.write_bytes(damage(chosen.read_bytes(), kind, random))
    return chosen
