"""Conversions between text and the types whose text Arrow does not read or write as SQL does."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from remuda.errors import SqlError, moment_error, shown, text_error
from remuda.expr.functions.decimals import fit_row
from remuda.types import (
    INTERVAL_MONTHS,
    INTERVAL_TIME,
    TIMESTAMP,
    Kind,
    SqlType,
    clock_text,
    datetime_of_text,
    interval_words,
    to_python,
    to_stored,
    written_form,
)

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable

_TRUE = frozenset({"true", "t", "yes", "y", "on", "1"})
_FALSE = frozenset({"false", "f", "no", "n", "off", "0"})
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)


def not_a_value(text: str, target: SqlType) -> SqlError:
    """Return the error for a text that is no value of the type.

    >>> not_a_value("x", TIMESTAMP).message
    "'x' is not a value of type TIMESTAMP"
    """
    kind = moment_error if target.is_temporal else text_error
    return kind(f"{shown(text)} is not a value of type {target}", suggestion=written_form(target))


def _to_boolean(target: SqlType) -> Callable[[str], bool]:
    def convert(text: str) -> bool:
        word = text.strip().lower()
        if word not in _TRUE and word not in _FALSE:
            raise not_a_value(text, target)
        return word in _TRUE

    return convert


def _to_decimal(target: SqlType) -> Callable[[str], Decimal]:
    fit = fit_row(target)

    def convert(text: str) -> Decimal:
        if _NUMBER.fullmatch(text.strip()) is None:
            raise not_a_value(text, target)
        return fit(Decimal(text.strip()))

    return convert


def read_moment(target: SqlType) -> Callable[[str], Any]:
    """Read a moment as a literal of the type is read; a cast to DATE drops the time of day."""

    def convert(text: str) -> Any:
        try:
            return to_stored(target, _day(text) if target.kind is Kind.DATE else text)
        except SqlError:
            raise not_a_value(text, target) from None

    return convert


def _day(text: str) -> Any:
    """Return the day that is written, whatever zone comes with the time."""
    try:
        return datetime_of_text(text).date()
    except ValueError:
        return text


BY_VALUE_FROM_TEXT: dict[Kind, Callable[[SqlType], Callable[[str], Any]]] = {
    Kind.BOOLEAN: _to_boolean,
    Kind.DECIMAL: _to_decimal,
    Kind.TIME: read_moment,
    Kind.TIMESTAMP_TZ: read_moment,
    Kind.INTERVAL_MONTHS: read_moment,
    Kind.INTERVAL_TIME: read_moment,
}
"""From text to a stored value, by the kind of the target."""


def floating_text(number: Any) -> str:
    """Return the shortest text that means the same number, without a fraction where there is none, as in PostgreSQL.

    >>> floating_text(2.0), floating_text(0.1), floating_text(1e20), floating_text(math.inf)
    ('2', '0.1', '1e+20', 'Infinity')
    """
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    return str(number).removesuffix(".0")


def _instant_text(stored: int) -> str:
    moment: dt.datetime = to_python(TIMESTAMP, stored)
    return f"{moment.date()} {clock_text(stored % 86_400_000_000)}"


BY_VALUE_TO_TEXT: dict[Kind, Callable[[Any], str]] = {
    Kind.DECIMAL: lambda stored: format(stored, "f"),  # Arrow writes 1E-8
    Kind.REAL: lambda stored: floating_text(np.float32(stored)),
    Kind.DOUBLE: floating_text,
    Kind.TIME: clock_text,
    Kind.TIMESTAMP: _instant_text,
    Kind.TIMESTAMP_TZ: lambda stored: _instant_text(stored) + "+00",
    Kind.INTERVAL_MONTHS: lambda stored: interval_words(INTERVAL_MONTHS, stored),
    Kind.INTERVAL_TIME: lambda stored: interval_words(INTERVAL_TIME, stored),
}
"""From a stored value to text, by the kind of the source."""
