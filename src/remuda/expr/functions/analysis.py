"""Functions of real analysis, of DOUBLEs: roots, powers, logarithms, angles.

Where a function has no value (the root of -1, the logarithm of 0, the sine of infinity) it is an error; a result too
large for a DOUBLE is infinity, as for `*`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from remuda.errors import division_error, logarithm_error, option_error, power_error
from remuda.expr.evaluate.by_rows import by_rows
from remuda.expr.function import Datum, Function, Signature, fixed
from remuda.expr.functions.decimals import DIVISION_BY_ZERO
from remuda.types import BOOLEAN, DOUBLE
from remuda.types.arrow_compute import pc

if TYPE_CHECKING:
    from collections.abc import Callable

_NO_LOGARITHM = "only a positive number has a logarithm"
_INFINITE = "an infinite angle has no such value"
_NO_ANGLE = "only a number from -1 to 1 is the sine or cosine of an angle"


def _is_negative(value: Any) -> Any:
    return pc.less(value, 0.0) if isinstance(value, pa.Scalar | pa.Array) else value < 0


def _is_not_positive(value: Any) -> Any:
    return pc.less_equal(value, 0.0) if isinstance(value, pa.Scalar | pa.Array) else value <= 0


def _is_infinite(value: Any) -> Any:
    return pc.is_inf(value) if isinstance(value, pa.Scalar | pa.Array) else math.isinf(value)


def _is_beyond_one(value: Any) -> Any:
    return pc.greater(pc.abs(value), 1.0) if isinstance(value, pa.Scalar | pa.Array) else abs(value) > 1


def refuse_any(mask: Datum, problem: str) -> None:
    if (mask if isinstance(mask, pa.Scalar) else pc.any(mask)).as_py():
        raise option_error(problem)


def _real(
    name: str,
    kernel: Callable[[Datum], Datum],
    row: Callable[[float], float],
    refused: Callable[[Any], Any] | None = None,
    problem: str = "",
) -> Function:
    """Define a function of real numbers; `refused` tests a value, and a column, for values without a result."""

    def one(value: float) -> float:
        if refused is not None and refused(value):
            raise option_error(problem)
        try:
            return row(value)
        except OverflowError:
            return math.inf

    def batch(value: Datum) -> Datum:
        if refused is not None:
            refuse_any(refused(value), problem)
        return kernel(value)

    return Function(name, fixed([DOUBLE], DOUBLE), lambda _: batch, lambda _: one, can_fail=refused is not None)


def _power_batch(signature: Signature) -> Callable[[Datum, Datum], Datum]:
    """Use Arrow's kernel where no base can be the wrong one."""
    one_by_one = by_rows(_power, signature)

    def power(base: Datum, exponent: Datum) -> Datum:
        least = (base if isinstance(base, pa.Scalar) else pc.min(base)).as_py()
        return pc.power(base, exponent) if least is not None and least > 0 else one_by_one(base, exponent)

    return power


def _power(base: float, exponent: float) -> float:
    if base == 0 and exponent < 0:
        raise power_error("zero has no negative power")
    if base < 0 and math.isfinite(base) and math.isfinite(exponent) and exponent != math.floor(exponent):
        raise power_error("a negative number has only powers with whole exponents")
    try:
        return math.pow(base, exponent)
    except OverflowError:
        negative = base < 0 and math.fmod(exponent, 2) != 0
        return -math.inf if negative else math.inf


def _logarithm(base: float, value: float) -> float:
    if base <= 0 or value <= 0:
        raise logarithm_error(_NO_LOGARITHM)
    if base == 1:
        raise division_error(DIVISION_BY_ZERO)
    over, under = math.log10(value), math.log10(base)
    return math.nan if math.isinf(over) and math.isinf(under) else over / under


def _logarithm_batch(base: Datum, value: Datum) -> Datum:
    both = pc.and_(pc.is_valid(base), pc.is_valid(value))
    refuse_any(pc.and_(both, pc.or_(_is_not_positive(base), _is_not_positive(value))), _NO_LOGARITHM)
    refuse_any(pc.and_(both, pc.equal(base, 1.0)), DIVISION_BY_ZERO)
    return pc.divide(pc.log10(value), pc.log10(base))


def _cube_root_of_number(value: float) -> float:
    """Compute the cube root of a number by numpy: on some processors the C library differs from it in the last bit."""
    return float(np.cbrt(value))


def _cube_root(value: Datum) -> Datum:
    if isinstance(value, pa.Scalar):
        return pa.scalar(None if not value.is_valid else _cube_root_of_number(value.as_py()), pa.float64())
    numbers = pa.array(np.cbrt(np.asarray(pc.fill_null(value, 0.0))))
    return pc.if_else(pc.is_valid(value), numbers, pa.scalar(None, pa.float64()))


def _scaled(factor: float) -> tuple[Callable[[Datum], Datum], Callable[[float], float]]:
    return lambda value: pc.multiply(value, factor), lambda value: value * factor


def _test(name: str, kernel: Callable[[Datum], Datum], row: Callable[[float], bool]) -> Function:
    return Function(name, fixed([DOUBLE], BOOLEAN), lambda _: kernel, lambda _: row)


FUNCTIONS = (
    _real("sqrt", pc.sqrt, math.sqrt, _is_negative, "a negative number has no square root"),
    _real("cbrt", _cube_root, _cube_root_of_number),
    _real("exp", pc.exp, math.exp),
    _real("ln", pc.ln, math.log, _is_not_positive, _NO_LOGARITHM),
    _real("log10", pc.log10, math.log10, _is_not_positive, _NO_LOGARITHM),
    _real("log2", pc.log2, math.log2, _is_not_positive, _NO_LOGARITHM),
    _real("sin", pc.sin, math.sin, _is_infinite, _INFINITE),
    _real("cos", pc.cos, math.cos, _is_infinite, _INFINITE),
    _real("tan", pc.tan, math.tan, _is_infinite, _INFINITE),
    _real("asin", pc.asin, math.asin, _is_beyond_one, _NO_ANGLE),
    _real("acos", pc.acos, math.acos, _is_beyond_one, _NO_ANGLE),
    _real("atan", pc.atan, math.atan),
    _real("sinh", pc.sinh, lambda value: math.copysign(math.inf, value) if abs(value) > 711 else math.sinh(value)),
    _real("cosh", pc.cosh, math.cosh),
    _real("tanh", pc.tanh, math.tanh),
    _real("degrees", *_scaled(180.0 / math.pi)),
    _real("radians", *_scaled(math.pi / 180.0)),
    Function("atan2", fixed([DOUBLE, DOUBLE], DOUBLE), lambda _: pc.atan2, lambda _: math.atan2),
    Function("log", fixed([DOUBLE, DOUBLE], DOUBLE), lambda _: _logarithm_batch, lambda _: _logarithm, can_fail=True),
    Function("power", fixed([DOUBLE, DOUBLE], DOUBLE), _power_batch, lambda _: _power, can_fail=True),
    Function("pi", fixed([], DOUBLE), lambda _: lambda: pa.scalar(math.pi), lambda _: lambda: math.pi),
    _test("isnan", pc.is_nan, math.isnan),
    _test("isinf", pc.is_inf, math.isinf),
    _test("isfinite", pc.is_finite, math.isfinite),
)
