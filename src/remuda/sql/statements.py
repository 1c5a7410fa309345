"""The statements, parsed: what definitions and settings say, and queries as sqlglot's tree, still unbound."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot import exp

    from remuda.catalog import ColumnDefinition, IndexKind
    from remuda.errors import Span
    from remuda.sql.tokens import ParameterNames


@dataclass(frozen=True, slots=True)
class Name:
    """A name as written, perhaps with its schema, and its place."""

    text: str
    span: Span
    schema: str | None = None


@dataclass(frozen=True, slots=True)
class CreateMap:
    name: Name
    columns: tuple[ColumnDefinition, ...]
    key: tuple[Name, ...]
    partitioned_by: tuple[Name, ...]
    replicated: bool
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class DropMap:
    name: Name
    if_exists: bool


@dataclass(frozen=True, slots=True)
class CreateIndex:
    name: Name
    map: Name
    columns: tuple[Name, ...]
    kind: IndexKind
    if_not_exists: bool


@dataclass(frozen=True, slots=True)
class DropIndex:
    name: Name
    if_exists: bool


@dataclass(frozen=True, slots=True)
class Truncate:
    name: Name


@dataclass(frozen=True, slots=True)
class Checkpoint:
    pass


@dataclass(frozen=True, slots=True)
class Show:
    """`SHOW TABLES`, `INDEXES`, `PARTITIONS`, `MEMBERS`, `PLANS`."""

    what: str


@dataclass(frozen=True, slots=True)
class SetOption:
    option: str
    value: str
    span: Span


class ExplainMode(Enum):
    PLAN = "PLAN"
    LOGICAL = "LOGICAL"
    MEMO = "MEMO"


@dataclass(frozen=True, slots=True)
class Query:
    """SELECT, INSERT, SINK, UPDATE or DELETE: `tree` is sqlglot's, `upsert` tells SINK from INSERT."""

    tree: exp.Expression = field(compare=False)
    span: Span
    """The place of its first word: where an error is shown that has no better one."""
    parameters: ParameterNames = field(compare=False)
    upsert: bool = False


@dataclass(frozen=True, slots=True)
class Explain:
    query: Query
    mode: ExplainMode


Statement = CreateMap | DropMap | CreateIndex | DropIndex | Truncate | Checkpoint | Show | SetOption | Query | Explain
