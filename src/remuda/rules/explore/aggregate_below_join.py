"""The explore rule that puts an aggregate, or partial results of it, below a join.

Whether it pays depends on how many rows a partial result stands for. Where that is clearly too few, the rule gives up
before the search has to weigh another tree of joins.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from remuda.dataclass import dataclass
from remuda.expr import Call, Column, Expression, Literal, can_fail, columns_of, conjuncts, is_volatile, substitute
from remuda.plan import logical
from remuda.plan.aggregates import AGGREGATES
from remuda.plan.joins import JoinKind
from remuda.plan.logical import Assignment
from remuda.plan.walk import walk
from remuda.rules.explore.split_aggregate import put_together, split_calls
from remuda.rules.normalize.simplify import told_apart
from remuda.rules.nulls import is_null_without
from remuda.rules.tree_properties import is_unique
from remuda.types import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remuda.plan.aggregates import AggregateCall
    from remuda.plan.logical import LogicalNode
    from remuda.rules.rule_context import ExploreContext

MOST_ROWS_LEFT = 0.5
"""The share of the rows, at most, that grouping below a join may leave: otherwise it is not tried."""
MOST_RELATIONS = 6
"""Joins of more relations are not ordered a second time."""
SAFE_DIGITS = 28
"""A sum of DECIMALs of so many digits overflows only beyond 10**10 rows: adding up rows in vain is no error."""


@dataclass(frozen=True, slots=True)
class _Side:
    """A part of a tree of joins that has all arguments; `needed` are its columns that are named above it."""

    relation: Any
    needed: frozenset[int]
    may_be_missing: bool
    """Whether an outer join above it makes rows in which it is NULL throughout."""


def aggregate_below_join(node: Any, context: ExploreContext) -> Iterator[LogicalNode]:
    """Aggregate(Join(l, r, c), keys, SUM(l.a)) → Aggregate(Join(part, r, c), keys, SUM(s)), where part is
    Aggregate(l, l's columns of keys and c, SUM(a) AS s).

    Legal because rows of l with the same values in the columns of c and in the keys have the same matches, so what
    happens to one happens to all. Where the keys tell the rows of the new join apart, as for GROUP BY of r's key,
    nothing is left to add up above it.

    A side that an outer join fills with NULLs has no partial result for the rows that it fills, and none may be needed:
    every argument must be NULL there, and so be left out. SUM(l.a) is such; COUNT(*), MAX(1), SUM(COALESCE(l.a, 0)) and
    BOOL_OR(l.a IS NULL) are not. The right side of a SINGLE join stays as it is, for a second match is an error. Not
    with arguments of both sides, not where an argument can fail: it would be computed for rows that have no match, and
    not where something above tells values apart that are equal to a group.
    """
    if not isinstance(node, logical.Aggregate) or not node.calls or not all(map(_is_movable, node.calls)):
        return
    join, meanings = _under_projections(node.input)
    if not isinstance(join, logical.Join) or _relations(join) > MOST_RELATIONS:
        return
    arguments = {call.argument.id for call in node.calls if call.argument is not None}
    expressions = {id_: expression for id_, expression in meanings.items() if id_ in arguments}
    if any(map(can_fail, expressions.values())) or any(map(is_volatile, meanings.values())):
        return
    used = frozenset(columns_of(*expressions.values())) | (arguments - meanings.keys())
    above = {id_: expression for id_, expression in meanings.items() if id_ not in arguments or _is_key(id_, node)}
    named = frozenset(columns_of(*above.values())) | ({key.id for key in node.keys} - meanings.keys())
    told = frozenset().union(*map(told_apart, (*above.values(), *_conditions(join))))
    best: tuple[float, _Side] | None = None
    for side in _sides(join, used, named):
        if side.may_be_missing and not _are_null_without(side.relation, node.calls, expressions):
            continue
        if is_unique(side.relation, side.needed) or told & side.needed:
            continue
        if not side.needed:
            continue  # without keys there is a row even where the side has none
        left = context.rows_left(side.relation, side.needed)
        if left <= MOST_ROWS_LEFT and (best is None or left < best[0]):
            best = (left, side)
    if best is not None:
        yield _aggregated_below(node, join, best[1], expressions, above, context)


def _is_movable(call: AggregateCall) -> bool:
    if not call.splits or call.second is not None:
        return False
    type_ = None if call.argument is None else call.argument.type
    return type_ is None or type_.kind is not Kind.DECIMAL or type_.precision <= SAFE_DIGITS


def _are_null_without(relation: Any, calls: tuple[AggregateCall, ...], expressions: dict[int, Expression]) -> bool:
    """Test whether each call leaves out every row in which the relation's columns are NULL throughout."""
    missing = {column.id for column in relation.columns}
    return all(
        call.argument is not None
        and not AGGREGATES[call.function].keeps_nulls
        and is_null_without(expressions.get(call.argument.id, call.argument), missing)
        for call in calls
    )


def _is_key(id_: int, node: logical.Aggregate) -> bool:
    return any(key.id == id_ for key in node.keys)


def _under_projections(node: Any) -> tuple[Any, dict[int, Expression]]:
    """Return the input of projections and what their columns mean in its terms."""
    meanings: dict[int, Expression] = {}
    while isinstance(node, logical.Project):
        own = {item.column.id: item.expression for item in node.assignments if not item.is_identity}
        meanings = own | {id_: substitute(expression, own) for id_, expression in meanings.items()}
        node = node.input
    return node, meanings


def _conditions(node: Any) -> Iterator[Expression]:
    """Return the conditions of all joins of the tree."""
    if isinstance(node, logical.Join):
        yield from (part for part in (node.condition, node.compared) if part is not None)
        yield from _conditions(node.left)
        yield from _conditions(node.right)


def _relations(join: logical.Join) -> int:
    return 1 + sum(isinstance(node, logical.Join) for node in walk(join))


def _sides(join: Any, used: frozenset[int], named: frozenset[int]) -> Iterator[_Side]:
    """Return the lowest relations that have all `used` columns."""
    named |= frozenset(columns_of(join.condition, join.compared))
    sides = [(join.left, join.kind.keeps_right)]
    if join.kind.delivers_right and join.kind is not JoinKind.SINGLE:
        sides.append((join.right, join.kind.keeps_left))
    for relation, missing in sides:
        own = frozenset(column.id for column in relation.columns)
        if not used <= own:
            continue
        further = _sides(relation, used, named) if isinstance(relation, logical.Join) else ()
        found = [replace(side, may_be_missing=side.may_be_missing or missing) for side in further]
        yield from found or [_Side(relation, named & own, missing)]


def _aggregated_below(
    node: logical.Aggregate,
    join: logical.Join,
    side: _Side,
    expressions: dict[int, Expression],
    above: dict[int, Expression],
    context: ExploreContext,
) -> LogicalNode:
    keys = tuple(column for column in side.relation.columns if column.id in side.needed)
    by_id = {call.argument.id: call.argument for call in node.calls if call.argument is not None}
    renamed = {id_: context.new_column(by_id[id_].name, by_id[id_].type) for id_ in expressions}
    below: Any = side.relation
    if expressions:
        plain = {id_ for id_ in by_id if id_ not in expressions}
        passed = [column for column in side.relation.columns if column.id in side.needed | plain]
        computed = [Assignment(renamed[id_], expression) for id_, expression in expressions.items()]
        below = logical.Project(below, (*(Assignment(column, column) for column in passed), *computed))
    grouped = logical.Aggregate(below, keys, ())
    if _tells_rows_apart(node.keys, _with_relation(join, side.relation, grouped), above):
        calls, results = _whole_calls(node.calls, renamed, side, context)
        joined = _with_relation(join, side.relation, replace(grouped, calls=calls))
        items = [Assignment(key, above.get(key.id, key)) for key in node.keys]
        return logical.Project(joined, (*items, *results))
    split = split_calls(node.calls, context.new_column, renamed)
    source = _with_relation(join, side.relation, replace(grouped, calls=split.lower))
    if above:
        passed = [call.column for call in split.lower]
        items = [Assignment(key, above.get(key.id, key)) for key in node.keys]
        source = logical.Project(source, (*(Assignment(column, column) for column in passed), *items))
    return put_together(node, source, split)


def _whole_calls(
    calls: tuple[AggregateCall, ...], renamed: dict[int, Column], side: _Side, context: ExploreContext
) -> tuple[tuple[AggregateCall, ...], tuple[Assignment, ...]]:
    """Return the calls as they are; a count is 0 and not NULL where an outer join finds no row of the side."""
    moved: list[AggregateCall] = []
    results: list[Assignment] = []
    for call in calls:
        argument = None if call.argument is None else renamed.get(call.argument.id, call.argument)
        column = call.column
        value: Expression = column
        if call.function == "count" and side.may_be_missing:
            column = context.new_column(call.column.name, call.column.type)
            value = Call("coalesce", (column, Literal(0, column.type)), column.type)
        moved.append(replace(call, column=column, argument=argument))
        results.append(Assignment(call.column, value))
    return tuple(moved), tuple(results)


def _with_relation(node: Any, old: Any, new: Any) -> Any:
    if node is old:
        return new
    if not isinstance(node, logical.Join):
        return node
    left = _with_relation(node.left, old, new)
    # Nothing is replaced on both sides, though both may be the same tree.
    right = node.right if left is not node.left else _with_relation(node.right, old, new)
    return node if left is node.left and right is node.right else replace(node, left=left, right=right)


def _tells_rows_apart(keys: tuple[Column, ...], joined: Any, above: dict[int, Expression]) -> bool:
    """Test whether the keys are unique among the joined rows, so that nothing is left to aggregate."""
    sources = [above.get(key.id, key) for key in keys]
    own = {source.id for source in sources if isinstance(source, Column)}
    return bool(keys) and is_unique(joined, _with_equals(joined, own))


def _with_equals(node: Any, keys: set[int]) -> set[int]:
    """Add the columns that INNER joins set equal to them."""
    found = set(keys)
    pairs = [
        {argument.id for argument in part.arguments if isinstance(argument, Column)}
        for join in _inner_joins(node)
        for part in conjuncts(join.condition)
        if isinstance(part, Call) and part.function == "=" and all(isinstance(each, Column) for each in part.arguments)
    ]
    for _ in pairs:
        for pair in pairs:
            if pair & found:
                found |= pair
    return found


def _inner_joins(node: Any) -> Iterator[logical.Join]:
    if isinstance(node, logical.Join) and node.kind is JoinKind.INNER:
        yield node
        yield from _inner_joins(node.left)
        yield from _inner_joins(node.right)
