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

from dataclasses import dataclass
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from remuda.expr import Call, Column, Literal, Parameter
from remuda.types import LONG_DIGITS, Kind
from remuda.types.arrow_arrays import decimal_words, fixed_values
from remuda.types.partition_hash import unscaled

if TYPE_CHECKING:
    import pyarrow as pa

    from remuda.expr import Expression, Parameters
    from remuda.storage import Segment
    from remuda.types import SqlType

SCANS_BEFORE = 2
"""So many times the rows of a segment are compared as they are: a column that is compared once is not kept twice."""
FEWEST_ROWS = 65_536
"""A segment of fewer rows is compared at once in any case."""
_WHOLE = {Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMP_TZ}
_WIDTHS: tuple[tuple[type[np.unsignedinteger[Any]], int], ...] = ((np.uint8, 1), (np.uint16, 2), (np.uint32, 4))
_COMPARISONS = {"=", "<>", "<", "<=", ">", ">="}
_EXACT = Context(prec=100)


@dataclass(frozen=True, slots=True)
class EncodedColumn:
    """Distances from the `least` value, for all rows of a segment; none is above `widest`."""

    distances: np.ndarray
    least: int
    widest: int

    def passing(self, function: str, value: int, rows: slice) -> np.ndarray:
        """Return the mask of the rows that pass the comparison. The array is the caller's."""
        distance = value - self.least
        known = _of_all(function, distance, self.widest)
        distances = self.distances[rows]
        if known is not None:
            return np.full(len(distances), known, np.bool_)
        bound = distances.dtype.type(distance)
        passing: np.ndarray
        match function:
            case "=":
                passing = distances == bound
            case "<>":
                passing = distances != bound
            case "<":
                passing = distances < bound
            case "<=":
                passing = distances <= bound
            case ">":
                passing = distances > bound
            case _:
                passing = distances >= bound
        return passing


def _of_all(function: str, distance: int, widest: int) -> bool | None:
    """Return what the comparison is for every row, where the value is below or above all of them; else None.

    >>> _of_all("<", 300, 255), _of_all("=", -1, 255), _of_all(">", 7, 255)
    (True, False, None)
    """
    if 0 <= distance <= widest:
        return None
    if function in {"=", "<>"}:
        return function == "<>"
    return (function in {"<", "<="}) == (distance > widest)


class EncodedComparison:
    """A conjunct that compares a column with a value; made once for a plan."""

    __slots__ = ("_column", "_function", "_value")

    def __init__(self, function: str, column: Column, value: Literal | Parameter) -> None:
        self._function = function
        self._column = column
        self._value = value

    def passing(self, segment: Segment, first: int, stop: int, parameters: Parameters) -> np.ndarray | None:
        """Return the mask of the rows that pass; None where the column is to be read as it is."""
        encoded = encoded_column(segment, self._column.name, self._column.type, stop - first)
        if encoded is None:
            return None
        given = self._value
        value = given.value if isinstance(given, Literal) else parameters.values[given.index]
        if value is None:
            return np.zeros(stop - first, np.bool_)
        if self._column.type.kind is Kind.DECIMAL:
            scale = self._column.type.scale
            units = unscaled(value, scale)
            if _EXACT.scaleb(Decimal(units), -scale) != value:
                return None  # it lies between two values that the column can have
            value = units
        return encoded.passing(self._function, value, slice(first, stop))


def encoded_comparison(conjunct: Expression) -> EncodedComparison | None:
    match conjunct:
        case Call(
            "=" | "<>" | "<" | "<=" | ">" | ">=" as function, (Column() as column, Literal() | Parameter() as value)
        ):
            kind = column.type.kind
            if kind in _WHOLE or (kind is Kind.DECIMAL and column.type.precision <= LONG_DIGITS):
                return EncodedComparison(function, column, value)
    return None


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
    if array.null_count or not len(array):
        return None
    is_decimal = sql_type.kind is Kind.DECIMAL
    values = decimal_words(array)[0].view(np.int64) if is_decimal else fixed_values(array, sql_type)
    width = 16 if is_decimal else values.dtype.itemsize
    least, greatest = int(values.min()), int(values.max())
    for dtype, size in _WIDTHS:
        if greatest - least <= np.iinfo(dtype).max and 2 * size <= width:
            distances = np.empty(len(values), dtype)
            np.subtract(values, values.dtype.type(least), out=distances, casting="unsafe")
            return EncodedColumn(distances, least, greatest - least)
    return None
