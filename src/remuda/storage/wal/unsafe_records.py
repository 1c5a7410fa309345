"""Which statements of a map may not be durable yet, so that they can be taken back if they never will be."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class UnsafeRecords:
    """Each record with the length of the map's log before it; the writer lock is held by whoever uses this."""

    __slots__ = ("_records",)

    def __init__(self) -> None:
        self._records: deque[tuple[int, int]] = deque()

    def add(self, sequence: int, length: int, durable: int) -> None:
        """A new record; those up to `durable` are safe by now."""
        records = self._records
        while records and records[0][0] <= durable:
            records.popleft()
        records.append((sequence, length))

    def carried(self, start: int, stop: int) -> UnsafeRecords:
        """The same when only the entries [start, stop) of the log go on, in a new log."""
        kept = UnsafeRecords()
        kept._records.extend((sequence, length - start) for sequence, length in self._records if start <= length < stop)
        return kept

    def first_refused(self, is_refused: Callable[[int], bool]) -> tuple[int, int] | None:
        """The first record that will never be durable, with the length of the log before it; None if there is none."""
        return next((record for record in self._records if is_refused(record[0])), None)
