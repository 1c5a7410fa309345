"""Evaluation over one row: an expression becomes a tree of closures, made once for a plan.

This is the path of key lookups and of small index reads, where starting an Arrow kernel would cost more than the work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, assert_never

from remuda.errors import SqlError, data_error
from remuda.expr.cast import cast_row
from remuda.expr.function import Signature
from remuda.expr.functions import FUNCTIONS
from remuda.expr.nodes import Call, Case, Cast, Column, Expression, Literal, Parameter

Row = tuple[Any, ...]
RowExpression = Callable[[Row, Row], Any]
"""From a row and the parameters' values, both in stored form, to a stored value."""


def compile_row(expression: Expression, layout: Mapping[int, int]) -> RowExpression:
    """`layout` says at which place of the row a column stands, by column id."""
    match expression:
        case Column():
            place = layout[expression.id]
            return lambda row, _: row[place]
        case Literal():
            value = expression.value
            return lambda _row, _: value
        case Parameter():
            index = expression.index
            return lambda _, parameters: parameters[index]
        case Cast():
            return _strict(
                cast_row(expression.argument.type, expression.type), [compile_row(expression.argument, layout)]
            )
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
    arguments = [compile_row(argument, layout) for argument in expression.arguments]
    if function.strict:
        evaluate = _strict(kernel, arguments)
    else:

        def evaluate(row: Row, parameters: Row) -> Any:
            return kernel(*[argument(row, parameters) for argument in arguments])

    if expression.span is None or not function.can_fail:
        return evaluate
    span = expression.span

    def located(row: Row, parameters: Row) -> Any:
        try:
            return evaluate(row, parameters)
        except SqlError as error:
            raise error if error.span is not None else data_error(error.message, span=span) from None

    return located


def _strict(kernel: Callable[..., Any], arguments: list[RowExpression]) -> RowExpression:
    """One and two arguments, nearly all there are, without a loop."""
    if len(arguments) == 1:
        (only,) = arguments

        def unary(row: Row, parameters: Row) -> Any:
            value = only(row, parameters)
            return None if value is None else kernel(value)

        return unary
    if len(arguments) == 2:
        first, second = arguments

        def binary(row: Row, parameters: Row) -> Any:
            left = first(row, parameters)
            right = second(row, parameters)
            return None if left is None or right is None else kernel(left, right)

        return binary

    def many(row: Row, parameters: Row) -> Any:
        values = [argument(row, parameters) for argument in arguments]
        return None if None in values else kernel(*values)

    return many


def _compile_case(expression: Case, layout: Mapping[int, int]) -> RowExpression:
    branches = [(compile_row(when, layout), compile_row(then, layout)) for when, then in expression.branches]
    otherwise = compile_row(expression.otherwise, layout)

    def evaluate(row: Row, parameters: Row) -> Any:
        for when, then in branches:
            if when(row, parameters):
                return then(row, parameters)
        return otherwise(row, parameters)

    return evaluate
