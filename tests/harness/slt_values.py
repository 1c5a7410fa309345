"""How the rows of a query are written in an `.slt` file: one line a row, so that no two different rows look alike."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SIGNIFICANT_DIGITS = 12
"""Of real numbers: the order in which engines add them up may change the last of the sixteen."""


class WrongTypeError(AssertionError):
    """A value that is not of the type that its query declares."""


def render_rows(types: str, rows: Iterable[Sequence[Any]]) -> list[str]:
    """
    >>> render_rows("ITR", [(1, "two words", 2.5), (None, "", None)])
    ["1 'two words' 2.5", 'NULL (empty) NULL']
    """
    lines = []
    for row in rows:
        if len(row) != len(types):
            raise WrongTypeError(f"{len(row)} columns, not the {len(types)} of {types}: {row}")
        lines.append(" ".join(render_value(type_, value) for type_, value in zip(types, row, strict=True)))
    return lines


def render_value(type_: str, value: Any) -> str:
    """
    >>> render_value("I", Decimal("12")), render_value("R", 12.0), render_value("B", True)
    ('12', '12.0', 'true')
    """
    match type_, value:
        case _, None:
            return "NULL"
        case "B", bool():
            return "true" if value else "false"
        case "I", int() if not isinstance(value, bool):
            return str(value)
        case "I", Decimal() if value == int(value):
            return str(int(value))
        case "R", float() | Decimal():
            return repr(float(f"{float(value):.{SIGNIFICANT_DIGITS}g}"))
        case "P", dt.datetime():
            return value.isoformat("T")
        case "D", dt.date() if not isinstance(value, dt.datetime):
            return value.isoformat()
        case "T", str():
            return _text(value)
        case _:
            raise WrongTypeError(f"{value!r} ({type(value).__name__}) is not of type {type_}")


def _text(value: str) -> str:
    if not value:
        return "(empty)"
    plain = value.isprintable() and " " not in value and "'" not in value and value not in {"NULL", "(empty)"}
    return value if plain else repr(value)
