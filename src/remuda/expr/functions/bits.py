"""& | # ~ << >> of integers, as two's complement. A shift by n bits is a multiplication or division by 2 ** n.

So `<<` is an error where the product is too large, where PostgreSQL loses the upper bits, and `>>` rounds down, also by
more bits than there are, where PostgreSQL begins to count from 0 again.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.errors import option_error, overflow_error
from remuda.expr.function import Datum, Function, Signature
from remuda.expr.functions.decimals import OVERFLOW
from remuda.types import BIGINT, INTEGER_RANGES, common_type
from remuda.types.arrow_compute import pc

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from remuda.types import SqlType

_BITS = 64
"""Of the largest integers; to shift by more is to shift by all."""
_NEGATIVE = "a shift takes a number of bits that is not negative"


def _resolve_pair(given: Sequence[SqlType]) -> Signature | None:
    result = common_type(*given) if len(given) == 2 else None
    return Signature((result, result), result) if result is not None and result.is_integer else None


def _resolve_one(given: Sequence[SqlType]) -> Signature | None:
    return Signature((given[0],), given[0]) if len(given) == 1 and given[0].is_integer else None


def _resolve_shift(given: Sequence[SqlType]) -> Signature | None:
    """Resolve a shift: the result has the type of the shifted value, whatever the type of the number of bits."""
    if len(given) != 2 or not given[0].is_integer or common_type(given[1], BIGINT) != BIGINT:
        return None
    return Signature((given[0], BIGINT), given[0])


def _shift_left_row(signature: Signature) -> Callable[[int, int], int]:
    low, high = INTEGER_RANGES[signature.result.kind]

    def shift(value: int, count: int) -> int:
        if count < 0:
            raise option_error(_NEGATIVE)
        shifted = value << min(count, _BITS)
        if not low <= shifted <= high:
            raise overflow_error(OVERFLOW.format(signature.result))
        return shifted

    return shift


def _shift_right_row(_: Signature) -> Callable[[int, int], int]:
    def shift(value: int, count: int) -> int:
        if count < 0:
            raise option_error(_NEGATIVE)
        return value >> min(count, _BITS)

    return shift


def _shift_batch(
    kernel: Callable[[np.ndarray, np.ndarray, SqlType], np.ndarray],
) -> Callable[[Signature], Callable[[Datum, Datum], Datum]]:
    """Shift by NumPy: Arrow leaves a number as it is that is shifted by all bits but its sign."""

    def for_signature(signature: Signature) -> Callable[[Datum, Datum], Datum]:
        result = signature.result

        def shift(value: Datum, count: Datum) -> Datum:
            if isinstance(value, pa.Scalar) and isinstance(count, pa.Scalar):
                return shift(pa.repeat(value, 1), count)[0]
            valid = pc.and_(pc.is_valid(value), pc.is_valid(count))
            counts = np.where(valid, _numbers(count), 0)
            if (counts < 0).any():
                raise option_error(_NEGATIVE)
            shifted = kernel(np.where(valid, _numbers(value), 0), counts, result)
            return pa.array(shifted.astype(result.arrow.to_pandas_dtype()), result.arrow, mask=~np.asarray(valid))

        return shift

    return for_signature


def _numbers(datum: Datum) -> np.ndarray:
    """Return the values as 64 bits, with 0 for NULL, which NumPy does not know."""
    if isinstance(datum, pa.Array):
        return np.asarray(pc.fill_null(datum, 0)).astype(np.int64)
    return np.asarray(datum.as_py() if datum.is_valid else 0, np.int64)


def _shift_left(values: np.ndarray, counts: np.ndarray, type_: SqlType) -> np.ndarray:
    """Shift left; a result that does not come back when it is shifted back was too large for its type."""
    low, high = INTEGER_RANGES[type_.kind]
    cut = np.minimum(counts, _BITS - 1)
    shifted: np.ndarray = np.left_shift(values, cut)
    lost = (np.right_shift(shifted, cut) != values) | ((counts >= _BITS) & (values != 0))
    if (lost | (shifted < low) | (shifted > high)).any():
        raise overflow_error(OVERFLOW.format(type_))
    return shifted


def _shift_right(values: np.ndarray, counts: np.ndarray, _: SqlType) -> np.ndarray:
    shifted: np.ndarray = np.right_shift(values, np.minimum(counts, _BITS - 1))
    return shifted


FUNCTIONS = (
    Function("&", _resolve_pair, lambda _: pc.bit_wise_and, lambda _: operator.and_, symbol="&"),
    Function("|", _resolve_pair, lambda _: pc.bit_wise_or, lambda _: operator.or_, symbol="|"),
    Function("#", _resolve_pair, lambda _: pc.bit_wise_xor, lambda _: operator.xor, symbol="#"),
    Function("bitwise not", _resolve_one, lambda _: pc.bit_wise_not, lambda _: operator.invert, symbol="~"),
    Function("<<", _resolve_shift, _shift_batch(_shift_left), _shift_left_row, symbol="<<", can_fail=True),
    Function(">>", _resolve_shift, _shift_batch(_shift_right), _shift_right_row, symbol=">>", can_fail=True),
)
