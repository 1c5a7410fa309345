"""Normalise rules for relations of which it does not matter how often a row comes: INNER joins there become SEMI joins.

EXISTS, IN and DISTINCT ask whether a row is there. An INNER join of two relations below them, neither of which is
unique in the columns that are equated, makes a row of each pair: 20,000 order lines of 30 orders, joined with
themselves, make 13 million rows, of which a SEMI join needs 20,000.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from remuda.expr import Column, columns_of
from remuda.plan import logical
from remuda.plan.joins import JoinKind
from remuda.rules.join_keys import split_condition
from remuda.rules.tree_properties import is_unique

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remuda.expr import Expression
    from remuda.plan.logical import LogicalNode


def turn_join_semi_below_semi_join(node: LogicalNode) -> LogicalNode | None:
    """Join SEMI(l, Join INNER(a, b), p(l, a)) → Join SEMI(l, Join SEMI(a, b), p(l, a)), ANTI and MARK likewise.

    Only where each row of `a` may match many of `b` and the other way round. Otherwise the INNER join makes no more
    rows than the larger side has, and its order can be chosen more freely.
    """
    if not isinstance(node, logical.Join) or node.kind.delivers_right:
        return None
    right = _with_semi_joins(node.right, frozenset(columns_of(node.condition, node.compared)))
    return None if right is None else replace(node, right=right)


def turn_join_semi_below_distinct(node: LogicalNode) -> LogicalNode | None:
    """Aggregate(Join INNER(a, b), keys of a) → Aggregate(Join SEMI(a, b), keys of a), as above.

    Not with a call: COUNT, SUM and AVG count each pair.
    """
    if not isinstance(node, logical.Aggregate) or node.calls:
        return None
    below = _with_semi_joins(node.input, frozenset(column.id for column in node.keys))
    return None if below is None else replace(node, input=below)


def _with_semi_joins(node: Any, needed: frozenset[int]) -> LogicalNode | None:
    """Replace joins by SEMI joins where only the existence of rows counts; None where nothing changes."""
    match node:
        case logical.Project():
            kept = tuple(item for item in node.assignments if item.column.id in needed)
            below = _with_semi_joins(node.input, frozenset(columns_of(*(item.expression for item in kept))))
            return None if below is None or not kept else logical.Project(below, kept)
        case logical.Filter():
            below = _with_semi_joins(node.input, needed | _named(node.condition))
            return None if below is None else replace(node, input=below)
        case logical.Join(kind=JoinKind.INNER):
            return _with_semi_join(node, needed)
        case logical.Join(kind=JoinKind.SEMI | JoinKind.ANTI):
            below = _with_semi_joins(node.left, needed | _named(node.condition))
            return None if below is None else replace(node, left=below)
        case _:
            return None


def _with_semi_join(node: logical.Join, needed: frozenset[int]) -> LogicalNode | None:
    if _multiplies(node):
        for kept, tested in ((node.left, node.right), (node.right, node.left)):
            if needed.isdisjoint(column.id for column in tested.columns) and _is_connected(kept):
                return logical.Join(JoinKind.SEMI, kept, tested, node.condition)
    needed |= _named(node.condition)
    left, right = _with_semi_joins(node.left, needed), _with_semi_joins(node.right, needed)
    if left is None and right is None:
        return None
    return replace(node, left=left or node.left, right=right or node.right)


def _is_connected(node: Any) -> bool:
    """Test whether equalities connect all relations here, so that none is joined with another by every pair.

    Of `a, b, c` with `a.x = c.x AND b.y = c.y` it is `c` that connects the others: as the tested side of a SEMI join it
    would leave all pairs of `a` and `b`.
    """
    match node:
        case logical.Project() | logical.Filter():
            return _is_connected(node.input)
        case logical.Join(kind=JoinKind.INNER):
            equalities, _ = split_condition(node.condition, node.left.columns, node.right.columns)
            return bool(equalities) and _is_connected(node.left) and _is_connected(node.right)
        case logical.Join():
            return _is_connected(node.left)
        case _:
            return True


def _multiplies(node: logical.Join) -> bool:
    """Test whether rows of both sides may have several matches."""
    equalities, _ = split_condition(node.condition, node.left.columns, node.right.columns)
    return not is_unique(node.left, _ids(each.left for each in equalities)) and not is_unique(
        node.right, _ids(each.right for each in equalities)
    )


def _ids(expressions: Iterable[Expression]) -> frozenset[int]:
    return frozenset(expression.id for expression in expressions if isinstance(expression, Column))


def _named(expression: Expression | None) -> frozenset[int]:
    return frozenset(columns_of(expression))
