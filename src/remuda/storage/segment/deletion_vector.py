"""Which rows of a segment are hidden, and since which log entry.

One mark a row, allocated with the first hidden row: 0 is deleted for good (known from an earlier checkpoint), `i + 1`
hidden by log entry `i`, `NOT_HIDDEN` otherwise. So a row is live at length L iff its mark is above L, for every L at
once.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

NOT_HIDDEN = 0xFFFFFFFF


class DeletionVector:
    __slots__ = ("_entries", "_positions", "_rows", "deleted", "marks", "view")

    def __init__(self, rows: int, deleted: np.ndarray | None = None) -> None:
        """`deleted` are the positions hidden for good."""
        self._rows = rows
        self._entries: list[int] = []
        self._positions: list[int] = []
        self.deleted = 0 if deleted is None else len(deleted)
        self.marks: np.ndarray | None = None
        self.view: memoryview | None = None
        if self.deleted:
            self._allocate()[deleted] = 0

    def hide(self, position: int, entry: int) -> None:
        if self.view is None:
            self._allocate()
        assert self.view is not None
        # The position first: so `roll_back` finds every mark that was set.
        self._positions.append(position)
        self._entries.append(entry)
        self.view[position] = entry + 1

    def roll_back(self, committed: int) -> None:
        """Takes back what entries that were never committed have hidden."""
        kept = bisect_left(self._entries, committed)
        for position in self._positions[kept:]:
            assert self.view is not None
            self.view[position] = NOT_HIDDEN
        del self._entries[kept:], self._positions[kept:]

    def is_deleted(self, position: int) -> bool:
        return self.view is not None and self.view[position] == 0

    def is_hidden(self, position: int, length: int) -> bool:
        return self.view is not None and self.view[position] <= length

    def count(self, length: int) -> int:
        """How many rows are hidden at a length of the log."""
        return self.deleted + bisect_left(self._entries, length)

    def live(self, length: int) -> np.ndarray | None:
        """For each row whether it is live; None where all are."""
        if self.marks is None or self.count(length) == 0:
            return None
        mask: np.ndarray = self.marks > length
        return mask

    def positions(self, length: int) -> np.ndarray:
        """The hidden positions, ascending."""
        live = self.live(length)
        return np.empty(0, np.int64) if live is None else np.flatnonzero(~live)

    def _allocate(self) -> np.ndarray:
        marks = np.full(self._rows, NOT_HIDDEN, np.uint32)
        self.view = memoryview(marks)
        self.marks = marks
        return marks
