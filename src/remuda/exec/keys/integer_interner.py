"""Interning of 64-bit integers.

Where the integers lie close together a table indexed by value gives the id at once. Else it is found by open
addressing, all values of a column at a time: each round looks at one slot for every value that is not yet decided. A
great number of new values that do not lie close together is sorted.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from remuda.exec.sort.sort_keys import Part, sorted_by
from remuda.expr.cancellation import check_cancelled

NOT_FOUND = -1
"""In place of an id, for a value that was never interned."""
NULL_ID = 0
"""The id of NULL, in every column."""

SLOTS_FOR_EACH = 16
"""A direct table may have this many slots for each value it holds: beyond that it no longer stays in the cache."""
FREE_SLOTS = 1 << 20
"""A direct table of up to this many slots is worth its memory if many values are looked up in it."""
FREE_SLOTS_FOR_EACH = 256
"""The same for each value, where values are interned: a few groups do not need a table of four megabytes."""

MANY = 1 << 18
"""So many values at once are sorted, unless they lie close together or more are known."""
CLOSE = 8
"""Slots for each value up to which they do: there a million take 36 ms by a table and 63 sorted, with 15 slots for each
64 and 45."""

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_FEWEST_SLOTS = 16


class IntegerInterner:
    """Gives distinct integers the ids 1, 2, 3, ... in the order in which they come; id 0 is left to NULL."""

    def __init__(self, distinct: np.ndarray | None = None) -> None:
        """`distinct` values, if any, get ids as they stand."""
        self.count = 1
        self._values = [np.zeros(1, np.int64)]
        self._low, self._high = 2**63 - 1, -(2**63)
        """The least and the greatest value that is known."""
        self._table: _DirectTable | _HashTable = _DirectTable(0, 0)
        self._is_settled = True
        """Whether the table has all values: many that were added at once, perhaps the last ones, wait until it must."""
        if distinct is not None and len(distinct):
            self._make_room(distinct)
            self._append(distinct)

    @property
    def values(self) -> np.ndarray:
        """The distinct values by id; id 0 has none, and 0 in its place."""
        if len(self._values) > 1:
            self._values = [np.concatenate(self._values)]
        return self._values[0]

    def find(self, values: np.ndarray) -> np.ndarray:
        """Return the id of each value, NOT_FOUND where it has none."""
        return self._lookup_table(len(values)).find(np.ascontiguousarray(values, np.int64))

    def intern(self, values: np.ndarray) -> np.ndarray:
        """Return the id of each value; those that had none get one."""
        check_cancelled()
        values = np.ascontiguousarray(values, np.int64)
        if len(values) >= max(MANY, self.count) and _are_scattered(values):
            return self._intern_sorted(values)
        if self.count == 1 and len(values):
            self._append(self._make_room(values).distinct(values))
            return self._table.find(values)
        ids = self._settled().find(values)
        unknown = np.flatnonzero(ids < 0)
        if not len(unknown):
            return ids
        missing = values[unknown] if len(unknown) < len(values) else values
        self._append(self._make_room(missing).distinct(missing))
        ids[unknown] = self._table.find(missing)
        return ids

    def _append(self, new: np.ndarray) -> None:
        self._table.insert(new, self.count)
        self._values.append(new)
        self.count += len(new)

    def _intern_sorted(self, values: np.ndarray) -> np.ndarray:
        """Intern a great number of values by sorting them together with those that are known.

        Of equal values the first in the order was the first before it: a known one has its id for its position.
        Sorting is sequential, where large tables are met at random: a million values, nearly all different, take 100 ms
        against 230.
        """
        known = self.count - 1
        together = np.concatenate([self.values[1:], values])
        self._cover(values)
        with np.errstate(over="ignore"):
            distances = (together - np.int64(self._low)).view(np.uint64)
        positions = sorted_by([Part(distances, (self._high - self._low).bit_length())], len(together))
        check_cancelled()
        in_order = together.take(positions)
        starts = np.ones(len(together), np.bool_)
        starts[1:] = in_order[1:] != in_order[:-1]
        firsts = positions[starts]
        are_new = firsts >= known
        new = together[firsts[are_new]]
        id_of = firsts.astype(np.int32) + np.int32(1)
        id_of[are_new] = np.arange(self.count, self.count + len(new), dtype=np.int32)
        ids = np.empty(len(together), np.int32)
        ids[positions] = id_of[np.cumsum(starts) - 1]
        self._values.append(new)
        self.count += len(new)
        self._is_settled = False
        return ids[known:]

    def _settled(self) -> _DirectTable | _HashTable:
        """Return the table with all values in it. It is made aside: another thread may be looking into this one."""
        if not self._is_settled:
            self._table, self._is_settled = self._filled(_HashTable(self.count)), True
        return self._table

    def _lookup_table(self, asked: int) -> _DirectTable | _HashTable:
        """Return the table for so many look-ups, which pay for slots that a few interned values do not pay for."""
        table = self._settled()
        if isinstance(table, _HashTable) and self._high - self._low < min(FREE_SLOTS, SLOTS_FOR_EACH * asked):
            table = self._table = self._filled(_DirectTable(self._low, self._high))
        return table

    def _make_room(self, new: np.ndarray) -> _DirectTable | _HashTable:
        """Return a table that can hold these values too: a wider one, or one of the other kind."""
        self._cover(new)
        table, count = self._table, self.count + len(new)
        low, high = self._low, self._high
        if isinstance(table, _HashTable):
            if table.has_room_for(count):
                return table
            # With more values than before they may lie closer together: the other kind is considered again.
        elif self.count > 1:
            low, high = min(low, table.low), max(high, table.high)
            if (low, high) == (table.low, table.high):
                return table
        if high - low < max(min(FREE_SLOTS, FREE_SLOTS_FOR_EACH * count), SLOTS_FOR_EACH * count):
            # Twice as wide as needed once it grows, so that growing step by step is not paid for at each step.
            slack = (high - low) // 2 if self.count > 1 and isinstance(table, _DirectTable) else 0
            table = _DirectTable(max(low - slack, -(2**63)), min(high + slack, 2**63 - 1))
        else:
            table = _HashTable(count)
        self._table = self._filled(table)
        return self._table

    def _cover(self, values: np.ndarray) -> None:
        self._low, self._high = min(self._low, int(values.min())), max(self._high, int(values.max()))

    def _filled(self, table: _DirectTable | _HashTable) -> _DirectTable | _HashTable:
        table.insert(self.values[1:], 1)
        return table


def _are_scattered(values: np.ndarray) -> bool:
    return int(values.max()) - int(values.min()) > max(FREE_SLOTS, CLOSE * len(values))


class _DirectTable:
    """A slot for every value from `low` to `high`; of no width where they are equal and nothing is held."""

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high
        # Differences wrap where they must: what is beyond the table is so as an unsigned number as well.
        self._low = np.int64(low)
        self._span = np.uint64(high - low + 1)
        self._ids = np.full(high - low + 2, NOT_FOUND, np.int32)  # the last slot is for all values that are outside

    def find(self, values: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            slots = (values - self._low).view(np.uint64)
        np.minimum(slots, self._span, out=slots)
        return self._ids.take(slots.view(np.int64))

    def distinct(self, values: np.ndarray) -> np.ndarray:
        """Of values within the table that have no id: each once."""
        present = np.zeros(int(self._span), np.bool_)
        present[values - self._low] = True
        return np.flatnonzero(present) + self._low

    def insert(self, values: np.ndarray, first: int) -> None:
        """Distinct values, which get the ids from `first` on."""
        self._ids[values - self._low] = np.arange(first, first + len(values), dtype=np.int32)


class _HashTable:
    def __init__(self, expected: int) -> None:
        size = max(_FEWEST_SLOTS, 1 << (4 * expected - 1).bit_length())
        self._shift = np.uint64(64 - (size.bit_length() - 1))
        self._mask = np.int64(size - 1)
        self._ids = np.full(size, NOT_FOUND, np.int32)
        self._keys = np.empty(max(1, size // 2), np.int64)

    def has_room_for(self, count: int) -> bool:
        return count <= len(self._keys)

    def distinct(self, values: np.ndarray) -> np.ndarray:
        distinct: np.ndarray = pa.array(values).unique().to_numpy()
        return distinct

    def insert(self, values: np.ndarray, first: int) -> None:
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
        """Where a slot holds another value than the one looked for; not where it is free, which decides it."""
        other: np.ndarray = (ids >= 0) & (self._keys.take(ids, mode="clip") != values)
        return other
