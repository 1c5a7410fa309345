"""ROUND, FLOOR, CEIL, TRUNC, SIGN.

A DECIMAL rounds half away from zero, a floating-point number half to even, as in PostgreSQL. Whole numbers that a
DOUBLE may not have exactly are DECIMALs here.
"""

from __future__ import annotations

import math
from contextlib import suppress
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from remuda.errors import option_error, overflow_error
from remuda.expr.evaluate.by_rows import by_rows
from remuda.expr.function import Datum, Function, Overload, Signature, fixed, overloaded
from remuda.expr.functions.decimals import (
    OVERFLOW,
    OVERLOADS,
    SAFE_DIGITS,
    divide_batch,
    fit_batch,
    fit_row,
    wide_enough,
)
from remuda.types import (
    BIGINT,
    DOUBLE,
    INTEGER,
    INTEGER_RANGES,
    MAXIMUM_PRECISION,
    Kind,
    SqlType,
    decimal,
    exact_digits,
)
from remuda.types.arrow_compute import pc

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


MEAN = "mean of sum"
"""From a sum and a count to the mean: AVG computed in two logical steps. SQL has no name for it."""
_COUNT = SqlType(Kind.DECIMAL, *exact_digits(BIGINT))
_MORE_DIGITS = 4


def _resolve(given: Sequence[SqlType]) -> Signature | None:
    """Resolve a DECIMAL with the four digits more that AVG has, but as wide as can be."""
    if len(given) != 2 or given[1] != BIGINT:
        return None
    total = given[0]
    if total.kind is Kind.DECIMAL:
        return Signature(
            (total, BIGINT), decimal(MAXIMUM_PRECISION, min(total.scale + _MORE_DIGITS, MAXIMUM_PRECISION))
        )
    return Signature((DOUBLE, BIGINT), DOUBLE) if total == DOUBLE else None


def _batch(signature: Signature) -> Callable[[Datum, Datum], Datum]:
    total_type, result = signature.arguments[0], signature.result
    divide = None if result == DOUBLE else divide_batch(Signature((total_type, _COUNT), result))

    def mean(total: Datum, count: Datum) -> Datum:
        values = pc.if_else(pc.equal(count, 0), pa.scalar(None, pa.int64()), count)
        if divide is None:
            return pc.divide(total, pc.cast(values, pa.float64(), safe=False))  # rounded, as Python does
        return divide(total, pc.cast(values, _COUNT.arrow))

    return mean


def _row(signature: Signature) -> Callable[[Any, int], Any]:
    if signature.result == DOUBLE:
        return lambda total, count: total / count if count else None
    divide = OVERLOADS["/"].row(Signature((signature.arguments[0], _COUNT), signature.result))
    return lambda total, count: divide(total, count) if count else None


"""Strict; and NULL where there is nothing to divide by."""


_HIGHEST = INTEGER_RANGES[Kind.BIGINT][1]
_FACTORIAL_TYPE = decimal(38, 0)
_FACTORIALS = [Decimal(math.factorial(number)) for number in range(34)]
"""All that 38 digits hold."""


def _checked(operation: Callable[[int, int], int]) -> Callable[[int, int], int]:
    def checked(left: int, right: int) -> int:
        result = operation(left, right)
        if result > _HIGHEST:
            raise overflow_error(OVERFLOW.format(BIGINT))
        return result

    return checked


def _greatest_divisors(left: Datum, right: Datum) -> Datum:
    """Compute greatest common divisors by NumPy; one below zero is that of the lowest number, and overflows."""
    if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar):
        return _greatest_divisors(pa.repeat(left, 1), right)[0]
    valid = pc.and_(pc.is_valid(left), pc.is_valid(right))
    divisors = pa.array(np.gcd(_numbers(left), _numbers(right)), pa.int64())
    if pc.any(pc.and_(valid, pc.less(divisors, 0))).as_py():
        raise overflow_error(OVERFLOW.format(BIGINT))
    return pc.if_else(valid, divisors, pa.scalar(None, pa.int64()))


def _numbers(datum: Datum) -> np.ndarray:
    if isinstance(datum, pa.Array):
        return np.asarray(pc.fill_null(datum, 0))
    return np.asarray(datum.as_py() if datum.is_valid else 0, np.int64)


