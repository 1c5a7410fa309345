"""+ - * of dates, times and intervals.

A DATE plus an INTERVAL is a TIMESTAMP, a DATE plus a number of days a DATE, as in PostgreSQL. Months keep the day of
the month as far as the new month has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from remuda.expr.function import Datum, Overload, Signature
from remuda.types import (
    BIGINT,
    DATE,
    INTEGER,
    INTEGER_RANGES,
    INTERVAL_MONTHS,
    INTERVAL_TIME,
    TIME,
    TIMESTAMP,
    TIMESTAMP_TZ,
    Kind,
    SqlType,
    common_type,
)
from remuda.types.arrow_compute import pc
from remuda.types.calendar import (
    DAY,
    FIRST_DAY,
    FIRST_INSTANT,
    LAST_DAY,
    LAST_INSTANT,
    add_months,
    add_months_to_days,
    overflow,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_LIMITS = {
    DATE: (FIRST_DAY, LAST_DAY),
    TIMESTAMP: (FIRST_INSTANT, LAST_INSTANT),
    TIMESTAMP_TZ: (FIRST_INSTANT, LAST_INSTANT),
    INTEGER: INTEGER_RANGES[Kind.INTEGER],
    INTERVAL_MONTHS: INTEGER_RANGES[Kind.BIGINT],
    INTERVAL_TIME: INTEGER_RANGES[Kind.BIGINT],
}
_MEETS_INTERVAL = {DATE: TIMESTAMP, TIMESTAMP: TIMESTAMP, TIMESTAMP_TZ: TIMESTAMP_TZ}


def _resolve_move(given: Sequence[SqlType]) -> Signature | None:
    """Resolve a moment and what it is moved by."""
    if len(given) != 2:
        return None
    moment, amount = given
    if moment == DATE and amount.is_integer:
        return Signature((DATE, BIGINT), DATE)
    if moment == TIME and amount == INTERVAL_TIME:
        return Signature((TIME, INTERVAL_TIME), TIME)
    if moment in _MEETS_INTERVAL and amount.is_interval:
        return Signature((_MEETS_INTERVAL[moment], amount), _MEETS_INTERVAL[moment])
    if moment.is_interval and moment == amount:
        return Signature((moment, moment), moment)
    return None


def _resolve_mirrored(given: Sequence[SqlType]) -> Signature | None:
    """Resolve the amount before the moment."""
    found = _resolve_move(tuple(reversed(given)))
    return None if found is None else Signature((found.arguments[1], found.arguments[0]), found.result)


def _resolve_distance(given: Sequence[SqlType]) -> Signature | None:
    if len(given) != 2:
        return None
    shared = common_type(*given)
    if shared == DATE:
        return Signature((DATE, DATE), INTEGER)
    if shared in {TIME, TIMESTAMP, TIMESTAMP_TZ}:
        assert shared is not None
        return Signature((shared, shared), INTERVAL_TIME)
    return None


def _resolve_multiple(given: Sequence[SqlType]) -> Signature | None:
    if len(given) == 2 and given[0].is_interval and given[1].is_integer:
        return Signature((given[0], BIGINT), given[0])
    return None


def _resolve_multiple_mirrored(given: Sequence[SqlType]) -> Signature | None:
    found = _resolve_multiple(tuple(reversed(given)))
    return None if found is None else Signature((found.arguments[1], found.arguments[0]), found.result)


def resolve_opposite(given: Sequence[SqlType]) -> Signature | None:
    return Signature((given[0],), given[0]) if len(given) == 1 and given[0].is_interval else None


def _row(operation: Callable[[int, int], int]) -> Callable[[Signature], Callable[[int, int], int]]:
    def for_signature(signature: Signature) -> Callable[[int, int], int]:
        result = signature.result
        if result == TIME:
            return lambda left, right: operation(left, right) % DAY
        low, high = _LIMITS[result]

        def checked(left: int, right: int) -> int:
            value = operation(left, right)
            if low <= value <= high:
                return value
            raise overflow(result)

        return checked

    return for_signature


def _add_row(sign: int) -> Callable[[Signature], Callable[[int, int], int]]:
    def for_signature(signature: Signature) -> Callable[[int, int], int]:
        result = signature.result
        if signature.arguments[1] == INTERVAL_MONTHS and result != INTERVAL_MONTHS:
            return lambda moment, months: add_months(moment // DAY, sign * months, result) * DAY + moment % DAY
        return _row(lambda left, right: left + sign * right)(signature)

    return for_signature


def _add_batch(sign: int) -> Callable[[Signature], Callable[[Datum, Datum], Datum]]:
    def for_signature(signature: Signature) -> Callable[[Datum, Datum], Datum]:
        result = signature.result
        if signature.arguments[1] == INTERVAL_MONTHS and result != INTERVAL_MONTHS:
            return lambda moment, months: _add_months_batch(moment, months, sign, result)
        return _batch(pc.add_checked if sign > 0 else pc.subtract_checked)(signature)

    return for_signature


def _batch(kernel: Callable[[Datum, Datum], Datum]) -> Callable[[Signature], Callable[[Datum, Datum], Datum]]:
    """Compute by Arrow's kernels of 64-bit integers, on the stored form: they notice an overflow."""

    def for_signature(signature: Signature) -> Callable[[Datum, Datum], Datum]:
        result = signature.result

        def evaluate(left: Datum, right: Datum) -> Datum:
            amount = _integers(right)
            if result == TIME:  # whole days change nothing, and may be too many
                amount = pc.subtract(amount, pc.multiply(pc.divide(amount, DAY), DAY))
            try:
                value = kernel(_integers(left), amount)
            except pa.ArrowInvalid as error:
                raise overflow(result) from error
            if result == TIME:
                value = pc.subtract(value, pc.multiply(_floor_days(value), DAY))
            else:
                _check_limits(value, result)
            return _restored(value, result)

        return evaluate

    return for_signature


