"""Rows as objects of JSON: the forms that `Result.json` and `COPY ... TO 'file.json'` share.

Text, whole numbers, truth values and NULL have their own forms in JSON, finite floating-point numbers too. Everything
else is written as text, which loses nothing: a DECIMAL by all its digits, a moment as SQL writes it
(`2024-01-31 12:00:00`), bytes as hexadecimal digits, NaN and infinite numbers by their names.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from remuda.expr.cast.cast_text import floating_text

if TYPE_CHECKING:
    from collections.abc import Mapping


def json_object(row: Mapping[str, Any]) -> str:
    """Write a row as one object of JSON."""
    values = {name: _finite(value) if type(value) is float else value for name, value in row.items()}
    return json.dumps(values, default=_as_text, ensure_ascii=False)


def _finite(value: float) -> float | str:
    return value if math.isfinite(value) else floating_text(value)


def _as_text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
