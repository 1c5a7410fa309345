"""= <> < <= > >= and IN, and what NULL does not silence: IS [NOT] DISTINCT FROM, GREATEST and LEAST.

NaN equals itself and is greater than every number; strings compare by code point.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa

from remuda.expr.function import Datum, Function, Signature
from remuda.expr.functions.logic import resolve_same
from remuda.types import BOOLEAN, Kind, SqlType, common_type, exact_digits
from remuda.types.arrow_compute import pc

Kernel = Callable[[Datum, Datum], Datum]

_WIDEST = 76
"""Digits of Arrow's wider decimal, which holds any two of 38 digits at one scale."""


def resolve_comparison(given: Sequence[SqlType]) -> Signature | None:
    shared = common_type(*given) if len(given) == 2 else None
    if shared is None:
        return None
    if shared.kind is Kind.DECIMAL and not all(_holds(shared, type_) for type_ in given):
        return Signature(tuple(SqlType(Kind.DECIMAL, *exact_digits(type_)) for type_ in given), BOOLEAN)
    return Signature((shared, shared), BOOLEAN)


def _holds(shared: SqlType, type_: SqlType) -> bool:
    """Test whether a DECIMAL type holds every value: two of 38 digits may have no common type that does."""
    if type_.kind is Kind.NULL:
        return True
    precision, scale = exact_digits(type_)
    return precision - scale <= shared.precision - shared.scale and scale <= shared.scale


def _resolve_in(given: Sequence[SqlType]) -> Signature | None:
    shared: SqlType | None = given[0] if len(given) > 1 else None
    for type_ in given[1:]:
        shared = None if shared is None else common_type(shared, type_)
    return None if shared is None else Signature((shared,) * len(given), BOOLEAN)


def order_key(value: float) -> tuple[bool, float]:
    """Return a key by which floating-point values sort in SQL's order.

    >>> sorted([math.nan, 1.0, math.inf], key=order_key)
    [1.0, inf, nan]
    """
    return (True, 0.0) if value != value else (False, value)


def _row(compare: Callable[[Any, Any], bool]) -> Callable[[Signature], Callable[[Any, Any], bool]]:
    def for_signature(signature: Signature) -> Callable[[Any, Any], bool]:
        if not signature.arguments[0].is_floating:
            return compare

        def floating(left: float, right: float) -> bool:
            if left == left and right == right:  # neither is NaN
                return compare(left, right)
            return compare(order_key(left), order_key(right))

        return floating

    return for_signature


def _is_number(datum: Datum) -> bool:
    """Test for one value other than NaN: then the plain kernels are right but for NaN on the other side."""
    return isinstance(datum, pa.Scalar) and datum.is_valid and not math.isnan(datum.as_py())


def _not_nan_equal(left: Datum, right: Datum) -> Datum:
    equal = pc.equal(left, right)
    if _is_number(left) or _is_number(right):
        return equal
    return pc.or_(equal, pc.and_(pc.is_nan(left), pc.is_nan(right)))


def _floating_less(left: Datum, right: Datum) -> Datum:
    """NaN is never less than anything; every number is less than NaN."""
    less = pc.less(left, right)
    return less if _is_number(right) else pc.or_(less, pc.and_(pc.invert(pc.is_nan(left)), pc.is_nan(right)))


def _batch(plain: Kernel, floating: Kernel) -> Callable[[Signature], Kernel]:
    def for_signature(signature: Signature) -> Kernel:
        left, right = signature.arguments
        if left != right:  # two DECIMALs
            wide = pa.decimal256(_WIDEST, max(left.scale, right.scale))
            return lambda first, second: plain(pc.cast(first, wide), pc.cast(second, wide))
        return floating if left.is_floating else plain

    return for_signature


