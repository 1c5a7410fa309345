"""Interning of 64-bit integers.

Where the integers lie close together a table indexed by value gives the id at once. Else it is found by open
addressing, all values of a column at a time: each round looks at one slot for every value that is not yet decided. A
great number of new values that do not lie close together is sorted. Where few of the values that are looked up are
known, a byte for each value tells first which those are.
"""

from __future__ import annotations

import numpy as np

from remuda.exec.keys.integer_tables import NOT_FOUND, DirectTable, HashTable, PresenceTable
from remuda.exec.sort.sort_keys import Part, sorted_by
from remuda.expr.cancellation import check_cancelled
from remuda.types.arrow_arrays import true_positions

NULL_ID = 0
"""The id of NULL, in every column."""

SLOTS_FOR_EACH = 16
"""A direct table may have this many slots for each value it holds: with more, sorting new values is faster."""
WIDE_SLOTS, WIDE_SLOTS_FOR_EACH = 1 << 23, 32
"""Up to so many slots it may have more for each value: values of real tables, such as keys, mostly come in clusters."""
FREE_SLOTS = 1 << 20
"""A direct table of up to this many slots is worth its memory if many values are looked up in it."""
FREE_SLOTS_FOR_EACH = 256
"""The same for each value, where values are interned: a few groups do not need a table of four megabytes."""

MANY = 1 << 18
"""So many values at once are sorted, unless they lie close together or more are known."""

PRESENCE_SLOTS = 1 << 25
"""The most bytes of a table that tells which values are known."""
LOOK_UPS_FOR_EACH = 16
"""Bytes of it for each value that was looked up so far: making it takes less than those look-ups took."""
FEW_KNOWN = 0.15
"""The share of values that are known up to which it pays: 131,072 look-ups, spread over six million values of which
150,000 are known, take 0.6 ms by hash and 0.3 by presence, and where all are known 0.6 and 1.8."""


