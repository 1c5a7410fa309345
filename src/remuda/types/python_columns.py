"""Whole columns in Python form: numpy makes dates and timestamps in a tenth of the time that a call for each takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from remuda.generated_code import generate, tuple_of
from remuda.types.sql_type import Kind, SqlType
from remuda.types.stored_values import python_converter

ColumnConverter = Callable[[Sequence[Any]], list[Any]]

NUMPY_UNITS = {Kind.DATE: "M8[D]", Kind.TIMESTAMP: "M8[us]"}
"""As what numpy makes Python's dates and timestamps of stored values."""


def python_column_converter(source: SqlType) -> ColumnConverter | None:
    """Return the function from stored values, NULLs among them, to Python values; None where both are the same."""
    convert, unit = python_converter(source), NUMPY_UNITS.get(source.kind)
    if convert is None:
        return None

    def one_by_one(values: Sequence[Any]) -> list[Any]:
        return [None if value is None else convert(value) for value in values]

    def at_once(values: Sequence[Any]) -> list[Any]:
        found: list[Any] = np.array(values, unit).tolist()
        # Beyond the years that Python has, numpy gives numbers; a single value is an error there.
        return one_by_one(values) if int in set(map(type, found)) else found

    return one_by_one if unit is None else at_once


def convert_each(converters: Sequence[Callable[[Any], Any]]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """Return the function that converts a row, each value by a function of its own; the row must have as many.

    The calls are written out one after the other: a loop over them costs more than what most of them do.

    >>> convert_each([int, str])(("1", 2))
    (1, '2')
    """
    names = {f"convert_{ordinal}": converter for ordinal, converter in enumerate(converters)}
    return generate("row", tuple_of(f"{name}(row[{ordinal}])" for ordinal, name in enumerate(names)), names)
