"""What an index of a map has for the keys of left rows: counted before a row is read, then read as Arrow columns."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from remuda.storage import Lookup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow as pa

    from remuda.exec.batch import Tuple
    from remuda.exec.scan.scan_filter import ScanFilter
    from remuda.expr import Parameters
    from remuda.storage import Source


KEYS_AT_ONCE = 1_000
"""Keys between two questions whether the query was cancelled."""


class KeyIds:
    """Different keys of a batch of left rows without NULL, and for each row the number of its key, -1 with NULL."""

    def __init__(self, keys: Iterable[Tuple]) -> None:
        numbers: dict[Tuple, int] = {}
        ids = [-1 if None in key else numbers.setdefault(_with_one_nan(key), len(numbers)) for key in keys]
        self.keys = list(numbers)
        self.of_rows = np.array(ids, np.int64)


class SourceMatches(NamedTuple):
    """The live positions of one source that match, key by key, and how many each key has."""

    source: Source
    counts: np.ndarray
    positions: np.ndarray

    def read(self, rows: ScanFilter, parameters: Parameters) -> tuple[pa.RecordBatch, np.ndarray]:
        """Return the rows that pass the filter, and the number of the key of each."""
        key_ids = np.repeat(np.arange(len(self.counts)), self.counts)
        return rows.keep_passing(self.source.take(rows.names, self.positions), key_ids, parameters)


def find_matches(
    source: Source, index: str, keys: Sequence[Tuple], partitions: np.ndarray | None, verify: Callable[[], None]
) -> SourceMatches:
    """Ask an index of a source for every key."""
    found: list[np.ndarray] = []
    for first in range(0, len(keys), KEYS_AT_ONCE):
        verify()
        some_keys = keys[first : first + KEYS_AT_ONCE]
        found.extend(source.positions(index, Lookup(key), partitions) for key in some_keys)
    counts = np.array([len(positions) for positions in found], np.int64)
    return SourceMatches(source, counts, np.concatenate([np.empty(0, np.int64), *found]))


def _with_one_nan(key: Tuple) -> Tuple:
    """Python tells two NaNs apart unless they are the same object."""
    return tuple([nan if value != value else value for value in key]) if any(value != value for value in key) else key
