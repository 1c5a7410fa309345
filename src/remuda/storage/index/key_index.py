"""From a key to its position in a segment: open addressing over one array.

A slot holds position + 1, zero is empty. The slot of a key comes from the *high* bits of its hash (partition ids use
the hash modulo the partitions), so sorting the rows by hash sorts them by slot, and the table is filled in one pass:
each row goes to its slot or to the first free slot behind it. The table ends in a tail instead of wrapping around.

    hash bits   slots by hash  0 1 1 1 4      slots    0 1 2 3 4      table   r0 r1 r2 r3 r4 - - - (tail)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from remuda.storage.segment.block_guard import view_of
from remuda.storage.segment.row_order import BLOCK

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.storage.segment.block_guard import Array, Values

LOAD = 0.6
"""Rows per slot at most. Above it probes grow long, below it the table grows for nothing."""

TAIL = 1024
"""Places behind the last slot while a table is filled: nearly always they suffice, and it need not be copied."""


def build_table(sorted_hashes: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Build the table for unsigned hashes in ascending order, each with the number (one or more) that it finds."""
    table = TableBuilder(len(sorted_hashes))
    for start in range(0, len(sorted_hashes), BLOCK):
        table.add(sorted_hashes[start : start + BLOCK], values[start : start + BLOCK])
    return table.finish()


class TableBuilder:
    """Fills a table of so many entries, given in ascending order of their hashes, some at a time."""

    __slots__ = ("_bits", "_free", "_table")

    def __init__(self, entries: int) -> None:
        self._bits = table_bits(entries)
        self._table = np.zeros((1 << self._bits) + TAIL, np.uint32)
        self._free = 0
        """The first slot behind all that are taken."""

    def add(self, hashes: np.ndarray, values: np.ndarray) -> None:
        if len(hashes) == 0:
            return
        slots = (hashes >> np.uint64(64 - self._bits)).astype(np.int64)
        slots[0] = max(int(slots[0]), self._free)
        steps = np.arange(len(slots))
        taken = np.maximum.accumulate(slots - steps) + steps
        self._free = int(taken[-1]) + 1
        missing = self._free + 1 - len(self._table)
        if missing > 0:
            self._table = np.concatenate([self._table, np.zeros(missing, np.uint32)])
        self._table[taken] = values

    def finish(self) -> np.ndarray:
        """Return the table; its last slot is empty."""
        return self._table[: max(self._free, 1 << self._bits) + 1]


def table_bits(entries: int) -> int:
    """Compute how many bits of a hash choose a slot.

    At least one bit: a shift by all 64 is not defined in numpy.
    """
    return max(1, (int(entries / LOAD)).bit_length())


def prober(
    table: Array, entries: int, numbers: Values | None, value: Callable[[int], Any]
) -> Callable[[Any, int], int]:
    """Return the function from a key and its unsigned hash to the position, or -1.

    `numbers` gives the keys as raw values where they are one column of numbers that `==` compares well; otherwise
    `value` reads a key. NaN differs from itself, so the one NaN that keys are made with is found by identity.
    """
    slots = view_of(table)
    shift = 64 - table_bits(entries)
    if entries == 0:
        return lambda _key, _hashed: -1
    if numbers is not None:

        def probe_number(key: Any, hashed: int) -> Any:
            slot = hashed >> shift
            while found := slots[slot]:
                if numbers[found - 1] == key:
                    return found - 1
                slot += 1
            return -1

        return probe_number

    def probe(key: Any, hashed: int) -> Any:
        slot = hashed >> shift
        while found := slots[slot]:
            held = value(found - 1)
            if held == key or held is key:
                return found - 1
            slot += 1
        return -1

    return probe
