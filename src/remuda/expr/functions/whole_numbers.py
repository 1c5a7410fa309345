"""Functions of whole numbers: GCD, LCM, FACTORIAL."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from remuda.errors import data_error
from remuda.expr.function import Datum, Function, fixed
from remuda.expr.functions.decimals import OVERFLOW
from remuda.types import BIGINT, INTEGER_RANGES, Kind, decimal

if TYPE_CHECKING:
    from collections.abc import Callable

_HIGHEST = INTEGER_RANGES[Kind.BIGINT][1]
_FACTORIAL_TYPE = decimal(38, 0)
_FACTORIALS = [Decimal(math.factorial(number)) for number in range(34)]
"""All that 38 digits hold."""


def _checked(operation: Callable[[int, int], int]) -> Callable[[int, int], int]:
    def checked(left: int, right: int) -> int:
        result = operation(left, right)
        if result > _HIGHEST:
            raise data_error(OVERFLOW.format(BIGINT))
        return result

    return checked


def _greatest_divisors(left: Datum, right: Datum) -> Datum:
    """NumPy's has no sign but for the lowest of all numbers, whose opposite overflows."""
    if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar):
        return _greatest_divisors(pa.repeat(left, 1), right)[0]
    valid = pc.and_(pc.is_valid(left), pc.is_valid(right))
    divisors = pa.array(np.gcd(_numbers(left), _numbers(right)), pa.int64())
    if pc.any(pc.and_(valid, pc.less(divisors, 0))).as_py():
        raise data_error(OVERFLOW.format(BIGINT))
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
        raise data_error("a negative number has no factorial")
    if number >= len(_FACTORIALS):
        raise data_error(OVERFLOW.format(_FACTORIAL_TYPE))
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

FUNCTIONS = (
    Function("gcd", _PAIR, lambda _: _greatest_divisors, lambda _: _checked(math.gcd), can_fail=True),
    Function("lcm", _PAIR, lambda _: _least_multiples, lambda _: _checked(math.lcm), can_fail=True),
    Function(
        "factorial", fixed([BIGINT], _FACTORIAL_TYPE), lambda _: _factorial_batch, lambda _: _factorial, can_fail=True
    ),
)