class IntegerInterner:
    """Gives distinct integers the ids 1, 2, 3, ... in the order in which they come; id 0 is left to NULL."""

    def __init__(self, distinct: np.ndarray | None = None) -> None:
        """`distinct` values, if any, get ids as they stand."""
        self.count = 1
        self._values = [np.zeros(1, np.int64)]
        self._low, self._high = 2**63 - 1, -(2**63)
        """The least and the greatest value that is known."""
        self._table: DirectTable | HashTable = DirectTable(0, 0)
        self._is_settled = True
        """Whether the table has all values: many that were added at once, perhaps the last ones, wait until it must."""
        self._looked_up = 0
        """How many values have been looked up since a table of those that are present was last thought of."""
        self._presence: PresenceTable | None = None
        if distinct is not None and len(distinct):
            self._make_room(distinct).insert(distinct, 1)
            self._append(distinct)

    @property
    def values(self) -> np.ndarray:
        """The distinct values by id; id 0 has none, and 0 in its place."""
        if len(self._values) > 1:
            self._values = [np.concatenate(self._values)]
        return self._values[0]

    def find(self, values: np.ndarray) -> np.ndarray:
        """Return the id of each value, NOT_FOUND where it has none."""
        values = np.ascontiguousarray(values, np.int64)
        table, presence = self._lookup_table(len(values)), self._presence
        if presence is not None:
            present = true_positions(presence.contains(values))
            ids = np.full(len(values), NOT_FOUND, np.int32)
            ids[present] = table.find(values[present])
            return ids
        ids = table.find(values)
        self._consider_presence(ids)
        return ids

    def contains(self, values: np.ndarray) -> np.ndarray:
        """Return whether each value has an id, which need not be found where a table of bytes tells so."""
        presence = self._presence
        if presence is None:
            return self.find(values) >= 0
        return presence.contains(np.ascontiguousarray(values, np.int64))

    def intern(self, values: np.ndarray) -> np.ndarray:
        """Return the id of each value; those that had none get one."""
        check_cancelled()
        values = np.ascontiguousarray(values, np.int64)
        if not len(values):
            return np.empty(0, np.int32)
        if len(values) >= max(MANY, self.count) and self._are_scattered(values):
            return self._intern_sorted(values)
        if self.count == 1:
            return self._add(values)
        ids = self._settled().find(values)
        unknown = np.flatnonzero(ids < 0)
        if len(unknown):
            ids[unknown] = self._add(values[unknown] if len(unknown) < len(values) else values)
        return ids

    def _add(self, values: np.ndarray) -> np.ndarray:
        """Give ids to values that have none, and return them."""
        ids, new = self._make_room(values).add(values, self.count)
        self._append(new)
        return ids

    def _append(self, new: np.ndarray) -> None:
        self._values.append(new)
        self.count += len(new)
        self._presence, self._looked_up = None, 0

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
        self._append(new)
        self._is_settled = False
        return ids[known:]

    def _settled(self) -> DirectTable | HashTable:
        """Return the table with all values in it. It is made aside: another thread may be looking into this one."""
        if not self._is_settled:
            low, high = self._low, self._high
            is_direct = _fits_directly(high - low, self.count)
            table = DirectTable(low, high) if is_direct else HashTable(self.count)
            self._table, self._is_settled = self._filled(table), True
        return self._table

    def _lookup_table(self, asked: int) -> DirectTable | HashTable:
        """Return the table for so many look-ups, which pay for slots that a few interned values do not pay for."""
        table = self._settled()
        if isinstance(table, HashTable) and self._high - self._low < min(FREE_SLOTS, SLOTS_FOR_EACH * asked):
            table = self._table = self._filled(DirectTable(self._low, self._high))
        return table

    def _consider_presence(self, ids: np.ndarray) -> None:
        """Make the table of values that are present once enough were looked up, if few of these were known.

        It is made aside, as all of this is: other threads may look up values.
        """
        self._looked_up += len(ids)
        width = self._high - self._low
        if FREE_SLOTS <= width < min(PRESENCE_SLOTS, LOOK_UPS_FOR_EACH * self._looked_up):
            self._looked_up = 0
            if np.count_nonzero(ids >= 0) <= FEW_KNOWN * len(ids):
                self._presence = PresenceTable(self._low, self._high, self.values[1:])

    def _make_room(self, new: np.ndarray) -> DirectTable | HashTable:
        """Return a table that can hold these values too: a wider one, or one of the other kind."""
        self._cover(new)
        table, count = self._table, self.count + len(new)
        low, high = self._low, self._high
        if isinstance(table, HashTable):
            if table.has_room_for(count):
                return table
            # With more values than before they may lie closer together: the other kind is considered again.
        elif self.count > 1:
            low, high = min(low, table.low), max(high, table.high)
            if (low, high) == (table.low, table.high):
                return table
        if _fits_directly(high - low, count):
            # Twice as wide as needed once it grows, so that growing step by step is not paid for at each step.
            slack = (high - low) // 2 if self.count > 1 and isinstance(table, DirectTable) else 0
            table = DirectTable(max(low - slack, -(2**63)), min(high + slack, 2**63 - 1))
        else:
            table = HashTable(count)
        self._table = self._filled(table)
        return self._table

    def _cover(self, values: np.ndarray) -> None:
        self._low, self._high = min(self._low, int(values.min())), max(self._high, int(values.max()))

    def _filled(self, table: DirectTable | HashTable) -> DirectTable | HashTable:
        table.insert(self.values[1:], 1)
        return table

    def _are_scattered(self, values: np.ndarray) -> bool:
        """Test whether a direct table of these values and the known ones would be too wide."""
        low, high = min(self._low, int(values.min())), max(self._high, int(values.max()))
        return high - low >= FREE_SLOTS and not _fits_directly(high - low, self.count + len(values))


def _fits_directly(width: int, count: int) -> bool:
    """Test whether a slot for every value between the least and the greatest is worth it for so many values."""
    return width < max(
        min(FREE_SLOTS, FREE_SLOTS_FOR_EACH * count),
        min(WIDE_SLOTS, WIDE_SLOTS_FOR_EACH * count),
        SLOTS_FOR_EACH * count,
    )
