"""Sub-queries that have exactly one row, or one that a condition may take away: they become columns of the outer row.

    SELECT ... FROM orders AS o WHERE o.amount > (SELECT COUNT(*) + 1 FROM items WHERE items.order = o.id)

Items are counted by `order` once, orders joined with that by a LEFT join, COUNT is 0 where nothing was found, and
`+ 1` is computed after the join. No error of "more than one row" is possible, and none is checked for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from remuda.dataclass import dataclass
from remuda.expr import FALSE, TRUE, Call, Case, Expression, Literal, conjunction, is_volatile, substitute
from remuda.plan import logical
from remuda.plan.joins import JoinKind
from remuda.plan.logical import Assignment
from remuda.rules.decorrelate.free_columns import free_columns, with_defaults
from remuda.rules.decorrelate.pull_up import PullUp
from remuda.rules.decorrelate.push_domain import PushDomain
from remuda.types import BOOLEAN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from remuda.expr import Column
    from remuda.plan.logical import LogicalNode
    from remuda.rules.construct import NewColumns


@dataclass(frozen=True, slots=True)
class _OneRow:
    """The row of `source`, where `guard` is true: `meanings` are the sub-query's columns in terms of it."""

    source: logical.Aggregate | None
    meanings: Mapping[int, Expression]
    guard: Expression | None = None


def join_one_row(apply: logical.Apply, outer: Sequence[Column], new_columns: NewColumns) -> LogicalNode | None:
    """Return the Apply as a projection over its left side and the one row; None where there may be several."""
    row = _one_row(apply.right)
    if row is None:
        return None
    beside = apply.left if row.source is None else _beside(apply, row.source, outer, new_columns)
    return _finish(apply, row, beside)  # type: ignore[arg-type]


def _one_row(node: Any) -> _OneRow | None:
    match node:
        case logical.Aggregate(keys=()):
            return _OneRow(node, {column.id: column for column in node.columns})
        case logical.Values(rows=(row,)):
            return _OneRow(None, {column.id: value for column, value in zip(node.columns, row, strict=True)})
        case logical.Sort():
            return _one_row(node.input)
        case logical.Limit(count=Literal(value=int(count)), offset=None) if count > 0:
            return _one_row(node.input)
        case logical.Project():
            below = _one_row(node.input)
            if below is None or any(is_volatile(item.expression) for item in node.assignments):
                return None
            items = {item.column.id: substitute(item.expression, below.meanings) for item in node.assignments}
            return replace(below, meanings=items)
        case logical.Filter():
            below = _one_row(node.input)
            if below is None:
                return None
            guards = [] if below.guard is None else [below.guard]
            return replace(below, guard=conjunction([*guards, substitute(node.condition, below.meanings)]))
        case _:
            return None


def _beside(
    apply: logical.Apply, aggregate: logical.Aggregate, outer: Sequence[Column], new_columns: NewColumns
) -> LogicalNode:
    """Join every left row with its row of the aggregate."""
    left: LogicalNode = apply.left  # type: ignore[assignment]
    free = free_columns(aggregate)
    needed = [column for column in outer if column.id in free]
    if not needed:
        return logical.Join(JoinKind.INNER, left, aggregate)
    grouped = PullUp(frozenset(column.id for column in needed), new_columns).group(aggregate)
    if grouped is not None:
        node, correlated = grouped
        own = {column.id: column for column in needed}
        predicates = [substitute(predicate, own) for predicate in correlated]
    else:
        pushing = PushDomain(left, needed, new_columns, apply.span)
        below = pushing.push(aggregate.input)
        node, predicates = pushing.group(aggregate, below), pushing.equalities(below)
    defaulted, items = with_defaults(node, node.calls, new_columns)
    joined = logical.Join(JoinKind.LEFT, left, defaulted, conjunction(predicates))
    return logical.Project(joined, (*(Assignment(column, column) for column in left.columns), *items))


def _finish(apply: logical.Apply, row: _OneRow, beside: LogicalNode) -> LogicalNode:
    """Apply the kind of the Apply to a row that exists exactly where the guard is true."""
    own: dict[int, Expression] = {column.id: column for column in apply.left.columns}
    meanings = {id_: substitute(expression, own) for id_, expression in row.meanings.items()}
    present = [] if row.guard is None else [substitute(row.guard, own)]
    if apply.condition is not None:
        present.append(substitute(apply.condition, meanings))
    guard = conjunction(present)
    passed = tuple(Assignment(column, column) for column in apply.left.columns)
    match apply.kind:
        case JoinKind.INNER | JoinKind.LEFT | JoinKind.SINGLE:
            keeps = apply.kind is not JoinKind.INNER
            source = beside if guard is None or keeps else logical.Filter(beside, guard)
            if guard is None or not keeps:
                items = tuple(Assignment(column, meanings[column.id]) for column in apply.right.columns)
            else:
                # A column that the sub-query never has NULL is NULL where there is no row.
                delivered = apply.columns[len(apply.left.columns) :]
                items = tuple(Assignment(column, _where(guard, meanings[column.id])) for column in delivered)
            return logical.Project(source, (*passed, *items))
        case JoinKind.MARK:
            assert apply.mark is not None
            compared = TRUE if apply.compared is None else substitute(apply.compared, meanings)
            mark = compared if guard is None else Case(((guard, compared),), FALSE, BOOLEAN)
            return logical.Project(beside, (*passed, Assignment(apply.mark, mark)))
        case JoinKind.SEMI:
            return beside if guard is None else logical.Filter(beside, guard)
        case _:
            assert apply.kind is JoinKind.ANTI, "a right row belongs to one left row"
            absent: Expression = FALSE if guard is None else Call("is not true", (guard,), BOOLEAN)
            return logical.Filter(beside, absent)


def _where(guard: Expression, value: Expression) -> Expression:
    return Case(((guard, value),), Literal(None, value.type), value.type)
