"""An aggregate in two logical steps: partial results of some of the rows of a group, and what they give together.

    COUNT(a), AVG(b)  =  COUNT(a) AS n, SUM(b) AS s, COUNT(b) AS m   below
                         SUM(n), SUM(s) / SUM(m)                     above

Between the two there may be anything that does to a partial result what it would have done to each of its rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.dataclass import dataclass
from remuda.expr import Call, Case, Column, Expression, Literal, can_fail, coerce
from remuda.expr import call as typed_call
from remuda.expr.functions.rounding import MEAN
from remuda.plan import logical
from remuda.plan.aggregates import AGGREGATES, AggregateCall, partial_type
from remuda.plan.logical import Assignment
from remuda.types import BIGINT, BOOLEAN, Kind, SqlType

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from remuda.plan.logical import LogicalNode, Relation

    class MakesColumns(Protocol):
        def __call__(self, name: str, type_: SqlType, *, nullable: bool = True) -> Column: ...


@dataclass(frozen=True, slots=True)
class SplitCalls:
    lower: tuple[AggregateCall, ...]
    upper: tuple[AggregateCall, ...]
    results: tuple[Assignment, ...]
    """Each call's column, from the columns of `upper`."""


def split_calls(
    calls: Sequence[AggregateCall], new_column: MakesColumns, arguments: dict[int, Column] | None = None
) -> SplitCalls:
    """Split every call into partial and final ones; `arguments` are columns for arguments further down, by id."""
    lower: list[AggregateCall] = []
    upper: list[AggregateCall] = []
    results: list[Assignment] = []
    for call in calls:
        argument = call.argument
        if argument is not None and arguments is not None:
            argument = arguments.get(argument.id, argument)
        merged: list[Expression] = []
        function = AGGREGATES[call.function]
        for partial, merge in zip(function.partials, function.merges, strict=True):
            state = new_column(f"{call.column.name}.{partial}", partial_type(partial, call))
            lower.append(AggregateCall(state, partial, argument, span=call.span))
            result = AGGREGATES[merge].result(state.type)
            assert result is not None, "partial results can be merged"
            is_whole = len(function.partials) == 1 and result == call.column.type
            column = call.column if is_whole else new_column(state.name, result)
            upper.append(AggregateCall(column, merge, state, span=call.span))
            merged.append(coerce(column, state.type))
        results.append(Assignment(call.column, _result(call, merged)))
    return SplitCalls(tuple(lower), tuple(upper), tuple(results))


def _result(call: AggregateCall, merged: list[Expression]) -> Expression:
    match call.function:
        case "count":
            return Call("coalesce", (merged[0], Literal(0, BIGINT)), BIGINT)
        case "avg":
            total, count = merged
            result = call.column.type
            mean = typed_call(MEAN, total if result.kind is Kind.DECIMAL else coerce(total, result), count)
            assert mean is not None, "the mean of a sum is known for each type that AVG takes"
            return coerce(mean, result)
        case _:
            return merged[0]


def put_together(
    node: logical.Aggregate, source: Relation, split: SplitCalls, others: tuple[AggregateCall, ...] = ()
) -> LogicalNode:
    """Build the aggregate over partial results; `others` are calls of `node` that are computed above as they are."""
    upper = logical.Aggregate(source, node.keys, (*split.upper, *others))
    if all(item.is_identity for item in split.results):
        return upper
    passed = [*node.keys, *(call.column for call in others)]
    return logical.Project(upper, (*(Assignment(column, column) for column in passed), *split.results))


_ONE_ROW = frozenset(
    {"count", "sum", "min", "max", "avg", "any_value", "bool_and", "bool_or", "bit_and", "bit_or", "bit_xor"}
)
"""Functions whose value for a single row is that row's, or whether it has one."""


def is_known_of_one_row(call: AggregateCall) -> bool:
    """Test whether a call's result over one row is known: not where its value may not fit the result's type."""
    if call.function not in _ONE_ROW:
        return False
    return call.argument is None or call.function == "count" or not can_fail(coerce(call.argument, call.column.type))


def _of_one_row(call: AggregateCall) -> Expression:
    """Return the value of a call over a group of exactly one row."""
    argument, result = call.argument, call.column.type
    if argument is None:
        return Literal(1, BIGINT)
    if call.function == "count":
        missing = Call("is null", (argument,), BOOLEAN)
        return Case(((missing, Literal(0, BIGINT)),), Literal(1, BIGINT), BIGINT)
    value = coerce(argument, result)
    # A sum begins at 0.0, and 0.0 + -0.0 is 0.0.
    return Call("+", (value, Literal(0.0, result)), result) if call.function == "sum" and result.is_floating else value


def without_grouping(node: logical.Aggregate) -> LogicalNode:
    """Return the aggregate as a projection where each group has exactly one row."""
    passed = tuple(Assignment(column, column) for column in node.keys)
    computed = tuple(Assignment(call.column, _of_one_row(call)) for call in node.calls)
    return logical.Project(node.input, (*passed, *computed))
