"""The definition of a map for data that has none yet: what a load says of it, and the types of the data."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from remuda.catalog import DEFAULT_SCHEMA, ColumnDefinition, IndexDefinition, IndexType, MapDefinition, new_id
from remuda.catalog.definitions import MOST_PARTITIONS
from remuda.dataclass import dataclass
from remuda.errors import (
    SqlError,
    column_twice,
    missing_column,
    nearest_column,
    object_exists,
    option_error,
    repeated_column,
    value_error,
)
from remuda.types import JSON, VARCHAR, Kind, from_arrow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.catalog import Catalog
    from remuda.types import SqlType

JSON_FIELD = {b"remuda:type": b"JSON"}
"""Metadata of an Arrow field whose text is JSON."""

_INDEX = re.compile(r"\s*(?:\((?P<several>[^()]+)\)|(?P<one>[^(),]+?))\s*(?:\s(?P<type>\w+)\s*)?(?:,|$)")


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """An index that a load asks for: `customer HASH`, `(status, amount) SORTED`."""

    columns: tuple[str, ...]
    type: IndexType

    def __str__(self) -> str:
        return f"{self.type.value} index on ({', '.join(self.columns)})"


@dataclass(frozen=True, slots=True)
class MapRequest:
    """What a load says of its map: how to create it where it is absent, and what is refused where it is there.

    `json` names the columns that become JSON: structs, lists and maps, or texts.
    """

    key: tuple[str, ...] | None = None
    indexes: tuple[IndexRequest, ...] = ()
    json: tuple[str, ...] = ()
    partitions: int | None = None

    @classmethod
    def checked(cls, key: Any = None, indexes: Any = None, json: Any = None, partitions: Any = None) -> MapRequest:
        """Return the request; raise where a word is none that it takes."""
        return cls(
            None if key is None else column_names("key", key),
            () if indexes is None else index_requests(indexes),
            () if json is None else column_names("json", json),
            None if partitions is None else _partition_count(partitions),
        )

    def define(self, name: str, schema: pa.Schema, partitions: int, catalog: Catalog) -> MapDefinition:
        """Define a map with the columns of some data, in their order and of their types.

        `partitions` is how many it has where the request does not say.
        """
        assert self.key is not None, "asked for before"
        definition = definition_for(name, schema, self.key, self.partitions or partitions, self.json)
        for index in self.indexes:
            definition = definition.with_index(_index_definition(definition, index, catalog))
        return definition

    def refuse_other(self, definition: MapDefinition) -> None:
        """Raise where a map that is there is not as it is asked for."""
        name = definition.name
        if self.key is not None and _folded(self.key) != _folded(definition.key):
            raise option_error(f"the key of {name} is ({', '.join(definition.key)}), not ({', '.join(self.key)})")
        if self.partitions not in {None, definition.partitions}:
            raise option_error(
                f"{name} has {definition.partitions} partitions, which stay as they are, not {self.partitions}"
            )
        for each in self.indexes:
            columns = _columns_of(definition, each.columns, "index")
            if not any(held.columns == columns and held.type is each.type for held in definition.indexes):
                statement = f"CREATE INDEX {_index_name(name, columns)} ON {name} ({', '.join(columns)})"
                raise option_error(
                    f"{name} is there already, and has no {each}",
                    suggestion=f"Create it: {statement} TYPE {each.type.value}, or load without indexes.",
                )
        for column in _columns_of(definition, self.json, "JSON column"):
            found = definition.column(column)
            if not found.type.json:
                raise option_error(f"{name}.{column} is {found.type}, not JSON")


def column_names(option: str, given: Any) -> tuple[str, ...]:
    """Return the columns that an option names: one text of names between commas, or a list of names."""
    names = (
        tuple(given.split(",")) if isinstance(given, str) else tuple(given) if isinstance(given, list | tuple) else ()
    )
    if not names or not all(isinstance(name, str) and name.strip() for name in names):
        raise option_error(f"{option} is the name of a column, or a list of names, not {given!r}")
    return tuple(name.strip() for name in names)


def _partition_count(given: Any) -> int:
    count = int(given) if isinstance(given, str) and given.strip().isdecimal() else given
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST_PARTITIONS:
        raise option_error(f"partitions must be a whole number from 1 to {MOST_PARTITIONS}, not {given!r}")
    return count


def index_requests(given: Any) -> tuple[IndexRequest, ...]:
    """Read indexes as they are written: a text, or a list of texts with one index each.

    >>> [str(each) for each in index_requests("customer HASH, (status, amount) SORTED, created")]
    ['HASH index on (customer)', 'SORTED index on (status, amount)', 'SORTED index on (created)']
    """
    text = ", ".join(map(str, given)) if isinstance(given, list | tuple) else given
    if not isinstance(text, str) or not text.strip():
        raise _unread_indexes(given)
    found: list[IndexRequest] = []
    position = 0
    while position < len(text):
        index = _INDEX.match(text, position)
        if index is None:
            raise _unread_indexes(given)
        position = index.end()
        word = (index["type"] or IndexType.SORTED.value).upper()
        if word not in IndexType.__members__:
            raise option_error(f"unknown index type: {word}; index types are {' and '.join(IndexType.__members__)}")
        columns = tuple(name.strip() for name in (index["several"] or index["one"]).split(","))
        if not all(columns):
            raise _unread_indexes(given)
        found.append(IndexRequest(columns, IndexType[word]))
    return tuple(found)


def _unread_indexes(given: Any) -> SqlError:
    return option_error(f'indexes are written as "customer HASH, (status, amount) SORTED", not {given!r}')


def definition_for(
    name: str, schema: pa.Schema, key: Sequence[str], partitions: int, json: Sequence[str] = ()
) -> MapDefinition:
    """Define a map without indexes."""
    made_json = set(_folded(json))
    columns = [
        ColumnDefinition(field.name, JSON if field.name.casefold() in made_json else _type_of(field))
        for field in schema
    ]
    folded = [column.name.casefold() for column in columns]
    twice = next((column.name for column in columns if folded.count(column.name.casefold()) > 1), None)
    if twice is not None:
        raise repeated_column(f"the column {twice} is given twice")
    for each, purpose in (*((each, "the key") for each in key), *((each, "JSON") for each in json)):
        if each.casefold() not in folded:
            hint = nearest_column(each, [column.name for column in columns])
            raise missing_column(f"the data has no column {each}, which is to be {purpose}", suggestion=hint)
    keys = tuple(columns[folded.index(each.casefold())].name for each in key)
    if len(set(keys)) < len(keys):
        raise repeated_column("a column is in the key twice")
    shown = tuple(ColumnDefinition(each.name, each.type, nullable=each.name not in keys) for each in columns)
    return MapDefinition(new_id(), DEFAULT_SCHEMA, name, shown, keys, keys, partitions, False)


def _type_of(field: pa.Field) -> SqlType:
    if pa.types.is_nested(field.type):
        raise value_error(
            f"the column {field.name} is {field.type}, which no column holds as it is",
            suggestion=f'Keep it as JSON: json="{field.name}", in Spark option("json", "{field.name}").',
        )
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


def _index_definition(definition: MapDefinition, index: IndexRequest, catalog: Catalog) -> IndexDefinition:
    columns = _columns_of(definition, index.columns, "index")
    if len(set(columns)) < len(columns):
        raise column_twice("a column is in an index twice")
    name = _index_name(definition.name, columns)
    if any(each.find_index(name) is not None for each in (definition, *catalog.maps.values())):
        name = f"{name}_{index.type.value.casefold()}"
    if any(each.find_index(name) is not None for each in (definition, *catalog.maps.values())):
        raise object_exists(f"the index {name} exists already")
    return IndexDefinition(new_id(), name, columns, index.type)


def _index_name(name: str, columns: Sequence[str]) -> str:
    return "_".join([name, *columns])


def _columns_of(definition: MapDefinition, names: Sequence[str], purpose: str) -> tuple[str, ...]:
    """Return columns as the map spells them."""
    found = []
    for name in names:
        column = definition.find_column(name)
        if column is None:
            hint = nearest_column(name, [each.name for each in definition.visible_columns])
            raise missing_column(f"{definition.name} has no column {name} for the {purpose}", suggestion=hint)
        found.append(column.name)
    return tuple(found)


def _folded(names: Sequence[str]) -> list[str]:
    return [name.casefold() for name in names]
