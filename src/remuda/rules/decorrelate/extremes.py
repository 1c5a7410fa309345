"""Comparisons with all rows of a sub-query, answered by its least and its greatest value.

    x < ANY (SELECT y ...)    is  x < MAX(y)                          x > ANY  is  x > MIN(y)
    x <> ANY (SELECT y ...)   is  x <> MIN(y) OR x <> MAX(y)          ALL is NOT ANY of the opposite
    EXISTS (SELECT * FROM r WHERE r.y > x)  is  x < MAX(y)

The aggregate has one row, whereas the join would compare each row with each. Where the sub-query has an equality with
the outer row as well, it is looked up by that, perhaps in an index, and stays a join.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.dataclass import dataclass
from remuda.expr import FALSE, TRUE, Call, Case, Column, Literal, columns_of, conjunction, conjuncts, is_volatile
from remuda.plan import logical
from remuda.plan.aggregates import AggregateCall
from remuda.plan.joins import JoinKind
from remuda.plan.logical import Assignment
from remuda.rules.nulls import is_never_null
from remuda.rules.tree_properties import has_at_most_one_row, not_null_columns
from remuda.types import BIGINT, BOOLEAN, Kind

if TYPE_CHECKING:
    from remuda.expr import Expression
    from remuda.plan.logical import LogicalNode
    from remuda.rules.construct import NewColumns

_REVERSED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "<>": "<>"}
_EXTREMES = {"<": ("max",), "<=": ("max",), ">": ("min",), ">=": ("min",), "<>": ("min", "max")}
_WITHOUT_ORDER = {Kind.NULL, Kind.VARBINARY, Kind.INTERVAL_MONTHS, Kind.INTERVAL_TIME}


@dataclass(frozen=True, slots=True)
class _Comparison:
    """`outer operator inner`, of which only `inner` names columns of the sub-query, and only those."""

    operator: str
    outer: Expression
    inner: Expression


def compare_with_extremes(join: logical.Join, new_columns: NewColumns) -> LogicalNode | None:
    """Join MARK(l, r, compared) → Project(Join INNER(l, Aggregate(r, MIN and MAX)), mark := CASE ...)."""
    if join.kind is not JoinKind.MARK or join.mark is None or has_at_most_one_row(join.right):
        return None
    right_ids = {column.id for column in join.right.columns}
    mixed = [part for part in conjuncts(join.condition) if not right_ids.isdisjoint(columns_of(part))]
    guards = [part for part in conjuncts(join.condition) if part not in mixed]
    tests = [*mixed, *conjuncts(join.compared)]
    if len(tests) != 1 or (mixed and join.compared is not None):
        return None
    comparison = _comparison(tests[0], right_ids)
    if comparison is None:
        return None
    is_quantified = join.compared is not None
    return _by_extremes(join, comparison, guards, new_columns, is_quantified=is_quantified)


def _comparison(part: Expression, right_ids: set[int]) -> _Comparison | None:
    if not isinstance(part, Call) or part.function not in _EXTREMES or is_volatile(part):
        return None
    first, second = part.arguments
    if first.type != second.type or first.type.kind in _WITHOUT_ORDER:
        return None
    for outer, inner, operator in ((first, second, part.function), (second, first, _REVERSED[part.function])):
        named = columns_of(inner).keys()
        if named and named <= right_ids and right_ids.isdisjoint(columns_of(outer)):
            return _Comparison(operator, outer, inner)
    return None


def _by_extremes(
    join: logical.Join,
    comparison: _Comparison,
    guards: list[Expression],
    new_columns: NewColumns,
    *,
    is_quantified: bool,
) -> LogicalNode:
    right: Any = join.right
    value = comparison.inner
    if not isinstance(value, Column):
        value = new_columns.add("value", value.type)
        right = logical.Project(right, (Assignment(value, comparison.inner),))
    calls = [
        AggregateCall(new_columns.add(function, value.type), function, value)
        for function in _EXTREMES[comparison.operator]
    ]
    compared = [Call(comparison.operator, (comparison.outer, call.column), BOOLEAN) for call in calls]
    met: Expression = compared[0] if len(compared) == 1 else Call("or", tuple(compared), BOOLEAN)
    branches: list[tuple[Expression, Expression]] = []
    if guards:
        branches.append((Call("is not true", (conjunction(guards) or TRUE,), BOOLEAN), FALSE))
    if is_quantified:
        never_null = is_never_null(comparison.inner, not_null_columns(join.right))
        empty, unknown = _nulls(comparison.outer, value, calls, new_columns, never_null=never_null)
        branches += [(empty, FALSE), (met, TRUE), (unknown, Literal(None, BOOLEAN))]
    else:
        branches.append((met, TRUE))
    row = logical.Aggregate(right, (), tuple(calls))
    beside = logical.Join(JoinKind.INNER, join.left, row)
    passed = (Assignment(column, column) for column in join.left.columns)
    assert join.mark is not None
    return logical.Project(beside, (*passed, Assignment(join.mark, Case(tuple(branches), FALSE, BOOLEAN))))


def _nulls(
    outer: Expression, value: Column, calls: list[AggregateCall], new_columns: NewColumns, *, never_null: bool
) -> tuple[Expression, Expression]:
    """Return the conditions for a sub-query without a row and for an unknown result; may add calls that count NULLs."""
    outer_null = Call("is null", (outer,), BOOLEAN)
    if never_null:
        return Call("is null", (calls[0].column,), BOOLEAN), outer_null
    rows = AggregateCall(new_columns.add("rows", BIGINT, nullable=False), "count")
    present = AggregateCall(new_columns.add("present", BIGINT, nullable=False), "count", value)
    calls += [rows, present]
    some_null = Call("<", (present.column, rows.column), BOOLEAN)
    return Call("=", (rows.column, Literal(0, BIGINT)), BOOLEAN), Call("or", (outer_null, some_null), BOOLEAN)
