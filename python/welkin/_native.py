# SPDX-License-Identifier: Apache-2.0
"""Loads libwelkin.so and libwelkin_python.so into this process, beside the torch that it has: one libtorch serves both.

The libraries are those of the wheel; in a source tree those of WELKIN_LIBRARIES or build/release.
"""
from __future__ import annotations

import ctypes
import functools
import os
import pathlib
from typing import Any

from welkin._errors import ConfigError

TORCH_VERSION = "2.11.0"
_PACKAGE = pathlib.Path(__file__).resolve().parent
_LOADED: list[ctypes.CDLL] = []  # for the life of the process


def library_folder() -> pathlib.Path:
    places = [pathlib.Path(os.environ[name]) for name in ("WELKIN_LIBRARIES",) if os.environ.get(name)]
    places += [_PACKAGE / "lib", _PACKAGE.parents[1] / "build/release"]
    for place in places:
        if (place / "libwelkin_python.so").exists():
            return place
    raise ConfigError(f"[python] the libraries of Welkin are not there: searched={', '.join(map(str, places))}. "
                      "Install the wheel, or build the tree and name the folder in WELKIN_LIBRARIES.")


@functools.cache
def classes() -> Any:
    """torch.classes.welkin: Model, Dataset, Training."""
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # as the launcher: large tensors on huge pages
    import torch
    if torch.__version__.split("+")[0] != TORCH_VERSION:
        raise ConfigError(f"[python] wrong version of torch: found={torch.__version__}, wanted={TORCH_VERSION}. "
                          f"Install it: python3 -m pip install torch=={TORCH_VERSION}.")
    folder = library_folder()
    names = ["libwelkin.so", "libwelkin_cuda.so" if torch.cuda.is_available() else "", "libwelkin_python.so"]
    for name in names:
        if not name or (name == "libwelkin_cuda.so" and not (folder / name).exists()):
            continue
        try:
            _LOADED.append(ctypes.CDLL(str(folder / name), mode=ctypes.RTLD_GLOBAL))  # plug-ins look for our symbols
        except OSError as error:
            raise ConfigError(f"[python] a library cannot be loaded: file={folder / name}, reason={error}. Install Welkin again.") from None
    return torch.classes.welkin
