"""Columns of text, as CSV and JSON files have them, converted to the types of the map's columns.

Arrow converts a whole column where its reading of the text is SQL's. Where it refuses, the values are converted one by
one with the casts of SQL: for the answer that Arrow does not know (`+5`, `t`, `1.0` for an integer), or for the error.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from remuda.errors import SqlError, overflow_error, shown
from remuda.expr.cast.cast import cast_row
from remuda.types import INTEGER_RANGES, VARCHAR, Kind, datetime_of_text, to_stored
from remuda.types.arrow_arrays import stored_array
from remuda.types.arrow_compute import pc

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.catalog import ColumnDefinition
    from remuda.types import SqlType

_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_MOST_DIGITS = 400
"""Longer texts are no integer that a column holds, and Python takes quadratic time to read them."""

_READ_BY_ARROW = frozenset(
    {*INTEGER_RANGES, Kind.REAL, Kind.DOUBLE, Kind.DECIMAL, Kind.BOOLEAN, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_TZ}
)


class WrongValueError(Exception):
    """The text of a row, counted from 0, is no value of its column."""

    def __init__(self, column: ColumnDefinition, row: int, text: str, reason: str) -> None:
        super().__init__(column.name)
        self.row = row
        self.message = f"the column {column.name} ({column.type}) cannot hold {shown(text)}{reason}"


def typed_column(column: ColumnDefinition, texts: pa.Array) -> pa.Array:
    """Convert the texts of one column to its type; JSON stays text, which is checked where it is stored."""
    kind = column.type.kind
    if kind is Kind.VARCHAR:
        return texts
    if texts.null_count == len(texts):
        return pa.nulls(len(texts), column.type.arrow)
    if kind in _READ_BY_ARROW:
        array = _read_by_arrow(column.type, texts)
        if array is not None:
            return array
    return _one_by_one(column, texts)


def _read_by_arrow(type_: SqlType, texts: pa.Array) -> pa.Array | None:
    """Convert texts by Arrow; None where Arrow refuses one, or would read it differently from SQL."""
    if type_.is_integer and _has_hexadecimal(texts):
        return None
    try:
        array = pc.cast(texts, pa.float64() if type_.kind is Kind.REAL else type_.arrow)
    except pa.ArrowException:
        return None
    # A number beyond the range becomes infinite without a word.
    return None if type_.is_floating and pc.any(pc.is_inf(array)).as_py() else array


def _has_hexadecimal(texts: pa.Array) -> bool:
    """Arrow reads `0xFF` as an integer, and `0xFFFFFFFFFFFFFFFF` as -1."""
    data = texts.buffers()[2]
    if data is None:
        return False
    written = data.to_pybytes()
    return b"x" in written or b"X" in written


def _one_by_one(column: ColumnDefinition, texts: pa.Array) -> pa.Array:
    convert = _converter(column.type)
    values: list[Any] = []
    for row, text in enumerate(texts.cast(pa.binary()).to_pylist()):
        try:
            values.append(None if text is None else convert(text.decode()))
        except (SqlError, ValueError, ArithmeticError) as error:
            reason = f": {error.args[0]}" if column.type.kind is Kind.VARBINARY else ""
            raise WrongValueError(column, row, text.decode(errors="replace"), reason) from error
    return stored_array(values, column.type)


def _converter(type_: SqlType) -> Callable[[str], Any]:
    """Return the conversion of one text to a stored value."""
    match type_.kind:
        case Kind.VARBINARY:
            return bytes.fromhex
        case Kind.DATE:
            return lambda text: to_stored(type_, datetime_of_text(text))
        case Kind.REAL | Kind.DOUBLE:
            return _finite(cast_row(VARCHAR, type_))
        case _ if type_.is_integer:
            return lambda text: to_stored(type_, _whole_number(text.strip()))
        case _:
            return cast_row(VARCHAR, type_)


def _whole_number(text: str) -> int | Decimal:
    """Read an integer; `1.0` too, as programs write integers that had to stand beside missing values."""
    if len(text) <= _MOST_DIGITS and _WHOLE.fullmatch(text):
        return int(text)
    if len(text) <= _MOST_DIGITS and _NUMBER.fullmatch(text):
        return Decimal(text)
    raise ValueError(text)


def _finite(convert: Callable[[str], float]) -> Callable[[str], float]:
    """Refuse a number that is too large; only the word is infinite."""

    def converted(text: str) -> float:
        number = convert(text)
        if number in {float("inf"), float("-inf")} and _NUMBER.fullmatch(text.strip()):
            raise overflow_error(f"{shown(text)} is too large")
        return number

    return converted
