"""Rows as people and programs read them: a table, CSV, JSON; numbers and times with their units."""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from unicodedata import category, east_asian_width

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDEST_VALUE = 80
"""Longer values are cut in a table of several columns; one column alone, a plan for instance, has all the room."""


_TURNS = frozenset(map(chr, [0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]))


def render(names: Sequence[str], rows: Sequence[Sequence[Any]], form: str) -> str:
    match form:
        case "csv":
            return as_csv(names, rows)
        case "json":
            return as_json(names, rows)
        case _:
            return as_table(names, rows)


def as_table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """
    >>> print(as_table(["id", "name"], [(1, "ann"), (20, None)]))
     id  name
    ───  ────
      1  ann
     20  NULL
    (2 rows)
    """
    names = [printable(name) for name in names]
    widest = WIDEST_VALUE if len(names) > 1 else None
    texts = [[_cell(value, widest) for value in row] for row in rows]
    right = [all(_is_number(row[at]) for row in rows) and bool(rows) for at in range(len(names))]
    widths = [max([_width(name), *(_width(row[at]) for row in texts)]) for at, name in enumerate(names)]

    def line(cells: Sequence[str]) -> str:
        padded = [
            " " * (width - _width(cell)) + cell if to_right else cell + " " * (width - _width(cell))
            for cell, width, to_right in zip(cells, widths, right, strict=True)
        ]
        return (" " + "  ".join(padded)).rstrip()

    # The rule of the first column covers the margin, so that the table has a straight left edge.
    rule = "─" + "  ".join("─" * width for width in widths)
    return "\n".join([line(names), rule, *(line(row) for row in texts), f"({counted(len(rows), 'row')})"])


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
    width = max(map(_width, names))
    lines: list[str] = []
    for number, row in enumerate(rows, 1):
        lines.append(f"── row {number:,} ──")
        lines += [
            f"{name}{' ' * (width - _width(name))}  {_cell(value, None)}"
            for name, value in zip(names, row, strict=True)
        ]
    return "\n".join([*lines, f"({counted(len(rows), 'row')})"])


def widest_line(text: str) -> int:
    """In columns of a terminal."""
    return max(map(_width, text.splitlines()))


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


def counted(number: int, noun: str) -> str:
    """
    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def _cell(value: Any, widest: int | None) -> str:
    if value is None:
        return "NULL"
    text = printable(str(_plain(value)).replace("\n", "⏎").replace("\t", " "))
    return text if widest is None or len(text) <= widest else text[: widest - 1] + "…"


def printable(text: str) -> str:
    """Escape the characters that a terminal would obey, of a value, a name or a message.

    >>> printable("a" + chr(27) + "[2J" + chr(0x9B) + "b")
    'a\\\\x1b[2J\\\\x9bb'
    """
    if text.isprintable():
        return text
    return "".join(_escaped(character) if _commands_terminal(character) else character for character in text)


def _commands_terminal(character: str) -> bool:
    """Control characters but line breaks and tabs, and those that turn the direction of writing."""
    if character in _TURNS:
        return True
    return character not in "\n\t" and category(character) in {"Cc", "Cs", "Zl", "Zp"}


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _csv_field(value: Any) -> str:
    if value is None:
        return ""
    text = str(_plain(value))
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
            return _plain(value)


def _plain(value: Any) -> Any:
    match value:
        case bool():
            return "true" if value else "false"
        case dt.datetime():
            return value.isoformat(" ")
        case dt.date() | dt.time():
            return value.isoformat()
        case dt.timedelta():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case _:
            return value


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float | Decimal) and not isinstance(value, bool))


def _width(text: str) -> int:
    """Columns on a terminal: East Asian characters take two."""
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)
