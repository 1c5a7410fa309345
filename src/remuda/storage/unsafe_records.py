"""Which statements of a map may not be durable yet, so that they can be taken back if they never will be."""

from __future__ import annotations

from collections import deque


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

    def safe_length(self, durable: int) -> int | None:
        """How much of the log is safe; None if all of it is."""
        return next((length for sequence, length in self._records if sequence > durable), None)
