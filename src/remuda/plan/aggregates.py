"""Aggregate functions: their types, and how each is split into a part on the members and a rest at the root."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from remuda.types import BIGINT, BOOLEAN, DOUBLE, MAXIMUM_PRECISION, Kind, SqlType, decimal

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.expr import Column


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """`function(argument)`; `argument` is absent for COUNT(*)."""

    column: Column
    function: str
    argument: Column | None = None
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """`partials` are the functions whose results, merged, give this one; `merges` merges each of them."""

    name: str
    result: Callable[[SqlType | None], SqlType | None]
    partials: tuple[str, ...]
    merges: tuple[str, ...]


def _count_type(_: SqlType | None) -> SqlType | None:
    return BIGINT


def _sum_type(argument: SqlType | None) -> SqlType | None:
    if argument is None or not argument.is_numeric:
        return None
    if argument.kind is Kind.BIGINT:
        return decimal(38, 0)
    if argument.is_integer:
        return BIGINT
    return decimal(38, argument.scale) if argument.kind is Kind.DECIMAL else DOUBLE


def _average_type(argument: SqlType | None) -> SqlType | None:
    """Of DECIMALs: a DECIMAL with four digits more after the point, as far as there are 38."""
    if argument is None or not argument.is_numeric:
        return None
    if argument.kind is not Kind.DECIMAL:
        return DOUBLE
    return decimal(min(argument.precision + 4, MAXIMUM_PRECISION), min(argument.scale + 4, MAXIMUM_PRECISION))


def _same_type(argument: SqlType | None) -> SqlType | None:
    return None if argument is None or argument.is_interval else argument


def _boolean_type(argument: SqlType | None) -> SqlType | None:
    return argument if argument == BOOLEAN else None


AGGREGATES: dict[str, AggregateFunction] = {
    function.name: function
    for function in (
        AggregateFunction("count", _count_type, ("count",), ("sum",)),
        AggregateFunction("sum", _sum_type, ("sum",), ("sum",)),
        AggregateFunction("min", _same_type, ("min",), ("min",)),
        AggregateFunction("max", _same_type, ("max",), ("max",)),
        AggregateFunction("bool_and", _boolean_type, ("min",), ("min",)),
        AggregateFunction("bool_or", _boolean_type, ("max",), ("max",)),
        AggregateFunction("avg", _average_type, ("sum", "count"), ("sum", "sum")),
    )
}


def partial_type(function: str, call: AggregateCall) -> SqlType:
    """The type of one partial result of a call."""
    argument = None if call.argument is None else call.argument.type
    result = AGGREGATES[function].result(argument)
    assert result is not None, "the binder resolved the call"
    return result
