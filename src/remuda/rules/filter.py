"""Normalise rules for trees with a Filter at the root."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.expr import (
    TRUE,
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    conjunction,
    conjuncts,
    is_constant,
    substitute,
)
from remuda.plan import logical

if TYPE_CHECKING:
    from remuda.plan.logical import LogicalNode


def merge_filters(node: LogicalNode) -> LogicalNode | None:
    """Filter(Filter(x, q), p) → Filter(x, q AND p).

    Legal always: a row passes both or is gone, whichever is asked first.
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


def push_filter_past_project(node: LogicalNode) -> LogicalNode | None:
    """Filter(Project(x, c := e), p(c)) → Project(Filter(x, p(e)), c := e).

    Legal because expressions are deterministic. Not past a Limit below the Project: it would change which rows are
    counted.
    """
    if not (isinstance(node, logical.Filter) and isinstance(node.input, logical.Project)):
        return None
    project = node.input
    meanings = {assignment.column.id: assignment.expression for assignment in project.assignments}
    return logical.Project(logical.Filter(project.input, substitute(node.condition, meanings)), project.assignments)


def push_filter_past_sort(node: LogicalNode) -> LogicalNode | None:
    """Filter(Sort(x), p) → Sort(Filter(x, p)): the rows that stay keep their order."""
    if not (isinstance(node, logical.Filter) and isinstance(node.input, logical.Sort)):
        return None
    return logical.Sort(logical.Filter(node.input.input, node.condition), node.input.collation)


def push_filter_past_aggregate(node: LogicalNode) -> LogicalNode | None:
    """Filter(Aggregate(x, keys), p) → Filter(Aggregate(Filter(x, p1), keys), p2), p1 naming keys alone.

    Legal because p1 is the same for all rows of a group. Not for HAVING SUM(a) > 1, and not without keys: the one row
    of an empty aggregate would vanish or appear.
    """
    if not (isinstance(node, logical.Filter) and isinstance(node.input, logical.Aggregate) and node.input.keys):
        return None
    aggregate = node.input
    keys = {column.id for column in aggregate.keys}
    parts = conjuncts(node.condition)
    movable = [part for part in parts if set(columns_of(part)) <= keys]
    below, above = conjunction(movable), conjunction(part for part in parts if part not in movable)
    if below is None:
        return None
    lower = logical.Aggregate(logical.Filter(aggregate.input, below), aggregate.keys, aggregate.calls)
    return lower if above is None else logical.Filter(lower, above)


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
