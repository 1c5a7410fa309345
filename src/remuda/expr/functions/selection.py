"""Comparisons that NULL does not silence: IS [NOT] DISTINCT FROM, GREATEST and LEAST."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from remuda.expr.function import Datum, Function, Signature
from remuda.expr.functions.comparison import FUNCTIONS as COMPARISONS
from remuda.expr.functions.comparison import resolve_comparison
from remuda.expr.functions.logic import resolve_same
from remuda.types import BOOLEAN

if TYPE_CHECKING:
    from collections.abc import Callable

_COMPARISONS = {function.name: function for function in COMPARISONS}


def _distinct(name: str, *, negated: bool) -> Function:
    """NULL is a value like others: equal to itself, unlike all else."""

    def row(signature: Signature) -> Callable[[Any, Any], bool]:
        equal = _COMPARISONS["="].row(signature)

        def compare(left: Any, right: Any) -> bool:
            same = left is right if left is None or right is None else equal(left, right)
            return same == negated

        return compare

    def batch(signature: Signature) -> Callable[[Datum, Datum], Datum]:
        equal = _COMPARISONS["="].batch(signature)

        def compare(left: Datum, right: Datum) -> Datum:
            both_missing = pc.and_(pc.is_null(left), pc.is_null(right))
            same = pc.coalesce(equal(left, right), both_missing)
            return same if negated else pc.invert(same)

        return compare

    return Function(name, resolve_comparison, batch, row, strict=False, symbol=name.upper())


def _extreme(name: str, comparison: str) -> Function:
    """The greatest or the least of the arguments that are not NULL; `comparison` holds where the second is better."""

    def row(signature: Signature) -> Callable[..., Any]:
        worse = _COMPARISONS[comparison].row(_pair(signature))

        def choose(*values: Any) -> Any:
            known = [value for value in values if value is not None]
            return reduce(lambda best, value: value if worse(best, value) else best, known) if known else None

        return choose

    def batch(signature: Signature) -> Callable[..., Datum]:
        worse = _COMPARISONS[comparison].batch(_pair(signature))

        def better(best: Datum, value: Datum) -> Datum:
            return pc.if_else(pc.coalesce(worse(best, value), pc.is_null(best)), value, best)

        return lambda *values: reduce(better, values)

    return Function(name, resolve_same, batch, row, strict=False)


def _pair(signature: Signature) -> Signature:
    return Signature((signature.result, signature.result), BOOLEAN)


FUNCTIONS = (
    _distinct("is distinct from", negated=False),
    _distinct("is not distinct from", negated=True),
    _extreme("greatest", "<"),
    _extreme("least", ">"),
)