def _in_batch(signature: Signature) -> Callable[..., Datum]:
    floating = signature.arguments[0].is_floating
    equal = _not_nan_equal if floating else pc.equal
    arrow = signature.arguments[0].arrow

    def member(value: Datum, *candidates: Datum) -> Datum:
        if isinstance(value, pa.Scalar) or not all(isinstance(candidate, pa.Scalar) for candidate in candidates):
            found = equal(value, candidates[0])
            for candidate in candidates[1:]:
                found = pc.or_kleene(found, equal(value, candidate))
            return found
        known = [candidate.as_py() for candidate in candidates if candidate.is_valid]
        zeros = [0.0, -0.0] if floating and 0.0 in known else []  # equal, but not to `is_in`
        found = pc.is_in(value, value_set=pa.array(known + zeros, arrow))
        missing = pa.scalar(None, pa.bool_())
        if len(known) < len(candidates):
            found = pc.if_else(found, found, missing)
        return pc.if_else(pc.is_valid(value), found, missing) if value.null_count else found

    return member


def _in_row(signature: Signature) -> Callable[..., Any]:
    floating = signature.arguments[0].is_floating

    def member(value: Any, *candidates: Any) -> bool | None:
        if value is None:
            return None
        if value in candidates or (floating and value != value and any(other != other for other in candidates)):
            return True
        return None if None in candidates else False

    return member


_COMPARISONS = (
    Function("=", resolve_comparison, _batch(pc.equal, _not_nan_equal), _row(operator.eq), symbol="="),
    Function(
        "<>",
        resolve_comparison,
        _batch(pc.not_equal, lambda left, right: pc.invert(_not_nan_equal(left, right))),
        _row(operator.ne),
        symbol="<>",
    ),
    Function("<", resolve_comparison, _batch(pc.less, _floating_less), _row(operator.lt), symbol="<"),
    Function(
        "<=",
        resolve_comparison,
        _batch(pc.less_equal, lambda left, right: pc.invert(_floating_less(right, left))),
        _row(operator.le),
        symbol="<=",
    ),
    Function(
        ">",
        resolve_comparison,
        _batch(pc.greater, lambda left, right: _floating_less(right, left)),
        _row(operator.gt),
        symbol=">",
    ),
    Function(
        ">=",
        resolve_comparison,
        _batch(pc.greater_equal, lambda left, right: pc.invert(_floating_less(left, right))),
        _row(operator.ge),
        symbol=">=",
    ),
)
_BY_NAME = {function.name: function for function in _COMPARISONS}


def _distinct(name: str, *, negated: bool) -> Function:
    """NULL is a value like others: equal to itself, unlike all else."""

    def row(signature: Signature) -> Callable[[Any, Any], bool]:
        equal = _BY_NAME["="].row(signature)

        def compare(left: Any, right: Any) -> bool:
            same = left is right if left is None or right is None else equal(left, right)
            return same == negated

        return compare

    def batch(signature: Signature) -> Callable[[Datum, Datum], Datum]:
        equal = _BY_NAME["="].batch(signature)

        def compare(left: Datum, right: Datum) -> Datum:
            both_missing = pc.and_(pc.is_null(left), pc.is_null(right))
            same = pc.coalesce(equal(left, right), both_missing)
            return same if negated else pc.invert(same)

        return compare

    return Function(name, resolve_comparison, batch, row, strict=False, symbol=name.upper())


def _extreme(name: str, comparison: str) -> Function:
    """Return the greatest or the least argument, NULLs ignored; `comparison` holds where the second is better."""

    def row(signature: Signature) -> Callable[..., Any]:
        worse = _BY_NAME[comparison].row(_pair(signature))

        def choose(*values: Any) -> Any:
            known = [value for value in values if value is not None]
            return reduce(lambda best, value: value if worse(best, value) else best, known) if known else None

        return choose

    def batch(signature: Signature) -> Callable[..., Datum]:
        worse = _BY_NAME[comparison].batch(_pair(signature))

        def better(best: Datum, value: Datum) -> Datum:
            return pc.if_else(pc.coalesce(worse(best, value), pc.is_null(best)), value, best)

        return lambda *values: reduce(better, values)

    return Function(name, resolve_same, batch, row, strict=False)


def _pair(signature: Signature) -> Signature:
    return Signature((signature.result, signature.result), BOOLEAN)


FUNCTIONS = (
    *_COMPARISONS,
    Function("in", _resolve_in, _in_batch, _in_row, strict=False),
    _distinct("is distinct from", negated=False),
    _distinct("is not distinct from", negated=True),
    _extreme("greatest", "<"),
    _extreme("least", ">"),
)
