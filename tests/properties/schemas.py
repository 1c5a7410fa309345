"""Random schemas and rows. Domains are tiny, so that values collide, ranges hold several rows and filters find some."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from remuda.catalog import IndexType

if TYPE_CHECKING:
    from collections.abc import Mapping

Row = tuple[Any, ...]

DOMAINS: Mapping[str, st.SearchStrategy[Any]] = {
    "BIGINT": st.integers(-4, 12) | st.sampled_from([2**62, -(2**63), 2**63 - 1]),
    "INTEGER": st.integers(-4, 12),
    "DOUBLE": st.sampled_from([-2.5, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, 7.5, 1e300, float("inf"), float("nan")]),
    "VARCHAR": st.sampled_from(["", "a", "A", "ab", "abc", "b", "it's", "ü", "z" * 40]),
    "BOOLEAN": st.booleans(),
    "DATE": st.sampled_from([dt.date(1969, 12, 31), dt.date(2024, 1, 1), dt.date(2024, 2, 29), dt.date(2024, 3, 1)]),
}
KEY_TYPES = ("BIGINT", "INTEGER", "VARCHAR", "DATE")


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Index:
    name: str
    columns: tuple[str, ...]
    kind: str

    def create(self, map_name: str) -> str:
        return f"CREATE INDEX {self.name} ON {map_name} ({', '.join(self.columns)}) TYPE {self.kind}"


@dataclass(frozen=True, slots=True)
class Schema:
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    indexes: tuple[Index, ...]

    def create(self, map_name: str) -> str:
        columns = ", ".join(f"{column.name} {column.type}" for column in self.columns)
        return f"CREATE TABLE {map_name} ({columns}, PRIMARY KEY ({', '.join(self.key)}))"

    def position(self, name: str) -> int:
        return next(at for at, column in enumerate(self.columns) if column.name == name)

    def key_of(self, row: Row) -> Row:
        return tuple(row[self.position(name)] for name in self.key)


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    key_types = draw(st.lists(st.sampled_from(KEY_TYPES), min_size=1, max_size=2))
    value_types = draw(st.lists(st.sampled_from(sorted(DOMAINS)), max_size=4))
    keys = [Column(f"k{at}", type_) for at, type_ in enumerate(key_types)]
    values = [Column(f"v{at}", type_) for at, type_ in enumerate(value_types)]
    columns = tuple(draw(st.permutations([*keys, *values])))
    names = st.lists(st.sampled_from([column.name for column in columns]), min_size=1, max_size=3, unique=True)
    shapes = draw(st.lists(st.tuples(names, st.sampled_from(list(IndexType.__members__))), max_size=3))
    indexes = tuple(Index(f"i{at}", tuple(of), kind) for at, (of, kind) in enumerate(shapes))
    return Schema(columns, tuple(column.name for column in keys), indexes)


def rows(schema: Schema, max_size: int = 40) -> st.SearchStrategy[list[Row]]:
    """Rows with different keys; NULL in any column outside the key."""
    fields = [
        DOMAINS[column.type] if column.name in schema.key else st.none() | DOMAINS[column.type]
        for column in schema.columns
    ]
    return st.lists(st.tuples(*fields), max_size=max_size, unique_by=schema.key_of)
