"""Tables from outside, made to fit a map: columns by name, values cast without loss, keys present.

An error names the column and, where it can be found, the row (counted from 1) and the value. Nothing is loaded then.
"""

from __future__ import annotations

from operator import methodcaller
from typing import TYPE_CHECKING

import pyarrow as pa

from remuda.errors import (
    SqlError,
    calendar_error,
    constraint_error,
    missing_column,
    nearest_column,
    null_error,
    repeated_column,
    shown,
    value_error,
)
from remuda.storage.row_check import too_long
from remuda.types import JSON, Kind, to_stored
from remuda.types.arrow_arrays import flat, is_dictionary
from remuda.types.arrow_compute import pc
from remuda.types.arrow_texts import decoded, in_short_chunks, is_text
from remuda.types.calendar import FIRST_DAY, FIRST_INSTANT, LAST_DAY, LAST_INSTANT

if TYPE_CHECKING:
    import numpy as np

    from remuda.catalog import ColumnDefinition, MapDefinition

# Which Arrow types may be loaded into a column, and what Arrow's cast loses in doing so without a word.


def can_hold(kind: Kind, given: pa.DataType) -> bool:
    """Tell whether values of an Arrow type are loaded into a column. Arrow's cast would take a moment for the number
    that it is inside, and the other way round, and every number that is not zero for true."""
    read = bool(pa.types.is_string(given) or pa.types.is_large_string(given) or pa.types.is_string_view(given))
    match kind:
        case Kind.VARCHAR | Kind.VARBINARY:
            return not pa.types.is_duration(given)
        case Kind.TIME:
            return read or bool(pa.types.is_time(given))
        case Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMP_TZ:
            return read or bool(pa.types.is_date(given) or pa.types.is_timestamp(given))
        case Kind.BOOLEAN:
            return read or bool(pa.types.is_boolean(given) or pa.types.is_integer(given))
        case _:
            return not pa.types.is_temporal(given)


def what_is_lost(kind: Kind, array: pa.Array, result: pa.Array) -> pa.Array | None:
    """Return the rows that Arrow's cast has changed without a word: a time that a DATE has no place for, a number that
    is too large for a REAL."""
    if kind is Kind.DATE and pa.types.is_timestamp(array.type):
        return pc.not_equal(result.cast(pa.timestamp(array.type.unit)), array.cast(pa.timestamp(array.type.unit)))
    if kind is Kind.REAL and (pa.types.is_floating(array.type) or pa.types.is_decimal(array.type)):
        return pc.and_(pc.is_inf(result), pc.is_finite(array.cast(pa.float64())))
    return None


_CALENDAR = {
    Kind.DATE: (FIRST_DAY, LAST_DAY),
    Kind.TIMESTAMP: (FIRST_INSTANT, LAST_INSTANT),
    Kind.TIMESTAMP_TZ: (FIRST_INSTANT, LAST_INSTANT),
}


def conform(definition: MapDefinition, table: pa.Table, first_row: int = 0) -> list[pa.Array | pa.ChunkedArray]:
    """Return the columns of the map, in declared order. A nullable column may be missing; what fits is not copied.

    `first_row` is how many rows of the same load came before, so that errors count on.
    """
    given = {name.casefold(): number for number, name in enumerate(table.column_names)}
    if len(given) < len(table.column_names):
        names = [name.casefold() for name in table.column_names]
        raise repeated_column(f"the column {next(name for name in names if names.count(name) > 1)} is given twice")
    for name in table.column_names:
        if definition.find_column(name) is None:
            raise missing_column(
                f"{definition.name} has no column {name}",
                suggestion=nearest_column(name, [column.name for column in definition.columns]),
            )
    arrays: list[pa.Array | pa.ChunkedArray] = []
    for column in definition.columns:
        number = given.get(column.name.casefold())
        if number is None:
            array = pa.nulls(table.num_rows, column.type.arrow)
        else:
            array = _cast(definition, column, table.column(number), first_row)
        refuse_nulls(definition, column, array, first_row)
        _refuse_damaged_text(definition, column, array, first_row)
        _refuse_bad_json(definition, column, array, first_row)
        _refuse_long_texts(definition, column, array, first_row)
        _refuse_far_dates(definition, column, array, first_row)
        arrays.append(array)
    return arrays


