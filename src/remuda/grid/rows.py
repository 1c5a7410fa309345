"""Rows as users get them: tuples with names."""

from __future__ import annotations

from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from remuda.exec.batch import TupleBatch, stored_columns
from remuda.types import python_column_converter, python_converter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from remuda.exec import RowBatch
    from remuda.plan.fragments import ResultColumn
    from remuda.types import SqlType

Converter = TypeVar("Converter")


class NamedRow(tuple[Any, ...]):
    """A tuple whose values can also be had by name: `row.id`, `row["id"]`, `row[0]`."""

    __slots__ = ()
    _fields: tuple[str, ...] = ()
    _places: dict[str, int] = {}  # noqa: RUF012  (each subclass has its own, made once)

    def __getitem__(self, key: Any) -> Any:
        if type(key) is str:
            place = self._places.get(key)
            if place is None:
                place = self._places.get(key.casefold())
            if place is None:
                raise KeyError(key)
            return tuple.__getitem__(self, place)
        return tuple.__getitem__(self, key)

    if TYPE_CHECKING:
        # Each subclass has a property for each of its names.
        def __getattr__(self, name: str) -> Any: ...

    def _asdict(self) -> dict[str, Any]:
        return {name: self[self._places[name]] for name in self._fields}

    def __repr__(self) -> str:
        return f"Row({', '.join(f'{name}={value!r}' for name, value in zip(self._fields, self, strict=True))})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _make_row, (self._fields, tuple(self))


def _make_row(fields: tuple[str, ...], values: tuple[Any, ...]) -> NamedRow:
    return row_class(fields)(values)


@lru_cache(maxsize=1024)
def row_class(fields: tuple[str, ...]) -> type[NamedRow]:
    """The class of the rows with these column names; a name that is there twice means its first column.

    Names are found without regard to case, but `id` means the column `id` even where an `ID` stands before it.
    """
    places: dict[str, int] = {}
    for place, name in enumerate(fields):
        places.setdefault(name, place)
    for place, name in enumerate(fields):
        places.setdefault(name.casefold(), place)
    members: dict[str, Any] = {"__slots__": (), "_fields": fields, "_places": places}
    for name, place in places.items():
        if name.isidentifier() and not hasattr(NamedRow, name) and not name.startswith("__"):
            members[name] = property(itemgetter(place))
    return type("Row", (NamedRow,), members)


FEW_ROWS = 3
"""Up to so many rows are converted one by one; of more, whole columns."""


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
        self.row: Callable[[tuple[Any, ...]], NamedRow] = self.row_class if self.convert is None else self._row
        """From a stored row to the row as users get it."""

    def rows_of(self, batch: RowBatch) -> Iterable[NamedRow]:
        """Those of a batch. Its columns are converted as they are: as rows first they would be turned twice."""
        if isinstance(batch, TupleBatch) or not batch.columns:
            return self.rows(batch.tuples())
        return self._of_columns(stored_columns(batch))

    def rows(self, tuples: Iterable[tuple[Any, ...]]) -> Iterable[NamedRow]:
        """In Python form, one after the other."""
        if self.convert is None:
            return map(self.row_class, tuples)
        stored = list(tuples)
        if len(stored) <= FEW_ROWS:
            return map(self._row, stored)
        return self._of_columns(zip(*stored, strict=True))

    def _of_columns(self, stored: Iterable[Sequence[Any]]) -> Iterable[NamedRow]:
        columns = list(stored)
        for place, convert in self._column_converters:
            columns[place] = convert(columns[place])
        return map(self.row_class, zip(*columns, strict=True))

    def _row(self, row: tuple[Any, ...]) -> NamedRow:
        return self.row_class(self._converted_row(row))

    def _converted_row(self, row: tuple[Any, ...]) -> list[Any]:
        values = list(row)
        for place, convert in self._converters:
            value = values[place]
            if value is not None:
                values[place] = convert(value)
        return values


def _needed(
    converter: Callable[[SqlType], Converter | None], columns: Sequence[ResultColumn]
) -> list[tuple[int, Converter]]:
    """The places where stored and Python form differ, and how one becomes the other."""
    converters = [(place, converter(column.type)) for place, column in enumerate(columns)]
    return [(place, convert) for place, convert in converters if convert is not None]
