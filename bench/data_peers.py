# SPDX-License-Identifier: Apache-2.0
"""The readers that others would use for the same samples, in the protocol of `bench_data serve`: prints "ready", then for every line
"SECONDS" one JSON object.

usage: data_peers.py KIND PATH      KIND: h5py, memmap, dali, torch_crops (crops); h5py_pairs, torch_pairs (pairs)
"""
import json
import pathlib
import sys
import time

import numpy as np

CROP = 64
CHANNELS = (4, 5)


def crop_bytes():
    return sum(CHANNELS) * CROP**3 * 4


class H5pyCrops:
    """As the tutorials read: read_direct of a hyperslab into a reused buffer, the file opened once."""

    def __init__(self, path):
        import h5py
        self.file = h5py.File(path, "r")
        self.boxes = [self.file["Nbody"], self.file["Hydro"]]
        self.edge = self.boxes[0].shape[-1]
        self.out = [np.empty((c, CROP, CROP, CROP), np.float32) for c in CHANNELS]
        self.random = np.random.default_rng(1)

    def sample(self):
        x, y, z = self.random.integers(0, self.edge - CROP + 1, 3)
        for box, out in zip(self.boxes, self.out):
            box.read_direct(out, np.s_[:, x:x + CROP, y:y + CROP, z:z + CROP])
        return 1, crop_bytes()


class MemmapCrops:
    """numpy over a mapping of the same contiguous bytes, copied into a reused buffer."""

    def __init__(self, path):
        import h5py
        with h5py.File(path, "r") as file:
            self.boxes = [np.memmap(path, np.float32, "r", file[name].id.get_offset(), file[name].shape) for name in ("Nbody", "Hydro")]
        self.edge = self.boxes[0].shape[-1]
        self.out = [np.empty((c, CROP, CROP, CROP), np.float32) for c in CHANNELS]
        self.random = np.random.default_rng(1)

    def sample(self):
        x, y, z = self.random.integers(0, self.edge - CROP + 1, 3)
        for box, out in zip(self.boxes, self.out):
            np.copyto(out, box[:, x:x + CROP, y:y + CROP, z:z + CROP])
        return 1, crop_bytes()


class DaliCrops:
    """DALI's numpy reader with a region of interest, CPU, one thread; channel-last files as its tutorial has them."""

    def __init__(self, path):
        from nvidia.dali import fn, pipeline_def, types
        edge = np.load(pathlib.Path(path) / "data.npy", mmap_mode="r").shape[0]
        random = np.random.default_rng(1)
        batch = 4

        @pipeline_def(batch_size=batch, num_threads=1, device_id=None, prefetch_queue_depth=1)
        def crops():
            start = fn.external_source(lambda: [random.integers(0, edge - CROP + 1, 3).astype(np.int32) for _ in range(batch)])
            shape = types.Constant(np.array([CROP] * 3, np.int32))
            read = [fn.readers.numpy(device="cpu", file_root=path, files=[name], roi_start=start, roi_shape=shape, roi_axes=[0, 1, 2],
                                     dont_use_mmap=False, cache_header_information=True) for name in ("data.npy", "label.npy")]
            return tuple(fn.transpose(one, perm=[3, 0, 1, 2]) for one in read)

        self.batch = batch
        self.pipeline = crops()
        self.pipeline.build()

    def sample(self):
        self.pipeline.run()
        return self.batch, self.batch * crop_bytes()


class H5pyPairs:
    """As the tutorials read: two slices into new arrays, normalised with numpy."""

    def __init__(self, path):
        import h5py
        self.fields = h5py.File(sorted(pathlib.Path(path).glob("*.h5"))[0], "r")["fields"]
        self.mean, self.std = (np.load(pathlib.Path(path) / name)[0] for name in ("means.npy", "stds.npy"))
        self.random = np.random.default_rng(1)

    def pair(self, step):
        return [(self.fields[step + i] - self.mean) / self.std for i in (0, 1)]

    def sample(self):
        pair = self.pair(self.random.integers(0, len(self.fields) - 1))
        return 1, sum(one.nbytes for one in pair)


class Loader:
    """PyTorch's DataLoader with two workers over one of the classes above."""

    def __init__(self, path, kind, batch):
        import torch

        class Samples(torch.utils.data.Dataset):
            reader = None

            def __len__(self):
                return 1 << 20

            def __getitem__(self, index):
                if self.reader is None:  # in the worker, as the tutorials open their files
                    Samples.reader = kind(path)
                if isinstance(self.reader, H5pyPairs):
                    return tuple(torch.from_numpy(one) for one in self.reader.pair(index % (len(self.reader.fields) - 1)))
                self.reader.sample()
                return tuple(torch.from_numpy(one.copy()) for one in self.reader.out)

        self.batches = iter(torch.utils.data.DataLoader(Samples(), batch_size=batch, num_workers=2, persistent_workers=True))

    def sample(self):
        batch = next(self.batches)
        return len(batch[0]), sum(one.numel() * 4 for one in batch)


KINDS = {
    "h5py": H5pyCrops,
    "memmap": MemmapCrops,
    "dali": DaliCrops,
    "torch_crops": lambda path: Loader(path, H5pyCrops, 4),
    "h5py_pairs": H5pyPairs,
    "torch_pairs": lambda path: Loader(path, H5pyPairs, 4),
}


def main():
    reader = KINDS[sys.argv[1]](sys.argv[2])
    reader.sample()
    print("ready", flush=True)
    for line in sys.stdin:
        seconds, samples, size, start = float(line), 0, 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            count, length = reader.sample()
            samples, size = samples + count, size + length
        passed = time.perf_counter() - start
        print(json.dumps({"samples": samples, "seconds": passed, "delivered_bytes": size}), flush=True)


if __name__ == "__main__":
    main()
