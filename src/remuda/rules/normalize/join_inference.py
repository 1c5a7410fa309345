"""Normalise rules for what follows from a join's condition for one of its sides."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from remuda.expr import Column, Expression, substitute
from remuda.plan import logical
from remuda.plan.joins import JoinKind
from remuda.rules.join_keys import split_condition
from remuda.rules.normalize.conditions import implied_by_sides
from remuda.rules.normalize.restrict import known_predicates, restrict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remuda.plan.logical import LogicalNode

RIGHT_MUST_MATCH = frozenset(JoinKind) - {JoinKind.RIGHT, JoinKind.FULL}
"""Kinds in which a right row that meets no left row's condition is as if it were not there."""
LEFT_MUST_MATCH = frozenset({JoinKind.INNER, JoinKind.RIGHT, JoinKind.SEMI})


def infer_transitive_equality(node: LogicalNode) -> LogicalNode | None:
    """Join(Scan(l, a = 5), Scan(r), l.a = r.b) → Join(Scan(l, a = 5), Scan(r, b = 5), l.a = r.b), and for < and IN.

    A row of r with another b has no match, so it need not be read: r is pruned and looked up as l is. From left to
    right for every kind that drops right rows without a match, from right to left for INNER, RIGHT and SEMI.
    """
    if not isinstance(node, logical.Join):
        return None
    equalities, _ = split_condition(node.condition, node.left.columns, node.right.columns)
    pairs = [
        (equality.left, equality.right)
        for equality in equalities
        if isinstance(equality.left, Column) and isinstance(equality.right, Column) and not equality.null_safe
    ]
    for predicate in _carried(node.left, pairs) if node.kind in RIGHT_MUST_MATCH else ():
        right = restrict(node.right, predicate)
        if right is not None:
            return replace(node, right=right)
    turned = [(right, left) for left, right in pairs]
    for predicate in _carried(node.right, turned) if node.kind in LEFT_MUST_MATCH else ():
        left = restrict(node.left, predicate)
        if left is not None:
            return replace(node, left=left)
    return None


def _carried(source: object, pairs: list[tuple[Column, Column]]) -> Iterable[Expression]:
    for here, there in pairs:
        for predicate in known_predicates(source, frozenset({here.id})):
            yield substitute(predicate, {here.id: there})


def infer_side_of_or(node: LogicalNode) -> LogicalNode | None:
    """Join(l, r, (l.a = 1 AND r.b = 2) OR (l.a = 3 AND r.b = 4)) → the same over Scan(l, a = 1 OR a = 3), and r.

    The condition stays; what it says of one side alone is asked of that side before.
    """
    if not isinstance(node, logical.Join) or node.condition is None:
        return None
    if node.kind in RIGHT_MUST_MATCH:
        for implied in implied_by_sides(node.condition, {column.id for column in node.right.columns}):
            right = restrict(node.right, implied)
            if right is not None:
                return replace(node, right=right)
    if node.kind in LEFT_MUST_MATCH:
        for implied in implied_by_sides(node.condition, {column.id for column in node.left.columns}):
            left = restrict(node.left, implied)
            if left is not None:
                return replace(node, left=left)
    return None
