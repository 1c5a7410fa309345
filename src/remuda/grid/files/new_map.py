"""The definition of a map for data that has none yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.catalog import DEFAULT_SCHEMA, ColumnDefinition, MapDefinition, new_id
from remuda.errors import SqlError, missing_column, nearest, option_error, repeated_column, value_error
from remuda.grid.files.python_rows import JSON_FIELD
from remuda.types import JSON, VARCHAR, Kind, from_arrow

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from remuda.types import SqlType


def key_names(key: Any) -> tuple[str, ...]:
    """Return the columns that `key=` names: one, or several in order."""
    names = (key,) if isinstance(key, str) else tuple(key) if isinstance(key, list | tuple) else ()
    if not names or not all(isinstance(name, str) for name in names):
        raise option_error(f"key is the name of a column, or a list of names, not {key!r}")
    return names


def definition_for(name: str, schema: pa.Schema, key: Sequence[str], partitions: int) -> MapDefinition:
    """Define a map with the columns of some data, in their order and of their types."""
    columns = [ColumnDefinition(field.name, _type_of(field)) for field in schema]
    folded = [column.name.casefold() for column in columns]
    twice = next((column.name for column in columns if folded.count(column.name.casefold()) > 1), None)
    if twice is not None:
        raise repeated_column(f"the column {twice} is given twice")
    for each in key:
        if each.casefold() not in folded:
            hint = nearest(each, [column.name for column in columns])
            raise missing_column(f"the data has no column {each}, which is to be the key", suggestion=hint)
    keys = tuple(columns[folded.index(each.casefold())].name for each in key)
    if len(set(keys)) < len(keys):
        raise repeated_column("a column is in the key twice")
    shown = tuple(ColumnDefinition(each.name, each.type, nullable=each.name not in keys) for each in columns)
    return MapDefinition(new_id(), DEFAULT_SCHEMA, name, shown, keys, keys, partitions, False)


def _type_of(field: pa.Field) -> SqlType:
    try:
        found = from_arrow(field.type)
    except SqlError as error:
        raise value_error(f"the column {field.name}: {error.message}") from error
    if found.kind is Kind.NULL:
        return VARCHAR
    if (field.metadata or {}).items() >= JSON_FIELD.items():
        return JSON
    if found.is_interval:
        raise value_error(f"{field.name} is an INTERVAL, which no table holds")
    return found


def suggest_create(name: str, table_schema: pa.Schema) -> str:
    """Return the call, and the statement, that would create a map for data of this schema."""
    columns = [f"{field.name} {_type_name(field.type)}" for field in table_schema]
    return f"Create it with key=..., or with: CREATE TABLE {name} ({', '.join(columns)}, PRIMARY KEY (...))"


def _type_name(arrow: pa.DataType) -> str:
    try:
        return str(from_arrow(arrow))
    except SqlError:
        return "?"
