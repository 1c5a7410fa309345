"""TRY_CAST: the conversion of CAST, with NULL for a value that CAST refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from remuda.errors import SqlError
from remuda.expr.cast.cast import cast_batch, cast_row
from remuda.expr.evaluate.by_rows import by_rows
from remuda.expr.function import Signature

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.expr.function import Datum
    from remuda.types import SqlType

_FEW = 16
"""Rows that are rather converted one by one than halved again."""


def try_cast_row(source: SqlType, target: SqlType) -> Callable[[Any], Any]:
    convert = cast_row(source, target)

    def try_convert(value: Any) -> Any:
        try:
            return convert(value)
        except SqlError:
            return None

    return try_convert


def try_cast_batch(source: SqlType, target: SqlType) -> Callable[[Datum], Datum]:
    """A column with a value that is refused is halved until it is found: few such values cost little."""
    convert = cast_batch(source, target)
    one_by_one = by_rows(try_cast_row(source, target), Signature((source,), target))

    def try_convert(value: Datum) -> Datum:
        try:
            return convert(value)
        except (SqlError, pa.ArrowInvalid):
            if isinstance(value, pa.Scalar) or len(value) <= _FEW:
                return one_by_one(value)
        middle = len(value) // 2
        return pa.concat_arrays([try_convert(value[:middle]), try_convert(value[middle:])])

    return try_convert
