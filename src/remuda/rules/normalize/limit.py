"""Normalise rules for trees with a Limit at the root."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from remuda.expr import Column, Expression, Literal, call, coerce, is_volatile, substitute
from remuda.plan import logical
from remuda.plan.joins import JoinKind
from remuda.rules.tree_properties import has_at_most_one_row, has_exactly_one_row
from remuda.types import BIGINT

if TYPE_CHECKING:
    from remuda.plan.logical import LogicalNode


_MAXIMUM = 2**63 - 1


def merge_sort_into_limit(node: LogicalNode) -> LogicalNode | None:
    """Limit(Sort(x, order), n) → Limit(x, n, order): the first rows of an order need not be found by sorting all."""
    if not (isinstance(node, logical.Limit) and not node.collation and isinstance(node.input, logical.Sort)):
        return None
    return logical.Limit(node.input.input, node.count, node.offset, node.input.collation)


def empty_zero_limit(node: LogicalNode) -> LogicalNode | None:
    """Limit(x, 0) → no rows."""
    if isinstance(node, logical.Limit) and isinstance(node.count, Literal) and node.count.value == 0:
        return logical.Values(node.columns, ())
    return None


def remove_limit_of_one_row(node: LogicalNode) -> LogicalNode | None:
    """Limit(x, n) → x where x has at most one row and n is at least 1; an order of one row is none."""
    if not isinstance(node, logical.Limit) or node.offset is not None:
        return None
    if not (isinstance(node.count, Literal) and isinstance(node.count.value, int) and node.count.value > 0):
        return None
    return node.input if has_at_most_one_row(node.input) else None  # type: ignore[return-value]


def merge_limits(node: LogicalNode) -> LogicalNode | None:
    """Limit(Limit(x, 10, offset 5), 3, offset 2) → Limit(x, 3, offset 7), where numbers are known and the order is one.

    Not where the outer one has an order of its own: it counts the inner one's rows in another order.
    """
    if not (isinstance(node, logical.Limit) and isinstance(node.input, logical.Limit)):
        return None
    inner = node.input
    if node.collation and node.collation != inner.collation:
        return None
    outer_count, outer_offset = _number(node.count, _MAXIMUM), _number(node.offset, 0)
    inner_count, inner_offset = _number(inner.count, _MAXIMUM), _number(inner.offset, 0)
    if outer_count is None or outer_offset is None or inner_count is None or inner_offset is None:
        return None
    left = inner_count if inner_count == _MAXIMUM else max(inner_count - outer_offset, 0)
    count, offset = min(left, outer_count), min(inner_offset + outer_offset, _MAXIMUM)
    return logical.Limit(
        inner.input,
        None if count == _MAXIMUM else Literal(count, BIGINT),
        None if offset == 0 else Literal(offset, BIGINT),
        inner.collation,
    )


def _number(expression: Expression | None, absent: int) -> int | None:
    """Return the value of LIMIT or OFFSET; None where it is known only at execution."""
    if expression is None:
        return absent
    return expression.value if isinstance(expression, Literal) and isinstance(expression.value, int) else None


def push_limit_past_union(node: LogicalNode) -> LogicalNode | None:
    """Limit(Union(a, b), n) → Limit(Union(Limit(a, n), Limit(b, n)), n): no input gives more than the first n.

    With an OFFSET the inputs give that many more. The outer limit stays.
    """
    if not (isinstance(node, logical.Limit) and isinstance(node.input, logical.Union)):
        return None
    union, count = node.input, _needed_rows(node)
    if count is None:
        return None
    inputs: list[Any] = []
    for part, source in zip(union.inputs, union.sources, strict=True):
        names = {column.id: old.id for column, old in zip(union.columns, source, strict=True)}
        order = tuple(replace(key, column=names[key.column]) for key in node.collation)
        inputs.append(_limited(part, count, order))
    if all(one is other for one, other in zip(inputs, union.inputs, strict=True)):
        return None
    return replace(node, input=replace(union, inputs=tuple(inputs)))


def push_limit_past_left_join(node: LogicalNode) -> LogicalNode | None:
    """Limit(Join LEFT(l, r), n, order of l) → Limit(Join LEFT(Limit(l, n), r), n): each left row gives a row or more.

    MARK and SINGLE joins too, and INNER ones with exactly one right row and no condition. Not by an order of r, and not
    for other INNER joins: left rows without a match give none.
    """
    if not (isinstance(node, logical.Limit) and isinstance(node.input, logical.Join)):
        return None
    join, count = node.input, _needed_rows(node)
    keeps = join.kind in {JoinKind.LEFT, JoinKind.MARK, JoinKind.SINGLE} or (
        join.kind is JoinKind.INNER and join.condition is None and has_exactly_one_row(join.right)
    )
    if count is None or not keeps:
        return None
    if not {key.column for key in node.collation} <= {column.id for column in join.left.columns}:
        return None
    left = _limited(join.left, count, node.collation)
    return None if left is join.left else replace(node, input=replace(join, left=left))


def push_limit_past_window(node: LogicalNode) -> LogicalNode | None:
    """Limit(Window(x, order, ROW_NUMBER()), n, order) → Limit(Window(Limit(x, n, order), order, ...), n, order).

    Legal where a row's value depends on the rows before it alone, as that of RANK does, and the two orders agree as far
    as both go. Not with PARTITION BY, and not for SUM(...) OVER (), which sees all rows.
    """
    if not (isinstance(node, logical.Limit) and isinstance(node.input, logical.Window)):
        return None
    window, count = node.input, _needed_rows(node)
    if count is None or window.partition or not all(each.function in _COUNTING for each in window.calls):
        return None
    longer = max(window.order, node.collation, key=len)
    if not all(longer[: len(order)] == order for order in (window.order, node.collation)) or not window.order:
        return None
    if not {key.column for key in longer} <= {column.id for column in window.input.columns}:
        return None
    below = _limited(window.input, count, longer)
    return None if below is window.input else replace(node, input=replace(window, input=below))


_COUNTING = frozenset({"row_number", "rank", "dense_rank"})
"""Window functions of the rows up to this one."""


def push_limited_project_past_union(node: LogicalNode) -> LogicalNode | None:
    """Limit(Project(Union(a, b), k := f(c)), n, order k) → Limit(Union(Project(a, k := f(c)), ...), n, order k).

    So that each input gives no more than its first n. Only where the order is by something computed: otherwise the
    limit goes below the projection.
    """
    if not (isinstance(node, logical.Limit) and isinstance(node.input, logical.Project)):
        return None
    project, union = node.input, node.input.input
    if not isinstance(union, logical.Union) or _needed_rows(node) is None:
        return None
    computed = {item.column.id for item in project.assignments if not isinstance(item.expression, Column)}
    if not any(key.column in computed for key in node.collation):
        return None
    if any(is_volatile(item.expression) for item in project.assignments):
        return None
    inputs: list[Any] = []
    for part, source in zip(union.inputs, union.sources, strict=True):
        names = {column.id: old for column, old in zip(union.columns, source, strict=True)}
        items = (replace(item, expression=substitute(item.expression, names)) for item in project.assignments)
        inputs.append(logical.Project(part, tuple(items)))
    return replace(node, input=logical.Union(tuple(inputs), project.columns, (project.columns,) * len(inputs)))


def _needed_rows(node: logical.Limit) -> Expression | None:
    """Return how many of the first rows LIMIT and OFFSET need to see."""
    if node.offset is None:
        return node.count
    if node.count is None:
        return None
    count, offset = _number(node.count, _MAXIMUM), _number(node.offset, 0)
    if count is None or offset is None:
        return _saturated_sum(node.count, node.offset)
    return None if count + offset >= _MAXIMUM else Literal(count + offset, BIGINT)


def _saturated_sum(count: Expression, offset: Expression) -> Expression | None:
    """Add numbers that are known at execution. LIMIT 9223372036854775807, for all rows, must not overflow."""
    room = call("-", Literal(_MAXIMUM, BIGINT), coerce(offset, BIGINT))
    kept = None if room is None else call("least", coerce(count, BIGINT), room)
    return None if kept is None else call("+", kept, coerce(offset, BIGINT))


def _limited(node: Any, count: Expression, order: Any) -> Any:
    """Limit the relation, unless it is limited already or too short."""
    if _is_short(node, count) or has_at_most_one_row(node):
        return node
    return logical.Limit(node, count, None, order)


def _is_short(node: Any, count: Expression) -> bool:
    match node:
        case logical.Limit():
            return node.count == count or isinstance(node.count, Literal)
        case logical.Project() | logical.Sort():
            return _is_short(node.input, count)
        case _:
            return isinstance(node, logical.Values)


def push_limit_past_project(node: LogicalNode) -> LogicalNode | None:
    """Limit(Project(x, c := e), n, order) → Project(Limit(x, n, order), c := e), where the order is by columns of x.

    Only over a Union, a Join, a Window or a Limit, where it has further to go: elsewhere the projection is done on the
    members and the limit after it.
    """
    if not (isinstance(node, logical.Limit) and isinstance(node.input, logical.Project)):
        return None
    project = node.input
    if not isinstance(project.input, logical.Union | logical.Join | logical.Limit | logical.Window):
        return None
    meanings = {item.column.id: item.expression for item in project.assignments}
    order = []
    for key in node.collation:
        source = meanings[key.column]
        if not isinstance(source, Column):
            return None
        order.append(replace(key, column=source.id))
    return replace(project, input=logical.Limit(project.input, node.count, node.offset, tuple(order)))
