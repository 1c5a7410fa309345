"""Each rule alone keeps the rows of the tree that it rewrites, whatever is in the maps.

Normalise rules are held step by step: what a rule found, and what it made of it. Explore rules and orders of joins are
held by the memo: every expression of a group has the group's rows. Two mistakes that make up for each other are found.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from remuda.catalog import ColumnStatistics, MapStatistics
from remuda.errors import SqlError
from remuda.expr import Call, Literal
from remuda.optimizer.memo import GroupReference, Memo
from remuda.optimizer.populate import EXPLORE_RULE, populate_memo
from remuda.plan import logical
from remuda.plan.joins import JoinKind
from remuda.plan.walk import walk
from remuda.plan.windows import WindowCall
from remuda.rules.construct import NewColumns
from remuda.rules.decorrelate.decorrelate import decorrelate
from remuda.rules.decorrelate.free_columns import free_columns
from remuda.rules.explore import aggregate_below_join
from remuda.rules.normalize import aggregate, empty, filter_join, join, join_inference, limit
from remuda.rules.normalize import filter as filters
from remuda.rules.normalize.normalize import RuleTrace, normalize
from remuda.rules.normalize.trim import trim_columns
from remuda.types import BIGINT, BOOLEAN
from tests.rules.interpreter import Interpreter
from tests.rules.random_trees import MAPS, RandomTrees, random_rows
from tests.rules.test_explore_aggregate import Aggregates, random_source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.expr import Column

Bag = Counter[tuple[Any, ...]] | str
"""Rows with how often each comes, or the message of an error."""

OVER_JOINS = {
    rule.__name__
    for rule in (
        aggregate.remove_aggregate_of_unique,
        aggregate.remove_distinct_from_calls,
        empty.prune_empty_join,
        filters.push_filter_past_aggregate,
        filters.push_filter_past_window,
        filter_join.push_filter_below_join,
        filter_join.push_filter_into_join,
        filter_join.turn_left_join_anti,
        filter_join.turn_mark_join_anti,
        filter_join.turn_mark_join_semi,
        filter_join.turn_outer_join_inner,
        join.empty_false_join,
        join.limit_tested_rows,
        join.pull_renaming_above_join,
        join.push_join_condition_to_side,
        join.turn_outer_input_inner,
        join.turn_right_join_left,
        join.turn_single_join_left,
        join_inference.infer_transitive_equality,
        limit.push_limit_past_left_join,
        limit.push_limit_past_window,
    )
}
"""Rules that move something across a join, or by what is known of one; each must be among those that are held."""
STATISTICS = {
    definition.id: MapStatistics(
        1_000,
        {column.name: ColumnStatistics(distinct=1_000 if column.name == "id" else 4) for column in definition.columns},
    )
    for definition in MAPS.values()
}
"""Of larger maps than there are: grouping seems worth while everywhere."""


class Shapes(Aggregates):
    """Operators over one join, in the forms that rules look for and random trees seldom have."""

    def shape(self) -> Any:
        joined = self._one_match() if self._random.random() < 0.5 else self.joins(2)
        columns = joined.columns
        match self._random.randrange(5):
            case 0 if joined.kind is JoinKind.MARK:
                return logical.Filter(joined, self._condition(columns, ()))
            case 0:
                tested = self._random.choice(columns)
                missing = Call("is null", (tested,), BOOLEAN)
                parts = (missing, self._condition(columns, ()))
                return logical.Filter(joined, missing if self._random.random() < 0.5 else Call("and", parts, BOOLEAN))
            case 1:
                partition = tuple(self._random.sample(columns, min(2, len(columns))))
                call = WindowCall(self._column("w", nullable=False), "count")
                window = logical.Window(joined, partition, (), (call,))
                return logical.Filter(window, self._condition(partition, ()))
            case 2:
                call = WindowCall(self._column("w", nullable=False), "row_number")
                order = self._ordered(columns)
                window = logical.Window(joined, (), order, (call,))
                return self._first(window, order)
            case 3:
                # A left row has one match, and its key is in the order: no two rows tie.
                one = self._one_match()
                return self._first(one, self._ordered(one.left.columns))
            case _:
                return self._first(self.projected(joined), None)

    def _first(self, node: Any, order: Any) -> Any:
        count, offset = self._random.choice([1, 2, 3]), self._random.choice([None, None, Literal(1, BIGINT)])
        sorted_ = logical.Sort(node, self._ordered(node.columns) if order is None else order)
        return logical.Limit(sorted_, Literal(count, BIGINT), offset)

    def _one_match(self) -> logical.Join:
        left, right = self._scan(), self._scan()
        kinds = {JoinKind.LEFT, JoinKind.MARK, JoinKind.SINGLE}
        kind = self._random.choice([kind for kind in self.join_kinds if kind in kinds])
        condition = Call("=", (self._random.choice(left.columns), right.columns[0]), BOOLEAN)
        compared, mark = self._mark(kind, left.columns, right.columns, ())
        return logical.Join(kind, left, right, condition, compared, mark)


def joined_tree(random: Random, number: int, *, single: bool = True) -> tuple[logical.Root, int]:
    """Anything, aggregates over joins of all kinds, or other operators over such joins.

    With `single` some have joins that are an error where there is a second match.
    """
    if number % 3 == 0:
        trees = RandomTrees(random, single=single and number % 6 == 0)
        return decorrelate(trees.root(random.choice([2, 3, 3])), trees.next_column)
    shapes = Shapes(random, single=single)
    node: Any = shapes.aggregate(random_source(shapes, random)) if number % 3 == 1 else shapes.shape()
    for _ in range(random.choice([0, 0, 1, 2])):
        node = shapes.over(node)
    return logical.Root(node, node.columns, tuple(column.name for column in node.columns)), shapes.next_column


def bag(maps: dict[str, list[dict[str, Any]]], node: Any, columns: Sequence[Column]) -> Bag:
    return Interpreter(maps).result(logical.Root(node, tuple(columns), tuple(column.name for column in columns)))


def is_closed(node: Any) -> bool:
    """Whether it has rows of its own: not a part of a recursion."""
    recursions = {part.table for part in walk(node) if isinstance(part, logical.Recursive)}
    tables = {part.table for part in walk(node) if isinstance(part, logical.WorkingTable)}
    return tables <= recursions and not free_columns(node)


def check_steps(random: Random, number: int) -> Counter[str]:
    tree, _ = joined_tree(random, number)
    trace = RuleTrace(checked=True, recorded=True)
    normalize(trim_columns(tree), trace)
    maps = [random_rows(random) for _ in range(4)]
    held: Counter[str] = Counter()
    for step in trace.steps:
        if not is_closed(step.before) or isinstance(step.before, logical.Root):
            continue
        held[step.rule] += 1
        for rows in maps:
            expected, found = (bag(rows, node, step.before.columns) for node in (step.before, step.after))
            assert found == expected or isinstance(expected, str), step.rule
    return held


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 200))])
def test_normalise_rules_keep_the_rows(seed: int) -> None:
    for number in range(40):
        check_steps(Random(seed * 1_000 + number), number)


def test_every_normalise_rule_for_joins_is_held() -> None:
    held: Counter[str] = Counter()
    for number in range(900):
        held += check_steps(Random(500_000 + number), number)
    assert not OVER_JOINS - held.keys()


@dataclass(slots=True)
class MemoInterpreter(Interpreter):
    """Reads a group as the rows of its first expression."""

    memo: Memo | None = None
    groups: dict[int, Any] = field(default_factory=dict)

    def rows(self, node: Any, outer: dict[int, Any]) -> list[dict[int, Any]]:
        if not isinstance(node, GroupReference):
            return Interpreter.rows(self, node, outer)
        if node.group not in self.groups:
            assert self.memo is not None
            self.groups[node.group] = self.rows(self.memo.groups[node.group].expressions[0], outer)
        found: list[dict[int, Any]] = self.groups[node.group]
        renaming = node.renaming
        if renaming is None:
            return found
        return [{renaming.columns[id_].id: value for id_, value in row.items()} for row in found]


def check_memo(random: Random, number: int) -> Counter[str]:
    tree, next_column = joined_tree(random, number)
    if any(isinstance(node, logical.Recursive) for node in walk(tree)):
        return Counter()
    memo = Memo(STATISTICS)
    normalized = normalize(trim_columns(tree)) if random.random() < 0.7 else trim_columns(tree)
    populate_memo(normalized, memo, NewColumns(next_column).add)
    maps = [random_rows(random) for _ in range(4)]
    held: Counter[str] = Counter()
    for rows in maps:
        interpreter = MemoInterpreter(rows, memo=memo)
        for group in memo.groups:
            if isinstance(group.expressions[0], logical.Root):
                continue
            expected: Bag | None = None
            for expression in group.expressions:
                found = _rows_of(interpreter, expression, group.columns)
                expected = found if expected is None else expected
                assert found == expected, memo.explored.get(id(expression))
                held[memo.explored.get(id(expression), "")] += 1
    return held


def _rows_of(interpreter: MemoInterpreter, node: Any, columns: Sequence[Column]) -> Bag:
    try:
        return Counter(tuple(row[column.id] for column in columns) for row in interpreter.rows(node, {}))
    except SqlError as error:
        return str(error.message)


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 200))])
def test_every_expression_of_a_group_has_its_rows(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregate_below_join, "MOST_ROWS_LEFT", 2.0)
    for number in range(40):
        check_memo(Random(seed * 1_000 + number), number)


def test_every_explore_rule_for_joins_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregate_below_join, "MOST_ROWS_LEFT", 2.0)
    held: Counter[str] = Counter()
    for number in range(200):
        held += check_memo(Random(500_000 + number), number)
    assert held[EXPLORE_RULE] > 10
    assert held[aggregate_below_join.aggregate_below_join.__name__] > 10
