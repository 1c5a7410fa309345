"""Rows as users get them: tuples with names."""

from __future__ import annotations

from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from remuda.types import python_converter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from remuda.plan.fragments import ResultColumn


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


class RowShape:
    """How the stored tuples of a result become its rows."""

    __slots__ = ("columns", "convert", "row_class")

    def __init__(self, columns: tuple[ResultColumn, ...]) -> None:
        self.columns = columns
        self.row_class = row_class(tuple(column.name for column in columns))
        self.convert = _row_converter(columns)

    def rows(self, tuples: Iterable[tuple[Any, ...]]) -> Iterable[NamedRow]:
        """In Python form, one after the other."""
        if self.convert is not None:
            tuples = map(self.convert, tuples)
        return map(self.row_class, tuples)


def _row_converter(columns: Sequence[ResultColumn]) -> Callable[[tuple[Any, ...]], Any] | None:
    """None where stored and Python form are the same in every column."""
    converters = [(place, python_converter(column.type)) for place, column in enumerate(columns)]
    needed = [(place, convert) for place, convert in converters if convert is not None]
    if not needed:
        return None

    def convert_row(row: tuple[Any, ...]) -> list[Any]:
        values = list(row)
        for place, convert in needed:
            value = values[place]
            if value is not None:
                values[place] = convert(value)
        return values

    return convert_row
