"""Normalise rules for trees with a Filter at the root."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from remuda.expr import (
    TRUE,
    Call,
    Column,
    Expression,
    Literal,
    can_fail,
    columns_of,
    conjunction,
    conjuncts,
    is_constant,
    is_volatile,
    substitute,
)
from remuda.plan import logical
from remuda.rules.construct import filtered
from remuda.rules.normalize.simplify import factor_common, simplify_asked, told_apart
from remuda.rules.tree_properties import not_null_columns

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from remuda.plan.logical import LogicalNode


def merge_filters(node: LogicalNode) -> LogicalNode | None:
    """Filter(Filter(x, q), p) → Filter(x, q AND p).

    Legal always: a row passes both or is gone, whichever is evaluated first.
    """
    if not (isinstance(node, logical.Filter) and isinstance(node.input, logical.Filter)):
        return None
    both = conjunction([node.input.condition, node.condition])
    assert both is not None
    return logical.Filter(node.input.input, both)


def remove_true_filter(node: LogicalNode) -> LogicalNode | None:
    """Filter(x, TRUE) → x."""
    if isinstance(node, logical.Filter) and node.condition == TRUE:
        return node.input  # type: ignore[return-value]
    return None


def empty_false_filter(node: LogicalNode) -> LogicalNode | None:
    """Filter(x, FALSE or NULL) → no rows. A condition that is NULL keeps nothing either."""
    if isinstance(node, logical.Filter) and _never_holds(node.condition):
        return logical.Values(node.columns, ())
    if isinstance(node, logical.Scan) and node.filter is not None and _never_holds(node.filter):
        return logical.Values(node.columns, ())
    return None


def _never_holds(condition: Expression) -> bool:
    return any(isinstance(part, Literal) and not part.value for part in conjuncts(condition))


def simplify_filter(node: LogicalNode) -> LogicalNode | None:
    """Filter(x, p) → Filter(x, simpler p): constants folded, NOT at the comparisons, no test that must succeed."""
    if not isinstance(node, logical.Filter):
        return None
    condition = simplify_asked(node.condition, lambda: not_null_columns(node.input))
    return None if condition is node.condition else logical.Filter(node.input, condition)


def factor_filter(node: LogicalNode) -> LogicalNode | None:
    """Filter(x, (a AND b) OR (a AND c)) → Filter(x, a AND (b OR c)): `a` can then sink on its own."""
    if not isinstance(node, logical.Filter):
        return None
    factored = factor_common(node.condition)
    return None if factored is None else logical.Filter(node.input, factored)


def push_filter_past_project(node: LogicalNode) -> LogicalNode | None:
    """Filter(Project(x, c := e), p(c)) → Project(Filter(x, p(e)), c := e).

    Legal because an expression has one value for a row. Not where e is random(): p would be evaluated on another number
    than the one that comes out. Not past a Limit below the Project: it would change which rows are counted.
    """
    if not (isinstance(node, logical.Filter) and isinstance(node.input, logical.Project)):
        return None
    project = node.input
    meanings = {assignment.column.id: assignment.expression for assignment in project.assignments}
    drawn = {id_ for id_, expression in meanings.items() if is_volatile(expression)}
    if not drawn:
        below = logical.Filter(project.input, substitute(node.condition, meanings))
        return logical.Project(below, project.assignments)
    movable, stays = _split(node.condition, meanings.keys() - drawn)
    if not movable:
        return None
    lower = filtered(project.input, [substitute(part, meanings) for part in movable])  # type: ignore[arg-type]
    return filtered(logical.Project(lower, project.assignments), stays)


def push_filter_past_aggregate(node: LogicalNode) -> LogicalNode | None:
    """Filter(Aggregate(x, keys), p) → Filter(Aggregate(Filter(x, p1), keys), p2), p1 naming keys alone.

    Legal because p1 is the same for all rows of a group. Not for HAVING SUM(a) > 1, and not without keys: the one row
    of an empty aggregate would vanish or appear.
    """
    if not (isinstance(node, logical.Filter) and isinstance(node.input, logical.Aggregate) and node.input.keys):
        return None
    aggregate = node.input
    keys = {column.id for column in aggregate.keys}
    below, above = _split(node.condition, keys, grouped=True)
    if not below:
        return None
    lower = logical.Aggregate(filtered(aggregate.input, below), aggregate.keys, aggregate.calls)  # type: ignore[arg-type]
    return filtered(lower, above)


def _split(
    condition: Expression, keys: AbstractSet[int], *, grouped: bool = False
) -> tuple[list[Expression], list[Expression]]:
    """Split conjuncts into those that name only `keys`, and the others.

    Not one that can fail after one of the others: it would meet rows that the other excludes. Where the keys are those
    of groups, not one that tells -0.0 from 0.0, for both are in one group.
    """
    below: list[Expression] = []
    above: list[Expression] = []
    for part in conjuncts(condition):
        named = columns_of(part).keys()
        movable = named and named <= keys and not (above and can_fail(part)) and not (grouped and told_apart(part))
        (below if movable else above).append(part)
    return below, above


def push_filter_past_window(node: LogicalNode) -> LogicalNode | None:
    """Filter(Window(x, partition), p) → Filter(Window(Filter(x, p1), partition), p2), p1 naming the partition alone.

    Legal because p1 drops whole partitions. Not `a > 5` where a is no partition column: the rows with a smaller one
    count for the others' ranks.
    """
    if not (isinstance(node, logical.Filter) and isinstance(node.input, logical.Window)):
        return None
    window = node.input
    below, above = _split(node.condition, {column.id for column in window.partition}, grouped=True)
    if not below:
        return None
    return filtered(replace(window, input=filtered(window.input, below)), above)  # type: ignore[arg-type]


def push_filter_past_union(node: LogicalNode) -> LogicalNode | None:
    """Filter(Union(a, b), p) → Union(Filter(a, p), Filter(b, p)), p over each input's own columns."""
    if not (isinstance(node, logical.Filter) and isinstance(node.input, logical.Union)):
        return None
    union = node.input
    inputs = tuple(
        logical.Filter(
            part,
            substitute(node.condition, {column.id: old for column, old in zip(union.columns, source, strict=True)}),
        )
        for part, source in zip(union.inputs, union.sources, strict=True)
    )
    return replace(union, inputs=inputs)


