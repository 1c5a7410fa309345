"""Rows as people and programs read them: tables, records, Markdown, CSV, JSON; numbers and times with units."""

from __future__ import annotations

import datetime as dt  # noqa: F401  (used by doctests)
import json
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from remuda.presentation.text_table import (
    PLAIN,
    Layout,
    as_records,
    as_table,
    cell_text,
    is_number,
    one_line,
    plain_value,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

FORMS = ("table", "line", "markdown", "csv", "json")


def render(
    names: Sequence[str], rows: Sequence[Sequence[Any]], form: str, layout: Layout = PLAIN, footer: str | None = None
) -> str:
    """Return the rows in one of the `FORMS`; only those for people have a footer."""
    match form:
        case "csv":
            return as_csv(names, rows)
        case "json":
            return as_json(names, rows)
        case "markdown":
            return as_markdown(names, rows, layout)
        case "line":
            return as_records(names, rows, footer, layout)
        case _ if layout.expanded == "on":
            return as_records(names, rows, footer, layout)
        case _:
            return as_table(names, rows, footer, layout)


def as_markdown(names: Sequence[str], rows: Sequence[Sequence[Any]], layout: Layout = PLAIN) -> str:
    """Write rows as a Markdown table.

    >>> print(as_markdown(["id", "name"], [(1, "a|b"), (20, None)]))
    | id | name |
    | ---: | --- |
    | 1 | a\\|b |
    | 20 | NULL |
    """
    right = [bool(rows) and all(is_number(row[at]) for row in rows) for at in range(len(names))]
    cells = [[one_line(name) for name in names], ["---:" if each else "---" for each in right]]
    cells += [[cell_text(value, null=layout.null) for value in row] for row in rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in cells)


def as_csv(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """NULL is an empty field, and empty text is `""`: a reader can tell them apart.

    >>> print(as_csv(["a", "b"], [(1, None), (2, "x, y"), (3, "")]))
    a,b
    1,
    2,"x, y"
    3,""
    """
    return "\n".join(csv_lines([names, *rows]))


def csv_lines(rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    return (",".join(_csv_field(value) for value in row) for row in rows)


def as_json(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Write rows as one JSON array, an object for each row.

    >>> print(as_json(["a", "b"], [(1, None), (2, dt.date(2024, 2, 29)), (3, dt.timedelta(hours=36))]))
    [
      {"a": 1, "b": null},
      {"a": 2, "b": "2024-02-29"},
      {"a": 3, "b": "1 day, 12:00:00"}
    ]
    """
    objects = list(json_objects(names, rows))
    return "[\n  " + ",\n  ".join(objects) + "\n]" if objects else "[]"


def json_objects(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    for row in rows:
        values = dict(zip(names, map(_json_value, row), strict=True))
        yield json.dumps(values, ensure_ascii=False, allow_nan=False)


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
