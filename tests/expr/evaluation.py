"""Evaluating an expression both ways, with outcomes that can be compared: a value, or the message of an error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from remuda.errors import SqlError
from remuda.expr import Expression, Parameters, as_array, compile_batch, compile_row
from remuda.expr.evaluate.dictionary import decode
from remuda.types import SqlType

if TYPE_CHECKING:
    from collections.abc import Sequence

Row = tuple[Any, ...]

_AS_INTEGERS = {pa.date32(): pa.int32(), pa.time64("us"): pa.int64(), pa.duration("us"): pa.int64()}


@dataclass(frozen=True, slots=True)
class Failure:
    """An error, by its message: the two evaluations say the same to the user."""

    message: str


def identity_of(value: Any) -> Any:
    """Equal exactly for the same value: NaN is itself, -0.0 is not 0.0, and 1 is neither 1.0 nor TRUE."""
    if isinstance(value, float):
        return float, "nan" if math.isnan(value) else (value, math.copysign(1.0, value))
    return type(value), value


def evaluate_row(expression: Expression, layout: dict[int, int], row: Row, parameters: Row) -> Any:
    try:
        return identity_of(compile_row(expression, layout)(row, parameters))
    except SqlError as error:
        return Failure(error.message)


def record_batch(types: Sequence[SqlType], rows: Sequence[Row], *, dictionaries: bool) -> pa.RecordBatch:
    arrays = [pa.array([row[place] for row in rows], type_.arrow) for place, type_ in enumerate(types)]
    if dictionaries:
        arrays = [array.dictionary_encode() if array.type == pa.string() else array for array in arrays]
    return pa.record_batch(arrays, names=[str(place) for place in range(len(types))])


def evaluate_batch(
    expression: Expression, layout: dict[int, int], batch: pa.RecordBatch, parameters: Parameters
) -> list[Any] | Failure:
    try:
        result = decode(as_array(compile_batch(expression, layout)(batch, parameters), batch.num_rows))
    except SqlError as error:
        return Failure(error.message)
    assert result.type == expression.type.arrow
    return [identity_of(value) for value in stored_values(result)]


def stored_values(array: pa.Array) -> list[Any]:
    integers = pa.int64() if pa.types.is_timestamp(array.type) else _AS_INTEGERS.get(array.type)
    stored: list[Any] = (array if integers is None else array.cast(integers)).to_pylist()
    return stored
