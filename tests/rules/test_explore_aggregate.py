"""Every tree that an explore rule gives for an aggregate has the aggregate's rows, whatever is in the maps."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from remuda.expr import Call, Column, Expression, Literal
from remuda.expr import call as typed_call
from remuda.plan import logical
from remuda.plan.aggregates import AGGREGATES, AggregateCall
from remuda.plan.checker import check_logical
from remuda.plan.joins import JoinKind
from remuda.plan.logical import Assignment
from remuda.rules.construct import NewColumns
from remuda.rules.explore.explore import AGGREGATE_RULES
from remuda.rules.normalize.aggregate import remove_aggregate_of_unique
from remuda.types import BIGINT, BOOLEAN
from tests.rules.interpreter import Interpreter
from tests.rules.random_trees import RandomTrees, random_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.types import SqlType

KINDS = [
    *[JoinKind.INNER] * 4,
    *[JoinKind.LEFT] * 4,
    *[JoinKind.RIGHT] * 2,
    *[JoinKind.FULL] * 2,
    JoinKind.SEMI,
    JoinKind.ANTI,
    JoinKind.MARK,
    JoinKind.SINGLE,
]
FUNCTIONS = {
    BIGINT: ["count", "count", "sum", "sum", "min", "max", "avg", "bit_and", "bit_or", "bit_xor"],
    BOOLEAN: ["count", "bool_and", "bool_or"],
}


@dataclass(slots=True)
class Eager:
    """Tries every rule, however many rows grouping leaves."""

    columns: NewColumns

    def new_column(self, name: str, type_: SqlType, *, nullable: bool = True) -> Column:
        return self.columns.add(name, type_, nullable=nullable)

    def rows_left(self, _relation: Any, _keys: frozenset[int]) -> float:
        return 0.0


class Aggregates(RandomTrees):
    """Aggregates of a few calls over joins of scans, unions, or whatever else comes."""

    def __init__(self, random: Random, *, single: bool = True) -> None:
        super().__init__(random, single=False)
        self.join_kinds = KINDS if single else [kind for kind in KINDS if kind is not JoinKind.SINGLE]
        self._origins: dict[int, int] = {}
        """The scan, by its first column, that a column is computed from: arguments are mostly of one."""

    def _scan(self) -> logical.Scan:
        scan = super()._scan()
        self._origins.update((column.id, scan.columns[0].id) for column in scan.columns)
        return scan

    def aggregate(self, source: Any) -> logical.Aggregate:
        numbers = [column for column in source.columns if column.type in FUNCTIONS]
        keys = [column for column in source.columns if column.name != "id" or self._random.random() < 0.5]
        chosen = self._random.sample(keys, min(self._random.choice([0, 1, 1, 2]), len(keys)))
        side = self._origins.get(self._random.choice(numbers).id) if numbers else None
        near = [column for column in numbers if self._origins.get(column.id) == side]
        calls = [self._call(near) for _ in range(self._random.choice([1, 1, 1, 2]))] if near else [self._count()]
        if self._random.random() < 0.3:
            calls.append(self._count())
        return logical.Aggregate(source, tuple(chosen), tuple(calls))

    def _count(self) -> AggregateCall:
        return AggregateCall(self._column("n", nullable=False), "count")

    def _call(self, numbers: Sequence[Column]) -> AggregateCall:
        argument = self._random.choice(numbers)
        function = self._random.choice(FUNCTIONS[argument.type])
        type_ = AGGREGATES[function].result(argument.type)
        assert type_ is not None
        return AggregateCall(self._column("g", type_), function, argument, distinct=self._random.random() < 0.1)

    def joins(self, relations: int) -> Any:
        if relations == 1:
            scan = self._scan()
            return scan if self._random.random() < 0.7 else logical.Filter(scan, self._condition(scan.columns, ()))
        left = self.joins(relations - 1)
        right = self._scan()
        if self._random.random() < 0.3:
            left, right = right, left
        kind = self._random.choice(self.join_kinds)
        first = self._random.choice([0, 1, 1, 1])
        pair = (self._random.choice(left.columns[first:3]), self._random.choice(right.columns[first:3]))
        condition: Expression = Call("=", pair, BOOLEAN)
        if self._random.random() < 0.3:
            condition = self._condition((*left.columns, *right.columns), ())
        compared, mark = self._mark(kind, left.columns, right.columns, ())
        return logical.Join(kind, left, right, condition, compared, mark)

    def over(self, node: Any) -> Any:
        """What stands over an aggregate in a query: HAVING, a join with something, the first rows."""
        match self._random.randrange(3):
            case 0:
                return logical.Filter(node, self._condition(node.columns, ()))
            case 1:
                other = self.joins(self._random.choice([1, 1, 2]))
                pair = (self._random.choice(node.columns), self._random.choice(other.columns))
                same = pair[0].type == pair[1].type
                condition = Call("=", pair, BOOLEAN) if same else self._condition((*node.columns, *other.columns), ())
                kind = self._random.choice([kind for kind in self.join_kinds if kind is not JoinKind.MARK])
                left, right = self._random.sample([node, other], 2)
                return logical.Join(kind, left, right, condition)
            case _:
                limited = logical.Sort(node, self._ordered(node.columns))
                return logical.Limit(limited, Literal(self._random.choice([1, 2, 3]), BIGINT), None)

    def projected(self, source: Any) -> Any:
        """Columns under other names, and what can be computed from one of them, or of none, or of several."""
        items: list[Assignment] = []
        for column in source.columns:
            value: Expression = column
            own = [column] if self._random.random() < 0.8 else source.columns
            if column.type == BIGINT and self._random.random() < 0.5:
                value = self._expression(own, ())
            elif column.type == BIGINT and self._random.random() < 0.2:
                items.append(Assignment(self._column("q", BOOLEAN), self._condition(own, ())))
            elif column.type == BIGINT and self._random.random() < 0.2:
                added = typed_call("+", column, column)
                assert added is not None
                value = added
            same = value is column and self._random.random() < 0.5
            items.append(Assignment(column if same else self._column("p", column.type), value))
            for item in items[-2:]:
                self._origins.setdefault(item.column.id, self._origins.get(column.id, -1))
        return logical.Project(source, tuple(items))


def random_source(trees: Aggregates, random: Random) -> Any:
    match random.randrange(6):
        case 0:
            return trees._union(0, ())
        case 1:
            return trees.projected(trees.joins(random.choice([2, 2, 3])))
        case 2:
            return trees.joins(random.choice([1, 2, 3]))
        case 3:
            return trees.projected(trees.projected(trees.joins(2)))
        case _:
            return trees.projected(trees.joins(2))


def _bag(maps: dict[str, list[dict[str, Any]]], node: Any, columns: Sequence[Column]) -> Counter[tuple[Any, ...]] | str:
    """The rows, or the error of a SINGLE join with a second match, which no other tree may leave out."""
    return Interpreter(maps).result(logical.Root(node, tuple(columns), tuple(column.name for column in columns)))


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 100))])
def test_other_trees_have_the_same_rows(seed: int) -> None:
    for number in range(120):
        random = Random(seed * 1_000 + number)
        trees = Aggregates(random)
        node = trees.aggregate(random_source(trees, random))
        context = Eager(NewColumns(trees.next_column))
        others = [(rule.__name__, other) for rule in AGGREGATE_RULES for other in rule(node, context)]
        removed = remove_aggregate_of_unique(node)
        if removed is not None:
            others.append(("remove_aggregate_of_unique", removed))
        for _name, other in others:
            check_logical(other)
            assert {column.id for column in node.columns} <= {column.id for column in other.columns}
        for _ in range(4):
            maps = random_rows(random)
            expected = _bag(maps, node, node.columns)
            for name, other in others:
                assert _bag(maps, other, node.columns) == expected, name


def test_every_rule_is_tried() -> None:
    tried: Counter[str] = Counter()
    for number in range(400):
        random = Random(number)
        trees = Aggregates(random)
        node = trees.aggregate(random_source(trees, random))
        context = Eager(NewColumns(trees.next_column))
        tried.update(rule.__name__ for rule in AGGREGATE_RULES for _ in rule(node, context))
        tried.update(["remove_aggregate_of_unique"] if remove_aggregate_of_unique(node) else [])
    assert all(tried[rule.__name__] >= 10 for rule in AGGREGATE_RULES), tried
    assert tried["remove_aggregate_of_unique"] >= 5