def order_column(definition: MapDefinition, name: str | None) -> str | None:
    """Return the column that an upsert is ordered by, as the map spells it."""
    found = None if name is None else definition.find_column(name)
    if name is not None and found is None:
        hint = nearest_column(name, [column.name for column in definition.columns])
        raise missing_column(f"{definition.name} has no column {name} to order by", suggestion=hint)
    return None if found is None else found.name


def _cast(
    definition: MapDefinition, column: ColumnDefinition, given: pa.ChunkedArray, first_row: int
) -> pa.Array | pa.ChunkedArray:
    target = column.type.arrow
    if given.type == target:
        return given
    if column.type.json and pa.types.is_nested(given.type):
        return _json_texts(definition, column, flat(given), first_row)
    given = in_short_chunks(given)
    array = flat(given) if given.num_chunks == 1 or not is_text(given.type) else given
    if is_dictionary(array):
        if pa.types.is_string_view(array.type.value_type):  # polars' categories, of which Arrow takes none
            array = pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(pa.string()))
        if array.type.value_type == target and column.type.kind is Kind.VARCHAR:
            return array
        array = decoded(array)
        if array.type == target:
            return array
    if array.null_count == len(array):
        return pa.nulls(len(array), target)
    if not can_hold(column.type.kind, array.type):
        column_name = f"{definition.name}.{column.name} ({column.type})"
        raise value_error(f"{column_name} cannot hold values of type {array.type}")
    try:
        result = pc.cast(array, target, safe=True)
    except pa.ArrowException as error:
        raise _named(definition, column, array, first_row, error) from error
    lost = what_is_lost(column.type.kind, array, result)
    row = None if lost is None else pc.index(lost, True).as_py()
    if row is not None and row >= 0:
        raise _cannot_hold(definition, column, array[row], first_row + row)
    return result


def _json_texts(definition: MapDefinition, column: ColumnDefinition, array: pa.Array, first_row: int) -> pa.Array:
    """Return structs, lists and maps as JSON texts, a map as an object."""
    texts: list[str | None] = []
    for row, value in enumerate(array):
        try:
            texts.append(to_stored(JSON, value.as_py(maps_as_pydicts="strict")))
        except (SqlError, KeyError, TypeError, OverflowError) as error:
            raise _cannot_hold(definition, column, value, first_row + row) from error
    return pa.array(texts, pa.string())


def _named(
    definition: MapDefinition, column: ColumnDefinition, array: pa.Array, first_row: int, error: Exception
) -> SqlError:
    row = _first_that_fails(array, column.type.arrow)
    if row is None:
        column_name = f"{definition.name}.{column.name} ({column.type})"
        return value_error(f"{column_name} cannot hold values of type {array.type}: {error}")
    return _cannot_hold(definition, column, array[row], first_row + row)


def _cannot_hold(definition: MapDefinition, column: ColumnDefinition, value: pa.Scalar, row: int) -> SqlError:
    try:
        held = shown(value.as_py())
    except (OverflowError, ValueError):  # a date beyond Python's calendar, text that is not Unicode
        held = f"such a value of type {value.type}"
    return value_error(f"{definition.name}.{column.name} ({column.type}) cannot hold {held}, row {row + 1}")


def _first_that_fails(array: pa.Array | pa.ChunkedArray, target: pa.DataType) -> int | None:
    """Find the first row that cannot be cast.

    By halving: the first half that cannot be cast holds the first such row.
    """
    low, high = 0, len(array)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _fails(array.slice(low, middle - low), target) else (middle, high)
    return low if high > low and _fails(array.slice(low, 1), target) else None


