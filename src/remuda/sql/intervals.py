"""INTERVAL literals: `INTERVAL '1 year 2 months'`, `INTERVAL '3' DAY`, `INTERVAL '1 02:03:04' DAY TO SECOND`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.errors import SqlError, parsing_error
from remuda.expr import Expression, Literal
from remuda.sql.places import place_of, unsupported
from remuda.types import parse_interval

if TYPE_CHECKING:
    from remuda.sql.expression import ExpressionBinder
    from remuda.types import SqlType

_SPANS = {"YEAR": {"MONTH"}, "DAY": {"HOUR", "MINUTE", "SECOND"}, "HOUR": {"MINUTE", "SECOND"}, "MINUTE": {"SECOND"}}
"""Which units may stand after TO."""


def _is_number(text: str) -> bool:
    return text.strip().lstrip("+-").replace(".", "", 1).isdecimal()


def bind_interval(_: ExpressionBinder, node: Any, _expected: SqlType | None) -> Expression:
    span = place_of(node)
    if not isinstance(node.this, exp.Literal) or "literal" not in node.meta:
        raise unsupported(node, "INTERVAL of anything but a literal")
    text, unit = str(node.meta["literal"]), node.args.get("unit")
    first = None if unit is None else (unit.this if isinstance(unit, exp.IntervalSpan) else unit).name.upper()
    if isinstance(unit, exp.IntervalSpan):
        last = unit.expression.name.upper()
        if last not in _SPANS.get(str(first), ()):
            raise parsing_error(f"INTERVAL has no {first} TO {last}", span=span)
        if first == "MINUTE":
            text = f"0:{text.strip()}"  # else the first of two numbers would be hours
    elif first is not None and _is_number(text):
        text = f"{text} {first.lower()}"
    try:
        type_, value = parse_interval(text)
    except SqlError as error:
        raise parsing_error(error.message, span=span) from None
    return Literal(value, type_)
