"""AND, OR, NOT, IS ..., COALESCE: the functions for which NULL is more than contagious."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from remuda.expr.function import Datum, Function, Signature, fixed
from remuda.types import BOOLEAN, Kind, SqlType, common_type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def _resolve_logic(given: Sequence[SqlType]) -> Signature | None:
    if len(given) < 2 or any(type_.kind not in {Kind.BOOLEAN, Kind.NULL} for type_ in given):
        return None
    return Signature((BOOLEAN,) * len(given), BOOLEAN)


def _resolve_any(given: Sequence[SqlType]) -> Signature | None:
    return Signature((given[0],), BOOLEAN) if len(given) == 1 else None


def resolve_same(given: Sequence[SqlType]) -> Signature | None:
    shared: SqlType | None = given[0] if given else None
    for type_ in given[1:]:
        shared = None if shared is None else common_type(shared, type_)
    return None if shared is None else Signature((shared,) * len(given), shared)


def _and_row(_: Signature) -> Callable[..., bool | None]:
    def all_of(*arguments: bool | None) -> bool | None:
        if False in arguments:
            return False
        return None if None in arguments else True

    return all_of


def _or_row(_: Signature) -> Callable[..., bool | None]:
    def any_of(*arguments: bool | None) -> bool | None:
        if True in arguments:
            return True
        return None if None in arguments else False

    return any_of


def _coalesce_row(_: Signature) -> Callable[..., Any]:
    return lambda *arguments: next((value for value in arguments if value is not None), None)


def _folded(kernel: Callable[[Datum, Datum], Datum]) -> Callable[[Signature], Callable[..., Datum]]:
    return lambda _: lambda *arguments: reduce(kernel, arguments)


def _test(name: str, value: bool, *, negated: bool) -> Function:
    """`b IS [NOT] TRUE` and `b IS [NOT] FALSE`, which are never NULL."""

    def batch(argument: Datum) -> Datum:
        known = pc.fill_null(pc.equal(argument, pa.scalar(value)), False)
        return pc.invert(known) if negated else known

    return Function(
        name,
        fixed([BOOLEAN], BOOLEAN),
        lambda _: batch,
        lambda _: lambda argument: (argument is value) != negated,
        strict=False,
    )


FUNCTIONS = (
    Function("and", _resolve_logic, _folded(pc.and_kleene), _and_row, strict=False, symbol="AND"),
    Function("or", _resolve_logic, _folded(pc.or_kleene), _or_row, strict=False, symbol="OR"),
    Function("not", fixed([BOOLEAN], BOOLEAN), lambda _: pc.invert, lambda _: lambda value: not value, symbol="NOT"),
    Function("is null", _resolve_any, lambda _: pc.is_null, lambda _: lambda value: value is None, strict=False),
    Function(
        "is not null", _resolve_any, lambda _: pc.is_valid, lambda _: lambda value: value is not None, strict=False
    ),
    _test("is true", True, negated=False),
    _test("is not true", True, negated=True),
    _test("is false", False, negated=False),
    _test("is not false", False, negated=True),
    Function("coalesce", resolve_same, lambda _: pc.coalesce, _coalesce_row, strict=False),
)
