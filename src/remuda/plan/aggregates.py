"""Aggregate functions: their types, and how each is split into a part on the members and a rest at the root."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from remuda.dataclass import dataclass
from remuda.types import BIGINT, BOOLEAN, DOUBLE, MAXIMUM_PRECISION, VARCHAR, Kind, SqlType, decimal

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.errors import Span
    from remuda.expr import Column
    from remuda.plan.traits import Collation


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """`function(argument)`; `argument` is absent for COUNT(*)."""

    column: Column
    function: str
    argument: Column | None = None
    distinct: bool = False
    second: Column | None = None
    """What ARG_MIN and ARG_MAX are the least and greatest by; the other column of CORR and COVAR; FILTER of FIRST."""
    order: Collation = ()
    """The order of the rows in which STRING_AGG joins them, and of which FIRST is the first; of values that are equally
    good for MODE and ARG_MIN the first one in this order is taken."""
    parameters: tuple[Any, ...] = ()
    """Constants: the separator of STRING_AGG; the fraction of QUANTILE, and whether it counts from the highest."""
    span: Span | None = field(default=None, compare=False, repr=False)
    """Where it is written: a sum that overflows is an error of this place."""

    @property
    def arguments(self) -> tuple[Column, ...]:
        return tuple(column for column in (self.argument, self.second) if column is not None)

    @property
    def needed(self) -> frozenset[int]:
        """The ids of the columns that it reads, those of its order included."""
        return frozenset({column.id for column in self.arguments} | {key.column for key in self.order})

    @property
    def splits(self) -> bool:
        """Whether partial results of parts of the rows can be merged; not of DISTINCT: parts may share a value."""
        return not self.distinct and bool(AGGREGATES[self.function].partials)


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """`partials` are the functions whose results, merged, give this one; `merges` merges each of them.

    One without partials is computed from all rows of a group at once.
    """

    name: str
    result: Callable[[SqlType | None], SqlType | None]
    partials: tuple[str, ...] = ()
    merges: tuple[str, ...] = ()
    second: Callable[[SqlType | None], SqlType | None] | None = None
    """Of the second argument, where there is one: None where its type is not taken."""
    ordered: bool = False
    """Whether the order of the rows matters."""
    ignores_repetition: bool = False
    """Whether a value that comes twice changes nothing, so that DISTINCT says nothing."""
    keeps_nulls: bool = False
    """Whether a NULL is a value as any other. What leaves rows out is then a second argument, NULL for those."""


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
    """Return the type of AVG; of DECIMALs with four digits more after the point, as far as there are 38."""
    if argument is None or not argument.is_numeric:
        return None
    if argument.kind is not Kind.DECIMAL:
        return DOUBLE
    return decimal(min(argument.precision + 4, MAXIMUM_PRECISION), min(argument.scale + 4, MAXIMUM_PRECISION))


def _same_type(argument: SqlType | None) -> SqlType | None:
    return None if argument is None or argument.is_interval else argument


def _boolean_type(argument: SqlType | None) -> SqlType | None:
    return argument if argument == BOOLEAN else None


def _double_type(argument: SqlType | None) -> SqlType | None:
    return DOUBLE if argument is not None and argument.is_numeric else None


def _integer_type(argument: SqlType | None) -> SqlType | None:
    return argument if argument is not None and argument.is_integer else None


def _text_type(argument: SqlType | None) -> SqlType | None:
    return VARCHAR if argument is not None and argument.kind is not Kind.VARBINARY else None


AGGREGATES: dict[str, AggregateFunction] = {
    function.name: function
    for function in (
        AggregateFunction("count", _count_type, ("count",), ("sum",)),
        AggregateFunction("sum", _sum_type, ("sum",), ("sum",)),
        AggregateFunction("min", _same_type, ("min",), ("min",), ignores_repetition=True),
        AggregateFunction("max", _same_type, ("max",), ("max",), ignores_repetition=True),
        AggregateFunction("bool_and", _boolean_type, ("min",), ("min",), ignores_repetition=True),
        AggregateFunction("bool_or", _boolean_type, ("max",), ("max",), ignores_repetition=True),
        AggregateFunction("avg", _average_type, ("sum", "count"), ("sum", "sum")),
        AggregateFunction("any_value", _same_type, ("any_value",), ("any_value",), ignores_repetition=True),
        AggregateFunction("bit_and", _integer_type, ("bit_and",), ("bit_and",), ignores_repetition=True),
        AggregateFunction("bit_or", _integer_type, ("bit_or",), ("bit_or",), ignores_repetition=True),
        AggregateFunction("bit_xor", _integer_type, ("bit_xor",), ("bit_xor",)),
        AggregateFunction("product", _double_type, ("product",), ("product",)),
        AggregateFunction("stddev_samp", _double_type),
        AggregateFunction("stddev_pop", _double_type),
        AggregateFunction("var_samp", _double_type),
        AggregateFunction("var_pop", _double_type),
        AggregateFunction("quantile_cont", _double_type),
        AggregateFunction("quantile_disc", _same_type),
        AggregateFunction("mode", _same_type, ordered=True),
        AggregateFunction("string_agg", _text_type, ordered=True),
        AggregateFunction("first", _same_type, ordered=True, ignores_repetition=True, keeps_nulls=True),
        AggregateFunction("last", _same_type, ordered=True, ignores_repetition=True, keeps_nulls=True),
        AggregateFunction("arg_min", _same_type, second=_same_type, ordered=True, ignores_repetition=True),
        AggregateFunction("arg_max", _same_type, second=_same_type, ordered=True, ignores_repetition=True),
        AggregateFunction("corr", _double_type, second=_double_type),
        AggregateFunction("covar_pop", _double_type, second=_double_type),
        AggregateFunction("covar_samp", _double_type, second=_double_type),
    )
}


def partial_type(function: str, call: AggregateCall) -> SqlType:
    """Return the type of one partial result of a call."""
    argument = None if call.argument is None else call.argument.type
    result = AGGREGATES[function].result(argument)
    assert result is not None, "the binder resolved the call"
    return result