def _fails(array: pa.Array | pa.ChunkedArray, target: pa.DataType) -> bool:
    try:
        pc.cast(array, target, safe=True)
    except pa.ArrowException:
        return True
    return False


def refuse_nulls(
    definition: MapDefinition,
    column: ColumnDefinition,
    array: pa.Array | pa.ChunkedArray,
    first_row: int,
    rows: np.ndarray | None = None,
) -> None:
    """Refuse NULL where a column has none; `rows` tells which rows are asked."""
    if array.null_count and (not column.nullable or column.name in definition.key):
        nulls = pc.is_null(array) if rows is None else pc.and_(pc.is_null(array), pa.chunked_array([pa.array(rows)]))
        found = pc.index(nulls, True).as_py()
        if found < 0:
            return
        row = first_row + found + 1
        what = "the key" if column.name in definition.key else "the column"
        raise constraint_error(null_error, f"{what} {definition.name}.{column.name} must not be NULL, row {row}")


def _refuse_bad_json(
    definition: MapDefinition, column: ColumnDefinition, array: pa.Array | pa.ChunkedArray, first_row: int
) -> None:
    if not column.type.json:
        return
    for row, value in enumerate(map(methodcaller("as_py"), array), first_row + 1):
        try:
            to_stored(column.type, value)
        except SqlError as error:
            column_name = f"{definition.name}.{column.name} ({column.type})"
            raise value_error(f"{column_name} cannot hold {shown(value)}, row {row}: {_reason(error)}") from error


def _reason(error: SqlError) -> str:
    """Extract the reason from an error about a document, which is quoted already."""
    return error.message.rpartition(" is not JSON: ")[2][:200]


def _refuse_long_texts(
    definition: MapDefinition, column: ColumnDefinition, array: pa.Array | pa.ChunkedArray, first_row: int
) -> None:
    if column.length is None:
        return
    texts = decoded(array)
    row = pc.index(pc.greater(pc.utf8_length(texts), column.length), True).as_py()
    if row >= 0:
        error = too_long(definition, column, texts[row].as_py())
        raise error.restated(f"{error.message}, row {first_row + row + 1}")


def _refuse_far_dates(
    definition: MapDefinition, column: ColumnDefinition, array: pa.Array | pa.ChunkedArray, first_row: int
) -> None:
    """Refuse dates outside of the calendar.

    Arrow counts further than the calendar of SQL and Python goes, from year 1 to 9999.
    """
    ends = _CALENDAR.get(column.type.kind)
    if ends is None:
        return
    numbers = array.cast(pa.int32() if column.type.kind is Kind.DATE else pa.int64())
    found = pc.min_max(numbers)
    if found["min"].as_py() is None or (ends[0] <= found["min"].as_py() and found["max"].as_py() <= ends[1]):
        return
    outside = pc.or_(pc.less(numbers, ends[0]), pc.greater(numbers, ends[1]))
    row = pc.index(outside, True).as_py()
    column_name = f"{definition.name}.{column.name} ({column.type})"
    raise calendar_error(
        f"{column_name} cannot hold {array[row].cast(pa.string())}: years go from 1 to 9999, row {first_row + row + 1}"
    )


def _refuse_damaged_text(
    definition: MapDefinition, column: ColumnDefinition, array: pa.Array | pa.ChunkedArray, first_row: int
) -> None:
    """Refuse texts that are not UTF-8.

    Arrow takes any bytes for a string; what is not UTF-8 could be stored, but never be read again.
    """
    if column.type.kind is not Kind.VARCHAR:
        return
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        texts = (array.dictionary if is_dictionary(array) else array).cast(pa.binary())
        row = _first_that_fails(texts, pa.string())
        held = (
            "text that is not valid Unicode" if row is None else f"{shown(texts[row].as_py())}: it is not valid Unicode"
        )
        where = "" if row is None or is_dictionary(array) else f", row {first_row + row + 1}"
        raise value_error(f"{definition.name}.{column.name} cannot hold {held}{where}") from error
