"""Keys and values as users write them, and rows as storage has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from remuda.errors import data_error, nearest
from remuda.types import stored_converter

if TYPE_CHECKING:
    from remuda.catalog import MapDefinition

Value = Mapping[str, Any] | tuple[Any, ...]
"""The columns outside the key: by name, or as a tuple in declared order."""


class MapRows:
    """The conversions of one map. A key is a scalar, or a tuple where the key has several columns."""

    def __init__(self, definition: MapDefinition) -> None:
        self._definition = definition
        self._value_columns = tuple(column.name for column in definition.value_columns)
        self.value_positions = definition.positions(self._value_columns)
        self.key_positions = definition.positions(definition.key)
        self.stored_key = _key_converter(definition)
        self._converters = [stored_converter(column.type) for column in definition.columns]

    def row(self, key: Any, value: Value) -> tuple[Any, ...]:
        parts = (key,) if len(self.key_positions) == 1 else _key_parts(self._definition, key)
        row: list[Any] = [None] * len(self._definition.columns)
        for position, part in zip(self.key_positions, parts, strict=True):
            row[position] = part
        for position, part in zip(self.value_positions, self._value_parts(value), strict=True):
            row[position] = part
        return tuple(
            [None if part is None else convert(part) for convert, part in zip(self._converters, row, strict=True)]
        )

    def _value_parts(self, value: Value) -> Iterable[Any]:
        if not isinstance(value, Mapping):
            if not isinstance(value, tuple | list):
                raise data_error(f"the value is a tuple or a mapping of {', '.join(self._value_columns)}")
            if len(value) != len(self._value_columns):
                expected = ", ".join(self._value_columns)
                raise data_error(f"{len(self._value_columns)} values are expected ({expected}), {len(value)} are given")
            return value
        by_name = {name.casefold(): part for name, part in value.items()}
        known = {name.casefold() for name in self._value_columns}
        for name in value:
            if name.casefold() not in known:
                raise data_error(f"unknown column: {name}", suggestion=nearest(name, self._value_columns))
        return [by_name.get(name.casefold()) for name in self._value_columns]


def _key_parts(definition: MapDefinition, key: Any) -> tuple[Any, ...]:
    """The parts of a key of several columns. A string is a sequence too, but no such key."""
    if not isinstance(key, tuple | list) or len(key) != len(definition.key):
        raise data_error(f"the key is a tuple of {', '.join(definition.key)}")
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
