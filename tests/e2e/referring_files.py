# SPDX-License-Identifier: Apache-2.0
"""HDF5 files whose attribute refers to a global heap, and such a file with a reference that leads out of it."""
import h5py

from bad_input_case import write_fields


def write_with_references(path):
    """Its attribute of three texts lies in a global heap, to which the attribute refers by address and index."""
    write_fields(path)
    with h5py.File(path, "a") as file:
        file["fields"].attrs["channels"] = ["u10", "v10", "t2m"]


def heap_of(data):
    return data.index(b"GCOL")


def refer_elsewhere(path):
    """HDF5 1.10 follows an index without looking whether the heap is so long."""
    data = path.read_bytes()
    address = heap_of(data).to_bytes(8, "little")
    damaged = data.replace(address + (1).to_bytes(4, "little"), address + (0xFF00).to_bytes(4, "little"))
    assert damaged != data
    path.write_bytes(damaged)
