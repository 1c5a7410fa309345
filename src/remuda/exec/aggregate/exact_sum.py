"""Exact sums of integers and decimals that cannot wrap, whatever comes.

A sum is kept in limbs of 32 bits, each in a 64-bit integer, so that two thousand million rows fit before a carry:

    sum = limb 0 + limb 1 * 2**32 + limb 2 * 2**64 + limb 3 * 2**96

Values that are small enough, as nearly all are, go into the first limb whole; as long as the sums are small as well,
there is no other limb.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.errors import overflow_error
from remuda.exec.aggregate.accumulators import Accumulator, grown, is_one_word, sum_where, with_nulls_as
from remuda.expr.functions.decimal_words import are_words
from remuda.types import LONG_DIGITS, Kind
from remuda.types.arrow_arrays import decimal_array, decimal_words
from remuda.types.normalized_key import normalized_keys, values_of_keys

if TYPE_CHECKING:
    from remuda.exec.aggregate.accumulators import Count
    from remuda.types import SqlType


_LIMB = np.int64(32)
_MASK = np.int64(0xFFFFFFFF)
_ROOM = 2**62
_LIMBS = 4


class ExactSum(Accumulator):
    def __init__(self, argument: SqlType, result: SqlType, rows: Count | None = None) -> None:
        super().__init__(rows)
        self._argument = argument
        self._result = result
        self._limbs = [np.zeros(1, np.int64) for _ in range(_LIMBS)]
        self._reached = 0
        """A bound for what the first limb may have reached."""
        self._is_wide = False
        """Whether the other limbs are in use; if not, they have no room for the groups."""

    def add_present(self, groups: np.ndarray | None, values: pa.Array, count: int) -> None:
        self._add_values(groups, values, None, count)

    def add_with_nulls(self, groups: np.ndarray | None, values: pa.Array, nulls: np.ndarray, count: int) -> None:
        self._add_values(groups, values, nulls, count)

    def _add_values(self, groups: np.ndarray | None, values: pa.Array, nulls: np.ndarray | None, count: int) -> None:
        """Add values, zero for those that are NULL."""
        self._grow(count)
        if self._argument.kind is Kind.DECIMAL and self._argument.precision > LONG_DIGITS:
            low, high = decimal_words(values)
            if nulls is not None:
                low, high = with_nulls_as(0, low, nulls), with_nulls_as(0, high, nulls)
            narrow = np.ascontiguousarray(low).view(np.int64)
            if are_words(narrow, high):
                self._add_words(groups, narrow)
                return
            self._add(0, groups, (low & np.uint64(_MASK)).view(np.int64))
            self._add(1, groups, (low >> np.uint64(_LIMB)).view(np.int64))
            self._add(2, groups, high & _MASK)
            self._add(3, groups, high >> _LIMB)
            self._reach((2**32) * len(values))
        else:
            numbers = normalized_keys(values, self._argument)
            self._add_words(groups, numbers if nulls is None else with_nulls_as(0, numbers, nulls))

    def add_present_where(self, values: pa.Array, present: np.ndarray) -> bool:
        if not is_one_word(self._argument):
            return False
        numbers = normalized_keys(values, self._argument)
        reached = _greatest(numbers) * len(numbers)
        if reached >= _ROOM // 2:
            return False
        self._reach(reached)
        self._limbs[0][0] += sum_where(numbers, present)
        return True

    def _add_words(self, groups: np.ndarray | None, numbers: np.ndarray) -> None:
        most = _greatest(numbers)
        if most * len(numbers) < _ROOM // 2:
            self._reach(most * len(numbers))
            self._add(0, groups, numbers)
        else:
            self._reach(2**32 * len(numbers))
            self._add(0, groups, numbers & _MASK)
            self._add(1, groups, numbers >> _LIMB)

    def _reach(self, more: int) -> None:
        if self._reached + more >= _ROOM:
            self._carry()
            self._reached = 2**32
        self._reached += more

    def _grow(self, count: int) -> None:
        self._limbs[0] = grown(self._limbs[0], count, 0)
        if self._is_wide:
            self._widen()

    def _widen(self) -> None:
        self._limbs[1:] = [grown(limb, len(self._limbs[0]), 0) for limb in self._limbs[1:]]
        self._is_wide = True

    def _add(self, limb: int, groups: np.ndarray | None, numbers: np.ndarray) -> None:
        if limb and not self._is_wide:
            self._widen()
        if groups is None:
            self._limbs[limb][0] += numbers.sum()
        else:
            np.add.at(self._limbs[limb], groups, numbers)

    def _carry(self) -> None:
        """Leave less than 2**32 in each limb but the last."""
        self._widen()
        for number in range(_LIMBS - 1):
            self._limbs[number + 1] += self._limbs[number] >> _LIMB
            self._limbs[number] &= _MASK

    def state(self, count: int) -> pa.Array:
        missing = self.missing(count)
        self._grow(count)
        if not self._is_wide and _holds_words(self._result):
            return values_of_keys(self._limbs[0][:count], self._result, missing)
        self._carry()
        self._reached = 2**32
        limbs = [limb[:count] for limb in self._limbs]
        low = (limbs[0] | (limbs[1] << _LIMB)).view(np.uint64)
        high = limbs[2] | (limbs[3] << _LIMB)
        beyond = limbs[3] != limbs[3].astype(np.int32)  # of 128 bits
        if self._result.kind is Kind.DECIMAL:
            beyond |= _exceeds(low, high, 10**self._result.precision)
            self._refuse(beyond)
            return decimal_array(low, high, self._result, missing if missing.any() else None)
        total = low.view(np.int64)
        beyond |= high != total >> 63
        self._refuse(beyond)
        return pa.array(total, self._result.arrow, mask=missing)

    def _refuse(self, beyond: np.ndarray) -> None:
        if beyond.any():
            raise overflow_error(f"the sum overflows {self._result}")


def _holds_words(result: SqlType) -> bool:
    return result.kind is Kind.BIGINT or (result.kind is Kind.DECIMAL and result.precision > LONG_DIGITS)


def _greatest(numbers: np.ndarray) -> int:
    """Return the greatest distance from zero."""
    return max(abs(int(numbers.min())), abs(int(numbers.max())))


def _exceeds(low: np.ndarray, high: np.ndarray, limit: int) -> np.ndarray:
    """Return whether 128-bit numbers are as far from zero as a limit, which is below 2**127."""
    top, bottom = np.int64(limit >> 64), np.uint64(limit & (2**64 - 1))
    above: np.ndarray = (high > top) | ((high == top) & (low >= bottom))
    negative_top, negative_bottom = np.int64(-limit >> 64), np.uint64(-limit & (2**64 - 1))
    below = (high < negative_top) | ((high == negative_top) & (low <= negative_bottom))
    above |= below
    return above
