"""The build side of a join: its rows, and for each key the rows that have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from remuda.exec.batch import positional
from remuda.exec.keys.key_interner import KeyInterner
from remuda.exec.keys.text_interner import used_values
from remuda.expr.cancellation import check_cancelled
from remuda.types.arrow_arrays import is_dictionary, true_positions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from remuda.types import SqlType

PAIRS_AT_ONCE = 1 << 18
"""Pairs that are made at once: a batch of rows with many matches each is cut, so that memory stays bounded."""
FIRST_ROUND = 8
ROUND_GROWTH = 4
"""How many candidates of a row are tried first, and how many times as many in each further round."""
MOST_DISTINCT = 0.5
"""The share of rows above which repeated ones are kept: there are few of them."""
COUNTED_AT_ONCE = 1 << 20
"""Rows whose keys are counted at once; more where there are more keys, which each piece looks through."""


class Pairs(NamedTuple):
    """Pairs of rows by their positions, for left rows from `first` up to `stop`; `left` is ascending, None stands for
    each of those rows exactly once.
    """

    first: int
    stop: int
    left: np.ndarray | None
    right: np.ndarray

    def left_positions(self) -> np.ndarray:
        return np.arange(self.first, self.stop) if self.left is None else self.left


class BuildRows:
    """Rows that are taken from again and again: strings become dictionaries, of which only codes are copied."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        arrays = [_coded(array) for array in batch.columns]
        self.batch = positional(arrays, batch.num_rows)
        self.rows = batch.num_rows


def _coded(array: pa.Array) -> pa.Array:
    text = pa.types.is_string(array.type) or pa.types.is_binary(array.type)
    return array.dictionary_encode() if text and not is_dictionary(array) else array


def distinct_rows(build: BuildRows, ordinals: Sequence[int], types: Sequence[SqlType]) -> BuildRows:
    """Return the first of the rows that are the same in these columns; all of them where that leaves most of them."""
    key_ids = KeyInterner(types).intern([build.batch.column(ordinal) for ordinal in ordinals])
    _, first = np.unique(key_ids, return_index=True)
    if len(first) > MOST_DISTINCT * build.rows:
        return build
    return BuildRows(build.batch.take(pa.array(np.sort(first))))


class KeyTable:
    """Knows which keys there are. Nothing changes once it is made: several threads may look into it."""

    def __init__(self, columns: Sequence[pa.Array], types: Sequence[SqlType], null_safe: Sequence[bool]) -> None:
        self._keys = KeyInterner(types, null_safe)
        self._index_rows(self._keys.intern([used_values(column) for column in columns]))

    def _index_rows(self, key_ids: np.ndarray) -> None:
        """Keep what is needed of the id of each row, NOT_FOUND where its key equals nothing: here nothing."""

    @property
    def count(self) -> int:
        """How many different keys there are."""
        return self._keys.distinct

    def contains(self, columns: Sequence[pa.Array]) -> np.ndarray:
        """Return, for each row, whether there is a row with its key."""
        return self._keys.contains(columns)


