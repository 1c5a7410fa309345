"""Conversions between types, over a batch and over one value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from remuda.errors import data_error
from remuda.types import Kind, SqlType, to_stored

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.expr.function import Datum

_TEXT_SOURCES = frozenset(
    {Kind.BOOLEAN, Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.DATE, Kind.DECIMAL}
)

_WIDEST = 76
"""Digits of Arrow's wider decimal."""


def can_cast(source: SqlType, target: SqlType) -> bool:
    """Whether CAST between these types is supported."""
    if source == target or source.kind is Kind.NULL:
        return True
    if source.is_numeric and target.is_numeric:
        return True
    if target.kind is Kind.VARCHAR:
        return source.kind in _TEXT_SOURCES
    if source.kind is Kind.VARCHAR:
        return target.is_numeric or target.kind in {Kind.BOOLEAN, Kind.DATE, Kind.TIMESTAMP}
    kinds = {source.kind, target.kind}
    return kinds <= {Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_TZ}


def cast_batch(source: SqlType, target: SqlType) -> Callable[[Datum], Datum]:
    """Raises where a value does not fit; numbers round to the nearest, ties to even."""
    arrow = target.arrow

    def cast(value: Datum) -> Datum:
        if source.kind is Kind.NULL:
            return pc.cast(value, arrow)
        if source.is_floating and target.is_integer:
            value = pc.round(value, round_mode="half_to_even")
        elif source.is_exact and target.is_exact and Kind.DECIMAL in {source.kind, target.kind}:
            # Rounding may carry into a digit more than the source has, and Arrow asks for room for every integer.
            value = pc.cast(value, pa.decimal256(_WIDEST, source.scale))
            value = pc.round(value, ndigits=target.scale, round_mode="half_towards_infinity")
        elif source.kind is Kind.VARCHAR:
            value = pc.utf8_trim_whitespace(value)
        # Dropping the time of a TIMESTAMP, or the last bits of a large integer, is what the cast asks for.
        narrowing = target.kind is Kind.DATE or target.is_floating
        try:
            return pc.cast(value, arrow, safe=not narrowing)
        except pa.ArrowInvalid as error:
            raise data_error(f"CAST from {source} to {target}: {str(error).splitlines()[0]}") from error

    return cast


def cast_row(source: SqlType, target: SqlType) -> Callable[[Any], Any]:
    """The same conversion of one non-NULL stored value."""
    if source.is_integer and target.is_floating and target.kind is Kind.DOUBLE:
        return float
    cast = cast_batch(source, target)

    def one(value: Any) -> Any:
        converted = cast(pa.scalar(value, type=source.arrow)).as_py()
        return to_stored(target, converted)

    return one
