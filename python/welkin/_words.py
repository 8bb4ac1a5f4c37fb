# SPDX-License-Identifier: Apache-2.0
"""Python's values as settings of a command line."""
from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any


def value_text(value: Any) -> str:
    """Text stands for itself; others as YAML's flow style, which JSON is."""
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    return json.dumps(value, default=list if isinstance(value, (set, tuple)) else str)


def setting_words(settings: Mapping[str, Any]) -> list[str]:
    """Keys by their flat or dotted names (docs/reference/keys.md); "__" stands for the dot, which Python's names have not."""
    return [word for key, value in settings.items() for word in ("--set", f"{key.replace('__', '.')}={value_text(value)}")]
