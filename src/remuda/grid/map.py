"""The key-value face of a map: the same rows that SQL sees, by key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, overload

from remuda.catalog import IndexType
from remuda.errors import kind_of, nearest, not_found, option_error
from remuda.grid.lookup_keys import key_arrays, lookup_columns
from remuda.grid.map_rows import MapRows, Value, same_row
from remuda.grid.rows import Row, RowShape
from remuda.plan.result_column import ResultColumn
from remuda.storage import row_projection

if TYPE_CHECKING:
    import pyarrow as pa

    from remuda.grid.result import Result
    from remuda.storage import MapStore


class Map:
    """The key-value face of a map; made by `grid.map(name)`.

    A key is a scalar, or a tuple where the key has several columns. A value is read as a `Row` of the other columns. It
    is written as a mapping, in which columns that are left out become NULL and which may hold the key as well, or as a
    tuple in declared order.

    Every call is one statement: all or nothing, at one snapshot, and durable, as far as the grid is, when it returns.
    Calls that read before they write (`update`, `increment`, `put_if_absent`, `replace`, `remove`) keep other writers
    of the map out in between.

    >>> import remuda
    >>> grid = remuda.open()
    >>> grid.load("stock", [{"item": "hay", "amount": 5, "place": "barn"}], key="item")
    1
    >>> stock = grid.map("stock")
    >>> stock["oats"] = {"amount": 2, "place": "shed"}
    >>> stock["hay"], "oats" in stock, len(stock)
    (Row(amount=5, place='barn'), True, 2)
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
        """The name of the map."""
        return self._definition.name

    def get(self, key: Any, default: Any = None) -> Row | Any:
        """Return the columns of a row outside the key; `default` where there is no such key.

        >>> stock = _stock()
        >>> stock.get("hay"), stock.get("straw"), stock.get("straw", 0)
        (Row(amount=5, place='barn'), None, 0)
        """
        stored = self._stored_key(key)
        found = None if stored is None else self._find(stored, self._projection)
        return default if found is None else found

    def get_all(self, keys: Iterable[Any]) -> dict[Any, Row]:
        """Return the values of those keys that are there, all at one snapshot.

        Many keys that are whole numbers or moments are looked up together, in a fraction of the time of as many `get`.

        >>> _stock().get_all(["hay", "straw", "oats"])
        {'hay': Row(amount=5, place='barn'), 'oats': Row(amount=2, place='shed')}
        """
        try:
            given = list(keys)
        except TypeError:
            raise option_error(f"keys are given as a list, or anything to go through, not as {kind_of(keys)}") from None
        stored = self._rows.stored_keys(given)
        if isinstance(stored, list) and None in stored:  # of a NULL key there is no row
            given = [key for key, each in zip(given, stored, strict=True) if each is not None]
            stored = [each for each in stored if each is not None]
        rows = self._store.find_many(stored, self._projection)
        try:
            if all(rows):
                return dict(zip(given, rows, strict=True))
            return {key: row for key, row in zip(given, rows, strict=True) if row is not None}
        except TypeError:
            raise option_error("a key that is a list or an array cannot be one of the dictionary") from None

    def lookup(self, keys: Any, columns: Iterable[str] | None = None, index: str | None = None) -> pa.RecordBatch:
        """Look up many keys at one snapshot and return their rows as an Arrow record batch.

        `keys` is an Arrow array, a struct array where the key has several columns, or a list. The batch has one row for
        each key in its order, with NULLs where there is none, and a BOOLEAN column `found`. A key that the type of its
        column does not hold is not found. With `index`, the name of an index, it has as many rows as match, in the
        order of the keys, and the position of the key in a column `position`.

        >>> _stock().lookup(["oats", "straw"], ["amount"]).to_pylist()
        [{'amount': 2, 'found': True}, {'amount': None, 'found': False}]
        """
        snapshot = self._store.snapshot()
        definition = snapshot.definition
        chosen = None if index is None else definition.find_index(index)
        if index is not None and chosen is None:
            hint = nearest(index, [each.name for each in definition.indexes])
            raise not_found(f"{definition.name} has no index {index}", suggestion=hint)
        names = lookup_columns(definition, columns, chosen)
        arrays = key_arrays(definition, definition.key if chosen is None else chosen.columns, keys)
        return self._store.find_arrow(snapshot, arrays, names, chosen)

    def __getitem__(self, key: Any) -> Row:
        found: Row | None = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def put(self, key: Any, value: Value) -> Row | None:
        """Store a row and return the one that was there before; `set` is faster where that is not needed.

        >>> stock = _stock()
        >>> stock.put("hay", {"item": "hay", "amount": 4, "place": "barn"})
        Row(amount=5, place='barn')
        """
        old = self._exchange(self._row(key, value), self._value_positions)
        if old is None:
            return None
        convert = self._shape.convert
        return self._shape.row_class(old if convert is None else convert(old))

    def set(self, key: Any, value: Value) -> None:
        """Store a row.

        >>> stock = _stock()
        >>> stock.set("hay", (4, "barn"))
        >>> stock["hay"]
        Row(amount=4, place='barn')
        """
        self._put_one(self._row(key, value))

    def update(self, key: Any, changes: Mapping[str, Any]) -> bool:
        """Change the named columns of a row and leave the others; return whether there is such a row.

        >>> stock = _stock()
        >>> stock.update("hay", {"amount": 4}), stock.update("straw", {"amount": 1}), stock["hay"]
        (True, False, Row(amount=4, place='barn'))
        """
        changed = self._rows.changes(key, changes)
        with self._store.writing():
            row = self._stored_row(key)
            if row is None:
                return False
            values = list(row)
            for position, value in changed:
                values[position] = value
            self._store.update_one(tuple(values))
        return True

    def increment(self, key: Any, column: str, by: Any = 1) -> Any:
        """Add a number to a column and return the sum; KeyError where there is no such row.

        The sum is exact, or refused where the column cannot hold it. NULL is refused as well.

        >>> stock = _stock()
        >>> stock.increment("hay", "amount"), stock.increment("hay", "amount", by=-3)
        (6, 3)
        """
        position, add = self._rows.adder(column, by)
        with self._store.writing():
            row = self._stored_row(key)
            if row is None:
                raise KeyError(key)
            total = add(row[position])
            self._store.update_one((*row[:position], total, *row[position + 1 :]))
        return total

    def put_if_absent(self, key: Any, value: Value) -> Row | None:
        """Store a row unless the key is there; return the row that is there, None if the new one was stored.

        >>> stock = _stock()
        >>> stock.put_if_absent("hay", (9, "barn")), stock.put_if_absent("straw", (9, "barn"))
        (Row(amount=5, place='barn'), None)
        """
        row = self._row(key, value)
        with self._store.writing():
            old: Row | None = self.get(key)
            if old is None:
                self._store.update_one(row)
        return old

    @overload
    def replace(self, key: Any, value: Value, /) -> Row | None: ...

    @overload
    def replace(self, key: Any, old: Value, new: Value, /) -> bool: ...

    def replace(self, key: Any, value: Value, new: Value | None = None, /) -> Row | bool | None:
        """Store a row in the place of another one.

        `replace(key, value)` stores the row only if the key is there; it returns the row that was there before, None if
        nothing was stored. `replace(key, old, new)` stores `new` only if the row is `old` in every column (compare and
        set); it returns whether it did.

        >>> stock = _stock()
        >>> stock.replace("hay", (4, "barn")), stock.replace("straw", (4, "barn"))
        (Row(amount=5, place='barn'), None)
        >>> stock.replace("hay", (5, "barn"), (9, "barn")), stock.replace("hay", (4, "barn"), (9, "barn"))
        (False, True)
        """
        if new is not None:
            return self._compare_and_set(key, value, new)
        row = self._row(key, value)
        with self._store.writing():
            old: Row | None = self.get(key)
            if old is not None:
                self._store.update_one(row)
        return old

    def _compare_and_set(self, key: Any, old: Value, new: Value) -> bool:
        expected, row = self._row(key, old), self._row(key, new)
        with self._store.writing():
            if not same_row(self._stored_row(key), expected):
                return False
            self._store.update_one(row)
        return True

    def _stored_row(self, key: Any) -> tuple[Any, ...] | None:
        stored = self._stored_key(key)
        return None if stored is None else self._store.lookup(stored, self._rows.all_positions)

    def put_all(self, entries: Mapping[Any, Value] | Iterable[tuple[Any, Value]]) -> None:
        """Store many rows, all or none.

        >>> stock = _stock()
        >>> stock.put_all({"straw": (1, "shed"), "salt": {"amount": 3}})
        >>> len(stock)
        4
        """
        try:
            pairs = [(key, value) for key, value in (entries.items() if isinstance(entries, Mapping) else entries)]
        except (TypeError, ValueError):
            raise option_error("entries are a mapping or pairs of key and value") from None
        self._store.put([self._row(key, value) for key, value in pairs])

    def remove(self, key: Any) -> Row | None:
        """Remove a row and return it; `delete` is faster where it is not needed.

        >>> stock = _stock()
        >>> stock.remove("hay"), stock.remove("hay")
        (Row(amount=5, place='barn'), None)
        """
        with self._store.writing():
            old: Row | None = self.get(key)
            if old is not None:
                self._store.delete([self._stored_key(key)])
        return old

    def delete(self, key: Any) -> bool:
        """Remove a row and return whether there was one.

        >>> stock = _stock()
        >>> stock.delete("hay"), stock.delete("hay")
        (True, False)
        """
        stored = self._stored_key(key)
        return stored is not None and self._store.delete([stored]) > 0

    def clear(self) -> None:
        """Remove all rows."""
        self._store.truncate()

    def contains_key(self, key: Any) -> bool:
        """Return whether there is a row of this key, as `key in map` does."""
        stored = self._stored_key(key)
        return stored is not None and self._store.lookup(stored, self._rows.key_positions) is not None

    def size(self) -> int:
        """Return the number of rows, as `len(map)` does."""
        self._store.refuse_unreadable()
        return len(self._store)

    def is_empty(self) -> bool:
        """Return whether there is no row."""
        return self.size() == 0

    def keys(self, condition: str | None = None, *parameters: Any) -> Iterator[Any]:
        """Iterate over all keys, or those of the rows that pass a condition written in SQL.

        Rows come as they are read, at one snapshot, in no order.

        >>> list(_stock().keys("amount > ?", 3))
        ['hay']
        """
        return (key for key, _ in self.items(condition, *parameters, _columns=()))

    def values(self, condition: str | None = None, *parameters: Any) -> Iterator[Row]:
        """Iterate over values, of all rows or of those that pass a condition written in SQL."""
        return (value for _, value in self.items(condition, *parameters))

    def items(
        self, condition: str | None = None, *parameters: Any, _columns: tuple[str, ...] | None = None
    ) -> Iterator[tuple[Any, Row]]:
        """Iterate over keys and values, of all rows or of those that pass a condition written in SQL.

        >>> dict(_stock().items("place = 'shed'"))
        {'oats': Row(amount=2, place='shed')}
        """
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
        """Create an index, SORTED or HASH, and return its name.

        >>> _stock().add_index("amount")
        'stock_amount_sorted'
        """
        try:
            chosen = [columns] if isinstance(columns, str) else list(columns)
        except TypeError:
            chosen = []
        if not chosen or not all(isinstance(column, str) for column in chosen):
            raise option_error("the columns of an index are given by their names")
        if str(kind).upper() not in IndexType.__members__:
            raise option_error(f"an index is {' or '.join(IndexType.__members__)}, not {kind}")
        if not isinstance(name, str | None):
            raise option_error(f"the name of an index is text, not {kind_of(name)}")
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


def _stock() -> Map:
    """Make the map of the examples above."""
    from remuda.grid.grid import open_grid

    grid = open_grid()
    grid.sql("CREATE TABLE stock (item VARCHAR, amount BIGINT, place VARCHAR, PRIMARY KEY (item))")
    grid.sql("INSERT INTO stock VALUES ('hay', 5, 'barn'), ('oats', 2, 'shed')")
    return grid.map("stock")
