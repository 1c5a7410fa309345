"""Binding of aggregates: where they are allowed, what they take, and that one asked for twice is computed once."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.dataclass import dataclass
from remuda.errors import (
    bad_argument,
    grouping_error,
    not_supported,
    parsing_error,
    type_error,
    unknown_function,
    window_error,
)
from remuda.expr import Call, Case, Column, Literal, call, coerce, columns_of, rewrite
from remuda.plan.aggregates import AGGREGATES
from remuda.sql.bind.bind_context import COMMON_PARTS, Binder, Binders, Parts
from remuda.sql.bind.functions.aggregate_arguments import (
    AGGREGATE_NAMES,
    AGGREGATE_NODES,
    WrittenAggregate,
    read_aggregate,
)
from remuda.sql.bind.order_by import OrderEntry, bind_order_entry, order_entry
from remuda.sql.parse.spans import span_of
from remuda.types import BOOLEAN, DOUBLE, NULL, VARCHAR, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal

    from remuda.errors import Span
    from remuda.expr import Expression
    from remuda.plan.aggregates import AggregateFunction
    from remuda.sql.bind.expression.expression import ExpressionBinder
    from remuda.types import SqlType

_NEVER_NULL = frozenset({"count"})
_YES = Literal(value=True, type=BOOLEAN)


@dataclass(frozen=True, slots=True)
class PendingCall:
    """An aggregate that was found in an expression, in which `column` stands for it now."""

    column: Column = field(compare=False)
    function: str
    arguments: tuple[Expression, ...] = ()
    distinct: bool = False
    order: tuple[OrderEntry, ...] = ()
    parameters: tuple[Any, ...] = ()
    span: Span | None = field(default=None, compare=False)


def _bind_aggregate(binder: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    """Bind an aggregate call, with or without FILTER and WITHIN GROUP."""
    written = read_aggregate(node)
    span = span_of(node)
    if binder.inside_aggregate:
        raise grouping_error("an aggregate within an aggregate", span=span)
    levels = list(binder.scope.level.chain())
    before = [dict(level.free) for level in levels]
    call = bind_arguments(binder, written, "an aggregate")
    owner, crossed = _owner(binder, columns_of(*call.arguments, *(entry.expression for entry in call.order)))
    if owner.calls is None:
        hint = "Use HAVING, or a sub-query." if owner.clause == "WHERE" else None
        raise grouping_error(f"{written.title} is not allowed in {owner.clause}", span=span, suggestion=hint)
    if owner is binder:
        return _computed_once(owner, call)
    for level, free in zip(levels, before, strict=True):
        level.free.clear()
        level.free.update(free)
    column = _computed_once(owner, _seen_from(owner, call))
    for inner in reversed(crossed):
        column = inner.scope.named_outside(column)
    return column


def _owner(binder: ExpressionBinder, named: dict[int, Column]) -> tuple[ExpressionBinder, list[ExpressionBinder]]:
    """Return the innermost query whose columns an aggregate uses: `(SELECT SUM(outer.x))` belongs to the outer one."""
    crossed: list[ExpressionBinder] = []
    while named and binder.scope.level.outer is not None and all(id_ in binder.scope.level.free for id_ in named):
        crossed.append(binder)
        binder = binder.scope.level.outer
    return binder, crossed


def _seen_from(owner: ExpressionBinder, call: PendingCall) -> PendingCall:
    """Rename the columns of a call to those of the query that it belongs to."""

    def own(part: Expression) -> Expression:
        return replace(part, outer=part.id in owner.scope.level.free) if isinstance(part, Column) else part

    order = tuple(replace(entry, expression=rewrite(entry.expression, own)) for entry in call.order)
    return replace(call, arguments=tuple(rewrite(argument, own) for argument in call.arguments), order=order)


def _computed_once(owner: ExpressionBinder, call: PendingCall) -> Column:
    assert owner.calls is not None
    for known in owner.calls:
        if known == call:
            return known.column
    owner.calls.append(call)
    return call.column


def bind_arguments(binder: ExpressionBinder, written: WrittenAggregate, clause: str) -> PendingCall:
    """Bind and check the arguments of a call. `clause` is the place that refuses aggregates and windows in them."""
    kept = binder.calls, binder.windows, binder.clause, binder.inside_aggregate, binder.groupings
    binder.windows, binder.clause, binder.inside_aggregate = None, clause, clause == "an aggregate"
    if binder.inside_aggregate:
        binder.groupings = None  # the groups of a row are known only above
    try:
        return _bind_arguments(binder, written)
    finally:
        binder.calls, binder.windows, binder.clause, binder.inside_aggregate, binder.groupings = kept


def _bind_arguments(binder: ExpressionBinder, written: WrittenAggregate) -> PendingCall:
    name, span = written.name, written.span
    function = AGGREGATES[name]
    if name == "count" and written.distinct:
        written = _of_one_argument(written)
    wanted = 1 if function.second is None else 2
    if len(written.arguments) != wanted and not (name == "count" and not written.arguments):
        needed = "an argument" if wanted == 1 else "two arguments"
        takes = f"takes {'one argument' if wanted == 1 else needed}, {len(written.arguments)} are given"
        raise unknown_function(f"{written.title} {takes if written.arguments else f'needs {needed}'}", span=span)
    if written.is_row:
        arguments = [_as_one_value(binder, written)]
    else:
        arguments = [binder.bind(part, BOOLEAN if written.counts_true else None) for part in written.arguments]
    binder.refuse_untyped(arguments)
    arguments = [_of_known_type(argument, function) for argument in arguments]
    order = tuple(
        order_entry(entry, arguments[0]) if entry.this is written.arguments[0] else bind_order_entry(binder, entry)
        for entry in written.order
    )
    if written.distinct and not arguments:
        raise unknown_function("DISTINCT needs an argument", span=span)
    if written.distinct and any(entry.expression not in arguments for entry in order):
        raise not_supported("an aggregate of DISTINCT values can be ordered by its argument only", span=span)
    types = [argument.type for argument in arguments]
    result = function.result(types[0] if types else None)
    is_taken = result is not None and (function.second is None or function.second(types[1]) is not None)
    if not is_taken or result is None or NULL in types:
        raise unknown_function(f"{written.title} does not take {', '.join(str(type_) for type_ in types)}", span=span)
    parameters = _parameters(binder, written, arguments, order)
    if written.counts_true:
        arguments = [_where(_condition(arguments[0], span), _YES)]
    if name == "string_agg":
        arguments = [coerce(arguments[0], VARCHAR)]
    if written.condition is not None:
        condition = binder.bind_condition(written.condition)
        if function.keeps_nulls:
            arguments.append(_where(condition, _YES))
        else:
            arguments = [_where(condition, value) for value in arguments or [_YES]]
    distinct = written.distinct and not function.ignores_repetition
    column = binder.binding.new_column(name, result, nullable=name not in _NEVER_NULL)
    if name == "any_value" and order:
        name, function = "first", AGGREGATES["first"]
        arguments.append(_where(_is_present(arguments[0]), _YES))
    kept_order = order if function.ordered else ()
    return PendingCall(column, name, tuple(arguments), distinct, kept_order, parameters, span)


def _of_known_type(argument: Expression, function: AggregateFunction) -> Expression:
    """Give a bare NULL a type: VARCHAR, or BOOLEAN, as in PostgreSQL; refuse it for sum and avg."""
    if argument.type != NULL:
        return argument
    taken = (type_ for type_ in (VARCHAR, BOOLEAN) if function.result(type_) is not None)
    return coerce(argument, next(taken, NULL))


def _is_present(value: Expression) -> Expression:
    return Call("is not null", (value,), BOOLEAN)


def _of_one_argument(written: WrittenAggregate) -> WrittenAggregate:
    """Turn several arguments into one.

    `COUNT(DISTINCT a, b)` counts rows without NULLs, `COUNT(DISTINCT (a, b))` all different rows.
    """
    is_tuple = len(written.arguments) == 1 and isinstance(written.arguments[0], exp.Tuple)
    if not is_tuple and len(written.arguments) < 2:
        return written
    row = written.arguments[0] if is_tuple else exp.Tuple(expressions=list(written.arguments))
    return replace(written, arguments=(row,), is_row=True, skips_nulls=not is_tuple)


def _as_one_value(binder: ExpressionBinder, written: WrittenAggregate) -> Expression:
    """Return a row as a text that is the same for equal rows only: a JSON array of its values."""
    values = [binder.bind(part) for part in written.arguments[0].expressions]
    binder.refuse_untyped(values)
    parts = [_same_text(value) for value in values]
    row = call("json_array", *parts, span=written.span)
    if row is None:
        types = ", ".join(str(value.type) for value in values)
        raise unknown_function(f"{written.title} does not take ({types})", span=written.span)
    if not written.skips_nulls:
        return row
    return _where(Call("and", tuple(_is_present(value) for value in values), BOOLEAN), row)


def _same_text(value: Expression) -> Expression:
    """Return a value so that equal values have the same text: -0.0 becomes 0.0."""
    if value.type.is_floating:
        return call("+", value, Literal(0.0, value.type)) or value
    return (call("hex", value) or value) if value.type.kind is Kind.VARBINARY else value


def _condition(expression: Expression, span: Span | None) -> Expression:
    if expression.type != BOOLEAN:
        raise type_error(f"COUNT_IF takes a condition, this is {expression.type}", span=span)
    return expression


def _where(condition: Expression, value: Expression) -> Expression:
    """Return the value where the condition holds, and NULL, which aggregates ignore, elsewhere."""
    return Case(((condition, value),), Literal(None, value.type), value.type)


def _parameters(
    binder: ExpressionBinder, written: WrittenAggregate, arguments: Sequence[Expression], order: Sequence[OrderEntry]
) -> tuple[Any, ...]:
    match written.name:
        case "string_agg":
            return (_separator(binder, written.constant),)
        case "quantile_cont" | "quantile_disc":
            return (_fraction(binder, written), _is_descending(written, arguments, order))
        case _:
            return ()


def _is_descending(written: WrittenAggregate, arguments: Sequence[Expression], order: Sequence[OrderEntry]) -> bool:
    """Test whether a quantile counts from the highest value; it has no other order than that of its values."""
    if order and [entry.expression for entry in order] != [arguments[0]]:
        message = f"{written.title} can be ordered by its argument only"
        raise window_error(message, span=span_of(written.order[0]))
    return bool(order) and order[0].descending


def _separator(binder: ExpressionBinder, node: Any) -> str:
    if node is None:
        return ","
    bound = binder.bind(node, VARCHAR)
    if not isinstance(bound, Literal) or bound.type != VARCHAR or bound.value is None:
        raise bad_argument("the separator must be a string written here", span=span_of(node))
    return str(bound.value)


def _fraction(binder: ExpressionBinder, written: WrittenAggregate) -> float | Decimal:
    if written.fraction is not None:
        return written.fraction
    if written.constant is None:
        raise parsing_error(f"{written.title} needs a fraction", span=written.span)
    bound = binder.bind(written.constant, DOUBLE)
    is_number = isinstance(bound, Literal) and bound.type.is_numeric and bound.value is not None
    fraction = bound.value if isinstance(bound, Literal) and is_number else -1
    if not 0 <= fraction <= 1:
        raise bad_argument("the fraction must be a number from 0 to 1 written here", span=span_of(written.constant))
    return fraction


FORMS: dict[str, Binder] = dict.fromkeys(AGGREGATE_NAMES, _bind_aggregate)
NODES: Binders = {
    **dict.fromkeys(AGGREGATE_NODES, _bind_aggregate),
    exp.Filter: _bind_aggregate,
    exp.WithinGroup: _bind_aggregate,
}
PARTS: Parts = {
    **dict.fromkeys(AGGREGATE_NODES, COMMON_PARTS | {"big_int", "separator", "quantile"}),
}
