"""The keys of `Map.lookup` as users give them, as Arrow arrays of the types of the key columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from remuda.errors import kind_of, missing_column, nearest, option_error, value_error
from remuda.grid.parameters import exact_converter
from remuda.storage.lookup.arrow_lookup import FOUND, POSITION
from remuda.storage.lookup.exact_keys import exact_keys
from remuda.types import Kind
from remuda.types.arrow_arrays import arrow_of_list, flat, stored_array
from remuda.types.arrow_compute import pc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.catalog import IndexDefinition, MapDefinition


def key_arrays(definition: MapDefinition, names: Sequence[str], keys: Any) -> list[pa.Array]:
    """Return an array for each key column; NULL where its type does not hold a value."""
    if isinstance(keys, pa.ChunkedArray):
        keys = flat(keys)
    elif not isinstance(keys, pa.Array) and hasattr(keys, "__arrow_c_array__"):
        keys = pa.array(keys)
    parts = _fields(names, keys) if isinstance(keys, pa.Array) else _listed(definition, names, keys)
    types = [definition.column(name).type for name in names]
    return [exact_keys(part, sql_type, name) for part, sql_type, name in zip(parts, types, names, strict=True)]


def _fields(names: Sequence[str], keys: pa.Array) -> list[pa.Array]:
    if not pa.types.is_struct(keys.type):
        if len(names) > 1:
            raise value_error(f"the key has the columns {', '.join(names)}: give a struct array of them")
        return [keys]
    fields = {field.name.casefold(): number for number, field in enumerate(keys.type)}
    if set(fields) != {name.casefold() for name in names} or len(fields) != keys.type.num_fields:
        given = ", ".join(field.name for field in keys.type)
        raise value_error(f"the key has the columns {', '.join(names)}, and the struct array has {given}")
    columns = keys.flatten()
    return [columns[fields[name.casefold()]] for name in names]


def _listed(definition: MapDefinition, names: Sequence[str], keys: Any) -> list[pa.Array]:
    if isinstance(keys, str | bytes | Mapping) or not isinstance(keys, Iterable):
        raise option_error(f"keys are an Arrow array or a list, not {kind_of(keys)}")
    listed = list(keys)
    if len(names) == 1:
        return [_array(definition, names[0], listed)]
    for key in listed:
        if key is not None and (not isinstance(key, tuple | list) or len(key) != len(names)):
            raise value_error(f"the key is a tuple of {', '.join(names)}")
    nothing = (None,) * len(names)
    whole = [nothing if key is None else key for key in listed]
    return [_array(definition, name, [key[number] for key in whole]) for number, name in enumerate(names)]


def _array(definition: MapDefinition, name: str, values: list[Any]) -> pa.Array:
    """Return values of Python as an array. Of a REAL column a float is the nearest REAL, as for `get`."""
    sql_type = definition.column(name).type
    try:
        found = arrow_of_list(values)
        array = pa.array(values) if found is None else found
        real = sql_type.kind is Kind.REAL and pa.types.is_float64(array.type)
        return pc.cast(array, pa.float32(), safe=False) if real else array
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return stored_array([exact_converter(sql_type)(value) for value in values], sql_type)


def lookup_columns(
    definition: MapDefinition, columns: Iterable[str] | None, index: IndexDefinition | None
) -> list[str]:
    """Return the names of the columns to read: all visible ones, or those that are given."""
    if columns is None:
        names = [column.name for column in definition.visible_columns]
    else:
        if isinstance(columns, str) or not isinstance(columns, Iterable):
            raise option_error("columns are a list of names")
        names = [_named(definition, name) for name in columns]
    added = [FOUND] if index is None else [POSITION, FOUND]
    clash = next((name for name in names if name.casefold() in added), None)
    if clash is not None:
        raise option_error(f"the result has a column {clash.casefold()} of its own: leave {clash} out of columns")
    return names


def _named(definition: MapDefinition, name: Any) -> str:
    found = definition.find_column(name) if isinstance(name, str) else None
    if found is None:
        hint = nearest(str(name), [column.name for column in definition.visible_columns])
        raise missing_column(f"{definition.name} has no column {name}", suggestion=hint)
    return found.name
