"""Evaluation over one row: an expression becomes a tree of closures, made once for a plan.

This is the path of key lookups and of small index reads, where starting an Arrow kernel would cost more than the work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, assert_never

from remuda.errors import SqlError
from remuda.expr.cast.cast import cast_row, try_cast_row
from remuda.expr.function import Signature
from remuda.expr.nodes import Call, Case, Cast, Column, Expression, Literal, Parameter
from remuda.expr.registry import FUNCTIONS

if TYPE_CHECKING:
    from remuda.errors import Span

Row = tuple[Any, ...]
RowExpression = Callable[[Row, Row], Any]
"""From a row and the parameters' values, both in stored form, to a stored value."""


def compile_row(expression: Expression, layout: Mapping[int, int]) -> RowExpression:
    """Compile for one row at a time; `layout` has the ordinal of each column in the row, by column id."""
    match expression:
        case Column():
            ordinal = layout[expression.id]
            return lambda row, _: row[ordinal]
        case Literal():
            value = expression.value
            return lambda _row, _: value
        case Parameter():
            index = expression.index
            return lambda _, parameters: parameters[index]
        case Cast():
            make = try_cast_row if expression.lenient else cast_row
            kernel = make(expression.argument.type, expression.type)
            return _strict(kernel, (expression.argument,), layout, expression.span)
        case Case():
            return _compile_case(expression, layout)
        case Call():
            return _compile_call(expression, layout)
        case _:
            assert_never(expression)


def _compile_call(expression: Call, layout: Mapping[int, int]) -> RowExpression:
    function = FUNCTIONS[expression.function]
    signature = Signature(tuple(argument.type for argument in expression.arguments), expression.type)
    kernel = function.row(signature)
    if function.strict:
        return _strict(kernel, expression.arguments, layout, expression.span)
    arguments = [compile_row(argument, layout) for argument in expression.arguments]
    if function.undecided is not None:
        in_turn: RowExpression = kernel(arguments)
        return in_turn

    def of_all(row: Row, parameters: Row) -> Any:
        values = [argument(row, parameters) for argument in arguments]
        try:
            return kernel(*values)
        except SqlError as error:
            raise _located(error, expression.span) from None

    return of_all


def _strict(
    kernel: Callable[..., Any], operands: tuple[Expression, ...], layout: Mapping[int, int], span: Span | None
) -> RowExpression:
    """NULL where an argument is; an error gets its span. One and two arguments, nearly all there are, have no loop."""
    arguments = [compile_row(operand, layout) for operand in operands]
    match operands:
        case (_,):
            (only,) = arguments

            def unary(row: Row, parameters: Row) -> Any:
                value = only(row, parameters)
                try:
                    return None if value is None else kernel(value)
                except SqlError as error:
                    raise _located(error, span) from None

            return unary
        case (_, Literal(value=constant)) if constant is not None:
            first = arguments[0]

            def with_constant(row: Row, parameters: Row) -> Any:
                value = first(row, parameters)
                try:
                    return None if value is None else kernel(value, constant)
                except SqlError as error:
                    raise _located(error, span) from None

            return with_constant
        case (_, _):
            first, second = arguments

            def binary(row: Row, parameters: Row) -> Any:
                left = first(row, parameters)
                right = second(row, parameters)
                try:
                    return None if left is None or right is None else kernel(left, right)
                except SqlError as error:
                    raise _located(error, span) from None

            return binary

    def many(row: Row, parameters: Row) -> Any:
        values = [argument(row, parameters) for argument in arguments]
        try:
            return None if None in values else kernel(*values)
        except SqlError as error:
            raise _located(error, span) from None

    return many


def _located(error: SqlError, span: Span | None) -> SqlError:
    """Return the error with the span of the innermost expression that raised it."""
    return error if error.span is not None else error.restated(span=span)


def _compile_case(expression: Case, layout: Mapping[int, int]) -> RowExpression:
    branches = [(compile_row(when, layout), compile_row(then, layout)) for when, then in expression.branches]
    otherwise = compile_row(expression.otherwise, layout)

    def evaluate(row: Row, parameters: Row) -> Any:
        for when, then in branches:
            if when(row, parameters):
                return then(row, parameters)
        return otherwise(row, parameters)

    return evaluate
