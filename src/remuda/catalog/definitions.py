"""What a map, a column and an index are called and made of."""

from __future__ import annotations

import uuid
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Self

from remuda.dataclass import dataclass

if TYPE_CHECKING:
    from remuda.types import SqlType


GENERATED_KEY = "__key"
"""The name of the key in every map; the column of that name where the user declared no PRIMARY KEY."""


MOST_PARTITIONS = 65_536
"""The number of partitions that a map may have: their ids are kept in 16 bits."""


def new_id() -> str:
    """Return an identity that is never used again: a map dropped and created anew is another map."""
    return uuid.uuid4().hex[:16]


@dataclass(frozen=True, slots=True)
class IndexService:
    """What an index serves beside equalities of all its columns."""

    ranges: bool = False
    """A range of one column, behind equalities of the columns before it."""
    order: bool = False
    """Rows in the order of its columns, in both directions."""
    leading_columns: bool = False
    """Equalities of its first columns alone. Without it, an index needs all of its columns."""


class IndexType(Enum):
    """Names the types of indexes. The name of one is what `TYPE` takes and what a manifest says.

    How a type is built and opened is in `storage/index/index_types.py`, what it costs in `optimizer/cost.py`.
    """

    serves: IndexService

    SORTED = ("SORTED", IndexService(ranges=True, order=True, leading_columns=True))
    HASH = ("HASH", IndexService())

    def __new__(cls, name: str, serves: IndexService) -> Self:
        made = object.__new__(cls)
        made._value_ = name
        made.serves = serves
        return made

    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    name: str
    type: SqlType
    nullable: bool = True
    hidden: bool = False
    """A hidden column is left out of `SELECT *` and of INSERT without a column list."""
    length: int | None = None
    """The greatest number of characters of a text, as in VARCHAR(20); None where there is no limit."""


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    id: str
    name: str
    columns: tuple[str, ...]
    type: IndexType


@dataclass(frozen=True, slots=True)
class MapDefinition:
    """A map: its columns in declared order, the key among them, the columns that decide the partition, its indexes.

    `partitioned_by` is a subset of `key`, in the order in which the partition hash chains them.
    """

    id: str
    schema: str
    name: str
    columns: tuple[ColumnDefinition, ...]
    key: tuple[str, ...]
    partitioned_by: tuple[str, ...]
    partitions: int
    replicated: bool = False
    indexes: tuple[IndexDefinition, ...] = ()
    retention: int | None = None
    """Seconds for which versions of the map are kept; None where the table does not say."""
    compression: str | None = None
    """How its files on object stores are compressed: 'zstd', 'lz4' or 'none'; None where the table does not say."""

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        assert len({name.casefold() for name in names}) == len(names), "column names are unique"
        assert self.key, "a map has a key"
        assert set(self.key) <= set(names), "key columns are columns"
        assert set(self.partitioned_by) <= set(self.key), "partitioning columns are key columns"

    @property
    def is_past(self) -> bool:
        """Tell whether this is the map as it was in a version: the catalog of now does not have it."""
        return "@" in self.id

    @property
    def version(self) -> int | None:
        """Return the number of the version that the map is of; None for the map of now."""
        return int(self.id.partition("@")[2]) if self.is_past else None

    @property
    def visible_columns(self) -> tuple[ColumnDefinition, ...]:
        return tuple(column for column in self.columns if not column.hidden)

    @property
    def value_columns(self) -> tuple[ColumnDefinition, ...]:
        """Return the columns outside the key: what a `Map.get` returns."""
        return tuple(column for column in self.columns if column.name not in self.key)

    def find_column(self, name: str) -> ColumnDefinition | None:
        """Finds a column without regard to case."""
        folded = name.casefold()
        return next((column for column in self.columns if column.name.casefold() == folded), None)

    def column(self, name: str) -> ColumnDefinition:
        found = self.find_column(name)
        assert found is not None, f"{name} is a column of {self.name}"
        return found

    def position(self, name: str) -> int:
        return next(index for index, column in enumerate(self.columns) if column.name == name)

    def positions(self, names: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(self.position(name) for name in names)

    def find_index(self, name: str) -> IndexDefinition | None:
        folded = name.casefold()
        return next((index for index in self.indexes if index.name.casefold() == folded), None)

    def with_index(self, index: IndexDefinition) -> MapDefinition:
        return replace(self, indexes=(*self.indexes, index))

    def without_index(self, index: IndexDefinition) -> MapDefinition:
        return replace(self, indexes=tuple(other for other in self.indexes if other != index))


@dataclass(frozen=True, slots=True)
class ViewDefinition:
    """A query under a name: its text, and the schemas in which the names in it are looked for."""

    id: str
    schema: str
    name: str
    text: str
    search_path: tuple[str, ...]
    columns: tuple[str, ...] = ()
    """Names for its columns where the statement gave some; else they are the query's own."""
