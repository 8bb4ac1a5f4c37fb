# SPDX-License-Identifier: Apache-2.0
"""A line that shows how far a run is: in a terminal, and in a notebook, which takes the carriage return as a terminal does."""
from __future__ import annotations

import sys
import time
from typing import Any

_WIDTH = 24


class Bar:
    def __init__(self, wanted: bool) -> None:
        self.shown = wanted and (sys.stderr.isatty() or "ipykernel" in sys.modules)
        self.begin, self.first = time.monotonic(), 0
        self.losses = ""

    def show(self, event: dict[str, Any]) -> None:
        if not self.shown or event["kind"] == "warning":
            return
        if event["kind"] == "epoch":
            self.losses = f", loss {event['train_loss']:.4g}, validation {event['valid_loss']:.4g}"
        self.first = self.first or event["step"]
        done = event["step"] / max(1, event["total_steps"])
        steps, seconds = event["step"] - self.first, time.monotonic() - self.begin
        rate = f", {steps / seconds:.3g} steps/s" if steps > 0 and seconds > 0 else ""
        filled = "#" * round(done * _WIDTH)
        text = f"epoch {event['epoch']} [{filled:<{_WIDTH}}] {event['step']}/{event['total_steps']}{rate}{self.losses}"
        print(f"\r{text:<100}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self.shown:
            print(file=sys.stderr)
