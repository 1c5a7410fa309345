"""Rows as a table of text, as the shell and the `repr` of a result print them."""

from __future__ import annotations

import base64
import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from unicodedata import category, combining, east_asian_width

from remuda.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDEST_VALUE = 80
"""Longer values are cut in a table of several columns; one column alone, a plan for instance, has all the room."""
NARROWEST_COLUMN = 16
"""Columns of text are cut down to this width to fit a table into the terminal."""
_DIM, _PLAIN = "\033[2m", "\033[0m"
_TURNS = frozenset(map(chr, [0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]))


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


def as_table(
    names: Sequence[str], rows: Sequence[Sequence[Any]], footer: str | None = None, layout: Layout = PLAIN
) -> str:
    """Lay out rows below the names of their columns, with their number or another footer below them.

    >>> print(as_table(["id", "name"], [(1, "ann"), (20, None)]))
     id  name
    ───  ────
      1  ann
     20  NULL
    (2 rows)
    """
    names = [one_line(name) for name in names]
    texts = [[cell_text(value, null=layout.null) for value in row] for row in rows]
    right = [all(is_number(row[at]) for row in rows) and bool(rows) for at in range(len(names))]
    widths = [max([display_width(name), *(display_width(row[at]) for row in texts)]) for at, name in enumerate(names)]
    if len(names) > 1:
        widths = [min(width, WIDEST_VALUE) for width in widths]
        if layout.width is not None and sum(widths) + 2 * len(widths) - 1 > layout.width:
            fitting = _fitted(widths, right, layout.width)
            if fitting is None and layout.expanded == "auto" and rows:
                return as_records(names, rows, footer, layout)
            widths = fitting or widths

    def line(cells: Sequence[str], values: Sequence[Any] = ()) -> str:
        padded = []
        for at, (cell, width, to_right) in enumerate(zip(cells, widths, right, strict=True)):
            text = cut(cell, width)
            space = " " * (width - display_width(text))
            text = f"{_DIM}{text}{_PLAIN}" if layout.colour and values and values[at] is None else text
            padded.append(space + text if to_right else text + space)
        return (" " + "  ".join(padded)).rstrip()

    # The rule of the first column covers the margin, so that the table has a straight left edge.
    rule = "─" + "  ".join("─" * width for width in widths)
    lines = [line(cells, values) for cells, values in zip(texts, rows, strict=True)]
    return "\n".join([line(names), rule, *lines, footer or f"({counted(len(rows), 'row')})"])


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


def as_records(
    names: Sequence[str], rows: Sequence[Sequence[Any]], footer: str | None = None, layout: Layout = PLAIN
) -> str:
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
    names = [one_line(name) for name in names]
    width = max(map(display_width, names))
    lines: list[str] = []
    for number, row in enumerate(rows, 1):
        lines.append(f"── row {number:,} ──")
        for name, value in zip(names, row, strict=True):
            text = cell_text(value, null=layout.null)
            text = f"{_DIM}{text}{_PLAIN}" if layout.colour and value is None else text
            lines.append(f"{name}{' ' * (width - display_width(name))}  {text}")
    return "\n".join([*lines, footer or f"({counted(len(rows), 'row')})"])


def counted(number: int, noun: str) -> str:
    """Write a number with its noun.

    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def cell_text(value: Any, widest: int | None = None, null: str = "NULL") -> str:
    """Write a value on one line, cut where it is wider than `widest`."""
    text = one_line(null if value is None else str(plain_value(value)))
    return text if widest is None else cut(text, widest)


def one_line(text: str) -> str:
    return printable(text.replace("\n", "⏎").replace("\t", " "))


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


def plain_value(value: Any) -> Any:
    """Write moments, intervals, truth values and bytes as text; leave every other value as it is."""
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


def is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float | Decimal) and not isinstance(value, bool))


def display_width(text: str) -> int:
    """Return the columns on a terminal: East Asian characters take two, marks on another character none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if combining(character) or category(character) == "Cf" else 2 if east_asian_width(character) in "WF" else 1
        for character in text
    )


def cut(text: str, width: int) -> str:
    """Shorten a text to a width in columns.

    >>> cut("saddle", 6), cut("saddles", 6), cut("馬馬馬馬", 6)
    ('saddle', 'saddl…', '馬馬…')
    """
    if display_width(text) <= width:
        return text
    used = 0
    for at, character in enumerate(text):
        used += display_width(character)
        if used > width - 1:
            return text[:at] + "…"
    return text
