"""The memtable of a map version: recent writes, append-only, so that a snapshot is a length.

Entry number `i` is a row or a tombstone. It is *live at length L* iff it is a row, `i < L`, and the entry that
supersedes it, if any, is not below `L`. A statement appends all its entries and then raises `committed` once: that is
what makes it atomic, and why a reader that holds a length is never disturbed.

    put 7 'a' | put 8 'b' | put 7 'c' | delete 8            superseded_by   2  3  -  (tombstone)
    live at 2: 0, 1         live at 3: 1, 2         live at 4: 2
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

NEVER = (1 << 62) - 1
_FIRST_CAPACITY = 1024


class Memtable:
    """Has one writer at a time and any readers. Only `MapVersion` appends: it knows which row a write replaces."""

    __slots__ = ("_superseded", "_superseded_view", "committed", "keys", "newest", "previous", "rows")

    def __init__(self) -> None:
        self.keys: list[Any] = []
        self.rows: list[tuple[Any, ...] | None] = []
        self.previous: list[int] = []
        self.newest: dict[Any, int] = {}
        self.committed = 0
        self._superseded = np.empty(_FIRST_CAPACITY, np.int64)
        self._superseded_view = memoryview(self._superseded)

    def append(self, key: Any, row: tuple[Any, ...] | None, previous: int) -> None:
        """Adds an entry for a key whose newest entry so far is `previous` (-1: none)."""
        entry = len(self.keys)
        if entry == len(self._superseded_view):
            self._grow()
        # `previous` first and `newest` last: so `roll_back` can undo an append that was interrupted anywhere, and a
        # reader that finds an entry finds all of it.
        self.previous.append(previous)
        # A tombstone is superseded at birth: no length finds it live.
        self._superseded_view[entry] = 0 if row is None else NEVER
        if previous >= 0 and self.rows[previous] is not None:
            self._superseded_view[previous] = entry
        self.rows.append(row)
        self.keys.append(key)
        self.newest[key] = entry

    def roll_back(self) -> None:
        """Takes back every entry that is not committed."""
        for entry in range(len(self.previous) - 1, self.committed - 1, -1):
            previous = self.previous[entry]
            if previous >= 0 and self.rows[previous] is not None:
                self._superseded_view[previous] = NEVER
            if entry < len(self.keys):
                if previous >= 0:
                    self.newest[self.keys[entry]] = previous
                else:
                    self.newest.pop(self.keys[entry], None)
        for entries in (self.previous, self.rows, self.keys):
            del entries[self.committed :]

    def entry_at(self, key: Any, length: int) -> int:
        """Return the newest entry of the key below `length`, or -1."""
        entry = self.newest.get(key, -1)
        while entry >= length:
            entry = self.previous[entry]
        return entry

    def live(self, length: int) -> np.ndarray:
        """Tell for each entry below `length` whether it is live at it."""
        mask: np.ndarray = self._superseded[:length] >= length
        return mask

    def is_live(self, entry: int, length: int) -> bool:
        return self._superseded_view[entry] >= length

    def entries(self, start: int, stop: int) -> Iterator[tuple[Any, tuple[Any, ...] | None]]:
        return zip(self.keys[start:stop], self.rows[start:stop], strict=True)

    def _grow(self) -> None:
        # Readers of the old array lack only what happens to entries after their own length.
        larger = np.empty(2 * len(self._superseded), np.int64)
        larger[: len(self._superseded)] = self._superseded
        self._superseded = larger
        self._superseded_view = memoryview(larger)
