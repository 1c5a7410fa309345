"""Tables from 64-bit integers to ids: one slot for each value, or open addressing, a whole column at a time."""

from __future__ import annotations

import numpy as np

from remuda.expr.cancellation import check_cancelled

NOT_FOUND = -1
"""In place of an id, for a value that was never interned."""

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_FEWEST_SLOTS = 16


class _ByValue:
    """Finds the slot of a value by its distance from the lowest one; a slot at either end is for all others."""

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high
        self.size = high - low + 3
        # Differences wrap: one that is outside of the table is so after it has wrapped as well.
        self._before = np.uint64((low - 1) & (2**64 - 1))

    def _slots(self, values: np.ndarray) -> np.ndarray:
        return (values.view(np.uint64) - self._before).view(np.int64)


class DirectTable(_ByValue):
    """A slot for every value from `low` to `high`."""

    def __init__(self, low: int, high: int) -> None:
        super().__init__(low, high)
        self._ids = np.full(self.size, NOT_FOUND, np.int32)

    def find(self, values: np.ndarray) -> np.ndarray:
        return self._ids.take(self._slots(values), mode="clip")

    def add(self, values: np.ndarray, first: int) -> tuple[np.ndarray, np.ndarray]:
        """Give ids from `first` on to values that have none; return the id of each, and each value once.

        Each slot takes the number of the first row that has its value, and so tells which rows those are.
        """
        slots = self._slots(values)
        rows = np.arange(len(values), dtype=np.int32)
        self._ids[slots[::-1]] = rows[::-1]  # of rows of one slot the one that is assigned last remains
        firsts = np.flatnonzero(self._ids.take(slots) == rows)
        self._ids[slots[firsts]] = np.arange(first, first + len(firsts), dtype=np.int32)
        return self._ids.take(slots), values[firsts]

    def insert(self, values: np.ndarray, first: int) -> None:
        """Distinct values, which get the ids from `first` on."""
        self._ids[self._slots(values)] = np.arange(first, first + len(values), dtype=np.int32)


class HashTable:
    def __init__(self, expected: int) -> None:
        size = max(_FEWEST_SLOTS, 1 << (4 * expected - 1).bit_length())
        self._shift = np.uint64(64 - (size.bit_length() - 1))
        self._mask = np.int64(size - 1)
        self._ids = np.full(size, NOT_FOUND, np.int32)
        self._keys = np.empty(max(1, size // 2), np.int64)

    def has_room_for(self, count: int) -> bool:
        return count <= len(self._keys)

    def add(self, values: np.ndarray, first: int) -> tuple[np.ndarray, np.ndarray]:
        """Give ids from `first` on to values that have none; return the id of each, and each value once.

        Until all rows have a slot, the slots of new values hold `first` and the number of a row that has the value.
        """
        row_of = np.arange(len(values), dtype=np.int32)
        slot_of = self._home(values)
        waiting, slots = np.arange(len(values)), slot_of
        while len(waiting):
            check_cancelled()
            free = self._ids.take(slots) < 0
            self._ids[slots[free][::-1]] = (waiting[free][::-1] + first).astype(np.int32)
            rows = self._ids.take(slots) - np.int32(first)
            is_own = (rows >= 0) & (values.take(rows, mode="clip") == values.take(waiting))
            row_of[waiting[is_own]] = rows[is_own]
            slot_of[waiting] = slots
            left = np.flatnonzero(~is_own)
            waiting, slots = waiting[left], (slots[left] + 1) & self._mask
        firsts = np.flatnonzero(row_of == np.arange(len(values)))
        new = values[firsts]
        ids = np.empty(len(values), np.int32)
        ids[firsts] = np.arange(first, first + len(firsts), dtype=np.int32)
        self._ids[slot_of[firsts]] = ids[firsts]
        self._keys[first : first + len(firsts)] = new
        return ids.take(row_of), new

    def insert(self, values: np.ndarray, first: int) -> None:
        """Distinct values, which get the ids from `first` on."""
        waiting = np.arange(first, first + len(values), dtype=np.int32)
        self._keys[first : first + len(values)] = values
        slots = self._home(values)
        while len(waiting):
            free = self._ids[slots] < 0
            self._ids[slots[free]] = waiting[free]
            # Of several that came to the same slot one has it now; the others go on to the next slot.
            left = np.flatnonzero(self._ids[slots] != waiting)
            waiting, slots = waiting[left], (slots[left] + 1) & self._mask

    def _home(self, values: np.ndarray) -> np.ndarray:
        mixed = values.view(np.uint64)
        mixed = (mixed ^ (mixed >> _HALF)) * _MULTIPLIER
        home: np.ndarray = (mixed >> self._shift).view(np.int64)
        return home

    def find(self, values: np.ndarray) -> np.ndarray:
        slots = self._home(values)
        ids = self._ids.take(slots)
        undecided = np.flatnonzero(self._is_other(ids, values))
        slots = slots[undecided]
        while len(undecided):
            check_cancelled()
            slots = (slots + 1) & self._mask
            found = self._ids.take(slots)
            ids[undecided] = found
            wrong = np.flatnonzero(self._is_other(found, values[undecided]))
            undecided, slots = undecided[wrong], slots[wrong]
        return ids

    def _is_other(self, ids: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Test where a slot holds another value than the sought one; a free slot holds none."""
        other: np.ndarray = (ids >= 0) & (self._keys.take(ids, mode="clip") != values)
        return other


class PresenceTable(_ByValue):
    """A byte for every value from `low` to `high`: whether it is known. It decides what most rows need to be told."""

    def __init__(self, low: int, high: int, values: np.ndarray) -> None:
        super().__init__(low, high)
        self._is_present = np.zeros(self.size, np.bool_)
        self._is_present[self._slots(values)] = True

    def contains(self, values: np.ndarray) -> np.ndarray:
        """Return whether each value is known."""
        return self._is_present.take(self._slots(values), mode="clip")