def _floor_days(value: Datum) -> Datum:
    """Arrow divides toward zero."""
    return pc.divide(pc.subtract(value, pc.if_else(pc.less(value, 0), DAY - 1, 0)), DAY)


def _add_months_batch(moment: Datum, months: Datum, sign: int, result: SqlType) -> Datum:
    if isinstance(moment, pa.Scalar) and isinstance(months, pa.Scalar):
        return _add_months_batch(pa.repeat(moment, 1), months, sign, result)[0]
    valid = pc.and_(pc.is_valid(moment), pc.is_valid(months))
    instants, amounts = _numbers(moment), _numbers(months)
    days = instants // DAY
    moved = pa.array(add_months_to_days(days, sign * amounts) * DAY + (instants - days * DAY))
    value = pc.if_else(valid, moved, pa.scalar(None, pa.int64()))
    _check_limits(value, result)
    return _restored(value, result)


def _numbers(datum: Datum) -> np.ndarray:
    integers = _integers(datum)
    if isinstance(integers, pa.Scalar):
        return np.asarray(integers.as_py() or 0, np.int64)
    return np.asarray(pc.fill_null(integers, 0))


def _integers(datum: Datum) -> Datum:
    if datum.type == pa.date32():
        return pc.cast(pc.cast(datum, pa.int32()), pa.int64())
    return pc.cast(datum, pa.int64())


def _check_limits(value: Datum, result: SqlType) -> None:
    low, high = _LIMITS[result]
    ends = {"min": value.as_py(), "max": value.as_py()} if isinstance(value, pa.Scalar) else pc.min_max(value).as_py()
    if ends["min"] is not None and (ends["min"] < low or ends["max"] > high):
        raise overflow(result)


def _restored(value: Datum, result: SqlType) -> Datum:
    if result == DATE:
        value = pc.cast(value, pa.int32())
    return pc.cast(value, result.arrow)


def opposite_row(signature: Signature) -> Callable[[int], int]:
    subtract = _row(lambda value, _: -value)(signature)
    return lambda value: subtract(value, 0)


def opposite_batch(signature: Signature) -> Callable[[Datum], Datum]:
    subtract = _batch(lambda left, right: pc.subtract_checked(right, left))(signature)
    return lambda value: subtract(value, pa.scalar(0, pa.int64()))


def _swapped(make: Callable[[Signature], Callable[..., Any]]) -> Callable[[Signature], Callable[..., Any]]:
    def for_signature(signature: Signature) -> Callable[..., Any]:
        left, right = signature.arguments
        kernel = make(Signature((right, left), signature.result))
        return lambda first, second: kernel(second, first)

    return for_signature


_multiply_row = _row(lambda left, right: left * right)
_multiply_batch = _batch(pc.multiply_checked)

OVERLOADS: dict[str, tuple[Overload, ...]] = {
    "+": (
        Overload(_resolve_move, _add_batch(1), _add_row(1)),
        Overload(_resolve_mirrored, _swapped(_add_batch(1)), _swapped(_add_row(1))),
    ),
    "-": (
        Overload(_resolve_move, _add_batch(-1), _add_row(-1)),
        Overload(_resolve_distance, _batch(pc.subtract_checked), _row(lambda left, right: left - right)),
    ),
    "*": (
        Overload(_resolve_multiple, _multiply_batch, _multiply_row),
        Overload(_resolve_multiple_mirrored, _swapped(_multiply_batch), _swapped(_multiply_row)),
    ),
    "negate": (Overload(resolve_opposite, opposite_batch, opposite_row),),
}
