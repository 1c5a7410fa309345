"""Floating-point numbers to DECIMAL, by the shortest text that means the number: 2.675 rounds to 2.68, as it looks.

And back, to the nearest one: Arrow's own cast is sometimes one off, 127.49 being 127.49000000000001.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.errors import text_error
from remuda.expr.evaluate.by_rows import by_rows
from remuda.expr.function import Signature
from remuda.expr.functions.decimal_words import from_unscaled
from remuda.expr.functions.decimals import fit_row
from remuda.types import Kind, SqlType
from remuda.types.arrow_compute import pc

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.expr.function import Datum

_SURE_BELOW = 2.0**43
"""Up to here the error of `value * 10**scale` is below 1/512, and that of the shortest text is no larger."""
_NEAR_TIE = 0.01
_EXACT_BELOW = 2**53
"""Integers up to here are DOUBLEs, and so are the powers of ten up to 22: their quotient is rounded once."""
_EXACT_POWER, _EXACT_DIGITS = 22, 15


def floating_to_decimal(source: SqlType, target: SqlType) -> Callable[[float], Decimal]:
    fit = fit_row(target)

    def convert(value: float) -> Decimal:
        if not math.isfinite(value):
            raise text_error(f"{value} is not a value of type {target}")
        return fit(Decimal(str(np.float32(value)) if source.kind is Kind.REAL else repr(value)))

    return convert


def floating_to_decimal_batch(source: SqlType, target: SqlType) -> Callable[[Datum], Datum]:
    """Numbers that are clearly on one side of a tie are rounded by numpy, the few others one by one."""
    one_by_one = by_rows(floating_to_decimal(source, target), Signature((source,), target))
    if source.kind is Kind.REAL or target.scale > 22:
        return one_by_one

    def convert(value: Datum) -> Datum:
        if not isinstance(value, pa.Array) or value.null_count == len(value):
            return one_by_one(value)
        numbers = np.asarray(pc.fill_null(value, 0.0))
        with np.errstate(all="ignore"):
            scaled = numbers * 10.0**target.scale
            unsure = ~((np.abs(scaled) < _SURE_BELOW) & (np.abs(np.abs(scaled % 1.0) - 0.5) > _NEAR_TIE))
            rounded = np.where(unsure, 0.0, np.rint(scaled)).astype(np.int64)
        try:
            result = from_unscaled(rounded, target)
        except pa.ArrowInvalid:
            return one_by_one(value)
        result = pc.if_else(pc.is_valid(value), result, pa.scalar(None, result.type))
        if not unsure.any():
            return result
        mask = pa.array(unsure)
        return pc.replace_with_mask(result, mask, one_by_one(value.filter(mask)))

    return convert


def decimal_to_floating_batch(target: SqlType) -> Callable[[Datum], Datum]:
    """Convert a DECIMAL to the nearest DOUBLE or REAL."""
    arrow = target.arrow

    def convert(value: Datum) -> Datum:
        if isinstance(value, pa.Array) and target.kind is Kind.DOUBLE:
            return nearest_doubles(value)
        return pc.cast(pc.cast(value, pa.string()), arrow)

    return convert


def nearest_doubles(decimals: pa.Array) -> pa.Array:
    """Short numbers by a division, others by their text."""
    type_ = decimals.type
    if not pa.types.is_decimal128(type_) or type_.scale > _EXACT_POWER or decimals.null_count == len(decimals):
        return decimals.cast(pa.string()).cast(pa.float64())
    words = np.frombuffer(decimals.buffers()[1], "<i8", 2 * len(decimals), 16 * decimals.offset)
    numbers, missing = words[0::2].copy(), None
    if decimals.null_count:
        missing = ~np.asarray(pc.is_valid(decimals))
        numbers[missing] = 0
    if type_.precision > _EXACT_DIGITS:
        higher = words[1::2] if missing is None else np.where(missing, 0, words[1::2])
        fits = numbers.min() >= -_EXACT_BELOW and numbers.max() <= _EXACT_BELOW
        if not fits or ((numbers >> 63) != higher).any():
            return decimals.cast(pa.string()).cast(pa.float64())
    return pa.array(numbers / 10.0**type_.scale, mask=missing)
