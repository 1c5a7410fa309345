"""Keys and values as users write them, and rows as storage has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from remuda.errors import missing_column, nearest, value_error
from remuda.types import convert_each, stored_converter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.catalog import MapDefinition

Value = Mapping[str, Any] | tuple[Any, ...]
"""The columns outside the key: by name, or as a tuple in declared order."""

Row = tuple[Any, ...]


class MapRows:
    """The conversions of one map. A key is a scalar, or a tuple where the key has several columns."""

    def __init__(self, definition: MapDefinition) -> None:
        value_columns = tuple(column.name for column in definition.value_columns)
        self.value_positions = definition.positions(value_columns)
        self.key_positions = definition.positions(definition.key)
        self.stored_key = _key_converter(definition)
        self.row = _row_converter(definition, value_columns)
        """The function from a key and a value to the stored row."""


def _row_converter(definition: MapDefinition, value_columns: Sequence[str]) -> Callable[[Any, Value], Row]:
    positions = definition.positions((*definition.key, *value_columns))
    convert_parts = convert_each([stored_converter(definition.columns[position].type) for position in positions])
    in_order = positions == tuple(range(len(positions)))
    arrange = itemgetter(*[positions.index(number) for number in range(len(positions))])
    value_parts, single = _value_reader(value_columns), len(definition.key) == 1

    def convert(key: Any, value: Value) -> Row:
        parts = (key, *value_parts(value)) if single else (*_key_parts(definition, key), *value_parts(value))
        stored = convert_parts(parts)
        return stored if in_order else arrange(stored)

    return convert


def _value_reader(columns: Sequence[str]) -> Callable[[Value], Iterable[Any]]:
    """The function from a value to its parts in declared order."""
    count, known = len(columns), {name.casefold() for name in columns}
    pick = itemgetter(*columns) if count > 1 else None

    def read(value: Value) -> Iterable[Any]:
        if type(value) is tuple and len(value) == count:
            return value
        if pick is not None and type(value) is dict and len(value) == count:
            # As many names as columns: if each column is among them, nothing else is.
            try:
                parts: tuple[Any, ...] = pick(value)
                return parts
            except KeyError:
                return by_name(value)
        if isinstance(value, Mapping):
            return by_name(value)
        if not isinstance(value, tuple | list):
            raise value_error(f"the value is a tuple or a mapping of {', '.join(columns)}")
        if len(value) != count:
            wanted = "1 value is" if count == 1 else f"{count} values are"
            given = "1 is" if len(value) == 1 else f"{len(value)} are"
            raise value_error(f"{wanted} expected ({', '.join(columns)}), {given} given")
        return value

    def by_name(value: Mapping[str, Any]) -> Iterable[Any]:
        """Without regard to case; NULL where a column is left out."""
        for name in value:
            if not isinstance(name, str):
                raise value_error(f"the name of a column is text, not a {type(name).__name__}")
            if name.casefold() not in known:
                raise missing_column(f"unknown column: {name}", suggestion=nearest(name, columns))
        given = {name.casefold(): part for name, part in value.items()}
        return [given.get(name.casefold()) for name in columns]

    return read


def _key_parts(definition: MapDefinition, key: Any) -> tuple[Any, ...]:
    """The parts of a key of several columns. A string is a sequence too, but no such key."""
    if not isinstance(key, tuple | list) or len(key) != len(definition.key):
        raise value_error(f"the key is a tuple of {', '.join(definition.key)}")
    return tuple(key)


def _key_converter(definition: MapDefinition) -> Callable[[Any], Any]:
    """From a key as users write it to the stored form; None where a part of it is NULL, as no row has such a key."""
    converters = [stored_converter(definition.column(name).type) for name in definition.key]
    if len(converters) == 1:
        return converters[0]

    def convert(key: Any) -> tuple[Any, ...] | None:
        parts = _key_parts(definition, key)
        stored = tuple([converter(part) for converter, part in zip(converters, parts, strict=True)])
        return None if None in stored else stored

    return convert
