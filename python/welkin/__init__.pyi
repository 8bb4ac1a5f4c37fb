# SPDX-License-Identifier: Apache-2.0
import pathlib

from welkin import twins as twins
from welkin._dataset import Dataset as Dataset
from welkin._errors import CheckpointError as CheckpointError
from welkin._errors import CommError as CommError
from welkin._errors import ConfigError as ConfigError
from welkin._errors import DataError as DataError
from welkin._errors import Interrupted as Interrupted
from welkin._errors import WelkinError as WelkinError
from welkin._export import export as export
from welkin._model import Model as Model
from welkin._model import load as load
from welkin._training import Run as Run
from welkin._training import train as train

PREFIX: pathlib.Path
__all__ = ["PREFIX", "main", "torch_folder", "load", "Model", "Dataset", "train", "Run", "export", "WelkinError", "ConfigError", "DataError", "CommError",
           "CheckpointError", "Interrupted", "twins"]

def main() -> None: ...
def torch_folder() -> str | None: ...
