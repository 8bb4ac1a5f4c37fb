# SPDX-License-Identifier: Apache-2.0
"""Welkin in Python: trained models on torch's tensors, their data, training from a notebook, export.

    model = welkin.load("logs/short/1GPU/00")
    for input, target in model.dataset("valid").batches(8):
        prediction = model(input)

PREFIX is the installed folder: bin, lib, libexec, share, include; CMake's find_package(Welkin) takes it as CMAKE_PREFIX_PATH.
`import welkin` alone imports nothing of torch: the names of __all__ do when they are first used, and the program opens torch's libraries itself.
"""
import importlib
import importlib.util
import os
import pathlib
import sys

PREFIX = pathlib.Path(__file__).resolve().parent

# Where each public name is made.
_HOMES = {"load": "_model", "Model": "_model", "Dataset": "_dataset", "train": "_training", "Run": "_training", "export": "_export",
          "WelkinError": "_errors", "ConfigError": "_errors", "DataError": "_errors", "CommError": "_errors", "CheckpointError": "_errors",
          "Interrupted": "_errors", "twins": "twins"}
__all__ = ["PREFIX", "main", "torch_folder", *_HOMES]


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module 'welkin' has no attribute {name!r}")
    home = importlib.import_module(f"welkin.{_HOMES[name]}")
    value = home if name == _HOMES[name] else getattr(home, name)
    globals()[name] = value
    return value


def __dir__():
    return sorted(__all__)


def torch_folder():
    """The torch package of this Python's environment, or None."""
    found = importlib.util.find_spec("torch")
    return None if found is None or found.origin is None else str(pathlib.Path(found.origin).parent)


def _export(arguments):
    try:
        export = importlib.import_module("welkin._export")
    except ImportError as error:
        print(f"welkin: [export] torch cannot be imported, which writes this format: reason={error}. "
              "Install it whole: python3 -m pip install torch==2.11.0.", file=sys.stderr)
        return 2
    return export.main(arguments)


def main():
    """Becomes the program, with this environment's torch unless WELKIN_TORCH or --torch names another; what only Python can write is exported here."""
    if sys.argv[1:3] == ["ckpt", "export"] and any(word.endswith((".onnx", ".pt2", ".ts")) for word in sys.argv[3:]):
        sys.exit(_export(sys.argv[3:]))
    environment = dict(os.environ)
    if not environment.get("WELKIN_TORCH") and (torch := torch_folder()):
        environment["WELKIN_TORCH"] = torch
    program = str(PREFIX / "bin/welkin")
    os.execve(program, [program, *sys.argv[1:]], environment)
