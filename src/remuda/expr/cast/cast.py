"""Conversions between types, over a batch and over one value.

A conversion that rounds a number rounds it to the nearest, ties away from zero for DECIMAL and to the even one for
floating-point numbers, as PostgreSQL does. A value that the target cannot hold is an error.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from remuda.errors import SqlError, overflow_error, text_error
from remuda.expr.cast.cast_floating import decimal_to_floating_batch, floating_to_decimal, floating_to_decimal_batch
from remuda.expr.cast.cast_text import BY_VALUE_FROM_TEXT, BY_VALUE_TO_TEXT, not_a_value, read_moment
from remuda.expr.evaluate.by_rows import by_rows
from remuda.expr.function import Signature
from remuda.expr.functions.decimals import OVERFLOW, round_batch
from remuda.types import INTEGER_RANGES, JSON, VARCHAR, Kind, SqlType, exact_digits, to_stored
from remuda.types.arrow_compute import pc

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.expr.function import Datum


_WIDEST = 76
"""Digits of Arrow's wider decimal."""

_INSTANTS = frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_TZ})
_WITH_CLOCK = frozenset({Kind.TIMESTAMP, Kind.TIMESTAMP_TZ})
_TEXT_BY_ARROW = frozenset({Kind.BOOLEAN, *INTEGER_RANGES, Kind.DATE})
_FROM_TEXT_BY_ARROW = frozenset({*INTEGER_RANGES, Kind.REAL, Kind.DOUBLE, Kind.DATE, Kind.TIMESTAMP})


def can_cast(source: SqlType, target: SqlType) -> bool:
    """Test whether CAST between these types is supported."""
    if source == target or source.kind is Kind.NULL or source.kind is target.kind is Kind.VARCHAR:
        return True
    if source.is_numeric and target.is_numeric:
        return True
    if source == VARCHAR:
        return target.kind in BY_VALUE_FROM_TEXT or target.kind in _FROM_TEXT_BY_ARROW
    if target == VARCHAR:
        return source.kind in BY_VALUE_TO_TEXT or source.kind in _TEXT_BY_ARROW
    if Kind.BOOLEAN in {source.kind, target.kind}:
        return source.is_integer or target.is_integer
    if target.kind is Kind.TIME:
        return source.kind in _WITH_CLOCK
    return {source.kind, target.kind} <= _INSTANTS


def cast_can_fail(source: SqlType, target: SqlType) -> bool:
    """Test whether some value of the source is none of the target."""
    if source == VARCHAR:
        return target != VARCHAR
    if source.is_exact and target.kind is Kind.DECIMAL:
        return not _has_room(source, target)
    if source.is_integer and target.is_integer:
        return exact_digits(source) > exact_digits(target)
    return source.is_numeric and target.is_numeric and target.kind is not Kind.DOUBLE


def cast_batch(source: SqlType, target: SqlType) -> Callable[[Datum], Datum]:
    """Raises where a value does not fit."""
    if source.is_floating and target.kind is Kind.DECIMAL:
        return floating_to_decimal_batch(source, target)
    if source.kind is Kind.DECIMAL and target.is_floating:
        return decimal_to_floating_batch(target)
    by_value = _by_value(source, target)
    if by_value is not None:
        return by_rows(by_value, Signature((source,), target))
    if source.kind is target.kind is Kind.VARCHAR:  # from JSON
        return lambda value: value
    by_arrow = _by_arrow(source, target)
    if source.kind is not Kind.VARCHAR:
        return by_arrow
    one_by_one = by_rows(cast_row(source, target), Signature((source,), target))

    def read(value: Datum) -> Datum:
        """Text that Arrow cannot read is read again, one by one: for the error, or as it has a plus or a time zone."""
        try:
            result = by_arrow(value)
        except pa.ArrowInvalid:
            return one_by_one(value)
        return result if _has_known_years(result, target) else one_by_one(value)

    return read


def _has_known_years(moments: Datum, target: SqlType) -> bool:
    """Test whether all moments are of the years 1 to 9999; Arrow reads '0000-01-01' too."""
    if target.kind not in _INSTANTS:
        return True
    bounds = pc.min_max(moments)
    type_ = dt.date if target.kind is Kind.DATE else dt.datetime
    low, high = to_stored(target, type_.min), to_stored(target, type_.max)
    lowest, highest = bounds["min"].value, bounds["max"].value
    return lowest is None or (low <= lowest and highest <= high)


def _by_arrow(source: SqlType, target: SqlType) -> Callable[[Datum], Datum]:
    arrow = target.arrow
    # Dropping the time of a TIMESTAMP, or the last bits of a large integer, is what the cast asks for.
    narrowing = target.kind is Kind.DATE or target.is_floating

    def cast(value: Datum) -> Datum:
        try:
            result = pc.cast(_prepared(value, source, target), arrow, safe=not narrowing)
        except pa.ArrowInvalid as error:
            if source.kind is Kind.VARCHAR:
                raise
            reason = str(error).splitlines()[0]
            if source.is_numeric and "nan" not in reason:
                reason = "the value overflows"
            raise text_error(f"CAST from {source} to {target}: {reason}") from error
        if source.kind is Kind.DOUBLE and target.kind is Kind.REAL:
            _refuse_infinity(value, result)
        return result

    return cast