class RowsByKey:
    """Rows side by side by the id of their key, of which there are `keys`."""

    def __init__(self, key_ids: np.ndarray, keys: int, rows: np.ndarray | None = None) -> None:
        """`key_ids` has the id of each row, none of them NOT_FOUND; `rows` their positions where some are left out."""
        # One more, of no rows, so that NOT_FOUND as an index from the end finds nothing.
        self.counts = _counted(key_ids, keys + 1)
        self._starts = np.cumsum(self.counts) - self.counts
        check_cancelled()
        order = np.argsort(key_ids, kind="stable")
        self._rows = order if rows is None else rows[order]

    @property
    def row_count(self) -> int:
        return len(self._rows)

    def pairs(self, key_ids: np.ndarray) -> Iterator[Pairs]:
        """Deliver all pairs of equal keys, for rows of the other side in their order."""
        counts = self.counts[key_ids]
        for first, stop in cuts(counts):
            matches = counts[first:stop]
            left = np.repeat(np.arange(first, stop), matches)
            yield Pairs(first, stop, left, self._rows[spread(self._starts[key_ids[first:stop]], matches)])

    def pairs_until(self, key_ids: np.ndarray, settled: np.ndarray) -> Iterator[Pairs]:
        """Deliver pairs round by round, for as long as a row is not `settled`, which the caller changes meanwhile."""
        counts = self.counts[key_ids]
        at_first = FIRST_ROUND if int(counts.sum()) > PAIRS_AT_ONCE else int(counts.max(initial=0))
        return in_rounds(self._starts[key_ids], counts, self._rows, settled, at_first)

    def runs(self, key_ids: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the rows, and for each row of the other side where its matches start, and how many there are."""
        return self._rows, self._starts[key_ids], self.counts[key_ids]


class JoinTable(KeyTable):
    """Finds rows by key."""

    def _index_rows(self, key_ids: np.ndarray) -> None:
        present = np.flatnonzero(key_ids >= 0)
        key_ids = key_ids if len(present) == len(key_ids) else key_ids[present]
        check_cancelled()
        # One more, of no rows, so that NOT_FOUND as an index from the end finds nothing.
        row_of = np.full(self._keys.count + 1, -1, np.int32)
        row_of[key_ids] = present
        self._row_of = row_of if np.array_equal(row_of[key_ids], present) else None
        if self._row_of is None:
            self._several = RowsByKey(key_ids, self._keys.count, present)

    @property
    def rows_of_key(self) -> float:
        """How many rows a key has on average."""
        return 1.0 if self._row_of is not None else self._several.row_count / max(1, self.count)

    def pairs(self, columns: Sequence[pa.Array]) -> Iterator[Pairs]:
        """Deliver all pairs of equal keys, for rows of the other side in their order."""
        key_ids = self._keys.find(columns)
        if self._row_of is None:
            yield from self._several.pairs(key_ids)
            return
        right = self._row_of[key_ids]
        hits = right >= 0
        if hits.all():
            yield Pairs(0, len(key_ids), None, right)
        else:
            left = true_positions(hits)
            yield Pairs(0, len(key_ids), left, right[left])

    def pairs_until(self, columns: Sequence[pa.Array], settled: np.ndarray) -> Iterator[Pairs]:
        """Deliver pairs round by round, for as long as a row is not `settled`, which the caller changes meanwhile."""
        if self._row_of is not None:
            return self.pairs(columns)
        return self._several.pairs_until(self._keys.find(columns), settled)

    def runs(self, columns: Sequence[pa.Array]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the rows, equal keys together, and for each row of the other side where its matches start, and how
        many there are."""
        key_ids = self._keys.find(columns)
        if self._row_of is not None:
            return self._row_of, key_ids, (self._row_of[key_ids] >= 0).astype(np.int64)
        return self._several.runs(key_ids)


def spread(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return so many consecutive integers from each start on.

    >>> spread(np.array([3, 10]), np.array([2, 3])).tolist()
    [3, 4, 10, 11, 12]
    """
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    spread: np.ndarray = np.repeat(starts - ends + counts, counts) + np.arange(total)
    return spread


def in_rounds(
    starts: np.ndarray, counts: np.ndarray, rows: np.ndarray, settled: np.ndarray, width: int = FIRST_ROUND
) -> Iterator[Pairs]:
    """Pair each left row with `rows[start : start + count]`: a few of them at first, more as long as it is open.

    Where a row has thousands of candidates the first few mostly settle whether one of them meets a condition.
    """
    open_ = np.flatnonzero((counts > 0) & ~settled)
    done = 0
    while len(open_):
        matches = np.minimum(counts[open_] - done, width)
        for first, stop in cuts(matches):
            some, width_of_each = open_[first:stop], matches[first:stop]
            left = np.repeat(some, width_of_each)
            yield Pairs(0, len(counts), left, rows[spread(starts[some] + done, width_of_each)])
        done += width
        width *= ROUND_GROWTH
        open_ = open_[(counts[open_] > done) & ~settled[open_]]


def _counted(key_ids: np.ndarray, count: int) -> np.ndarray:
    """Count the rows of each key. numpy lets no other thread do anything meanwhile, so it is asked piece by piece."""
    size = max(COUNTED_AT_ONCE, count)
    counts = np.zeros(count, np.intp)
    for first in range(0, len(key_ids), size):
        counts += np.bincount(key_ids[first : first + size], minlength=count)
    return counts


def cuts(counts: np.ndarray, at_once: int = PAIRS_AT_ONCE) -> Iterator[tuple[int, int]]:
    """Cut rows into ranges that have no more than so many pairs together, or are one row.

    >>> list(cuts(np.array([1, 2, 3, 9, 1]), 5))
    [(0, 2), (2, 3), (3, 4), (4, 5)]
    """
    total = np.cumsum(counts)
    first = 0
    while first < len(counts):
        before = int(total[first - 1]) if first else 0
        stop = max(first + 1, int(np.searchsorted(total, before + at_once, side="right")))
        yield first, stop
        first = stop


def all_pairs(left_rows: int, right_rows: int) -> Iterator[Pairs]:
    """Pair every left row with every right row."""
    step = max(1, PAIRS_AT_ONCE // max(1, right_rows))
    rights = np.arange(right_rows)
    for first in range(0, left_rows, step):
        stop = min(first + step, left_rows)
        yield Pairs(first, stop, np.repeat(np.arange(first, stop), right_rows), np.tile(rights, stop - first))
