"""The key-value face of a map: the same rows that SQL sees, by key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from remuda.errors import data_error, nearest
from remuda.grid.rows import NamedRow, RowShape
from remuda.plan.fragments import ResultColumn
from remuda.types import stored_converter

if TYPE_CHECKING:
    from remuda.catalog import MapDefinition
    from remuda.storage import MapStore

Value = Mapping[str, Any] | tuple[Any, ...]
"""The columns outside the key: by name, or as a tuple in declared order."""


class Map:
    """A key is a scalar, or a tuple where the key has several columns."""

    def __init__(self, store: MapStore) -> None:
        self._store = store
        definition = store.definition
        self._definition = definition
        self._value_columns = tuple(column.name for column in definition.value_columns)
        self._value_positions = definition.positions(self._value_columns)
        self._key_positions = definition.positions(definition.key)
        self._shape = RowShape(
            tuple(ResultColumn(column.name, column.type, column.nullable) for column in definition.value_columns)
        )
        self._stored_key = _key_converter(definition)
        self._converters = [stored_converter(column.type) for column in definition.columns]

    @property
    def name(self) -> str:
        return self._definition.name

    def get(self, key: Any, default: Any = None) -> NamedRow | Any:
        """The row's columns outside the key, as a tuple with names; `default` where there is no such key."""
        stored = self._stored_key(key)
        found = None if stored is None else self._store.lookup(stored, self._value_positions)
        if found is None:
            return default
        convert = self._shape.convert
        return self._shape.row_class(found if convert is None else convert(found))

    def __getitem__(self, key: Any) -> NamedRow:
        found: NamedRow | None = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def put(self, key: Any, value: Value) -> NamedRow | None:
        """Stores the row and returns what was there before."""
        row = self._row(key, value)
        with self._store.writing():
            old: NamedRow | None = self.get(key)
            self._store.put([row])
        return old

    def put_all(self, entries: Mapping[Any, Value] | Iterable[tuple[Any, Value]]) -> None:
        """Stores many rows, all or none."""
        pairs = entries.items() if isinstance(entries, Mapping) else entries
        self._store.put([self._row(key, value) for key, value in pairs])

    def remove(self, key: Any) -> NamedRow | None:
        """Removes the row and returns what it was."""
        with self._store.writing():
            old: NamedRow | None = self.get(key)
            if old is not None:
                self._store.delete([self._stored_key(key)])
        return old

    def __setitem__(self, key: Any, value: Value) -> None:
        self._store.put([self._row(key, value)])

    def __delitem__(self, key: Any) -> None:
        stored = self._stored_key(key)
        if stored is None or not self._store.delete([stored]):
            raise KeyError(key)

    def __contains__(self, key: Any) -> bool:
        stored = self._stored_key(key)
        return stored is not None and self._store.lookup(stored, self._key_positions) is not None

    def __len__(self) -> int:
        return len(self._store)

    def _row(self, key: Any, value: Value) -> tuple[Any, ...]:
        parts = (key,) if len(self._key_positions) == 1 else _key_parts(self._definition, key)
        row: list[Any] = [None] * len(self._definition.columns)
        for position, part in zip(self._key_positions, parts, strict=True):
            row[position] = part
        for position, part in zip(self._value_positions, self._value_parts(value), strict=True):
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
