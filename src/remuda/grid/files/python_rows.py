"""Rows and columns of Python values: lists of dictionaries, dictionaries of lists.

Where the map is there, values are converted to the types of its columns, as INSERT does. Where it is not, the types are
told from the values.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain, islice
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from remuda.errors import SqlError, kind_of, shown, value_error
from remuda.storage.load.new_map import JSON_FIELD
from remuda.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER_RANGES,
    JSON,
    TIME,
    TIMESTAMP,
    TIMESTAMP_TZ,
    VARBINARY,
    VARCHAR,
    Kind,
    common_type,
    decimal,
    stored_converter,
)
from remuda.types.arrow_arrays import stored_array

if TYPE_CHECKING:
    from remuda.catalog import ColumnDefinition
    from remuda.types import SqlType

ROWS_AT_ONCE = 50_000
"""Rows that become a table at a time. The types of a new map are told from the first of them."""
MOST_DIGITS = 38


def as_mapping(row: Any) -> Mapping[str, Any] | None:
    """Return a row by the names of its columns: a mapping, or a tuple with names. None where it has no names."""
    if isinstance(row, Mapping):
        return row
    named = getattr(row, "_asdict", None)
    return named() if callable(named) else None


def tables_of_rows(rows: Iterable[Any], columns: Sequence[ColumnDefinition]) -> Iterator[pa.Table]:
    """Yield rows with names as tables. A name that a row lacks is NULL there."""
    types = {column.name.casefold(): column.type for column in columns}
    names: list[str] = []
    given, done = iter(rows), 0
    while some := list(islice(given, ROWS_AT_ONCE)):
        found = [_named(row, done + number) for number, row in enumerate(some, 1)]
        known = set(names)
        for name in chain.from_iterable(found):
            if name not in known:
                if done and not columns:
                    raise value_error(f"the column {name} comes first after {done:,} rows: name it in the first row")
                known.add(name)
                names.append(name)
        arrays, fields = [], []
        for name in names:
            values = [row.get(name) for row in found]
            sql_type = types.get(name.casefold()) or type_of(name, values)
            if not columns:
                types[name.casefold()] = sql_type
            arrays.append(_array(name, values, sql_type, done))
            fields.append(_field(name, sql_type))
        yield pa.table(arrays, schema=pa.schema(fields))
        done += len(found)


def table_of_columns(given: Mapping[str, Any], columns: Sequence[ColumnDefinition]) -> pa.Table:
    """Return a dictionary of lists, or of arrays, as a table."""
    types = {column.name.casefold(): column.type for column in columns}
    arrays: dict[str, pa.Array | pa.ChunkedArray] = {}
    json_columns: set[str] = set()
    for name, values in given.items():
        if not isinstance(name, str):
            raise value_error(f"the name of a column is text, not {kind_of(name)}")
        if isinstance(values, pa.Array | pa.ChunkedArray):
            arrays[name] = values
        elif hasattr(values, "__arrow_c_stream__"):
            arrays[name] = pa.chunked_array(values)
        elif isinstance(values, np.ndarray) and values.dtype != np.object_:
            arrays[name] = pa.array(values)
        elif isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
            raise value_error(f"a dictionary is loaded as columns: {name} is {kind_of(values)}, not a list")
        else:
            listed = list(values)
            sql_type = types.get(name.casefold()) or type_of(name, listed)
            arrays[name] = _array(name, listed, sql_type, 0)
            json_columns |= {name} if sql_type.json else set()
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise value_error(f"the columns have different numbers of rows: {told}")
    fields = [
        pa.field(name, each.type, metadata=JSON_FIELD if name in json_columns else None)
        for name, each in arrays.items()
    ]
    return pa.table(list(arrays.values()), schema=pa.schema(fields)) if arrays else pa.table({})


def type_of(name: str, values: Iterable[Any]) -> SqlType:
    """Tell the type that holds all of the values; VARCHAR where all are None."""
    found: SqlType | None = None
    seen: dict[type, SqlType] = {}
    for value in values:
        if value is None:
            continue
        kind = type(value)
        told = seen.get(kind)
        if told is None or kind in {int, Decimal}:
            told = seen[kind] = _type_of_value(name, value)
            both = told if found is None else common_type(found, told)
            if both is None:
                kinds = ", ".join(sorted(each.__name__ for each in seen))
                raise value_error(f"the column {name} has values of several types: {kinds}")
            found = both
    return VARCHAR if found is None else found


def guess_schema(rows: Sequence[Mapping[str, Any]]) -> pa.Schema:
    """Tell the columns of rows with names, and their types."""
    names = dict.fromkeys(chain.from_iterable(rows))
    return pa.schema([_field(name, type_of(name, [row.get(name) for row in rows])) for name in names])


def _type_of_value(name: str, value: Any) -> SqlType:
    if isinstance(value, np.generic):
        value = value.item()
    match value:
        case bool():
            return BOOLEAN
        case int():
            least, greatest = INTEGER_RANGES[Kind.BIGINT]
            return BIGINT if least <= value <= greatest else decimal(MOST_DIGITS, 0)
        case float():
            return DOUBLE
        case Decimal() if value.is_finite():
            _, digits, exponent = value.as_tuple()
            scale = max(0, -int(exponent))
            return decimal(min(MOST_DIGITS, max(len(digits) + max(0, int(exponent)), scale + 1)), scale)
        case str() | UUID():
            return VARCHAR
        case bytes() | bytearray() | memoryview():
            return VARBINARY
        case dt.datetime():
            return TIMESTAMP if value.tzinfo is None else TIMESTAMP_TZ
        case dt.date():
            return DATE
        case dt.time():
            return TIME
        case Mapping() | list() | tuple():
            return JSON
        case _:
            raise value_error(f"the column {name} has {kind_of(value)}, which no table holds: {shown(value)}")


def _named(row: Any, number: int) -> Mapping[str, Any]:
    found = as_mapping(row)
    if found is None:
        raise value_error(f"row {number} is {kind_of(row)}, not a dictionary")
    return found


def _field(name: str, sql_type: SqlType) -> pa.Field:
    """Describe a column. Arrow has text where SQL has JSON."""
    return pa.field(name, sql_type.arrow, metadata=JSON_FIELD if sql_type.json else None)


def _array(name: str, values: list[Any], sql_type: SqlType, first_row: int) -> pa.Array:
    convert = stored_converter(sql_type)
    stored: list[Any] = []
    for number, value in enumerate(values):
        try:
            stored.append(convert(str(value) if isinstance(value, UUID) else value))
        except SqlError as error:
            held = f"the column {name} ({sql_type}) cannot hold {shown(value)}"
            raise value_error(f"{held}, row {first_row + number + 1}") from error
    return stored_array(stored, sql_type)