def _least_multiples(left: Datum, right: Datum) -> Datum:
    left = pc.if_else(pc.equal(right, 0), pc.multiply(left, 0), left)  # and NULL stays NULL
    right = pc.if_else(pc.equal(left, 0), pc.multiply(right, 0), right)
    divisor = _greatest_divisors(left, right)
    divisor = pc.if_else(pc.equal(divisor, 0), pa.scalar(1, pa.int64()), divisor)
    return pc.abs_checked(pc.multiply_checked(pc.divide(left, divisor), right))


def _factorial(number: int) -> Decimal:
    if number < 0:
        raise option_error("a negative number has no factorial")
    if number >= len(_FACTORIALS):
        raise overflow_error(OVERFLOW.format(_FACTORIAL_TYPE))
    return _FACTORIALS[number]


def _factorial_batch(value: Datum) -> Datum:
    if isinstance(value, pa.Scalar):
        return _factorial_batch(pa.repeat(value, 1))[0]
    ends = pc.min_max(value).as_py()
    if ends["min"] is not None:
        _factorial(ends["min"])
        _factorial(ends["max"])
    return pa.array(_FACTORIALS, _FACTORIAL_TYPE.arrow).take(value)


_PAIR = fixed([BIGINT, BIGINT], BIGINT)


_DIGITS = Context(prec=160)


def _resolve_real(given: Sequence[SqlType]) -> Signature | None:
    """Resolve a DOUBLE: it has every value of the types up to INTEGER, as PostgreSQL's `floor(integer)` does."""
    if len(given) != 1 or not (given[0].is_numeric or given[0].kind is Kind.NULL):
        return None
    return None if given[0].kind in {Kind.DECIMAL, Kind.BIGINT} else Signature((DOUBLE,), DOUBLE)


def _resolve_decimal(given: Sequence[SqlType]) -> Signature | None:
    """Resolve to a whole number, with perhaps a digit more: 9.9 rounds to 10. No DOUBLE has all values of a BIGINT."""
    if len(given) != 1 or given[0].kind not in {Kind.DECIMAL, Kind.BIGINT}:
        return None
    exact = decimal(*exact_digits(given[0]))
    whole = min(exact.precision - exact.scale + 1, MAXIMUM_PRECISION)
    return Signature((exact,), decimal(whole, 0))


def _to_whole(name: str, decimal_mode: str, arrow_mode: str, real: Callable[[float], float]) -> tuple[Overload, ...]:
    def decimal_row(signature: Signature) -> Callable[[Decimal], Decimal]:
        fit = fit_row(signature.result)
        return lambda value: fit(value.to_integral_value(decimal_mode, _DIGITS))

    def decimal_batch(signature: Signature) -> Callable[[Datum], Datum]:
        scale = signature.arguments[0].scale

        if scale > SAFE_DIGITS:
            return by_rows(decimal_row(signature), signature)

        def kernel(value: Datum) -> Datum:
            wide = pc.cast(value, wide_enough(signature.arguments[0].precision + 1)(scale))
            return fit_batch(pc.round(wide, round_mode=arrow_mode), signature.result)

        return kernel

    def real_row(value: float) -> float:
        return value if not math.isfinite(value) else math.copysign(float(real(value)), value)

    real_mode = "half_to_even" if name == "round" else arrow_mode
    return (
        Overload(_resolve_decimal, decimal_batch, decimal_row),
        Overload(_resolve_real, lambda _: lambda value: pc.round(value, round_mode=real_mode), lambda _: real_row),
    )


def _resolve_digits(given: Sequence[SqlType]) -> Signature | None:
    """ROUND and TRUNC to a number of digits that is known only when the row is: the scale stays.

    Whole numbers are DECIMALs here, as in PostgreSQL: `round(25, -1)` is 30.
    """
    if len(given) != 2 or not (given[0].is_numeric or given[0].kind is Kind.NULL):
        return None
    if not (given[1].is_integer or given[1].kind is Kind.NULL):
        return None
    if not given[0].is_exact:
        return Signature((DOUBLE, BIGINT), DOUBLE)
    exact = decimal(*exact_digits(given[0]))
    room = min(exact.precision + 1, MAXIMUM_PRECISION)
    return Signature((exact, BIGINT), SqlType(Kind.DECIMAL, room, exact.scale))


