"""Rows as a table of text, as the shell and the `repr` of a result print them."""

from __future__ import annotations

import base64
import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from unicodedata import category, east_asian_width

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDEST_VALUE = 80
"""Longer values are cut in a table of several columns; one column alone, a plan for instance, has all the room."""

_TURNS = frozenset(map(chr, [0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]))


def as_table(names: Sequence[str], rows: Sequence[Sequence[Any]], footer: str | None = None) -> str:
    """Lay out rows below the names of their columns, with their number or another footer below them.

    >>> print(as_table(["id", "name"], [(1, "ann"), (20, None)]))
     id  name
    ───  ────
      1  ann
     20  NULL
    (2 rows)
    """
    names = [printable(name) for name in names]
    widest = WIDEST_VALUE if len(names) > 1 else None
    texts = [[cell_text(value, widest) for value in row] for row in rows]
    right = [all(is_number(row[at]) for row in rows) and bool(rows) for at in range(len(names))]
    widths = [max([display_width(name), *(display_width(row[at]) for row in texts)]) for at, name in enumerate(names)]

    def line(cells: Sequence[str]) -> str:
        padded = [
            " " * (width - display_width(cell)) + cell if to_right else cell + " " * (width - display_width(cell))
            for cell, width, to_right in zip(cells, widths, right, strict=True)
        ]
        return (" " + "  ".join(padded)).rstrip()

    # The rule of the first column covers the margin, so that the table has a straight left edge.
    rule = "─" + "  ".join("─" * width for width in widths)
    return "\n".join([line(names), rule, *(line(row) for row in texts), footer or f"({counted(len(rows), 'row')})"])


def counted(number: int, noun: str) -> str:
    """Write a number with its noun.

    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def cell_text(value: Any, widest: int | None) -> str:
    """Write a value on one line, cut where it is wider than `widest`."""
    if value is None:
        return "NULL"
    text = printable(str(plain_value(value)).replace("\n", "⏎").replace("\t", " "))
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
    """Count the columns that a text takes on a terminal: East Asian characters take two."""
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)
