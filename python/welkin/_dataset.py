# SPDX-License-Identifier: Apache-2.0
"""A part of a run's data as tensors."""
from __future__ import annotations

import json
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from welkin._errors import raised

Pair = tuple[torch.Tensor, torch.Tensor]


class Dataset:
    """Samples (input, target): float32 tensors (C, H, W) or (C, D, H, W) of their own memory, on the CPU.

    A map-style data set of torch's: torch.utils.data.DataLoader takes it, with num_workers=0, since reading is parallel already.
    With `normalized` as training is given them; where a run draws crops and turns, these are those of its first epoch. Else in the values
    of the files, NaN where there are none. DataError names file and place of what cannot be read.
    """

    def __init__(self, native: Any, normalized: bool = True) -> None:
        self._native, self.normalized = native, normalized
        self._size = int(native.size())

    @property
    def spec(self) -> dict[str, Any]:
        """Channels, units, shapes, statistics and coordinates of both sides."""
        with raised():
            spec: dict[str, Any] = json.loads(self._native.spec())
        return spec

    @property
    def warnings(self) -> list[str]:
        """What is assumed of the files though no key says so."""
        return list(self._native.warnings())

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int) -> Pair:
        inputs, targets = self.read([index])
        return inputs[0], targets[0]

    def _place(self, index: int) -> int:
        place = operator.index(index)
        if not -self._size <= place < self._size:
            raise IndexError(f"sample {place} of {self._size}")
        return place % self._size

    def __iter__(self) -> Iterator[Pair]:
        return (self[index] for index in range(self._size))

    def read(self, indices: Sequence[int]) -> Pair:
        """Batches (B, C, ...) of these samples, read in parallel; negative ones count from the end, as in a list."""
        wanted = [self._place(index) for index in indices]
        with raised():
            inputs, targets = self._native.read(wanted, self.normalized)
        return inputs, targets

    def batches(self, size: int, *, shuffle: bool = False, seed: int = 0) -> Iterator[Pair]:
        """Every sample once, `size` at a time (the last batch may be shorter); shuffled by a generator of this seed alone."""
        if size < 1:
            raise ValueError(f"a batch of {size} samples")
        order = torch.randperm(self._size, generator=torch.Generator().manual_seed(seed)).tolist() if shuffle else list(range(self._size))
        return (self.read(order[begin:begin + size]) for begin in range(0, self._size, size))

    def location(self, index: int) -> str:
        """Where in which file the sample lies."""
        with raised():
            return str(self._native.location(self._place(index)))

    def __repr__(self) -> str:
        spec = self.spec
        return f"<welkin.Dataset of {self._size} samples, {tuple(spec['input']['shape'])} -> {tuple(spec['target']['shape'])}>"
