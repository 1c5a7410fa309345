"""Frame-of-reference encoding: columns whose values lie close together, kept a second time in as few bytes as needed.

A comparison with a value takes as long as it takes to read the column: most of an INTEGER's four bytes, and of the
sixteen of a DECIMAL, are the same in every row. A column that scans filter by again and again is therefore kept as the
distances from its least value, in one byte or two, or four of an eight-byte column, beside the segment it belongs to,
and goes when the segment goes.

    quantity BETWEEN 0 AND 99       INTEGER  4 bytes, kept in 1        100 < quantity is false for all, unread
    shipped, seven years of days    DATE     4 bytes, kept in 2
    discount, 0.00 to 0.10          DECIMAL 16 bytes, kept in 1

Measured, ten million rows, processor time: comparing an INTEGER 3.0 ms, encoded 0.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from remuda.dataclass import dataclass
from remuda.expr.column_comparison import recognise
from remuda.types import Kind
from remuda.types.arrow_arrays import null_mask, stored_numbers

if TYPE_CHECKING:
    import pyarrow as pa

    from remuda.expr import Expression, Parameters
    from remuda.expr.column_comparison import ColumnComparison, StoredComparison
    from remuda.storage import Segment
    from remuda.types import SqlType

SCANS_BEFORE = 2
"""So many times the rows of a segment are compared as they are: a column that is compared once is not kept twice."""
FEWEST_ROWS = 65_536
"""A segment of fewer rows is compared at once in any case."""
_WHOLE = {
    Kind.SMALLINT,
    Kind.INTEGER,
    Kind.BIGINT,
    Kind.DECIMAL,
    Kind.DATE,
    Kind.TIME,
    Kind.TIMESTAMP,
    Kind.TIMESTAMP_TZ,
}
_WIDTHS: tuple[tuple[type[np.unsignedinteger[Any]], int], ...] = ((np.uint8, 1), (np.uint16, 2), (np.uint32, 4))


@dataclass(frozen=True, slots=True)
class EncodedColumn:
    """Distances from the `least` value, for all rows of a segment; none is above `widest`.

    The mask of NULLs is kept as well, a byte a row: unpacking it with every scan takes as long as the comparison.
    """

    distances: np.ndarray
    least: int
    widest: int
    nulls: np.ndarray | None = None

    def mask(self, comparison: StoredComparison, rows: slice) -> np.ndarray:
        """Return the mask of the rows that pass. The array is the caller's."""
        distances = self.distances[rows]
        decided = comparison.decide(self.least, self.least + self.widest)
        if decided is not None:
            passing = np.full(len(distances), decided, np.bool_)
        else:
            passing = comparison.shifted(self.least).mask(distances)
        if self.nulls is not None:
            np.greater(passing, self.nulls[rows], out=passing)  # passing AND NOT nulls
        return passing


class EncodedComparison:
    """A conjunct that compares a column with a constant; made once for a plan."""

    __slots__ = ("_column", "_compare")

    def __init__(self, comparison: ColumnComparison) -> None:
        self._column = comparison.column
        self._compare = comparison.compile()

    def passing(self, segment: Segment, first: int, stop: int, parameters: Parameters) -> np.ndarray | None:
        """Return the mask of the rows that pass; None where the column is to be read as it is."""
        encoded = encoded_column(segment, self._column.name, self._column.type, stop - first)
        return None if encoded is None else encoded.mask(self._compare(parameters.values), slice(first, stop))


def encoded_comparison(conjunct: Expression) -> EncodedComparison | None:
    comparison = recognise(conjunct)
    if comparison is None or not comparison.is_of_numbers or comparison.column.type.kind not in _WHOLE:
        return None
    return EncodedComparison(comparison)


def encoded_column(segment: Segment, name: str, sql_type: SqlType, rows: int) -> EncodedColumn | None:
    """Return the encoded form of a column; None where it has none, or has not been compared often enough.

    `rows` is how many rows are compared now. Two threads that encode the same column do it twice, and agree.
    """
    kept = segment.encoded_columns
    known = kept.get(name, 0)
    if not isinstance(known, int):
        return known if isinstance(known, EncodedColumn) else None
    if known <= SCANS_BEFORE * segment.rows or segment.rows < FEWEST_ROWS:
        kept[name] = known + rows
        return None
    made = encode_column(segment.column(segment.definition.position(name)), sql_type)
    kept[name] = made or NOT_ENCODED
    return made


NOT_ENCODED = "not encoded"
"""What is kept for a column that has no shorter form."""


def encode_column(array: pa.Array, sql_type: SqlType) -> EncodedColumn | None:
    if array.null_count == len(array):
        return None
    values, nulls = stored_numbers(array, sql_type), null_mask(array)
    width = 16 if sql_type.kind is Kind.DECIMAL else values.dtype.itemsize
    present = values if nulls is None else values[~nulls]
    least, greatest = int(present.min()), int(present.max())
    for dtype, size in _WIDTHS:
        if greatest - least <= np.iinfo(dtype).max and 2 * size <= width:
            distances = np.empty(len(values), dtype)
            with np.errstate(over="ignore"):  # of what stands at a NULL, which may be anything
                np.subtract(values, values.dtype.type(least), out=distances, casting="unsafe")
            return EncodedColumn(distances, least, greatest - least, nulls)
    return None
