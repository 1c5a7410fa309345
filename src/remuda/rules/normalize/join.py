"""Normalise rules for trees with a Join at the root."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from remuda.expr import TRUE, Column, Expression, Literal, columns_of, conjunction, conjuncts, substitute
from remuda.plan import logical
from remuda.plan.joins import JoinKind
from remuda.plan.logical import Assignment
from remuda.rules.construct import filtered
from remuda.rules.normalize.filter_join import inner_kind
from remuda.rules.normalize.join_inference import LEFT_MUST_MATCH, RIGHT_MUST_MATCH
from remuda.rules.normalize.simplify import factor_common, simplify_asked
from remuda.rules.tree_properties import (
    has_at_most_one_row,
    has_exactly_one_row,
    matches_at_most_once,
    not_null_columns,
)
from remuda.types import BIGINT

if TYPE_CHECKING:
    from remuda.plan.logical import LogicalNode, Relation


def turn_right_join_left(node: LogicalNode) -> LogicalNode | None:
    """Join RIGHT(l, r, c) → Join LEFT(r, l, c): one kind less for all other rules.

    Columns are known by their ids, so that nothing above asks in which order they come.
    """
    if not isinstance(node, logical.Join) or node.kind is not JoinKind.RIGHT:
        return None
    return logical.Join(JoinKind.LEFT, node.right, node.left, node.condition)


def simplify_join_condition(node: LogicalNode) -> LogicalNode | None:
    """Join(l, r, c) → Join(l, r, simpler c); a condition that is TRUE goes.

    Columns that are never NULL in their side are not NULL in the condition, whatever the join makes of them above it.
    """
    if not isinstance(node, logical.Join) or node.condition is None:
        return None
    condition: Expression | None = simplify_asked(
        node.condition, lambda: not_null_columns(node.left) | not_null_columns(node.right)
    )
    if condition is node.condition:
        return None
    return replace(node, condition=None if condition == TRUE else condition)


def factor_join_condition(node: LogicalNode) -> LogicalNode | None:
    """Join(l, r, (a AND b) OR (a AND c)) → Join(l, r, a AND (b OR c)): `a` may be what to look up by."""
    if not isinstance(node, logical.Join) or node.condition is None:
        return None
    factored = factor_common(node.condition)
    return None if factored is None else replace(node, condition=factored)


def empty_false_join(node: LogicalNode) -> LogicalNode | None:
    """Join(l, r, FALSE or NULL) → the join with a right side without rows; for a RIGHT join, with such a left side.

    Not for FULL, which keeps the rows of both.
    """
    if not isinstance(node, logical.Join) or node.kind is JoinKind.FULL:
        return None
    if not any(isinstance(part, Literal) and not part.value for part in conjuncts(node.condition)):
        return None
    if node.kind is JoinKind.RIGHT:
        return replace(node, left=logical.Values(node.left.columns, ()), condition=None)
    return replace(node, right=logical.Values(node.right.columns, ()), condition=None)


def push_join_condition_to_side(node: LogicalNode) -> LogicalNode | None:
    """Join(l, r, p(l) AND q(r) AND s) → Join(Filter(l, p), Filter(r, q), s).

    Legal for a side whose rows need a match to come out: both of INNER and SEMI, the right of LEFT, ANTI, MARK and
    SINGLE, the left of RIGHT. Not `ON l.a = 1` of a LEFT join: rows with another `a` come out, with NULLs.
    """
    if not isinstance(node, logical.Join) or node.condition is None:
        return None
    left_ids = {column.id for column in node.left.columns}
    right_ids = {column.id for column in node.right.columns}
    to_left: list[Expression] = []
    to_right: list[Expression] = []
    stays: list[Expression] = []
    for part in conjuncts(node.condition):
        named = columns_of(part).keys()
        if node.kind in LEFT_MUST_MATCH and named <= left_ids:
            to_left.append(part)
        elif node.kind in RIGHT_MUST_MATCH and named and named <= right_ids:
            to_right.append(part)
        else:
            stays.append(part)
    if not to_left and not to_right:
        return None
    left, right = filtered(node.left, to_left), filtered(node.right, to_right)  # type: ignore[arg-type]
    return replace(node, left=left, right=right, condition=conjunction(stays))


def turn_outer_input_inner(node: LogicalNode) -> LogicalNode | None:
    """Join(Join LEFT(a, b), c, b.x = c.y) → Join(Join INNER(a, b), c, b.x = c.y): rows with NULL for b match nothing.

    Legal for an input whose rows need a match; not for the left one of a LEFT join.
    """
    if not isinstance(node, logical.Join) or node.condition is None:
        return None
    if node.kind in LEFT_MUST_MATCH and isinstance(node.left, logical.Join):
        kind = inner_kind(node.left, node.condition)
        if kind is not None:
            return replace(node, left=replace(node.left, kind=kind))
    if node.kind in RIGHT_MUST_MATCH and isinstance(node.right, logical.Join):
        kind = inner_kind(node.right, node.condition)
        if kind is not None:
            return replace(node, right=replace(node.right, kind=kind))
    return None


def turn_single_join_left(node: LogicalNode) -> LogicalNode | None:
    """Join SINGLE(l, r, l.a = r.key) → Join LEFT: there is never a second match, so nothing is to be checked."""
    if not isinstance(node, logical.Join) or node.kind is not JoinKind.SINGLE:
        return None
    single = has_at_most_one_row(node.right) or matches_at_most_once(node)
    return replace(node, kind=JoinKind.LEFT) if single else None


def turn_left_join_with_one_row_inner(node: LogicalNode) -> LogicalNode | None:
    """Join LEFT(l, one row) without a condition → Join INNER: every left row has its match."""
    if not isinstance(node, logical.Join) or node.kind is not JoinKind.LEFT or node.condition is not None:
        return None
    return replace(node, kind=JoinKind.INNER) if has_exactly_one_row(node.right) else None


def join_single_row_inner(node: LogicalNode) -> LogicalNode | None:
    """Join SINGLE(l, r) without a condition → Join INNER(l, Join SINGLE(one row, r)): r is the same for all left rows.

    `day = (SELECT DISTINCT ...)` then is a condition of an inner join, which takes part in the choice of the order and
    sinks to the table of `day`. The join of one row still checks that there is no second one, and gives NULLs where
    there is none; it also does where l is empty. Not with a condition: then a left row has matches of its own.
    """
    if not isinstance(node, logical.Join) or node.kind is not JoinKind.SINGLE or node.condition is not None:
        return None
    if has_exactly_one_row(node.left):
        return None
    one_row = logical.Values((), ((),))
    return replace(node, kind=JoinKind.INNER, right=replace(node, left=one_row))


def inline_one_row(node: LogicalNode) -> LogicalNode | None:
    """Join INNER(x, Values(one row), c) → Project(Filter(x, c), columns of x and the row's values); either side."""
    if not isinstance(node, logical.Join) or node.kind is not JoinKind.INNER:
        return None
    for row_side, other in ((node.right, node.left), (node.left, node.right)):
        if not (isinstance(row_side, logical.Values) and len(row_side.rows) == 1):
            continue
        values = {column.id: value for column, value in zip(row_side.columns, row_side.rows[0], strict=True)}
        conditions = [substitute(part, values) for part in conjuncts(node.condition)]
        items = tuple(Assignment(column, values.get(column.id, column)) for column in node.columns)
        source = filtered(other, conditions)  # type: ignore[arg-type]
        return logical.Project(source, items) if items else source
    return None


def pull_renaming_above_join(node: LogicalNode) -> LogicalNode | None:
    """Join(Project(x, b := a), y, c(b)) → Project(Join(x, y, c(a)), b := a, columns of y); the right side likewise.

    Only where the projection computes nothing: it then costs nothing above, and joins meet joins, whose order can be
    chosen. A side that can be missing is NULL either way.
    """
    if not isinstance(node, logical.Join):
        return None
    for side, other in ((node.left, node.right), (node.right, node.left)):
        if not isinstance(side, logical.Project) or not _only_renames(side) or not _are_apart(side.input, other):
            continue
        meanings = {item.column.id: item.expression for item in side.assignments}
        on_left = side is node.left
        joined = replace(
            node,
            left=side.input if on_left else node.left,
            right=node.right if on_left else side.input,
            condition=None if node.condition is None else substitute(node.condition, meanings),
            compared=None if node.compared is None else substitute(node.compared, meanings),
        )
        if not on_left and not node.kind.delivers_right:
            return joined
        return logical.Project(
            joined, tuple(Assignment(column, meanings.get(column.id, column)) for column in node.columns)
        )
    return None


def _only_renames(node: logical.Project) -> bool:
    return bool(node.input.columns) and all(isinstance(item.expression, Column) for item in node.assignments)


def _are_apart(one: Relation, other: Relation) -> bool:
    """Test whether no column is delivered by both: a domain is the left side once more, under names of its own."""
    return {column.id for column in one.columns}.isdisjoint(column.id for column in other.columns)


def remove_distinct_below_semi_join(node: LogicalNode) -> LogicalNode | None:
    """Join SEMI(l, Aggregate(r, keys)) → Join SEMI(l, r), ANTI and MARK likewise: one match or many are the same."""
    if not isinstance(node, logical.Join) or node.kind.delivers_right:
        return None
    below = node.right
    if not isinstance(below, logical.Aggregate) or below.calls or not below.keys:
        return None
    return replace(node, right=below.input) if _are_apart(below.input, node.left) else None


def limit_tested_rows(node: LogicalNode) -> LogicalNode | None:
    """Join SEMI(l, r) without a condition → Join SEMI(l, Limit(r, 1)), ANTI and MARK likewise: EXISTS (SELECT ...).

    Not with a condition or a comparison: another row may be the one that meets it.
    """
    if not isinstance(node, logical.Join) or node.kind.delivers_right:
        return None
    if node.condition is not None or node.compared is not None or has_at_most_one_row(node.right):
        return None
    return replace(node, right=logical.Limit(node.right, Literal(1, BIGINT), None))
