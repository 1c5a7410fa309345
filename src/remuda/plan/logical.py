"""What a query asks for: relational operators without a word on how they are done.

Constructors refuse a tree in which an operator uses a column that its input does not have, unless the column is marked
as one of an outer query: within the right side of an `Apply`.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from remuda.dataclass import dataclass
from remuda.expr import Column, Expression, columns_of
from remuda.plan.joins import JoinKind, joined_columns
from remuda.types import BIGINT, VARBINARY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remuda.catalog import MapDefinition
    from remuda.errors import Span
    from remuda.plan.aggregates import AggregateCall
    from remuda.plan.series import SeriesCall
    from remuda.plan.traits import Collation
    from remuda.plan.windows import WindowCall


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
    MERGE = "MERGE"
    """As SINK, of an INSERT ... ON CONFLICT DO UPDATE: no key may come twice."""
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
        require_columns(self, *self.keys, *(argument for call in self.calls for argument in call.arguments))

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


@dataclass(frozen=True, slots=True)
class Join:
    """Pairs of rows for which `condition` is true, and by `kind` rows without a pair; without a condition all pairs.

    For MARK, `compared` is the comparison of `x IN (...)` or `x < ANY (...)`: the mark is true where some pair that
    meets the condition has it true, else NULL where one has it unknown, else false. Absent it is true (EXISTS).
    """

    kind: JoinKind
    left: Relation
    right: Relation
    condition: Expression | None = None
    compared: Expression | None = None
    mark: Column | None = None
    span: Span | None = field(default=None, compare=False, repr=False)
    """Where the sub-query is written: the second row of a SINGLE join is an error there."""

    def __post_init__(self) -> None:
        assert (self.mark is not None) == (self.kind is JoinKind.MARK), "a MARK join, and no other, has a mark"
        require_columns_of_both(self)

    @property
    def columns(self) -> tuple[Column, ...]:
        return joined_columns(self.kind, self.left.columns, self.right.columns, self.mark)


@dataclass(frozen=True, slots=True)
class Apply:
    """A join whose right side is evaluated for each left row, whose columns it may name anywhere: a sub-query, LATERAL.

    The binder makes it, the rewrite turns every one into joins; no rule and no backend ever sees it.
    """

    kind: JoinKind
    left: Relation
    right: Relation
    condition: Expression | None = None
    compared: Expression | None = None
    mark: Column | None = None
    span: Span | None = field(default=None, compare=False, repr=False)
    """Where the sub-query is written: the second row of a SINGLE join is an error there."""

    def __post_init__(self) -> None:
        assert (self.mark is not None) == (self.kind is JoinKind.MARK), "a MARK join, and no other, has a mark"
        assert not self.kind.keeps_right, "a right row belongs to the left row that it was evaluated for"

    @property
    def columns(self) -> tuple[Column, ...]:
        return joined_columns(self.kind, self.left.columns, self.right.columns, self.mark)


@dataclass(frozen=True, slots=True)
class Union:
    """All rows of all inputs, equal ones as often as they come. `sources[i]` are the columns of input i, in order.

    Inputs have the same types; they may be the same tree.
    """

    inputs: tuple[Relation, ...]
    columns: tuple[Column, ...]
    sources: tuple[tuple[Column, ...], ...]

    def __post_init__(self) -> None:
        for source, columns in zip(self.inputs, self.sources, strict=True):
            assert [column.type for column in columns] == [column.type for column in self.columns]
            assert set(columns) <= set(source.columns), "a union names columns of its inputs"


@dataclass(frozen=True, slots=True)
class Window:
    """Every row of the input with what each call is for it, over the rows with the same `partition` in `order`."""

    input: Relation
    partition: tuple[Column, ...]
    order: Collation
    calls: tuple[WindowCall, ...]

    def __post_init__(self) -> None:
        require_columns(self, *self.partition, *(argument for call in self.calls for argument in call.arguments))

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.input.columns, *(call.column for call in self.calls))


@dataclass(frozen=True, slots=True)
class Expand:
    """Every row of the input once for each of `projections`: what GROUPING SETS groups.

    GROUPING SETS ((a), (b)) over x: rows (a, NULL, 0) and (NULL, b, 1), grouped by all three.
    """

    input: Relation
    columns: tuple[Column, ...]
    projections: tuple[tuple[Expression, ...], ...]

    def __post_init__(self) -> None:
        require_columns(self, *(expression for projection in self.projections for expression in projection))


@dataclass(frozen=True, slots=True)
class Series:
    """Every row of the input once for each value of the series between the arguments that it has.

    Over one row it is the function in FROM; over the rows of a table what LATERAL asks for.
    """

    input: Relation
    call: SeriesCall

    def __post_init__(self) -> None:
        require_columns(self, *self.call.arguments)

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.input.columns, self.call.column)


@dataclass(frozen=True, slots=True)
class Recursive:
    """WITH RECURSIVE: the rows of the first input, then of the second over the rows found last, until none are new.

    The second input reads those rows by a `WorkingTable` with the same number. `distinct` drops rows seen before.
    """

    inputs: tuple[Relation, Relation]
    columns: tuple[Column, ...]
    sources: tuple[tuple[Column, ...], tuple[Column, ...]]
    table: int
    distinct: bool


@dataclass(frozen=True, slots=True)
class WorkingTable:
    """Within the step of a `Recursive`: the rows that the step before found."""

    table: int
    columns: tuple[Column, ...]


MODIFIED_COUNT = Column(-1, "count", BIGINT, nullable=False)
PREPARED = Column(-2, "prepared", VARBINARY)
"""What a task of another process has prepared, for the commit; NULL where it was done in this one."""


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


LogicalNode = (
    Scan
    | Values
    | Filter
    | Project
    | Aggregate
    | Sort
    | Limit
    | Join
    | Apply
    | Union
    | Window
    | Expand
    | Series
    | Recursive
    | WorkingTable
    | Modify
    | Root
)


def require_columns(node: Filter | Project | Aggregate | Window | Expand | Series, *expressions: Expression) -> None:
    _require(node, node.input.columns, expressions)


def require_columns_of_both(node: Join) -> None:
    expressions = [part for part in (node.condition, node.compared) if part is not None]
    _require(node, (*node.left.columns, *node.right.columns), expressions)


def _require(node: object, available: tuple[Column, ...], expressions: Iterable[Expression]) -> None:
    known = {column.id for column in available}
    missing = [column.name for id_, column in columns_of(*expressions).items() if id_ not in known and not column.outer]
    assert not missing, f"{type(node).__name__} uses {missing}, which its input does not have"
