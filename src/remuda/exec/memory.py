"""What the operators of a query may hold in memory: sorts, aggregates, joins and windows."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from remuda.errors import LESS_MEMORY, memory_error
from remuda.exec.batch import TupleBatch
from remuda.types.arrow_arrays import is_dictionary

if TYPE_CHECKING:
    import pyarrow as pa

    from remuda.exec.batch import RowBatch

BYTES_OF_TUPLE, BYTES_OF_OBJECT = 72, 40
"""What rows take as Python objects, about: a tuple and its place in a list or set; a value and its place in it."""
SHARES = (1 / 2, 1 / 16)
"""The share of the limit that operators fill before they spill, as the rest is for reading spilled rows again; and the
share that each may hold in any case, so that it can work on what it has spilled."""
_UNITS = (("GB", 10**9), ("MB", 10**6), ("kB", 10**3))


class MemoryLimit:
    """One for a query; its operators, on whichever thread, say how much each of them holds."""

    def __init__(self, limit: int, whole: MemoryLimit | None = None) -> None:
        self.limit = limit
        self._whole = whole
        self._held: dict[int, int] = {}
        self._total = 0
        self._lock = Lock()

    def hold(self, operator: object, name: str, size: int) -> None:
        """Hold bytes for `operator`; raise where all operators together hold too much."""
        with self._lock:
            self._total += size - self._held.get(id(operator), 0)
            self._held[id(operator)] = size
            total = self._total
        if self._whole is not None:
            self._whole.hold(self, name, total)
        elif total > self.limit:
            raise memory_error(
                f"{name} needs more memory than the limit of {in_units(self.limit)}",
                suggestion=LESS_MEMORY,
            )

    def try_hold(self, operator: object, size: int) -> bool:
        """Hold so many bytes where operators that spill may; else change nothing and return False."""
        with self._lock:
            total = self._total + size - self._held.get(id(operator), 0)
            fits = total <= SHARES[0] * self.limit if self._whole is None else self._whole.try_hold(self, total)
            if fits:
                self._total = total
                self._held[id(operator)] = size
            return fits

    def room(self, operator: object) -> int:
        """Return how many bytes an operator that can spill may hold, besides what others hold."""
        with self._lock:
            others = self._total - self._held.get(id(operator), 0)
        share = int(SHARES[0] * self.limit) if self._whole is None else self._whole.room(self)
        return max(share - others, int(SHARES[1] * self.limit))

    def part(self) -> MemoryLimit:
        """Return a part of this limit, for operators that go before the query ends: `release` gives back their
        memory."""
        return MemoryLimit(self.limit, self)

    def release(self) -> None:
        if self._whole is not None:
            self._whole.hold(self, "", 0)


def in_units(size: int) -> str:
    """Write a number of bytes in units.

    >>> in_units(2_500_000), in_units(17)
    ('2.5 MB', '17 bytes')
    """
    for unit, factor in _UNITS:
        if size >= factor:
            return f"{size / factor:g} {unit}"
    return f"{size} bytes"


def bytes_of(batch: pa.RecordBatch) -> int:
    """Return what holding a batch takes. A dictionary is shared by many batches and held by its segment."""
    return sum(column.indices.nbytes if is_dictionary(column) else column.nbytes for column in batch.columns)


def bytes_held(batch: RowBatch) -> int:
    """Return what holding a batch of either form takes."""
    if isinstance(batch, TupleBatch):
        return bytes_of_tuples(batch.row_count, len(batch.columns))
    return bytes_of(batch.arrow())


def bytes_of_tuples(rows: int, columns: int) -> int:
    return rows * (BYTES_OF_TUPLE + columns * BYTES_OF_OBJECT)
