"""ROUND, FLOOR, CEIL, TRUNC, SIGN and the functions of real analysis.

A DECIMAL rounds half away from zero, a floating-point number half to even, as in PostgreSQL. Where a function has no
value (the root of -1, the logarithm of 0) it is an error; a result too large for a DOUBLE is infinity, as for `*`.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from remuda.errors import data_error
from remuda.expr.by_rows import by_rows
from remuda.expr.decimals import SAFE_DIGITS, fit_batch, fit_row, wide_enough
from remuda.expr.function import Datum, Function, Overload, Signature, fixed, overloaded
from remuda.types import BIGINT, DOUBLE, INTEGER, MAXIMUM_PRECISION, Kind, SqlType, decimal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_DIGITS = Context(prec=160)


def _resolve_real(given: Sequence[SqlType]) -> Signature | None:
    """Everything but DECIMAL becomes a DOUBLE."""
    if len(given) != 1 or not (given[0].is_numeric or given[0].kind is Kind.NULL) or given[0].kind is Kind.DECIMAL:
        return None
    return Signature((DOUBLE,), DOUBLE)


def _resolve_decimal(given: Sequence[SqlType]) -> Signature | None:
    """A whole number, which may have a digit more: 9.9 rounds to 10."""
    if len(given) != 1 or given[0].kind is not Kind.DECIMAL:
        return None
    whole = min(given[0].precision - given[0].scale + 1, MAXIMUM_PRECISION)
    return Signature((given[0],), decimal(whole, 0))


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
    """ROUND and TRUNC to a number of digits that is known only when the row is: the scale stays."""
    if len(given) != 2 or not given[0].is_numeric or not (given[1].is_integer or given[1].kind is Kind.NULL):
        return None
    if given[0].kind is not Kind.DECIMAL:
        return Signature((DOUBLE, BIGINT), DOUBLE)
    room = min(given[0].precision + 1, MAXIMUM_PRECISION)
    return Signature((given[0], BIGINT), SqlType(Kind.DECIMAL, room, given[0].scale))


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

    return Overload(_resolve_digits, lambda signature: by_rows(row(signature), signature), row)


def _round_real(value: float, digits: int, mode: str) -> float:
    """A DOUBLE has no digits beyond those that are kept, or none before those that are cut off."""
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


def _analytic(
    name: str, kernel: Callable[[Datum], Datum], row: Callable[[float], float], refused: Any, problem: str
) -> Function:
    """`refused` are the values for which the function has none."""

    def one(value: float) -> float:
        if refused(value):
            raise data_error(problem)
        try:
            return row(value)
        except OverflowError:
            return math.inf

    def batch(value: Datum) -> Datum:
        ends = {"min": value.as_py()} if isinstance(value, pa.Scalar) else pc.min_max(value).as_py()
        if ends["min"] is not None and refused(ends["min"]):
            raise data_error(problem)
        return kernel(value)

    return Function(name, fixed([DOUBLE], DOUBLE), lambda _: batch, lambda _: one, can_fail=True)


def _power_batch(signature: Signature) -> Callable[[Datum, Datum], Datum]:
    """Arrow's kernel where no base can be the wrong one."""
    one_by_one = by_rows(_power, signature)

    def power(base: Datum, exponent: Datum) -> Datum:
        least = (base if isinstance(base, pa.Scalar) else pc.min(base)).as_py()
        return pc.power(base, exponent) if least is not None and least > 0 else one_by_one(base, exponent)

    return power


def _power(base: float, exponent: float) -> float:
    if base == 0 and exponent < 0:
        raise data_error("zero has no negative power")
    if base < 0 and math.isfinite(base) and math.isfinite(exponent) and exponent != math.floor(exponent):
        raise data_error("a negative number has only powers with whole exponents")
    try:
        return math.pow(base, exponent)
    except OverflowError:
        negative = base < 0 and math.fmod(exponent, 2) != 0
        return -math.inf if negative else math.inf


FUNCTIONS = (
    overloaded(
        "round",
        *_to_whole("round", ROUND_HALF_UP, "half_towards_infinity", round),
        _to_digits(ROUND_HALF_UP, "half_to_even"),
    ),
    overloaded(
        "trunc", *_to_whole("trunc", ROUND_DOWN, "towards_zero", math.trunc), _to_digits(ROUND_DOWN, "towards_zero")
    ),
    overloaded("floor", *_to_whole("floor", ROUND_FLOOR, "down", math.floor)),
    overloaded("ceil", *_to_whole("ceil", ROUND_CEILING, "up", math.ceil)),
    Function("sign", _resolve_sign, _sign_batch, _sign_row),
    _analytic("sqrt", pc.sqrt, math.sqrt, lambda value: value < 0, "a negative number has no square root"),
    _analytic("exp", pc.exp, math.exp, lambda _: False, ""),
    _analytic("ln", pc.ln, math.log, lambda value: value <= 0, "only a positive number has a logarithm"),
    _analytic("log10", pc.log10, math.log10, lambda value: value <= 0, "only a positive number has a logarithm"),
    Function(
        "power",
        fixed([DOUBLE, DOUBLE], DOUBLE),
        _power_batch,
        lambda _: _power,
        can_fail=True,
    ),
)
