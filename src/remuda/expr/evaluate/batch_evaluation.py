"""Evaluation over an Arrow record batch: an expression becomes a tree of kernel calls, made once for a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, assert_never

import pyarrow as pa

from remuda.errors import SqlError, division_error, overflow_error
from remuda.expr.cast.cast import cast_batch, try_cast_batch
from remuda.expr.evaluate.conditional import Part, evaluate_case, evaluate_in_turn
from remuda.expr.evaluate.dictionary import apply_to_dictionaries, as_array
from remuda.expr.evaluate.failing import can_fail
from remuda.expr.function import Datum, Signature
from remuda.expr.functions.decimals import DIVISION_BY_ZERO, OVERFLOW
from remuda.expr.nodes import Call, Case, Cast, Column, Expression, Literal, Parameter, Parameters, stored_scalar
from remuda.expr.registry import FUNCTIONS
from remuda.expr.walk import columns_of

if TYPE_CHECKING:
    from remuda.types import SqlType

BatchExpression = Callable[[pa.RecordBatch, Parameters], Datum]


def compile_batch(expression: Expression, layout: Mapping[int, int]) -> BatchExpression:
    """Compile an expression for batches; `layout` gives the batch's column of each column id."""
    match expression:
        case Column():
            ordinal = layout[expression.id]
            return lambda batch, _: batch.column(ordinal)
        case Literal():
            scalar = stored_scalar(expression.value, expression.type)
            return lambda _batch, _: scalar
        case Parameter():
            index = expression.index
            return lambda _, parameters: parameters.scalar(index)
        case Cast():
            make = try_cast_batch if expression.lenient else cast_batch
            convert = make(expression.argument.type, expression.type)
            return _apply(convert, [compile_batch(expression.argument, layout)], expression, strict=True)
        case Case():
            branches = [(_part(when, layout), _part(then, layout)) for when, then in expression.branches]
            return evaluate_case(branches, _part(expression.otherwise, layout))
        case Call():
            return _compile_call(expression, layout)
        case _:
            assert_never(expression)


def _compile_call(expression: Call, layout: Mapping[int, int]) -> BatchExpression:
    function = FUNCTIONS[expression.function]
    kernel = function.batch(Signature(tuple(argument.type for argument in expression.arguments), expression.type))
    if function.volatile:
        return lambda batch, _: kernel(batch.num_rows)
    if function.undecided is not None and any(can_fail(argument) for argument in expression.arguments[1:]):
        return evaluate_in_turn(
            [_part(argument, layout) for argument in expression.arguments], kernel, function.undecided
        )
    arguments = [compile_batch(argument, layout) for argument in expression.arguments]
    return _apply(kernel, arguments, expression, strict=function.strict)


def _part(expression: Expression, layout: Mapping[int, int]) -> Part:
    columns = list(columns_of(expression))
    compiled = compile_batch(expression, {column: ordinal for ordinal, column in enumerate(columns)})
    return Part(compiled, [layout[column] for column in columns], can_fail(expression), expression.type.arrow)


def compile_predicate(
    expression: Expression, layout: Mapping[int, int]
) -> Callable[[pa.RecordBatch, Parameters], pa.Array]:
    """Compile a predicate to the rows for which it is TRUE: a boolean array in which NULL counts as FALSE."""
    evaluate = compile_batch(expression, layout)

    def predicate(batch: pa.RecordBatch, parameters: Parameters) -> pa.Array:
        return as_array(evaluate(batch, parameters), batch.num_rows)

    return predicate


def _apply(
    kernel: Callable[..., Datum], arguments: list[BatchExpression], expression: Call | Cast, *, strict: bool
) -> BatchExpression:
    def evaluate(batch: pa.RecordBatch, parameters: Parameters) -> Datum:
        values = [argument(batch, parameters) for argument in arguments]
        try:
            if any(isinstance(value, pa.DictionaryArray) for value in values):
                return apply_to_dictionaries(kernel, values, strict=strict)
            return kernel(*values)
        except (SqlError, pa.ArrowInvalid) as error:
            if batch.num_rows == 0:
                return pa.scalar(None, expression.type.arrow)  # a constant that fails, but for no row
            raise _located(error, expression) from (None if isinstance(error, SqlError) else error)

    return evaluate


def _located(error: Exception, expression: Call | Cast) -> SqlError:
    """Return the error as the user sees it, with the span of the innermost expression that raised it."""
    if not isinstance(error, SqlError):
        message = _arrow_message(error, expression.type)
        return (division_error if message == DIVISION_BY_ZERO else overflow_error)(message, span=expression.span)
    known = error.span is not None or expression.span is None
    return error if known else error.restated(span=expression.span)


def _arrow_message(error: Exception, result: SqlType) -> str:
    """Return the message that the row kernels have in the same case."""
    text = str(error)
    if "ivide by zero" in text:
        return DIVISION_BY_ZERO
    return OVERFLOW.format(result) if "overflow" in text else text.splitlines()[0]
