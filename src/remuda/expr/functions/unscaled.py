"""Short DECIMALs as 64-bit integers, for numpy: their value times ten to the power of their scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from remuda.expr.function import Datum
    from remuda.types import SqlType


def unscaled(datum: Datum, scale: int, missing: int) -> np.ndarray:
    """The integers at a scale that is not below the type's; `missing` stands for NULL. One value is an array of one."""
    array = pa.repeat(datum, 1) if isinstance(datum, pa.Scalar) else datum
    array = pc.cast(array, pa.decimal128(38, scale))
    words = np.frombuffer(array.buffers()[1], "<i8", count=2 * len(array), offset=16 * array.offset)
    low = words[0::2]
    return np.where(np.asarray(pc.is_valid(array)), low, missing) if array.null_count else low


def are_words(low: np.ndarray, high: np.ndarray) -> bool:
    """Whether the lower halves, as signed integers, are all there is: the higher ones repeat the sign.

    Where no number is below zero, as most often, nothing is computed (262,144 numbers: 120 µs against 340).
    """
    if not np.count_nonzero(high):
        return not len(low) or int(low.min()) >= 0
    return bool((high == low >> 63).all())


def from_unscaled(integers: np.ndarray, result: SqlType) -> pa.Array:
    """Raises Arrow's error where the type has too few digits."""
    wide = np.empty((len(integers), 2), "<i8")
    wide[:, 0] = integers
    wide[:, 1] = integers >> 63  # the sign, in all bits of the higher half
    array = pa.Array.from_buffers(pa.decimal128(38, result.scale), len(integers), [None, pa.py_buffer(wide)])
    return pc.cast(array, result.arrow)
