"""Random logical trees over two small maps full of NULLs, with sub-queries that name outer columns anywhere."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from remuda.catalog import DEFAULT_SCHEMA, ColumnDefinition, MapDefinition
from remuda.expr import Call, Case, Column, Expression, Literal
from remuda.expr import call as typed_call
from remuda.plan import logical
from remuda.plan.aggregates import AggregateCall
from remuda.plan.joins import JoinKind
from remuda.plan.logical import Assignment
from remuda.plan.traits import SortKey
from remuda.plan.windows import WindowCall
from remuda.types import BIGINT, BOOLEAN, decimal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from remuda.plan.logical import LogicalNode
    from remuda.types import SqlType


def _map(name: str) -> MapDefinition:
    columns = (
        ColumnDefinition("id", BIGINT, nullable=False),
        ColumnDefinition("a", BIGINT),
        ColumnDefinition("b", BIGINT),
    )
    return MapDefinition(name, DEFAULT_SCHEMA, name, columns, ("id",), ("id",), partitions=271, indexes=())


MAPS = {name: _map(name) for name in ("r", "s")}
_DELIVERING = (JoinKind.INNER, JoinKind.LEFT, JoinKind.SINGLE)
_TESTING = (JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK)


def random_rows(random: Random) -> dict[str, list[dict[str, Any]]]:
    def value() -> int | None:
        return random.choice([None, 0, 1, 2, 3])

    return {
        name: [{"id": number, "a": value(), "b": value()} for number in range(random.choice([0, 1, 3, 5]))]
        for name in MAPS
    }


class RandomTrees:
    """Makes trees; the columns of outer queries are passed down, marked as what they are."""

    def __init__(self, random: Random, *, single: bool) -> None:
        self._random = random
        self._next = 0
        self._kinds = _DELIVERING if single else _DELIVERING[:2]

    @property
    def next_column(self) -> int:
        return self._next

    def root(self, depth: int) -> logical.Root:
        node = self.relation(depth, ())
        return logical.Root(node, node.columns, tuple(column.name for column in node.columns))

    def _column(self, name: str, type_: SqlType = BIGINT, *, nullable: bool = True) -> Column:
        self._next += 1
        return Column(self._next - 1, f"{name}{self._next - 1}", type_, nullable)

    def _scan(self) -> logical.Scan:
        definition = MAPS[self._random.choice(["r", "s"])]
        columns = tuple(
            replace(self._column(column.name, nullable=column.nullable), name=column.name)
            for column in definition.columns
        )
        return logical.Scan(definition, columns)

    def relation(self, depth: int, outer: Sequence[Column]) -> Any:
        if depth <= 0:
            return self._correlated_scan(outer) if outer and self._random.random() < 0.7 else self._scan()
        make = self._random.choice(
            [
                self._filter,
                self._filter,
                self._project,
                self._aggregate,
                self._aggregate,
                self._limit,
                self._window,
                self._join,
                self._union,
                self._expand,
                self._values,
                self._apply,
                self._apply,
                self._apply,
                self._recursive,
            ]
        )
        return make(depth - 1, outer)

    def _correlated_scan(self, outer: Sequence[Column]) -> logical.Filter:
        """`WHERE inner = outer`, mostly: what most sub-queries have at their bottom."""
        scan = self._scan()
        function = self._random.choice(["=", "=", "=", "<", "is not distinct from"])
        pair = (self._random.choice(scan.columns), self._value((), outer))
        return logical.Filter(scan, Call(function, pair, BOOLEAN))

    def _value(self, columns: Sequence[Column], outer: Sequence[Column]) -> Expression:
        usable = [column for column in (*columns, *outer, *outer) if column.type == BIGINT]
        if not usable or self._random.random() < 0.2:
            return Literal(self._random.choice([None, 0, 1, 2]), BIGINT)
        return self._random.choice(usable)

    def _expression(self, columns: Sequence[Column], outer: Sequence[Column]) -> Expression:
        """A number that may be known where all columns are NULL, or NULL where none is, or constant."""
        value = self._value(columns, outer)
        match self._random.randrange(6):
            case 0:
                return Literal(self._random.choice([None, 1, 5]), BIGINT)
            case 1:
                return Call("coalesce", (value, self._value(columns, outer)), BIGINT)
            case 2:
                return Call("coalesce", (value, Literal(7, BIGINT)), BIGINT)
            case 3:
                # What FILTER is to the binder.
                return Case(((self._condition(columns, outer), value),), Literal(None, BIGINT), BIGINT)
            case 4:
                missing = Call("is null", (value,), BOOLEAN)
                return Case(((missing, Literal(1, BIGINT)),), self._value(columns, outer), BIGINT)
            case _:
                return value

    def _condition(self, columns: Sequence[Column], outer: Sequence[Column]) -> Expression:
        first = self._comparison(columns, outer)
        marks = [column for column in columns if column.type == BOOLEAN]
        if marks and self._random.random() < 0.7:
            mark = self._random.choice(marks)
            first = self._random.choice([mark, Call("not", (mark,), BOOLEAN)])
        match self._random.randrange(10):
            case 0:
                return Call("and", (first, self._condition(columns, outer)), BOOLEAN)
            case 1:
                return Call("or", (first, self._condition(columns, outer)), BOOLEAN)
            case 2:
                return Call("not", (first,), BOOLEAN)
            case 3:
                other, another = self._comparison(columns, outer), self._comparison(columns, outer)
                branches = tuple(Call("and", (first, second), BOOLEAN) for second in (other, another))
                return Call("or", branches, BOOLEAN)
            case _:
                return first

    def _comparison(self, columns: Sequence[Column], outer: Sequence[Column]) -> Expression:
        left = self._value(columns, ())
        match self._random.randrange(8):
            case 0:
                return Call(self._random.choice(["is null", "is not null"]), (left,), BOOLEAN)
            case 1:
                candidates = (Literal(self._random.choice([None, 1, 2]), BIGINT) for _ in range(2))
                return Call("in", (left, *candidates), BOOLEAN)
            case _:
                function = self._random.choice(["=", "=", "=", "<", "<>", "is not distinct from"])
                return Call(function, (left, self._value(columns, outer)), BOOLEAN)

    def _filter(self, depth: int, outer: Sequence[Column]) -> LogicalNode:
        below = self.relation(depth, outer)
        return logical.Filter(below, self._condition(below.columns, outer))

    def _project(self, depth: int, outer: Sequence[Column]) -> LogicalNode:
        below = self.relation(depth, outer)
        kept = [Assignment(column, column) for column in below.columns if self._random.random() < 0.6]
        items = [*kept, Assignment(self._column("p"), self._expression(below.columns, outer))]
        if self._random.random() < 0.3:
            items.append(Assignment(self._column("q", BOOLEAN), self._condition(below.columns, outer)))
        return logical.Project(below, tuple(items))

    def _aggregate(self, depth: int, outer: Sequence[Column]) -> LogicalNode:
        """Over computed arguments, often."""
        below = self.relation(depth, outer)
        if self._random.random() < 0.4:
            passed = (Assignment(column, column) for column in below.columns)
            argument = Assignment(self._column("p"), self._expression(below.columns, outer))
            below = logical.Project(below, (*passed, argument))
        wanted = self._random.choice([0, 0, 1, 2])
        keys = tuple(self._random.sample(below.columns, min(wanted, len(below.columns))))
        numbers = [column for column in below.columns if column.type == BIGINT]
        calls = [AggregateCall(self._column("n", nullable=False), "count")] if self._random.random() < 0.5 else []
        if numbers and self._random.random() < 0.5:
            function = self._random.choice(["sum", "min", "max", "count"])
            type_ = decimal(38, 0) if function == "sum" else BIGINT
            distinct = self._random.random() < 0.3
            argument = numbers[-1] if self._random.random() < 0.5 else self._random.choice(numbers)
            calls.append(AggregateCall(self._column("g", type_), function, argument, distinct))
        if not calls and not keys:
            calls = [AggregateCall(self._column("n", nullable=False), "count")]
        return logical.Aggregate(below, keys, tuple(calls))

    def _ordered(self, columns: Sequence[Column]) -> tuple[SortKey, ...]:
        """By all columns, so that the rows that tie are equal."""
        shuffled = self._random.sample(list(columns), len(columns))
        return tuple(
            SortKey(column.id, self._random.random() < 0.5, self._random.random() < 0.5) for column in shuffled
        )

    def _limit(self, depth: int, outer: Sequence[Column]) -> LogicalNode:
        below = self.relation(depth, outer)
        below = logical.Sort(below, self._ordered(below.columns))
        if self._random.random() < 0.2:
            return below
        for _ in range(self._random.choice([1, 1, 1, 2])):
            offset = self._random.choice([None, None, Literal(1, BIGINT)])
            counts = [0, 1, 1, 2, 3]
            count = None if offset and self._random.random() < 0.3 else Literal(self._random.choice(counts), BIGINT)
            below = logical.Limit(below, count, offset)
        return below

    def _window(self, depth: int, outer: Sequence[Column]) -> LogicalNode:
        below = self.relation(depth, outer)
        partition = tuple(column for column in below.columns if self._random.random() < 0.3)
        if self._random.random() < 0.5:
            call = WindowCall(self._column("w", nullable=False), "row_number")
            return logical.Window(below, partition, self._ordered(below.columns), (call,))
        return logical.Window(below, partition, (), (WindowCall(self._column("w", nullable=False), "count"),))

    def _join(self, depth: int, outer: Sequence[Column]) -> LogicalNode:
        left, right = self.relation(depth, outer), self.relation(depth, outer)
        kinds = (JoinKind.INNER, JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL, *_TESTING)
        kind = self._random.choice(kinds)
        columns = (*left.columns, *right.columns)
        condition = None if self._random.random() < 0.1 else self._condition(columns, outer)
        compared, mark = self._mark(kind, left.columns, right.columns, outer)
        return logical.Join(kind, left, right, condition, compared, mark)

    def _mark(
        self, kind: JoinKind, left: Sequence[Column], right: Sequence[Column], outer: Sequence[Column]
    ) -> tuple[Expression | None, Column | None]:
        if kind is not JoinKind.MARK:
            return None, None
        compared: Expression | None = None
        if self._random.random() < 0.6:
            function = self._random.choice(["=", "=", "<", "<>"])
            compared = Call(function, (self._value(left, outer), self._value(right, ())), BOOLEAN)
        return compared, self._column("m", BOOLEAN, nullable=compared is not None)

    def _union(self, depth: int, outer: Sequence[Column]) -> LogicalNode:
        inputs, sources = [], []
        for _ in range(self._random.choice([2, 2, 3])):
            below = self.relation(depth, outer)
            column = self._column("v")
            inputs.append(logical.Project(below, (Assignment(column, self._value(below.columns, outer)),)))
            sources.append((column,))
        return logical.Union(tuple(inputs), (self._column("u"),), tuple(sources))

    def _expand(self, depth: int, outer: Sequence[Column]) -> LogicalNode:
        below = self.relation(depth, outer)
        columns = (self._column("e"), self._column("f"))
        rows = tuple(
            (self._value(below.columns, outer), Literal(number, BIGINT))
            for number in range(self._random.choice([1, 2]))
        )
        return logical.Expand(below, columns, rows)

    def _values(self, _: int, outer: Sequence[Column]) -> LogicalNode:
        rows = tuple(
            (self._value((), outer), Literal(number, BIGINT)) for number in range(self._random.choice([0, 1, 1, 2]))
        )
        return logical.Values((self._column("x"), self._column("y")), rows)

    def _apply(self, depth: int, outer: Sequence[Column]) -> LogicalNode:
        left = self.relation(depth, outer)
        inside = [replace(column, outer=True) for column in left.columns]
        right = self.relation(depth, (*outer, *inside))
        kind = self._random.choice([*self._kinds, *_TESTING])
        condition = None
        if kind is not JoinKind.SINGLE and self._random.random() < 0.2:
            condition = self._condition((*left.columns, *right.columns), outer)
        compared, mark = self._mark(kind, left.columns, right.columns, outer)
        return logical.Apply(kind, left, right, condition, compared, mark)

    def _recursive(self, depth: int, outer: Sequence[Column]) -> LogicalNode:
        """From the first rows on, one more at each step as long as it is below a bound."""
        below = self.relation(depth, outer)
        start = self._column("first")
        first = logical.Project(below, (Assignment(start, self._value(below.columns, outer)),))
        working, more = self._column("working"), self._column("more")
        table = self._next
        bound = self._value((), outer)
        step: Any = logical.Filter(
            logical.WorkingTable(table, (working,)),
            Call("and", tuple(Call("<", (working, end), BOOLEAN) for end in (bound, Literal(3, BIGINT))), BOOLEAN),
        )
        if self._random.random() < 0.3:
            other = self.relation(0, outer)
            step = logical.Join(JoinKind.INNER, step, other, self._condition((working, *other.columns), outer))
        plus = typed_call("+", working, Literal(1, BIGINT))
        assert plus is not None
        step = logical.Project(step, (Assignment(more, plus),))
        distinct = self._random.random() < 0.5
        return logical.Recursive((first, step), (self._column("c"),), ((start,), (more,)), table, distinct)
