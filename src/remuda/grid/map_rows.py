"""Keys and values as users write them, and rows as storage has them."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from decimal import Context
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from remuda.errors import kind_of, missing_column, nearest_column, null_error, value_error
from remuda.grid.parameters import exact_converter
from remuda.types import Kind, convert_each, stored_converter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.catalog import MapDefinition

Value = Mapping[str, Any] | tuple[Any, ...]
"""The columns outside the key: by name, or as a tuple in declared order."""

Row = tuple[Any, ...]


class MapRows:
    """The conversions of one map. A key is a scalar, or a tuple where the key has several columns."""

    def __init__(self, definition: MapDefinition) -> None:
        self._definition = definition
        value_columns = tuple(column.name for column in definition.value_columns)
        self.value_positions = definition.positions(value_columns)
        self.key_positions = definition.positions(definition.key)
        self.all_positions = tuple(range(len(definition.columns)))
        self.stored_key = _key_converter(definition)
        self.row = _row_converter(definition, value_columns, self.stored_key)
        """The function from a key and a value to the stored row."""
        self._is_bigint = len(definition.key) == 1 and definition.column(definition.key[0]).type.kind is Kind.BIGINT

    def stored_keys(self, keys: Sequence[Any]) -> Sequence[Any]:
        """Convert many keys. Integers of a BIGINT key are taken as they are, where all of them are in its range."""
        if self._is_bigint and set(map(type, keys)) == {int}:
            with suppress(OverflowError):
                return array("q", keys)
        return list(map(self.stored_key, keys))

    def changes(self, key: Any, changes: Mapping[str, Any]) -> list[tuple[int, Any]]:
        """Convert the columns that an update names to pairs of position and stored value."""
        if not isinstance(changes, Mapping):
            raise value_error(f"the changes are a mapping from columns to values, not {kind_of(changes)}")
        given = _by_folded_name(changes, [column.name for column in self._definition.columns if not column.hidden])
        _refuse_other_key(self._definition, self.stored_key, key, given)
        columns = self._definition.columns
        return [
            (position, stored_converter(columns[position].type)(given[columns[position].name.casefold()]))
            for position in self.value_positions
            if columns[position].name.casefold() in given
        ]

    def adder(self, name: str, by: Any) -> tuple[int, Callable[[Any], Any]]:
        """Return the position of a numeric column, and the function that adds a number to its stored value."""
        if not isinstance(name, str):
            raise value_error(f"the name of a column is text, not {kind_of(name)}")
        columns = self._definition.columns
        found = [at for at in self.value_positions if columns[at].name.casefold() == name.casefold()]
        if not found:
            names = [columns[at].name for at in self.value_positions]
            raise missing_column(f"unknown column: {name}", suggestion=nearest_column(name, names))
        column = columns[found[0]]
        if not column.type.is_numeric or isinstance(by, bool):
            held = "a truth value" if column.type.is_numeric else f"{column.name} ({column.type})"
            raise value_error(f"only numbers can be added, not {held}")
        amount = exact_converter(column.type)(by)
        if amount is None:
            raise null_error("NULL cannot be added")
        convert = stored_converter(column.type)

        def add(value: Any) -> Any:
            if value is None:
                raise null_error(f"{column.name} is NULL: nothing can be added to it")
            return convert(_EXACT.add(value, amount) if column.type.kind is Kind.DECIMAL else value + amount)

        return found[0], add


_EXACT = Context(prec=100)
"""No sum of two DECIMALs is rounded before it is known whether the column holds it."""


def same_row(left: Row | None, right: Row) -> bool:
    """Compare stored rows value by value. NaN is the same as NaN, as everywhere in SQL."""
    return left is not None and all(
        one == other or (one != one and other != other) for one, other in zip(left, right, strict=True)
    )


def _row_converter(
    definition: MapDefinition, value_columns: Sequence[str], stored_key: Callable[[Any], Any]
) -> Callable[[Any, Value], Row]:
    positions = definition.positions((*definition.key, *value_columns))
    convert_parts = convert_each([stored_converter(definition.columns[position].type) for position in positions])
    in_order = positions == tuple(range(len(positions)))
    arrange = itemgetter(*[positions.index(number) for number in range(len(positions))])
    value_parts, single = _value_reader(definition, value_columns, stored_key), len(definition.key) == 1

    def convert(key: Any, value: Value) -> Row:
        parts = (key, *value_parts(value, key)) if single else (*_key_parts(definition, key), *value_parts(value, key))
        stored = convert_parts(parts)
        return stored if in_order else arrange(stored)

    return convert


def _value_reader(
    definition: MapDefinition, columns: Sequence[str], stored_key: Callable[[Any], Any]
) -> Callable[[Value, Any], Iterable[Any]]:
    """Return the function from a value, and the key that it is stored under, to its parts in declared order."""
    count = len(columns)
    visible = [column.name for column in definition.columns if not column.hidden]
    pick = itemgetter(*columns) if count > 1 else None

    def read(value: Value, key: Any) -> Iterable[Any]:
        if type(value) is tuple and len(value) == count:
            return value
        if pick is not None and type(value) is dict and len(value) == count:
            # As many names as columns: if each column is among them, nothing else is.
            try:
                parts: tuple[Any, ...] = pick(value)
                return parts
            except KeyError:
                return by_name(value, key)
        if isinstance(value, Mapping):
            return by_name(value, key)
        if not isinstance(value, tuple | list):
            raise value_error(f"the value is a tuple or a mapping of {', '.join(columns)}")
        if len(value) != count:
            wanted = "1 value is" if count == 1 else f"{count} values are"
            given = "1 is" if len(value) == 1 else f"{len(value)} are"
            raise value_error(f"{wanted} expected ({', '.join(columns)}), {given} given")
        return value

    def by_name(value: Mapping[str, Any], key: Any) -> Iterable[Any]:
        """Read columns without regard to case; NULL where one is left out. The key may be among them."""
        given = _by_folded_name(value, visible)
        _refuse_other_key(definition, stored_key, key, given)
        return [given.get(name.casefold()) for name in columns]

    return read


def _by_folded_name(value: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    """Return the values by the folded names of their columns; refuse what is no column of the map."""
    known = {name.casefold() for name in columns}
    for name in value:
        if not isinstance(name, str):
            raise value_error(f"the name of a column is text, not {kind_of(name)}")
        if name.casefold() not in known:
            raise missing_column(f"unknown column: {name}", suggestion=nearest_column(name, columns))
    return {name.casefold(): part for name, part in value.items()}


def _refuse_other_key(
    definition: MapDefinition, stored_key: Callable[[Any], Any], key: Any, given: Mapping[str, Any]
) -> None:
    """Raise where the key columns within a value are not those of the key that the value is stored under."""
    if not any(name.casefold() in given for name in definition.key):
        return
    parts = (key,) if len(definition.key) == 1 else _key_parts(definition, key)
    inside = tuple(given.get(name.casefold(), part) for name, part in zip(definition.key, parts, strict=True))
    if stored_key(inside[0] if len(inside) == 1 else inside) != stored_key(key):
        names, held = ", ".join(definition.key), inside[0] if len(inside) == 1 else inside
        raise value_error(f"the value has another key ({names}) than the one it is given under: {held!r}, not {key!r}")


def _key_parts(definition: MapDefinition, key: Any) -> tuple[Any, ...]:
    """Return the parts of a key of several columns; refuse a string, which is a sequence too."""
    if not isinstance(key, tuple | list) or len(key) != len(definition.key):
        raise value_error(f"the key is a tuple of {', '.join(definition.key)}")
    return tuple(key)


def _key_converter(definition: MapDefinition) -> Callable[[Any], Any]:
    """Return the function from a user's key to the stored one; it gives None for NULL parts, as no row has them."""
    converters = [stored_converter(definition.column(name).type) for name in definition.key]
    if len(converters) == 1:
        return converters[0]

    def convert(key: Any) -> tuple[Any, ...] | None:
        parts = _key_parts(definition, key)
        stored = tuple([converter(part) for converter, part in zip(converters, parts, strict=True)])
        return None if None in stored else stored

    return convert
