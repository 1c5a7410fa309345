"""Functions given by what they make of one row and, where Arrow has a kernel, of a column and constants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from remuda.expr.evaluate.by_rows import by_rows
from remuda.expr.function import CanFail, Datum, Function, Overload, Signature, fixed, overloaded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from remuda.types import SqlType


def _constants(arguments: Sequence[Datum]) -> list[Any] | None:
    """The values of arguments that are all the same for every row and not NULL; None where some are not."""
    known = all(isinstance(argument, pa.Scalar) and argument.is_valid for argument in arguments)
    return [argument.as_py() for argument in arguments] if known else None


def _with_constants(
    row: Callable[..., Any], constant: Callable[..., Datum | None]
) -> Callable[[Signature], Callable[..., Datum]]:
    """Arrow's kernel where all but the first argument are constants (and `constant` has one), else row by row."""

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
    """The last `optional` arguments may be left out: `row` and `constant` have defaults for them."""
    counts = range(len(arguments) - optional, len(arguments) + 1)
    overloads = [
        Overload(fixed(arguments[:count], result), _with_constants(row, constant), lambda _: row) for count in counts
    ]
    return overloaded(name, *overloads, can_fail=can_fail, hints=tuple(arguments))
