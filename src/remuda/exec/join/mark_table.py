"""Answers `(x, y) IN (SELECT a, b ...)` by hashing, with SQL's three-valued logic.

A pair of rows is equal where all of its values are, and it is unknown whether it is where some values are NULL and all
others are equal. So rows are told apart by their *pattern*: which of the compared columns are NULL. Between left rows
of one pattern and right rows of another, only the columns that are NULL in neither are compared, by a table for them:

    left (1, NULL), right (1, 2), (NULL, 2), (3, NULL)
    right pattern (a, b): x = a is looked up: found, unknown       pattern (NULL, b): nothing to compare: unknown
    right pattern (a, NULL): x = a is looked up: not found

There are seldom more than two or three patterns on a side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from remuda.exec.join.join_table import JoinTable, KeyTable, Pairs, all_pairs
from remuda.types.arrow_arrays import null_mask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from remuda.types import SqlType


class MarkKeys(NamedTuple):
    """The columns of one side: those of the join's own keys first, then those that are compared."""

    keys: Sequence[pa.Array]
    compared: Sequence[pa.Array]
    rows: int


class MarkTable:
    """The right side of a MARK join whose comparison is one of equalities of columns.

    With `condition`, which gives the pairs that meet what else the join asks, pairs are made; without, it is enough to
    know that there is one.
    """

    def __init__(
        self,
        right: MarkKeys,
        types: Sequence[SqlType],
        null_safe: Sequence[bool],
        *,
        makes_pairs: bool,
    ) -> None:
        """`types` are those of keys and compared columns, `null_safe` is of the keys."""
        self._right = right
        self._types = types
        self._null_safe = null_safe
        self._make_table = JoinTable if makes_pairs else KeyTable
        self._rows = _by_pattern(right)
        self._tables: dict[tuple[int, int], KeyTable] = {}

    def marks(self, left: MarkKeys, condition: Callable[[Pairs], Pairs] | None) -> tuple[np.ndarray, np.ndarray]:
        """Return, for each left row, whether its mark is true, and whether it is unknown."""
        true, unknown = np.zeros(left.rows, np.bool_), np.zeros(left.rows, np.bool_)
        lefts = _by_pattern(left)
        if 0 in lefts and 0 in self._rows:
            true[self._found(left, lefts[0], 0, 0, condition)] = True
        for pattern, positions in lefts.items():
            for other in self._rows:
                if pattern | other:
                    open_ = positions[~(true[positions] | unknown[positions])]
                    unknown[self._found(left, open_, pattern | other, other, condition)] = True
        return true, unknown

    def _found(
        self,
        left: MarkKeys,
        positions: np.ndarray,
        left_out: int,
        pattern: int,
        condition: Callable[[Pairs], Pairs] | None,
    ) -> np.ndarray:
        """Return those of the left rows that equal a right row of the pattern in all columns but those left out."""
        if not len(positions):
            return positions
        rows = self._rows[pattern]
        columns = _columns(left, left_out, positions)
        table = self._table(left_out, pattern) if columns else None
        if condition is None:
            return positions if table is None else positions[table.contains(columns)]
        found: list[np.ndarray] = [positions[:0]]
        for pairs in self._pairs(table, columns, len(positions), len(rows)):
            lefts = positions[pairs.left_positions()]
            met = condition(Pairs(0, left.rows, lefts, rows[pairs.right]))
            found.append(met.left_positions())
        return np.concatenate(found)

    def _pairs(self, table: KeyTable | None, columns: Sequence[pa.Array], lefts: int, rights: int) -> Iterator[Pairs]:
        if table is None:
            return all_pairs(lefts, rights)
        assert isinstance(table, JoinTable), "made for pairs"
        return table.pairs(columns)

    def _table(self, left_out: int, pattern: int) -> KeyTable:
        """Make a table when it is first asked for; threads that ask at once make the same."""
        known = self._tables.get((left_out, pattern))
        if known is None:
            keys = len(self._right.keys)
            kept = [ordinal for ordinal in range(len(self._right.compared)) if not left_out >> ordinal & 1]
            types = [*self._types[:keys], *(self._types[keys + ordinal] for ordinal in kept)]
            null_safe = [*self._null_safe, *(False for _ in kept)]
            known = self._make_table(_columns(self._right, left_out, self._rows[pattern]), types, null_safe)
            self._tables[left_out, pattern] = known
        return known


def _by_pattern(side: MarkKeys) -> dict[int, np.ndarray]:
    """Return the positions of rows by which of their compared columns are NULL, as bits."""
    if not side.rows:
        return {}
    masks = [null_mask(array) for array in side.compared]
    if all(mask is None for mask in masks):
        return {0: np.arange(side.rows)}
    patterns = np.zeros(side.rows, np.int64)
    for ordinal, mask in enumerate(masks):
        if mask is not None:
            patterns |= mask.astype(np.int64) << ordinal
    return {int(pattern): np.flatnonzero(patterns == pattern) for pattern in np.unique(patterns)}


def _columns(side: MarkKeys, left_out: int, positions: np.ndarray) -> list[pa.Array]:
    columns = [*side.keys, *(array for ordinal, array in enumerate(side.compared) if not left_out >> ordinal & 1)]
    if len(positions) == side.rows:
        return columns
    indices = pa.array(positions)
    return [array.take(indices) for array in columns]
