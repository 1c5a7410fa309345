"""Rows as people and programs read them: tables, records, Markdown, CSV, JSON; numbers and times with units."""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from remuda.cli.terminal_text import cut, printable, width_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

WIDEST_VALUE = 80
"""Longer values are cut in a table of several columns; one column alone, a plan for instance, has all the room."""
NARROWEST_COLUMN = 16
"""Columns of text are cut down to this width to fit a table into the terminal."""
FORMS = ("table", "line", "markdown", "csv", "json")
_DIM, _PLAIN = "\033[2m", "\033[0m"


@dataclass(frozen=True, slots=True)
class Layout:
    """How rows are shown to a person."""

    null: str = "NULL"
    width: int | None = None
    """Columns of the terminal, where a table shall fit into one."""
    expanded: str = "off"
    """`on`: a line for each value. `auto`: so where a row has no room on a line."""
    colour: bool = False
    """Whether NULL is dim, by which it is told from text."""


PLAIN = Layout()


def render(names: Sequence[str], rows: Sequence[Sequence[Any]], form: str, layout: Layout = PLAIN) -> str:
    """Return the rows in one of the `FORMS`."""
    match form:
        case "csv":
            return as_csv(names, rows)
        case "json":
            return as_json(names, rows)
        case "markdown":
            return as_markdown(names, rows, layout)
        case "line":
            return as_records(names, rows, layout)
        case _ if layout.expanded == "on":
            return as_records(names, rows, layout)
        case _:
            return as_table(names, rows, layout)


def as_table(names: Sequence[str], rows: Sequence[Sequence[Any]], layout: Layout = PLAIN) -> str:
    """
    >>> print(as_table(["id", "name"], [(1, "ann"), (20, None)]))
     id  name
    ───  ────
      1  ann
     20  NULL
    (2 rows)
    """
    names = [_one_line(name) for name in names]
    texts = [[_cell(value, layout) for value in row] for row in rows]
    right = [all(_is_number(row[at]) for row in rows) and bool(rows) for at in range(len(names))]
    widths = [max([width_of(name), *(width_of(row[at]) for row in texts)]) for at, name in enumerate(names)]
    if len(names) > 1:
        widths = [min(width, WIDEST_VALUE) for width in widths]
        if layout.width is not None and sum(widths) + 2 * len(widths) - 1 > layout.width:
            fitting = _fitted(widths, right, layout.width)
            if fitting is None and layout.expanded == "auto" and rows:
                return as_records(names, rows, layout)
            widths = fitting or widths

    def line(cells: Sequence[str], values: Sequence[Any] = ()) -> str:
        padded = []
        for at, (cell, width, to_right) in enumerate(zip(cells, widths, right, strict=True)):
            text = cut(cell, width)
            space = " " * (width - width_of(text))
            text = f"{_DIM}{text}{_PLAIN}" if layout.colour and values and values[at] is None else text
            padded.append(space + text if to_right else text + space)
        return (" " + "  ".join(padded)).rstrip()

    # The rule of the first column covers the margin, so that the table has a straight left edge.
    rule = "─" + "  ".join("─" * width for width in widths)
    lines = [line(cells, values) for cells, values in zip(texts, rows, strict=True)]
    return "\n".join([line(names), rule, *lines, f"({counted(len(rows), 'row')})"])


def _fitted(widths: Sequence[int], right: Sequence[bool], room: int) -> list[int] | None:
    """Cut the widest columns of text until the table fits; None where that would leave too little of them.

    >>> _fitted([5, 60, 40], [True, False, False], 65)
    [5, 27, 27]
    >>> _fitted([5, 60, 40], [True, False, False], 40)
    """
    for widest in range(max(widths), NARROWEST_COLUMN - 1, -1):
        cut = [width if to_right else min(width, widest) for width, to_right in zip(widths, right, strict=True)]
        if sum(cut) + 2 * len(cut) - 1 <= room:
            return cut
    return None


def as_records(names: Sequence[str], rows: Sequence[Sequence[Any]], layout: Layout = PLAIN) -> str:
    """Return a line for each value, for rows that have no room on one.

    >>> print(as_records(["id", "name"], [(1, "ann"), (20, None)]))
    ── row 1 ──
    id    1
    name  ann
    ── row 2 ──
    id    20
    name  NULL
    (2 rows)
    """
    names = [_one_line(name) for name in names]
    width = max(map(width_of, names))
    lines: list[str] = []
    for number, row in enumerate(rows, 1):
        lines.append(f"── row {number:,} ──")
        for name, value in zip(names, row, strict=True):
            text = _cell(value, layout)
            text = f"{_DIM}{text}{_PLAIN}" if layout.colour and value is None else text
            lines.append(f"{name}{' ' * (width - width_of(name))}  {text}")
    return "\n".join([*lines, f"({counted(len(rows), 'row')})"])


def as_markdown(names: Sequence[str], rows: Sequence[Sequence[Any]], layout: Layout = PLAIN) -> str:
    """
    >>> print(as_markdown(["id", "name"], [(1, "a|b"), (20, None)]))
    | id | name |
    | ---: | --- |
    | 1 | a\\|b |
    | 20 | NULL |
    """
    right = [bool(rows) and all(_is_number(row[at]) for row in rows) for at in range(len(names))]
    cells = [[_one_line(name) for name in names], ["---:" if each else "---" for each in right]]
    cells += [[_cell(value, layout) for value in row] for row in rows]
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
    """One array, one object a row.

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


def counted(number: int, noun: str) -> str:
    """
    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def duration(seconds: float) -> str:
    """Three digits and a unit.

    >>> duration(0.00000412), duration(0.0213), duration(3.5), duration(75)
    ('4.12 µs', '21.3 ms', '3.50 s', '75.0 s')
    """
    for factor, unit in ((1e6, "µs"), (1e3, "ms"), (1.0, "s")):
        value = seconds * factor
        if value < 999.5 or unit == "s":
            decimals = 2 if value < 9.995 else 1 if value < 99.95 else 0
            return f"{value:.{decimals}f} {unit}"
    raise AssertionError("seconds are the last unit")


def _cell(value: Any, layout: Layout) -> str:
    return _one_line(layout.null if value is None else str(_plain(value)))


def _one_line(text: str) -> str:
    return printable(text.replace("\n", "⏎").replace("\t", " "))


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
