"""The key-value face of a map: the same rows that SQL sees, by key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from remuda.catalog import IndexType
from remuda.errors import option_error
from remuda.grid.map_rows import MapRows, Value
from remuda.grid.rows import NamedRow, RowShape
from remuda.plan.fragments import ResultColumn
from remuda.storage import row_projection

if TYPE_CHECKING:
    from remuda.grid.result import Result
    from remuda.storage import MapStore


class Map:
    """A key is a scalar, or a tuple where the key has several columns; a value is a tuple with names of the others.

    Values are given as mappings or as tuples in declared order. Every call is one statement: all or nothing, and
    durable, as far as the grid is, when it returns.
    """

    def __init__(self, store: MapStore, run: Callable[..., Result]) -> None:
        """`run` is the grid's `sql`."""
        self._store = store
        self._run = run
        definition = store.definition
        self._definition = definition
        self._rows = MapRows(definition)
        columns = definition.value_columns
        self._shape = RowShape(tuple(ResultColumn(column.name, column.type, column.nullable) for column in columns))
        self._row, self._stored_key = self._rows.row, self._rows.stored_key
        self._put_one, self._exchange = store.put_one, store.exchange
        self._find = store.find
        self._value_positions = self._rows.value_positions
        self._projection = row_projection(self._value_positions, self._shape.row_class)

    @property
    def name(self) -> str:
        return self._definition.name

    def get(self, key: Any, default: Any = None) -> NamedRow | Any:
        """The row's columns outside the key; `default` where there is no such key."""
        stored = self._stored_key(key)
        found = None if stored is None else self._find(stored, self._projection)
        return default if found is None else found

    def get_all(self, keys: Iterable[Any]) -> dict[Any, NamedRow]:
        """The values of those keys that are there."""
        try:
            given = iter(keys)
        except TypeError:
            raise option_error(
                f"keys are given as a list, or anything to go through, not as a {type(keys).__name__}"
            ) from None
        found = [(key, value) for key in given if (value := self.get(key)) is not None]
        try:
            return dict(found)
        except TypeError:
            raise option_error("a key that is a list or an array cannot be one of the dictionary") from None

    def __getitem__(self, key: Any) -> NamedRow:
        found: NamedRow | None = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def put(self, key: Any, value: Value) -> NamedRow | None:
        """Stores the row and returns what was there before; `set` is faster where nobody wants to know."""
        old = self._exchange(self._row(key, value), self._value_positions)
        if old is None:
            return None
        convert = self._shape.convert
        return self._shape.row_class(old if convert is None else convert(old))

    def set(self, key: Any, value: Value) -> None:
        """Stores the row."""
        self._put_one(self._row(key, value))

    def put_if_absent(self, key: Any, value: Value) -> NamedRow | None:
        """Stores the row unless the key is there; returns what is there, None if the row was stored."""
        row = self._row(key, value)
        with self._store.writing():
            old: NamedRow | None = self.get(key)
            if old is None:
                self._put_one(row)
        return old

    def replace(self, key: Any, value: Value) -> NamedRow | None:
        """Stores the row only if the key is there; returns what was there before, None if nothing was stored."""
        row = self._row(key, value)
        with self._store.writing():
            old: NamedRow | None = self.get(key)
            if old is not None:
                self._put_one(row)
        return old

    def put_all(self, entries: Mapping[Any, Value] | Iterable[tuple[Any, Value]]) -> None:
        """Stores many rows, all or none."""
        try:
            pairs = [(key, value) for key, value in (entries.items() if isinstance(entries, Mapping) else entries)]
        except (TypeError, ValueError):
            raise option_error("entries are a mapping or pairs of key and value") from None
        self._store.put([self._row(key, value) for key, value in pairs])

    def remove(self, key: Any) -> NamedRow | None:
        """Removes the row and returns what it was; `delete` is faster where nobody wants to know."""
        with self._store.writing():
            old: NamedRow | None = self.get(key)
            if old is not None:
                self._store.delete([self._stored_key(key)])
        return old

    def delete(self, key: Any) -> bool:
        """Removes the row and tells whether there was one."""
        stored = self._stored_key(key)
        return stored is not None and self._store.delete([stored]) > 0

    def clear(self) -> None:
        """Removes all rows."""
        self._store.truncate()

    def contains_key(self, key: Any) -> bool:
        stored = self._stored_key(key)
        return stored is not None and self._store.lookup(stored, self._rows.key_positions) is not None

    def size(self) -> int:
        self._store.refuse_unreadable()
        return len(self._store)

    def is_empty(self) -> bool:
        return self.size() == 0

    def keys(self, condition: str | None = None, *parameters: Any) -> Iterator[Any]:
        """All keys, or those of the rows that pass a condition written in SQL: `orders.keys("amount > ?", 10)`.

        Rows come as they are read, at one snapshot, in no order.
        """
        return (key for key, _ in self.items(condition, *parameters, _columns=()))

    def values(self, condition: str | None = None, *parameters: Any) -> Iterator[NamedRow]:
        return (value for _, value in self.items(condition, *parameters))

    def items(
        self, condition: str | None = None, *parameters: Any, _columns: tuple[str, ...] | None = None
    ) -> Iterator[tuple[Any, NamedRow]]:
        """Keys and values, of all rows or of those that pass a condition written in SQL."""
        definition = self._definition
        values = tuple(column.name for column in definition.value_columns) if _columns is None else _columns
        names = ", ".join(_quoted(name) for name in (*definition.key, *values))
        where = "" if condition is None else f" WHERE {condition}"
        width = len(definition.key)
        for row in self._run(f"SELECT {names} FROM {_quoted(definition.name)}{where}", *parameters):
            key = row[0] if width == 1 else tuple(row[:width])
            yield key, self._shape.row_class(row[width:])

    entries = items

    def add_index(self, columns: str | Iterable[str], kind: str = "SORTED", name: str | None = None) -> str:
        """Creates an index of an `IndexType`, SORTED or HASH, and returns its name."""
        try:
            chosen = [columns] if isinstance(columns, str) else list(columns)
        except TypeError:
            chosen = []
        if not chosen or not all(isinstance(column, str) for column in chosen):
            raise option_error("the columns of an index are given by their names")
        if str(kind).upper() not in IndexType.__members__:
            raise option_error(f"an index is {' or '.join(IndexType.__members__)}, not {kind}")
        if not isinstance(name, str | None):
            raise option_error(f"the name of an index is text, not a {type(name).__name__}")
        called = name or "_".join([self.name, *chosen, kind.lower()])
        listed = ", ".join(_quoted(column) for column in chosen)
        self._run(f"CREATE INDEX {_quoted(called)} ON {_quoted(self.name)} ({listed}) TYPE {kind.upper()}")
        return called

    def __setitem__(self, key: Any, value: Value) -> None:
        self.set(key, value)

    __contains__ = contains_key
    __len__ = size

    def __delitem__(self, key: Any) -> None:
        if not self.delete(key):
            raise KeyError(key)

    def __iter__(self) -> Iterator[Any]:
        return self.keys()

    def __repr__(self) -> str:
        return f"<Map {self.name}: {len(self._store)} rows>"


def _quoted(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'
