"""Rows as users get them: tuples with names."""

from __future__ import annotations

from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from remuda.errors import repeated_column
from remuda.exec.batch import TupleBatch, stored_columns
from remuda.types import python_column_converter, python_converter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from remuda.exec import RowBatch
    from remuda.plan.result_column import ResultColumn
    from remuda.types import SqlType

Converter = TypeVar("Converter")


TUPLE_METHODS = frozenset({"count", "index"})
"""Methods of a tuple that a column of the same name takes the ordinal of, as a field of a `namedtuple` does."""


class Row(tuple[Any, ...]):
    """A tuple whose values can also be read by the name of their column.

    A row compares, hashes, unpacks and sorts as the tuple of its values. Names are found without regard to case. The
    attribute `row.count` is the column `count` where there is one, and the method of a tuple elsewhere; columns whose
    names are no attributes of their own (`keys`, `asdict`, `COUNT(*)`) are read as `row["COUNT(*)"]`.

    >>> import remuda
    >>> row = remuda.open().sql("SELECT 1 AS id, 'new' AS status").fetchone()
    >>> row.id, row["status"], row[1], row == (1, "new")
    (1, 'new', 'new', True)
    >>> dict(row)
    {'id': 1, 'status': 'new'}
    """

    __slots__ = ()
    _fields: tuple[str, ...] = ()
    _ordinals: dict[str, int] = {}  # noqa: RUF012  (each subclass has its own, made once)

    def __getitem__(self, key: Any) -> Any:
        if type(key) is str:
            ordinal = self._ordinals.get(key)
            if ordinal is None:
                ordinal = self._ordinals.get(key.casefold())
            if ordinal is None:
                raise KeyError(key)
            return tuple.__getitem__(self, ordinal)
        return tuple.__getitem__(self, key)

    if TYPE_CHECKING:
        # Each subclass has a property for each of its names.
        def __getattr__(self, name: str) -> Any: ...

    def keys(self) -> tuple[str, ...]:
        """Return the names of the columns. `dict(row)` reads them: they must differ.

        >>> import remuda
        >>> remuda.open().sql("SELECT 1 AS id, 'new' AS status").fetchone().keys()
        ('id', 'status')
        """
        refuse_duplicates(self._fields, "a dictionary")
        return self._fields

    def asdict(self) -> dict[str, Any]:
        """Return the values by the names of their columns; refuse two columns of one name.

        >>> import remuda
        >>> remuda.open().sql("SELECT 1 AS id, 'new' AS status").fetchone().asdict()
        {'id': 1, 'status': 'new'}
        """
        return dict(zip(self.keys(), self, strict=True))

    _asdict = asdict

    def __repr__(self) -> str:
        return f"Row({', '.join(f'{name}={value!r}' for name, value in zip(self._fields, self, strict=True))})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _make_row, (self._fields, tuple(self))


def refuse_duplicates(names: Sequence[str], target: str) -> None:
    """Raise where two columns have one name, which `target` would keep only one of."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise repeated_column(
            f"two columns are called {twice}: {target} has room for one", suggestion="Name one with AS."
        )


def _make_row(fields: tuple[str, ...], values: tuple[Any, ...]) -> Row:
    return row_class(fields)(values)


@lru_cache(maxsize=1024)
def row_class(fields: tuple[str, ...]) -> type[Row]:
    """Make the class of the rows with these column names; a name that is there twice means its first column.

    Names are found without regard to case, but `id` means the column `id` even where an `ID` stands before it.
    """
    ordinals: dict[str, int] = {}
    for ordinal, name in enumerate(fields):
        ordinals.setdefault(name, ordinal)
    for ordinal, name in enumerate(fields):
        ordinals.setdefault(name.casefold(), ordinal)
    members: dict[str, Any] = {"__slots__": (), "_fields": fields, "_ordinals": ordinals}
    for name, ordinal in ordinals.items():
        if name.isidentifier() and (name in TUPLE_METHODS or not hasattr(Row, name)) and not name.startswith("__"):
            members[name] = property(itemgetter(ordinal))
    return type("Row", (Row,), members)


FEW_ROWS = 3
"""Up to so many rows are converted one by one. More rows are converted column by column."""


class RowShape:
    """How the stored tuples of a result become its rows."""

    __slots__ = ("_column_converters", "_converters", "columns", "convert", "row", "row_class")

    def __init__(self, columns: tuple[ResultColumn, ...]) -> None:
        self.columns = columns
        self.row_class = row_class(tuple(column.name for column in columns))
        self._converters = _needed(python_converter, columns)
        self._column_converters = _needed(python_column_converter, columns)
        self.convert = self._converted_row if self._converters else None
        """From a stored row to its values in Python form; None where the two are the same in every column."""
        self.row: Callable[[tuple[Any, ...]], Row] = self.row_class if self.convert is None else self._row
        """From a stored row to the row as users get it."""

    def rows_of(self, batch: RowBatch) -> Iterable[Row]:
        """Return the rows of a batch; its columns are converted first, as rows would be turned twice."""
        if isinstance(batch, TupleBatch) or not batch.columns:
            return self.rows(batch.tuples())
        return self._of_columns(stored_columns(batch))

    def rows(self, tuples: Iterable[tuple[Any, ...]]) -> Iterable[Row]:
        """Yield the rows in Python form."""
        if self.convert is None:
            return map(self.row_class, tuples)
        stored = list(tuples)
        if len(stored) <= FEW_ROWS:
            return map(self._row, stored)
        return self._of_columns(zip(*stored, strict=True))

    def _of_columns(self, stored: Iterable[Sequence[Any]]) -> Iterable[Row]:
        columns = list(stored)
        for ordinal, convert in self._column_converters:
            columns[ordinal] = convert(columns[ordinal])
        return map(self.row_class, zip(*columns, strict=True))

    def _row(self, row: tuple[Any, ...]) -> Row:
        return self.row_class(self._converted_row(row))

    def _converted_row(self, row: tuple[Any, ...]) -> list[Any]:
        values = list(row)
        for ordinal, convert in self._converters:
            value = values[ordinal]
            if value is not None:
                values[ordinal] = convert(value)
        return values


def _needed(
    converter: Callable[[SqlType], Converter | None], columns: Sequence[ResultColumn]
) -> list[tuple[int, Converter]]:
    """Return the ordinals at which stored and Python form differ, and the conversion of each."""
    converters = [(ordinal, converter(column.type)) for ordinal, column in enumerate(columns)]
    return [(ordinal, convert) for ordinal, convert in converters if convert is not None]
