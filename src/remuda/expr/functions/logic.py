"""AND, OR, NOT, IS ..., COALESCE: the functions for which NULL is more than contagious."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from remuda.expr.function import Datum, Function, Signature, fixed
from remuda.types import BOOLEAN, Kind, SqlType, common_type
from remuda.types.arrow_compute import pc

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from remuda.expr.evaluate.row_evaluation import Row, RowExpression


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


def _and_row(_: Signature) -> Callable[[Sequence[RowExpression]], RowExpression]:
    def compose(arguments: Sequence[RowExpression]) -> RowExpression:
        def all_of(row: Row, parameters: Row) -> bool | None:
            known = True
            for argument in arguments:
                value = argument(row, parameters)
                if value is False:
                    return False
                known = known and value is not None
            return True if known else None

        return all_of

    return compose


def _or_row(_: Signature) -> Callable[[Sequence[RowExpression]], RowExpression]:
    def compose(arguments: Sequence[RowExpression]) -> RowExpression:
        def any_of(row: Row, parameters: Row) -> bool | None:
            known = True
            for argument in arguments:
                value = argument(row, parameters)
                if value:
                    return True
                known = known and value is not None
            return False if known else None

        return any_of

    return compose


def _coalesce_row(_: Signature) -> Callable[[Sequence[RowExpression]], RowExpression]:
    def compose(arguments: Sequence[RowExpression]) -> RowExpression:
        def first_of(row: Row, parameters: Row) -> Any:
            for argument in arguments:
                value = argument(row, parameters)
                if value is not None:
                    return value
            return None

        return first_of

    return compose


def _not_false(value: Datum) -> Datum:
    return pc.fill_null(value, True)


def _not_true(value: Datum) -> Datum:
    return pc.invert(pc.fill_null(value, False))


def _folded(kernel: Callable[[Datum, Datum], Datum]) -> Callable[[Signature], Callable[..., Datum]]:
    return lambda _: lambda *arguments: reduce(kernel, arguments)


def _test(name: str, value: bool, *, negated: bool) -> Function:
    """Define `b IS [NOT] TRUE` and `b IS [NOT] FALSE`, which are never NULL."""

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
    Function("and", _resolve_logic, _folded(pc.and_kleene), _and_row, strict=False, symbol="AND", undecided=_not_false),
    Function("or", _resolve_logic, _folded(pc.or_kleene), _or_row, strict=False, symbol="OR", undecided=_not_true),
    Function("not", fixed([BOOLEAN], BOOLEAN), lambda _: pc.invert, lambda _: lambda value: not value, symbol="NOT"),
    Function("is null", _resolve_any, lambda _: pc.is_null, lambda _: lambda value: value is None, strict=False),
    Function(
        "is not null", _resolve_any, lambda _: pc.is_valid, lambda _: lambda value: value is not None, strict=False
    ),
    _test("is true", True, negated=False),
    _test("is not true", True, negated=True),
    _test("is false", False, negated=False),
    _test("is not false", False, negated=True),
    Function("coalesce", resolve_same, lambda _: pc.coalesce, _coalesce_row, strict=False, undecided=pc.is_null),
)
