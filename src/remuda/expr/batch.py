"""Evaluation over an Arrow record batch: an expression becomes a tree of kernel calls, made once for a plan.

A string column is often a dictionary: its distinct values once, and a code for each row. A function of such a column
and of constants is evaluated over the few distinct values and spread over the codes, which is many times cheaper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from remuda.errors import SqlError, data_error
from remuda.expr.cast import cast_batch
from remuda.expr.decimals import DIVISION_BY_ZERO, OVERFLOW
from remuda.expr.function import Datum, Signature
from remuda.expr.functions import FUNCTIONS
from remuda.expr.nodes import Call, Case, Cast, Column, Expression, Literal, Parameter
from remuda.expr.parameters import Parameters, stored_scalar

if TYPE_CHECKING:
    from remuda.types import SqlType

BatchExpression = Callable[[pa.RecordBatch, Parameters], Datum]


def compile_batch(expression: Expression, layout: Mapping[int, int]) -> BatchExpression:
    """`layout` says which column of the batch holds a column of the query, by column id."""
    match expression:
        case Column():
            place = layout[expression.id]
            return lambda batch, _: batch.column(place)
        case Literal():
            scalar = stored_scalar(expression.value, expression.type)
            return lambda _batch, _: scalar
        case Parameter():
            index = expression.index
            return lambda _, parameters: parameters.scalar(index)
        case Cast():
            convert = cast_batch(expression.argument.type, expression.type)
            return _apply(convert, [compile_batch(expression.argument, layout)], expression, strict=True)
        case Case():
            return _compile_case(expression, layout)
        case Call():
            function = FUNCTIONS[expression.function]
            kernel = function.batch(
                Signature(tuple(argument.type for argument in expression.arguments), expression.type)
            )
            arguments = [compile_batch(argument, layout) for argument in expression.arguments]
            return _apply(kernel, arguments, expression, strict=function.strict)
        case _:
            assert_never(expression)


def compile_predicate(
    expression: Expression, layout: Mapping[int, int]
) -> Callable[[pa.RecordBatch, Parameters], pa.Array]:
    """The rows for which the expression is TRUE, as a boolean array in which NULL counts as FALSE to `filter`."""
    evaluate = compile_batch(expression, layout)

    def predicate(batch: pa.RecordBatch, parameters: Parameters) -> pa.Array:
        return as_array(evaluate(batch, parameters), batch.num_rows)

    return predicate


def as_array(datum: Datum, rows: int) -> pa.Array:
    """A value that stands for the whole column, written out."""
    return pa.repeat(datum, rows) if isinstance(datum, pa.Scalar) else datum


def _apply(
    kernel: Callable[..., Datum], arguments: list[BatchExpression], expression: Call | Cast, *, strict: bool
) -> BatchExpression:
    span = expression.span

    def evaluate(batch: pa.RecordBatch, parameters: Parameters) -> Datum:
        values = [argument(batch, parameters) for argument in arguments]
        try:
            if any(isinstance(value, pa.DictionaryArray) for value in values):
                return _apply_to_dictionaries(kernel, values, strict=strict)
            return kernel(*values)
        except SqlError as error:
            raise error if error.span is not None or span is None else data_error(error.message, span=span) from None
        except pa.ArrowInvalid as error:
            raise data_error(_arrow_message(error, expression.type), span=span) from error

    return evaluate


def _arrow_message(error: pa.ArrowInvalid, result: SqlType) -> str:
    """What the row kernels say in the same case."""
    text = str(error)
    if "ivide by zero" in text:
        return DIVISION_BY_ZERO
    return OVERFLOW.format(result) if "overflow" in text else text.splitlines()[0]


def _apply_to_dictionaries(kernel: Callable[..., Datum], values: list[Datum], *, strict: bool) -> Datum:
    arrays = [place for place, value in enumerate(values) if isinstance(value, pa.Array)]
    if len(arrays) == 1 and strict:
        column = values[arrays[0]]
        distinct, codes = column.dictionary, column.indices
        if len(distinct) <= len(codes):
            over_distinct = [*values[: arrays[0]], distinct, *values[arrays[0] + 1 :]]
            with suppress(SqlError, pa.ArrowInvalid):
                # A value that no row has may be the one that fails: then the rows themselves are asked.
                return _spread(as_array(kernel(*over_distinct), len(distinct)), codes)
    return kernel(*(decode(value) for value in values))


def _spread(results: pa.Array, codes: pa.Array) -> pa.Array:
    """The result of each row from the results of the distinct values; NULL where the code is NULL."""
    if pa.types.is_boolean(results.type) and not results.null_count:
        matching = pc.indices_nonzero(results)
        if len(matching) == 1:
            return pc.equal(codes, pa.scalar(matching[0].as_py(), codes.type))
    return results.take(codes)


def decode(datum: Datum) -> Datum:
    return datum.dictionary_decode() if isinstance(datum, pa.DictionaryArray) else datum


def _compile_case(expression: Case, layout: Mapping[int, int]) -> BatchExpression:
    conditions = [compile_batch(when, layout) for when, _ in expression.branches]
    results = [compile_batch(then, layout) for _, then in expression.branches]
    otherwise = compile_batch(expression.otherwise, layout)

    def evaluate(batch: pa.RecordBatch, parameters: Parameters) -> Datum:
        remaining = pa.repeat(pa.scalar(True), batch.num_rows)
        value: Datum = pa.nulls(batch.num_rows, expression.type.arrow)
        for condition, result in zip(conditions, results, strict=True):
            # A branch sees only its own rows: CASE WHEN b <> 0 THEN a / b END must not divide by zero.
            chosen = pc.and_(
                remaining, pc.fill_null(_on_rows(condition, batch, remaining, parameters, pa.bool_()), False)
            )
            value = pc.if_else(chosen, _on_rows(result, batch, chosen, parameters, expression.type.arrow), value)
            remaining = pc.and_not(remaining, chosen)
        return pc.if_else(remaining, _on_rows(otherwise, batch, remaining, parameters, expression.type.arrow), value)

    return evaluate


def _on_rows(
    evaluate: BatchExpression, batch: pa.RecordBatch, chosen: pa.Array, parameters: Parameters, arrow: pa.DataType
) -> pa.Array:
    """Evaluates on the chosen rows alone; the others are NULL."""
    count = chosen.true_count
    if count == batch.num_rows:
        return decode(as_array(evaluate(batch, parameters), count))
    if count == 0:
        return pa.nulls(batch.num_rows, arrow)
    values = decode(as_array(evaluate(batch.filter(chosen), parameters), count))
    return pc.replace_with_mask(pa.nulls(batch.num_rows, arrow), chosen, values)
