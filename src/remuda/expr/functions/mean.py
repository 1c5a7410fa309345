"""From a sum and a count to the mean: what AVG is where it is computed in two logical steps. It has no name in SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from remuda.expr.function import Datum, Function, Signature
from remuda.expr.functions.decimals import OVERLOADS, divide_batch
from remuda.types import BIGINT, DOUBLE, MAXIMUM_PRECISION, Kind, SqlType, decimal, exact_digits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MEAN = "mean of sum"
_COUNT = SqlType(Kind.DECIMAL, *exact_digits(BIGINT))
_MORE_DIGITS = 4


def _resolve(given: Sequence[SqlType]) -> Signature | None:
    """Of a DECIMAL with the four digits more that AVG has, but as wide as can be."""
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


FUNCTIONS = (Function(MEAN, _resolve, _batch, _row, can_fail=True),)
"""Strict; and NULL where there is nothing to divide by."""
