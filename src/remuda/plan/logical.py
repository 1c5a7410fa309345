"""What a query asks for: relational operators without a word on how they are done.

Constructors refuse a tree in which an operator uses a column that its input does not have.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from remuda.expr import Column, Expression, columns_of
from remuda.types import BIGINT

if TYPE_CHECKING:
    from remuda.catalog import MapDefinition
    from remuda.plan.aggregates import AggregateCall
    from remuda.plan.traits import Collation


class Relation(Protocol):
    """Anything that delivers rows with known columns: a node, or a group of the memo that stands for its members."""

    @property
    def columns(self) -> tuple[Column, ...]: ...


@dataclass(frozen=True, slots=True)
class Assignment:
    """`column` is what `expression` is called from here on."""

    column: Column
    expression: Expression

    @property
    def is_identity(self) -> bool:
        return self.expression == self.column


class Operation(Enum):
    INSERT = "INSERT"
    SINK = "SINK"
    UPDATE = "UPDATE"
    DELETE = "DELETE"

    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class Scan:
    """The rows of a map that pass `filter`. A column's `name` is its name in the map."""

    map: MapDefinition
    columns: tuple[Column, ...]
    filter: Expression | None = None


@dataclass(frozen=True, slots=True)
class Values:
    """Rows written out in the query; none at all is the empty relation."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Expression, ...], ...]


@dataclass(frozen=True, slots=True)
class Filter:
    input: Relation
    condition: Expression

    def __post_init__(self) -> None:
        require_columns(self, self.condition)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns


@dataclass(frozen=True, slots=True)
class Project:
    input: Relation
    assignments: tuple[Assignment, ...]

    def __post_init__(self) -> None:
        require_columns(self, *(assignment.expression for assignment in self.assignments))

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(assignment.column for assignment in self.assignments)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One row for each combination of `keys`; with no keys exactly one row. Arguments are columns of the input."""

    input: Relation
    keys: tuple[Column, ...]
    calls: tuple[AggregateCall, ...]

    def __post_init__(self) -> None:
        require_columns(self, *self.keys, *(call.argument for call in self.calls if call.argument is not None))

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.keys, *(call.column for call in self.calls))


@dataclass(frozen=True, slots=True)
class Sort:
    input: Relation
    collation: Collation

    def __post_init__(self) -> None:
        known = {column.id for column in self.input.columns}
        assert all(key.column in known for key in self.collation), "an order uses columns of its input"

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns


@dataclass(frozen=True, slots=True)
class Limit:
    """`count` rows after the first `offset`; absent: all, none skipped. Which rows is decided by `collation`."""

    input: Relation
    count: Expression | None
    offset: Expression | None
    collation: Collation = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns


MODIFIED_COUNT = Column(-1, "count", BIGINT, nullable=False)


@dataclass(frozen=True, slots=True)
class Modify:
    """Writes its input into a map, all or nothing, and delivers one row: how many rows that were.

    The input has the map's columns in declared order; for DELETE the key columns, in the order of the key.
    """

    input: Relation
    map: MapDefinition
    operation: Operation

    @property
    def columns(self) -> tuple[Column, ...]:
        return (MODIFIED_COUNT,)


@dataclass(frozen=True, slots=True)
class Root:
    """What the user gets: some columns of the input in order, under their result names, in the order of ORDER BY.

    The order may use columns of the input that are not in the result.
    """

    input: Relation
    columns: tuple[Column, ...]
    names: tuple[str, ...]
    collation: Collation = ()


LogicalNode = Scan | Values | Filter | Project | Aggregate | Sort | Limit | Modify | Root


def require_columns(node: Filter | Project | Aggregate, *expressions: Expression) -> None:
    known = {column.id for column in node.input.columns}
    missing = [column.name for id_, column in columns_of(*expressions).items() if id_ not in known]
    assert not missing, f"{type(node).__name__} uses {missing}, which its input does not have"
