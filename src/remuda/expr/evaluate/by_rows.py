"""A kernel for batches made of the kernel for rows: for functions that Arrow does not have."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from remuda.expr.cancellation import check_cancelled
from remuda.expr.evaluate.text_sizes import refuse_size, room_for_texts
from remuda.expr.function import CanFail, Datum, Function, Overload, Signature, fixed, overloaded
from remuda.types import Kind, SqlType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


ROWS_AT_ONCE = 4_096
"""Before so many rows it is asked whether they are still wanted: with a function of 5 µs a row, every 20 ms."""


def by_rows(row: Callable[..., Any], signature: Signature, *, strict: bool = True) -> Callable[..., Datum]:
    """Calls `row` once for each row; where it is strict, it never sees None."""
    arrow = signature.result.arrow
    makes_text = signature.result.kind in {Kind.VARCHAR, Kind.VARBINARY}

    def kernel(*arguments: Datum) -> Datum:
        count = next((len(argument) for argument in arguments if isinstance(argument, pa.Array)), None)
        if count is None:
            values = [next(iter(column)) for column in stored(arguments)]
            return pa.scalar(_apply(row, values, strict=strict), arrow)
        if count <= ROWS_AT_ONCE:
            return applied(arguments, 0)
        parts: list[pa.Array] = []
        size = 0
        for start in range(0, count, ROWS_AT_ONCE):
            check_cancelled()
            parts.append(applied([_piece(argument, start) for argument in arguments], size))
            size += parts[-1].nbytes if makes_text else 0
        return pa.concat_arrays(parts)

    def applied(arguments: Iterable[Datum], size: int) -> pa.Array:
        """Apply the row kernel; `size` is how many bytes of text were made for the rows before."""
        rows = zip(*stored(arguments), strict=False)
        if not makes_text:
            return pa.array([_apply(row, values, strict=strict) for values in rows], arrow)
        made: list[Any] = []
        room = room_for_texts()
        for values in rows:
            value = _apply(row, values, strict=strict)
            if value is not None:
                size += len(value)
                if size > room:
                    refuse_size(size)
            made.append(value)
        return pa.array(made, arrow)

    def stored(arguments: Iterable[Datum]) -> list[Iterable[Any]]:
        return [_stored(argument, type_) for argument, type_ in zip(arguments, signature.arguments, strict=True)]

    return kernel


def _piece(argument: Datum, start: int) -> Datum:
    return argument.slice(start, ROWS_AT_ONCE) if isinstance(argument, pa.Array) else argument


def _apply(row: Callable[..., Any], values: Any, *, strict: bool) -> Any:
    return None if strict and None in values else row(*values)


def _stored(argument: Datum, type_: SqlType) -> Iterable[Any]:
    """Return the values in stored form; without end where one stands for all rows."""
    if isinstance(argument, pa.Scalar):
        return repeat(stored_values(pa.repeat(argument, 1), type_)[0])
    return stored_values(argument, type_)


def stored_values(array: pa.Array, type_: SqlType) -> list[Any]:
    if type_.is_temporal:
        array = array.view(pa.int32() if type_.kind is Kind.DATE else pa.int64())
    values: list[Any] = array.to_pylist()
    return values


def _constants(arguments: Sequence[Datum]) -> list[Any] | None:
    """Return the values of arguments that are all the same for every row and not NULL; None where some are not."""
    known = all(isinstance(argument, pa.Scalar) and argument.is_valid for argument in arguments)
    return [argument.as_py() for argument in arguments] if known else None


def _with_constants(
    row: Callable[..., Any], constant: Callable[..., Datum | None]
) -> Callable[[Signature], Callable[..., Datum]]:
    """Use Arrow's kernel where all arguments but the first are constants (and `constant` has one), else each row."""

    def for_signature(signature: Signature) -> Callable[..., Datum]:
        one_by_one = by_rows(row, signature)

        def kernel(value: Datum, *others: Datum) -> Datum:
            constants = _constants(others)
            result = None if constants is None else constant(value, *constants)
            return one_by_one(value, *others) if result is None else result

        return kernel

    return for_signature


def plain_function(
    name: str,
    arguments: Sequence[SqlType],
    result: SqlType,
    row: Callable[..., Any],
    constant: Callable[..., Datum | None] = lambda *_: None,
    optional: int = 0,
    can_fail: CanFail = False,
) -> Function:
    """Make a function whose last `optional` arguments may be left out: `row` and `constant` have defaults for them."""
    counts = range(len(arguments) - optional, len(arguments) + 1)
    overloads = [
        Overload(fixed(arguments[:count], result), _with_constants(row, constant), lambda _: row) for count in counts
    ]
    return overloaded(name, *overloads, can_fail=can_fail, hints=tuple(arguments))