def push_filter_past_expand(node: LogicalNode) -> LogicalNode | None:
    """Filter(Expand(x), p) → Expand(Filter(x, p)), where p means the same in all projections.

    Not `a = 1` under ROLLUP (a): in the projection of the grand total it is NULL = 1.
    """
    if not (isinstance(node, logical.Filter) and isinstance(node.input, logical.Expand)):
        return None
    expand = node.input
    below: list[Expression] = []
    above: list[Expression] = []
    for part in conjuncts(node.condition):
        named = columns_of(part).keys()
        meanings = {
            substitute(part, {column.id: value for column, value in zip(expand.columns, row, strict=True)})
            for row in expand.projections
        }
        if named and len(meanings) == 1 and not (above and can_fail(part)):
            below.extend(meanings)
        else:
            above.append(part)
    if not below:
        return None
    return filtered(replace(expand, input=filtered(expand.input, below)), above)  # type: ignore[arg-type]


def push_filter_past_series(node: LogicalNode) -> LogicalNode | None:
    """Filter(Series(x), p) → Filter(Series(Filter(x, p1)), p2), p1 naming columns of x alone."""
    if not (isinstance(node, logical.Filter) and isinstance(node.input, logical.Series)):
        return None
    series = node.input
    below, above = _split(node.condition, {column.id for column in series.input.columns})
    if not below:
        return None
    return filtered(replace(series, input=filtered(series.input, below)), above)  # type: ignore[arg-type]


def push_filter_into_scan(node: LogicalNode) -> LogicalNode | None:
    """Filter(Scan(m, q), p) → Scan(m, q AND p), so that indexes and pruning see all of it."""
    if not (isinstance(node, logical.Filter) and isinstance(node.input, logical.Scan)):
        return None
    scan = node.input
    return logical.Scan(scan.map, scan.columns, conjunction([*conjuncts(scan.filter), node.condition]))


def inline_constants(node: LogicalNode) -> LogicalNode | None:
    """Scan(m, a = b AND b = 5) → Scan(m, a = 5 AND b = 5).

    Legal where both columns have one type: a row that passes has b equal to the constant, so `a = b` asks the same as
    `a = 5`. It makes filters partition-complete and usable by indexes.
    """
    if not isinstance(node, logical.Scan) or node.filter is None:
        return None
    parts = conjuncts(node.filter)
    constants: dict[int, Expression] = {}
    for part in parts:
        if (
            isinstance(part, Call)
            and part.function == "="
            and isinstance(part.arguments[0], Column)
            and is_constant(part.arguments[1])
        ):
            constants.setdefault(part.arguments[0].id, part.arguments[1])
    inlined = tuple(_inline(part, constants) for part in parts)
    return None if inlined == parts else logical.Scan(node.map, node.columns, conjunction(inlined))


def _inline(part: Expression, constants: dict[int, Expression]) -> Expression:
    match part:
        case Call(function="=", arguments=(Column() as left, Column() as right)):
            if right.id in constants:
                return Call("=", (left, constants[right.id]), part.type, part.span)
            if left.id in constants:
                return Call("=", (right, constants[left.id]), part.type, part.span)
    return part
