"""Division of 64-bit integers to many digits, as on paper, over whole columns.

7 / 11 to four digits: 7 goes 0 times, 70 goes 6 times and 4 are left, 40 goes 3 times, 70 6 times, 40 3 times: 0.6363.
As many digits are taken at a time as keep the remainder within 64 bits.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_ALL_BITS = 1 << 64
_PIECE = 18
"""Digits that are collected in one integer."""
MOST_DIGITS = 34
"""So that what is put together has at most the 76 digits of Arrow's wider decimal."""


def divide_to_digits(dividends: np.ndarray, divisors: np.ndarray, digits: int, scale: int) -> pa.Array:
    """`dividends * 10**digits / divisors`, rounded half away from zero, as the unscaled values of a scale.

    No divisor is 0, and all are below 10**18.
    """
    dividends, divisors = np.broadcast_arrays(dividends, divisors)
    negative = (dividends < 0) != (divisors < 0)
    divisor = np.abs(divisors).astype(np.uint64)
    whole, rest = np.divmod(np.abs(dividends).astype(np.uint64), divisor)
    step = _digits_at_a_time(int(divisor.max(initial=1)))
    pieces: list[tuple[np.ndarray, int]] = [(whole, digits)]
    left = digits
    while left:
        wanted = min(left, _PIECE)
        piece = np.zeros_like(rest)
        while wanted:
            count = min(step, wanted)
            power = np.uint64(10**count)
            taken, rest = np.divmod(rest * power, divisor)
            piece = piece * power + taken
            wanted -= count
            left -= count
        pieces.append((piece, left))
    last, _ = pieces[-1]
    pieces[-1] = (last + (rest >= divisor - rest), 0)
    total = _placed(*pieces[0], scale)
    for piece, power_of_ten in pieces[1:]:
        total = pc.add(total, _placed(piece, power_of_ten, scale))
    return pc.if_else(pa.array(negative), pc.negate(total), total)


def _digits_at_a_time(largest: int) -> int:
    """
    >>> _digits_at_a_time(10**18), _digits_at_a_time(2**33)
    (1, 9)
    """
    count = 1
    while largest * 10 ** (count + 1) <= _ALL_BITS:
        count += 1
    return count


def _placed(integers: np.ndarray, power_of_ten: int, scale: int) -> pa.Array:
    """The integers times a power of ten, as unscaled values; none has more than 63 bits."""
    words = np.zeros((len(integers), 2), "<u8")
    words[:, 0] = integers
    array = pa.Array.from_buffers(pa.decimal128(38, scale), len(integers), [None, pa.py_buffer(words)])
    wide = pc.cast(array, pa.decimal256(38, scale))
    return pc.multiply(wide, pa.scalar(Decimal(10**power_of_ten), pa.decimal256(power_of_ten + 1, 0)))
