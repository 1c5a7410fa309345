"""Rows as people and programs read them: a table, CSV, JSON; numbers and times with their units."""

from __future__ import annotations

import datetime as dt  # noqa: F401  (used by doctests)
import json
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from remuda.text_table import as_table, cell_text, counted, display_width, plain_value, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "as_csv",
    "as_json",
    "as_records",
    "as_table",
    "counted",
    "printable",
    "render",
    "widest_line",
]


def render(names: Sequence[str], rows: Sequence[Sequence[Any]], form: str) -> str:
    match form:
        case "csv":
            return as_csv(names, rows)
        case "json":
            return as_json(names, rows)
        case _:
            return as_table(names, rows)


def as_records(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A line for each value, where a row has no room on one.

    >>> print(as_records(["id", "name"], [(1, "ann"), (20, None)]))
    ── row 1 ──
    id    1
    name  ann
    ── row 2 ──
    id    20
    name  NULL
    (2 rows)
    """
    width = max(map(display_width, names))
    lines: list[str] = []
    for number, row in enumerate(rows, 1):
        lines.append(f"── row {number:,} ──")
        lines += [
            f"{name}{' ' * (width - display_width(name))}  {cell_text(value, None)}"
            for name, value in zip(names, row, strict=True)
        ]
    return "\n".join([*lines, f"({counted(len(rows), 'row')})"])


def widest_line(text: str) -> int:
    """In columns of a terminal."""
    return max(map(display_width, text.splitlines()))


def as_csv(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """NULL is an empty field, and empty text is `""`: a reader can tell them apart.

    >>> print(as_csv(["a", "b"], [(1, None), (2, "x, y"), (3, "")]))
    a,b
    1,
    2,"x, y"
    3,""
    """
    return "\n".join(",".join(_csv_field(value) for value in row) for row in [names, *rows])


def as_json(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """One array, one object a row.

    >>> print(as_json(["a", "b"], [(1, None), (2, dt.date(2024, 2, 29)), (3, dt.timedelta(hours=36))]))
    [
      {"a": 1, "b": null},
      {"a": 2, "b": "2024-02-29"},
      {"a": 3, "b": "1 day, 12:00:00"}
    ]
    """
    objects = [
        json.dumps(dict(zip(names, map(_json_value, row), strict=True)), ensure_ascii=False, allow_nan=False)
        for row in rows
    ]
    return "[\n  " + ",\n  ".join(objects) + "\n]" if objects else "[]"


def _csv_field(value: Any) -> str:
    if value is None:
        return ""
    text = str(plain_value(value))
    return '"' + text.replace('"', '""') + '"' if not text or set(text) & set(',"\r\n') else text


def _json_value(value: Any) -> Any:
    """Numbers that JSON cannot hold exactly, and those that it does not have, become text."""
    match value:
        case bool() | int() | None:
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case Decimal():
            whole = int(value)
            return whole if whole == value else float(value) if Decimal(repr(float(value))) == value else str(value)
        case _:
            return plain_value(value)