def _to_digits(decimal_mode: str, arrow_mode: str) -> Overload:
    def row(signature: Signature) -> Callable[[Any, int], Any]:
        if signature.result == DOUBLE:
            return lambda value, digits: _round_real(value, digits, arrow_mode)
        fit = fit_row(signature.result)

        def rounded(value: Decimal, digits: int) -> Decimal:
            if digits >= signature.result.scale:
                return fit(value)
            step = Decimal(1).scaleb(-max(digits, -MAXIMUM_PRECISION - 1))
            return fit(value.quantize(step, decimal_mode, _DIGITS))

        return rounded

    def batch(signature: Signature) -> Callable[[Datum, Datum], Datum]:
        one_by_one = by_rows(row(signature), signature)
        scale = signature.result.scale
        is_real = signature.result == DOUBLE

        def kernel(value: Datum, digits: Datum) -> Datum:
            if not isinstance(digits, pa.Scalar) or not digits.is_valid or not isinstance(value, pa.Array):
                return one_by_one(value, digits)
            count = digits.as_py()
            if is_real and abs(count) <= _REAL_DIGITS:
                with suppress(pa.ArrowInvalid):  # some are too large to have such digits
                    return pc.round(value, ndigits=count, round_mode=arrow_mode)
            elif not is_real and scale - SAFE_DIGITS <= count < scale:
                wide = pc.cast(value, wide_enough(signature.result.precision)(scale))
                mode = "towards_zero" if decimal_mode == ROUND_DOWN else "half_towards_infinity"
                return fit_batch(pc.round(wide, ndigits=count, round_mode=mode), signature.result)
            return one_by_one(value, digits)

        return kernel

    return Overload(_resolve_digits, batch, row)


_REAL_DIGITS = 15


def _round_real(value: float, digits: int, mode: str) -> float:
    """Round a DOUBLE, which has no digits beyond those that are kept, or none before those that are cut off."""
    if not math.isfinite(value) or digits > 308:
        return value
    if digits < -308:
        return math.copysign(0.0, value)
    try:
        rounded: float = pc.round(pa.scalar(value), ndigits=digits, round_mode=mode).as_py()
    except pa.ArrowInvalid:  # too large to have such digits
        return value
    return rounded


def _sign_row(signature: Signature) -> Callable[[Any], Any]:
    if signature.result == DOUBLE:
        return lambda value: value if math.isnan(value) else float((value > 0) - (value < 0))
    return lambda value: (value > 0) - (value < 0)


def _sign_batch(signature: Signature) -> Callable[[Datum], Datum]:
    if signature.result == DOUBLE:
        return lambda value: pc.add(pc.sign(value), 0.0)
    return lambda value: pc.cast(pc.sign(value), pa.int32())


def _resolve_sign(given: Sequence[SqlType]) -> Signature | None:
    if len(given) != 1 or not given[0].is_numeric:
        return None
    return Signature((given[0],), INTEGER) if given[0].is_exact else Signature((DOUBLE,), DOUBLE)


FUNCTIONS = (
    overloaded(
        "round",
        *_to_whole("round", ROUND_HALF_UP, "half_towards_infinity", round),
        _to_digits(ROUND_HALF_UP, "half_to_even"),
        can_fail=True,
        hints=(DOUBLE, BIGINT),
    ),
    overloaded(
        "trunc",
        *_to_whole("trunc", ROUND_DOWN, "towards_zero", math.trunc),
        _to_digits(ROUND_DOWN, "towards_zero"),
        hints=(DOUBLE, BIGINT),
    ),
    overloaded("floor", *_to_whole("floor", ROUND_FLOOR, "down", math.floor), can_fail=True, hints=(DOUBLE,)),
    overloaded("ceil", *_to_whole("ceil", ROUND_CEILING, "up", math.ceil), can_fail=True, hints=(DOUBLE,)),
    Function("sign", _resolve_sign, _sign_batch, _sign_row, hints=(DOUBLE,)),
    Function("gcd", _PAIR, lambda _: _greatest_divisors, lambda _: _checked(math.gcd), can_fail=True),
    Function("lcm", _PAIR, lambda _: _least_multiples, lambda _: _checked(math.lcm), can_fail=True),
    Function(
        "factorial", fixed([BIGINT], _FACTORIAL_TYPE), lambda _: _factorial_batch, lambda _: _factorial, can_fail=True
    ),
    Function(MEAN, _resolve, _batch, _row, can_fail=True),
)
