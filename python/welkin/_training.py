# SPDX-License-Identifier: Apache-2.0
"""Training inside of this process: `welkin train` on one device, with its numbers, log and checkpoints."""
from __future__ import annotations

import dataclasses
import json
import pathlib
import tempfile
import threading
import warnings as python_warnings
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from welkin import _native
from welkin._errors import Interrupted, raised
from welkin._progress import Bar
from welkin._words import setting_words

if TYPE_CHECKING:
    from welkin._model import Model

Event = dict[str, Any]
Path = str | pathlib.Path
_POLL_S = 0.05


@dataclasses.dataclass
class Run:
    """What train() gives back."""

    folder: pathlib.Path  # config.yaml, checkpoints/, out.log
    completed: bool
    steps: int
    history: list[Event]  # of each epoch: step, epoch, train_loss, valid_loss, rate

    def load(self, **options: Any) -> Model:
        """welkin.load() of its folder."""
        from welkin._model import load
        return load(self.folder, **options)


def train(config: Path | Mapping[str, Any], preset: str | None = None, *, callback: Callable[[Event], None] | None = None, progress: bool = True,
          init_from: Path | None = None, plugins: Iterable[Path] = (), **overrides: Any) -> Run:
    """Trains, and returns when the run has ended.

    config: a YAML file, of which `preset` is taken, or a dict of keys (docs/reference/keys.md), flat or nested by component.
    callback: told of each step ("kind": "step"; while it is busy, the newest alone), of each epoch ("epoch", with the losses) and of warnings,
    in the caller's thread. An exception of it, and Ctrl-C, end the run after the step under way with a checkpoint: welkin.Interrupted.
    progress: a bar on standard error, in a terminal or a notebook. overrides: keys, which win over the file's.
    Several processes: start `welkin launch -n N -- train ...` as a program. ConfigError before anything is written.
    """
    with tempfile.TemporaryDirectory() as scratch:
        words = _config_words(config, preset, pathlib.Path(scratch)) + setting_words(overrides)
        words += [] if init_from is None else ["--init_from", str(init_from)]
        with raised():
            native = _native.classes().Training(words, [str(plugin) for plugin in plugins])
    return _Loop(native, callback, Bar(progress)).run()


def _config_words(config: Path | Mapping[str, Any], preset: str | None, scratch: pathlib.Path) -> list[str]:
    if isinstance(config, Mapping):
        preset = preset or "python"
        file = scratch / "config.yaml"
        file.write_text(json.dumps({preset: config}, default=str))
        return ["--yaml_config", str(file), "--config", preset]
    return ["--yaml_config", str(config), *([] if preset is None else ["--config", preset])]


class _Loop:
    """A thread that runs, and the caller's, which reports and may stop it."""

    def __init__(self, native: Any, callback: Callable[[Event], None] | None, bar: Bar) -> None:
        self.native, self.callback, self.bar = native, callback, bar
        self.history: list[Event] = []
        self.outcome: Event = {}
        self.failure: BaseException | None = None  # of the run
        self.reason: BaseException | None = None  # why the caller stops it

    def run(self) -> Run:
        thread = threading.Thread(target=self._work, name="welkin.train", daemon=True)
        thread.start()
        while thread.is_alive():
            self._guarded(lambda: thread.join(_POLL_S))
            self._guarded(self._report)
        self._guarded(self._report)
        self.bar.close()
        return self._result()

    def _work(self) -> None:
        try:
            with raised():
                self.outcome = json.loads(self.native.run())
        except BaseException as error:  # noqa: BLE001: handed to the caller's thread
            self.failure = error

    def _guarded(self, action: Callable[[], None]) -> None:
        """Whatever comes up stops the run, once."""
        try:
            action()
        except BaseException as error:  # noqa: BLE001: raised when the run has ended
            self.reason = self.reason or error
            self.native.stop()

    def _report(self) -> None:
        for text in self.native.take():
            event = json.loads(text)
            if event["kind"] == "epoch":
                self.history.append({key: value for key, value in event.items() if key != "kind"})
            elif event["kind"] == "warning":
                python_warnings.warn(event["text"], stacklevel=5)
            self.bar.show(event)
            if self.callback is not None and self.reason is None:
                self.callback(event)

    def _result(self) -> Run:
        if self.failure is not None:
            raise self.failure from self.reason
        run = Run(pathlib.Path(self.outcome["folder"]), self.outcome["completed"], self.outcome["steps"], self.history)
        if isinstance(self.reason, KeyboardInterrupt):
            left = f"at step {run.steps}: a checkpoint is in {run.folder}. Go on with resume=True."
            raise Interrupted(f"[train] interrupted {left if not run.completed else f'in its last step: the run is complete, in {run.folder}.'}", run)
        if self.reason is not None:
            raise self.reason
        return run
