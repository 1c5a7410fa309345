"""+ - * / % and their kin: overflow and division by zero are errors, integer division truncates toward zero."""

from __future__ import annotations

import math
import operator
from ctypes import c_float
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from remuda.errors import division_error, overflow_error
from remuda.expr.function import CanFail, Datum, Function, Overload, Signature, overloaded
from remuda.expr.functions import decimals, moments
from remuda.expr.functions.decimals import DIVISION_BY_ZERO, OVERFLOW
from remuda.types import DOUBLE, INTEGER_RANGES, MAXIMUM_PRECISION, Kind, SqlType, common_type
from remuda.types.arrow_compute import pc

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from remuda.expr.nodes import Expression


def _resolve_binary(given: Sequence[SqlType]) -> Signature | None:
    if len(given) != 2:
        return None
    result = common_type(*given)
    if result is None or not result.is_numeric or result.kind is Kind.DECIMAL:
        return None
    return Signature((result, result), result)


def _resolve_unary(given: Sequence[SqlType]) -> Signature | None:
    if len(given) != 1 or not given[0].is_numeric:
        return None
    return Signature((given[0],), given[0])


def _checked_row(operation: Callable[..., Any]) -> Callable[[Signature], Callable[..., Any]]:
    """Check the range of the result type: Python's integers do not overflow. Its floats are all DOUBLE."""

    def for_signature(signature: Signature) -> Callable[..., Any]:
        result_type = signature.result
        if result_type.kind is Kind.REAL:
            return lambda *arguments: c_float(operation(*arguments)).value
        if not result_type.is_integer:
            return operation
        low, high = INTEGER_RANGES[result_type.kind]

        def checked(*arguments: Any) -> Any:
            result = operation(*arguments)
            if low <= result <= high:
                return result
            raise overflow_error(OVERFLOW.format(result_type))

        return checked

    return for_signature


def _batch(kernel: Callable[..., Datum]) -> Callable[[Signature], Callable[..., Datum]]:
    return lambda _: kernel


def truncating_divide(left: int, right: int) -> int:
    """Divide and truncate toward zero.

    >>> truncating_divide(-7, 2), truncating_divide(7, -2)
    (-3, -3)
    """
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _negate(value: Any) -> Any:
    return decimals.negate_row(value) if isinstance(value, Decimal) else -value


def _absolute(value: Any) -> Any:
    return value.copy_abs() if isinstance(value, Decimal) else abs(value)


def _divide_row(signature: Signature) -> Callable[[Any, Any], Any]:
    divide = truncating_divide if signature.result.is_integer else operator.truediv

    def divided(left: Any, right: Any) -> Any:
        if right == 0:
            raise division_error(DIVISION_BY_ZERO)
        return divide(left, right)

    return _checked_row(divided)(signature)


def _remainder_row(signature: Signature) -> Callable[[Any, Any], Any]:
    whole = signature.result.is_integer

    def remainder(left: Any, right: Any) -> Any:
        if right == 0:
            raise division_error(DIVISION_BY_ZERO)
        if whole:
            return left - truncating_divide(left, right) * right
        return math.nan if math.isinf(left) else math.fmod(left, right)

    return remainder


def _residual_batch(signature: Signature) -> Callable[[Datum, Datum], Datum]:
    arrow = signature.result.arrow

    def remainder(left: Datum, right: Datum) -> Datum:
        if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar):
            return remainder(pa.array([left.as_py()], arrow), right)[0]
        valid = pc.and_(pc.is_valid(left), pc.is_valid(right))
        if pc.any(pc.and_(valid, pc.equal(right, pa.scalar(0, arrow)))).as_py():
            raise division_error(DIVISION_BY_ZERO)
        with np.errstate(all="ignore"):
            result = pa.array(np.fmod(_numbers(left, 0), _numbers(right, 1)), arrow)
        return pc.if_else(valid, result, pa.scalar(None, arrow))

    return remainder


def _numbers(datum: Datum, missing: int) -> np.ndarray:
    """Return the values for numpy, which knows no NULL: `missing` stands for it."""
    if isinstance(datum, pa.Array):
        return np.asarray(pc.fill_null(datum, missing))
    return np.asarray(datum.as_py() if datum.is_valid else missing)


def _overflows(digits: Callable[[decimals.Digits, decimals.Digits], decimals.Digits]) -> CanFail:
    """Test whether the result can overflow.

    Floating-point numbers become infinite, and a DECIMAL may have all digits it needs.
    """

    def can_fail(arguments: tuple[Expression, ...]) -> bool:
        types = [argument.type for argument in arguments]
        if all(type_.kind is Kind.DECIMAL for type_ in types):
            left, right = ((type_.precision, type_.scale) for type_ in types)
            return digits(left, right)[0] > MAXIMUM_PRECISION
        return not all(type_.is_floating for type_ in types)

    return can_fail


def _is_integer(arguments: tuple[Expression, ...]) -> bool:
    """Test whether negation can overflow: the lowest integer has no opposite; moments and intervals have ends, too."""
    return not (arguments[0].type.is_floating or arguments[0].type.kind is Kind.DECIMAL)


def _binary(
    name: str,
    batch: Callable[[Signature], Callable[..., Datum]],
    row: Callable[[Signature], Callable[..., Any]],
    can_fail: CanFail = True,
) -> Function:
    numbers = Overload(_resolve_binary, batch, row)
    temporal = moments.OVERLOADS.get(name, ())
    return overloaded(name, decimals.OVERLOADS[name], numbers, *temporal, symbol=name, can_fail=can_fail)


FUNCTIONS = (
    _binary("+", _batch(pc.add_checked), _checked_row(operator.add), _overflows(decimals.digits_of_sum)),
    _binary("-", _batch(pc.subtract_checked), _checked_row(operator.sub), _overflows(decimals.digits_of_sum)),
    _binary("*", _batch(pc.multiply_checked), _checked_row(operator.mul), _overflows(decimals.digits_of_product)),
    _binary("/", _batch(pc.divide_checked), _divide_row),
    _binary("%", _residual_batch, _remainder_row),
    overloaded(
        "negate",
        Overload(_resolve_unary, _batch(pc.negate_checked), _checked_row(_negate)),
        *moments.OVERLOADS["negate"],
        symbol="-",
        can_fail=_is_integer,
    ),
    Function(
        "abs",
        _resolve_unary,
        _batch(pc.abs_checked),
        _checked_row(_absolute),
        can_fail=_is_integer,
        hints=(DOUBLE,),
        keeps_type=True,
    ),
)
