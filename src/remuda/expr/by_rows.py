"""A kernel for batches made of the kernel for rows: for functions that Arrow does not have."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from remuda.types import Kind, SqlType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from remuda.expr.function import Datum, Signature


def by_rows(row: Callable[..., Any], signature: Signature, *, strict: bool = True) -> Callable[..., Datum]:
    """Calls `row` once for each row; where it is strict, it never sees None."""
    arrow = signature.result.arrow

    def kernel(*arguments: Datum) -> Datum:
        arrays = [argument for argument in arguments if isinstance(argument, pa.Array)]
        columns = [_stored(argument, type_) for argument, type_ in zip(arguments, signature.arguments, strict=True)]
        if not arrays:
            return pa.scalar(_apply(row, [next(iter(column)) for column in columns], strict=strict), arrow)
        return pa.array([_apply(row, values, strict=strict) for values in zip(*columns, strict=False)], arrow)

    return kernel


def _apply(row: Callable[..., Any], values: Any, *, strict: bool) -> Any:
    return None if strict and None in values else row(*values)


def _stored(argument: Datum, type_: SqlType) -> Iterable[Any]:
    """The values in stored form; without end where one stands for all rows."""
    if isinstance(argument, pa.Scalar):
        return repeat(stored_values(pa.repeat(argument, 1), type_)[0])
    return stored_values(argument, type_)


def stored_values(array: pa.Array, type_: SqlType) -> list[Any]:
    if type_.is_temporal:
        array = array.view(pa.int32() if type_.kind is Kind.DATE else pa.int64())
    values: list[Any] = array.to_pylist()
    return values