def _refuse_infinity(value: Datum, result: Datum) -> None:
    """Refuse a DOUBLE that is too large for a REAL."""
    grown = pc.and_(pc.is_inf(result), pc.is_finite(value))
    if (grown if isinstance(grown, pa.Scalar) else pc.any(grown)).as_py():
        raise overflow_error(OVERFLOW.format("REAL"))


def _prepared(value: Datum, source: SqlType, target: SqlType) -> Datum:
    """Return the value as Arrow's cast wants it."""
    if source.is_floating and target.is_integer:
        return pc.round(value, round_mode="half_to_even")
    if source.is_exact and target.kind is Kind.DECIMAL and _has_room(source, target):
        return value
    if source.is_exact and target.is_exact and Kind.DECIMAL in {source.kind, target.kind}:
        # Rounding may carry into a digit more than the source has, and Arrow asks for room for every integer.
        return round_batch(pc.cast(value, pa.decimal256(_WIDEST, source.scale)), target.scale)
    if source.kind is Kind.VARCHAR:
        trimmed = pc.utf8_trim_whitespace(value)
        # Arrow reads hexadecimal integers.
        return trimmed if not target.is_integer else pc.replace_substring_regex(trimmed, "[xX]", "?")
    if source.kind is Kind.TIMESTAMP_TZ and target.kind is Kind.TIME:
        return pc.cast(value, pa.timestamp("us"))
    return value


def _has_room(source: SqlType, target: SqlType) -> bool:
    precision, scale = exact_digits(source)
    return target.scale >= scale and target.precision - target.scale >= precision - scale


def _by_value(source: SqlType, target: SqlType) -> Callable[[Any], Any] | None:
    """Return the conversion of one value where Arrow has none, or another meaning."""
    if source.kind is Kind.NULL:
        return None
    if target == JSON:
        return lambda value: to_stored(JSON, value)
    if source == VARCHAR and target.kind in BY_VALUE_FROM_TEXT:
        return BY_VALUE_FROM_TEXT[target.kind](target)
    if target == VARCHAR and source.kind in BY_VALUE_TO_TEXT:
        return BY_VALUE_TO_TEXT[source.kind]
    if source.is_floating and target.kind is Kind.DECIMAL:
        return floating_to_decimal(source, target)
    return None


def cast_row(source: SqlType, target: SqlType) -> Callable[[Any], Any]:
    """Cast one non-NULL stored value."""
    by_value = _by_value(source, target)
    if by_value is not None:
        return by_value
    if source.kind is target.kind is Kind.VARCHAR:
        return lambda value: value
    if source.is_exact and target.kind is Kind.DOUBLE:
        return float
    if source.is_exact and target.kind is Kind.DECIMAL and _has_room(source, target):
        return lambda value: to_stored(target, value)
    cast = cast_batch(source, target) if source.kind is Kind.DECIMAL else _by_arrow(source, target)

    def one(value: Any) -> Any:
        try:
            return to_stored(target, cast(pa.scalar(value, type=source.arrow)).as_py())
        except (pa.ArrowInvalid, OverflowError, ValueError):  # what Arrow cannot read, or Python has no moment for
            if target.is_integer and value.strip().startswith("+") and value.strip()[1:].isdecimal():
                return one(value.strip()[1:])
            if target.kind in _INSTANTS:
                return read_moment(target)(value)
            raise not_a_value(value, target) from None

    if not (source.is_integer and target.is_integer):
        return one
    low, high = INTEGER_RANGES[target.kind]
    return lambda value: value if low <= value <= high else one(value)


_FEW = 16
"""Rows that are rather converted one by one than halved again."""


def try_cast_row(source: SqlType, target: SqlType) -> Callable[[Any], Any]:
    """Return the conversion of TRY_CAST: that of CAST, with NULL for a value that CAST refuses."""
    convert = cast_row(source, target)

    def try_convert(value: Any) -> Any:
        try:
            return convert(value)
        except SqlError:
            return None

    return try_convert


def try_cast_batch(source: SqlType, target: SqlType) -> Callable[[Datum], Datum]:
    """Halve a column with a value that is refused until it is found: few such values cost little."""
    convert = cast_batch(source, target)
    one_by_one = by_rows(try_cast_row(source, target), Signature((source,), target))

    def try_convert(value: Datum) -> Datum:
        try:
            return convert(value)
        except (SqlError, pa.ArrowInvalid):
            if isinstance(value, pa.Scalar) or len(value) <= _FEW:
                return one_by_one(value)
        middle = len(value) // 2
        return pa.concat_arrays([try_convert(value[:middle]), try_convert(value[middle:])])

    return try_convert
