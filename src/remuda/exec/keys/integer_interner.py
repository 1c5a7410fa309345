"""Numbers for distinct integers: what joins and groups look values up by.

Where the integers lie close together a table indexed by value gives the number at once. Else it is found by open
addressing, all values of a column at a time: each round looks at one slot for every value that is not yet decided. A
great number of new values that do not lie close together is sorted.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from remuda.exec.sort.sort_keys import Part, sorted_by
from remuda.expr.cancellation import check_cancelled

NOT_FOUND = -1
"""The number of a value that is not among the distinct ones."""

SLOTS_FOR_EACH = 16
"""A direct table may have this many slots for each value it holds: beyond that it no longer stays in the cache."""
FREE_SLOTS = 1 << 20
"""A direct table of up to this many slots is always worth its memory, if many values are looked up in it."""
FREE_SLOTS_FOR_EACH = 256
"""The same for each value, where values are only added: a few groups do not need a table of four megabytes."""

MANY = 1 << 18
"""So many values at once are sorted, unless they lie close together or more are known."""
CLOSE = 8
"""Slots for each value up to which they do: there a million take 36 ms by a table and 63 sorted, with 15 slots for each
64 and 45."""

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_FEWEST_SLOTS = 16


class IntegerInterner:
    """Gives every distinct one of the values added a number: 0, 1, 2, ... in the order in which they came to be known.

    `given` are the numbers of the values that it was made with.
    """

    def __init__(self, values: np.ndarray) -> None:
        self.count = 0
        self._is_looked_into = bool(len(values))
        """Made with values it is one side of a join, which many others are looked up in; groups begin with none."""
        self._values: list[np.ndarray] = []
        self._table: _DirectTable | _HashTable = _DirectTable(0, 0)
        self._is_settled = True
        """Whether the table has all values: many that were added at once, perhaps the last ones, wait until it must."""
        self.given = self.add(values)

    @classmethod
    def in_order(cls, values: np.ndarray) -> IntegerInterner:
        """Distinct values, numbered as they stand."""
        made = cls(np.empty(0, np.int64))
        if len(values):
            made._make_room(values).insert(values, 0)
            made._values, made.count = [values], len(values)
        return made

    @property
    def values(self) -> np.ndarray:
        """The distinct values by number."""
        if len(self._values) != 1:
            self._values = [np.concatenate(self._values) if self._values else np.empty(0, np.int64)]
        return self._values[0]

    def find(self, values: np.ndarray) -> np.ndarray:
        """The number of each value, ABSENT where it has none."""
        return self._settled().find(np.ascontiguousarray(values, np.int64))

    def add(self, values: np.ndarray) -> np.ndarray:
        """The number of each value; those that had none get one."""
        check_cancelled()
        values = np.ascontiguousarray(values, np.int64)
        if len(values) >= max(MANY, self.count) and _are_scattered(values):
            return self._add_sorted(values)
        numbers = self._settled().find(values)
        unknown = np.flatnonzero(numbers < 0)
        if not len(unknown):
            return numbers
        wanted = values[unknown] if len(unknown) < len(values) else values
        new = self._make_room(wanted).distinct(wanted)
        self._table.insert(new, self.count)
        self._values.append(new)
        self.count += len(new)
        numbers[unknown] = self._table.find(wanted)
        return numbers

    def _add_sorted(self, values: np.ndarray) -> np.ndarray:
        """The same for a great number of values, by sorting them together with those that are known.

        Of equal values the first in the order was the first before it: a known one has its number for its position.
        Sorting is sequential, where large tables are met at random: a million values, nearly all different, take 100 ms
        against 230.
        """
        known = self.count
        together = np.concatenate([self.values, values])
        with np.errstate(over="ignore"):
            distances = (together - together.min()).view(np.uint64)
        positions = sorted_by([Part(distances, int(distances.max()).bit_length())], len(together))
        check_cancelled()
        in_order = together.take(positions)
        starts = np.ones(len(together), np.bool_)
        starts[1:] = in_order[1:] != in_order[:-1]
        firsts = positions[starts]
        are_new = firsts >= known
        new = together[firsts[are_new]]
        number_of = firsts.astype(np.int32)
        number_of[are_new] = np.arange(known, known + len(new), dtype=np.int32)
        numbers = np.empty(len(together), np.int32)
        numbers[positions] = number_of[np.cumsum(starts) - 1]
        self._values.append(new)
        self.count += len(new)
        self._is_settled = False
        return numbers[known:]

    def _settled(self) -> _DirectTable | _HashTable:
        """The table with all values in it. It is made aside: another thread may be looking into the one there is."""
        if not self._is_settled:
            table = _HashTable(self.count)
            table.insert(self.values, 0)
            self._table, self._is_settled = table, True
        return self._table

    def _make_room(self, wanted: np.ndarray) -> _DirectTable | _HashTable:
        """A table that can hold these values too: a wider one, or one of the other kind."""
        low, high = int(wanted.min()), int(wanted.max())
        table, count = self._table, self.count + len(wanted)
        if isinstance(table, _HashTable):
            if table.has_room_for(count):
                return table
            # With more values than before they may lie closer together.
            low, high = min(low, int(self.values.min())), max(high, int(self.values.max()))
        elif self.count:
            low, high = min(low, table.low), max(high, table.high)
            if (low, high) == (table.low, table.high):
                return table
        free = FREE_SLOTS if self._is_looked_into else min(FREE_SLOTS, FREE_SLOTS_FOR_EACH * count)
        if high - low < max(free, SLOTS_FOR_EACH * count):
            # Twice as wide as needed once it grows, so that growing step by step is not paid for at each step.
            slack = (high - low) // 2 if self.count and isinstance(table, _DirectTable) else 0
            self._table = _DirectTable(max(low - slack, -(2**63)), min(high + slack, 2**63 - 1))
        else:
            self._table = _HashTable(count)
        self._table.insert(self.values, 0)
        return self._table


def _are_scattered(values: np.ndarray) -> bool:
    return int(values.max()) - int(values.min()) > max(FREE_SLOTS, CLOSE * len(values))


class _DirectTable:
    """A slot for every value from `low` to `high`; of no width where they are equal and nothing is held."""

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high
        # Differences wrap where they must: what is beyond the table is so as an unsigned number as well.
        self._low = np.int64(low)
        self._span = np.uint64(high - low + 1)
        self._numbers = np.full(high - low + 2, NOT_FOUND, np.int32)  # the last slot is for all values that are outside

    def find(self, values: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            slots = (values - self._low).view(np.uint64)
        np.minimum(slots, self._span, out=slots)
        return self._numbers.take(slots.view(np.int64))

    def distinct(self, values: np.ndarray) -> np.ndarray:
        """Of values within the table that have no number: each once."""
        present = np.zeros(int(self._span), np.bool_)
        present[values - self._low] = True
        return np.flatnonzero(present) + self._low

    def insert(self, values: np.ndarray, first: int) -> None:
        """Distinct values, which get the numbers from `first` on."""
        self._numbers[values - self._low] = np.arange(first, first + len(values), dtype=np.int32)


class _HashTable:
    def __init__(self, expected: int) -> None:
        size = max(_FEWEST_SLOTS, 1 << (4 * expected - 1).bit_length())
        self._shift = np.uint64(64 - (size.bit_length() - 1))
        self._mask = np.int64(size - 1)
        self._slots = np.full(size, NOT_FOUND, np.int32)
        self._keys = np.empty(max(1, size // 2), np.int64)

    def has_room_for(self, count: int) -> bool:
        return count <= len(self._keys)

    def distinct(self, values: np.ndarray) -> np.ndarray:
        distinct: np.ndarray = pa.array(values).unique().to_numpy()
        return distinct

    def insert(self, values: np.ndarray, first: int) -> None:
        waiting = np.arange(first, first + len(values), dtype=np.int32)
        self._keys[first : first + len(values)] = values
        places = self._home(values)
        while len(waiting):
            free = self._slots[places] < 0
            self._slots[places[free]] = waiting[free]
            # Of several that wanted the same slot one has it now; the others go on to the next slot.
            left = np.flatnonzero(self._slots[places] != waiting)
            waiting, places = waiting[left], (places[left] + 1) & self._mask

    def _home(self, values: np.ndarray) -> np.ndarray:
        mixed = values.view(np.uint64)
        mixed = (mixed ^ (mixed >> _HALF)) * _MULTIPLIER
        home: np.ndarray = (mixed >> self._shift).view(np.int64)
        return home

    def find(self, values: np.ndarray) -> np.ndarray:
        places = self._home(values)
        numbers = self._slots.take(places)
        undecided = np.flatnonzero(self._is_other(numbers, values))
        places = places[undecided]
        while len(undecided):
            check_cancelled()
            places = (places + 1) & self._mask
            found = self._slots.take(places)
            numbers[undecided] = found
            wrong = np.flatnonzero(self._is_other(found, values[undecided]))
            undecided, places = undecided[wrong], places[wrong]
        return numbers

    def _is_other(self, numbers: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Where a slot holds another value than the one looked for; not where it is free, which decides it."""
        other: np.ndarray = (numbers >= 0) & (self._keys.take(numbers, mode="clip") != values)
        return other
