# SPDX-License-Identifier: Apache-2.0
"""The errors of Welkin as exceptions. Each text reads `[component] what is wrong: name=value. Do this.`"""
from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from welkin._training import Run


class WelkinError(Exception):
    """What every error of Welkin is. On its own: memory that ended, a value that is not finite, a bug."""

    exit_code = 1  # of the program


class ConfigError(WelkinError):
    """A key, an option or an argument is wrong."""

    exit_code = 2


class DataError(WelkinError):
    """A file is absent, damaged or does not fit."""

    exit_code = 3


class CommError(WelkinError):
    """Processes do not reach each other."""

    exit_code = 4


class CheckpointError(WelkinError):
    """A checkpoint is absent, damaged or of another model."""

    exit_code = 5


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during welkin.train(): the step under way was finished and a checkpoint saved. `run` is what there is of the run."""

    def __init__(self, text: str, run: Run | None = None) -> None:
        super().__init__(text)
        self.run = run


for _kind in (WelkinError, ConfigError, DataError, CommError, CheckpointError, Interrupted):
    _kind.__module__ = "welkin"  # as users name them

_KINDS: dict[int, type[BaseException]] = {kind.exit_code: kind for kind in (ConfigError, DataError, CommError, CheckpointError)} | {130: Interrupted}
_ANSWER = re.compile(r"welkin-error (\d+)\n(.*)", re.DOTALL)  # apps/python/answer.h


@contextlib.contextmanager
def raised() -> Iterator[None]:
    """What native code throws inside becomes the exception of its kind."""
    try:
        yield
    except RuntimeError as error:
        found = _ANSWER.search(str(error))
        if found is None:
            raise
        raise _KINDS.get(int(found[1]), WelkinError)(found[2].rstrip()) from None
