"""What is written of an aggregate: sqlglot hangs DISTINCT, ORDER BY, FILTER and WITHIN GROUP on different places."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.dataclass import dataclass
from remuda.errors import grouping_error, parsing_error, unknown_function
from remuda.sql.parse.spans import span_of, unsupported

if TYPE_CHECKING:
    from remuda.errors import Span

AGGREGATE_NODES: dict[type[exp.Expression], str] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Min: "min",
    exp.Max: "max",
    exp.Avg: "avg",
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
    exp.CountIf: "count_if",
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
    exp.Median: "median",
    exp.GroupConcat: "string_agg",
    exp.AnyValue: "any_value",
    exp.First: "first",
    exp.Last: "last",
    exp.BitwiseAndAgg: "bit_and",
    exp.BitwiseOrAgg: "bit_or",
    exp.BitwiseXorAgg: "bit_xor",
    exp.ApproxDistinct: "approx_count_distinct",
    exp.ArgMin: "arg_min",
    exp.ArgMax: "arg_max",
    exp.Mode: "mode",
    exp.Corr: "corr",
    exp.CovarPop: "covar_pop",
    exp.CovarSamp: "covar_samp",
    exp.Quantile: "quantile_disc",
    exp.PercentileCont: "quantile_cont",
    exp.PercentileDisc: "quantile_disc",
}

AGGREGATE_NAMES = {
    "arbitrary": "any_value",
    "every": "bool_and",
    "product": "product",
    "listagg": "string_agg",
    "quantile_cont": "quantile_cont",
    "quantile_disc": "quantile_disc",
}
"""Those for which sqlglot has no node."""

AGGREGATE_TITLES: dict[type[exp.Expression], str] = {
    exp.Stddev: "STDDEV",
    exp.Variance: "VARIANCE",
    exp.PercentileCont: "PERCENTILE_CONT",
    exp.PercentileDisc: "PERCENTILE_DISC",
    exp.Quantile: "QUANTILE",
}
"""What those are called in messages that are known by another name than their function's."""

_QUANTILES = frozenset({"quantile_cont", "quantile_disc"})


@dataclass(frozen=True, slots=True)
class WrittenAggregate:
    """An aggregate call as written. `constant` is a separator or a fraction, still to be bound."""

    name: str
    title: str
    """Its name as the user knows it."""
    span: Span | None
    arguments: tuple[Any, ...]
    distinct: bool = False
    order: tuple[Any, ...] = ()
    condition: Any = None
    constant: Any = None
    fraction: float | None = None
    counts_true: bool = False
    is_row: bool = False
    """Whether its argument is a row, `(a, b)`."""
    skips_nulls: bool = False
    """Whether a row with a NULL in it does not count."""


def is_aggregate(node: exp.Expression) -> bool:
    return type(node) in AGGREGATE_NODES or (
        isinstance(node, exp.Anonymous) and str(node.this).casefold() in AGGREGATE_NAMES
    )


def read_aggregate(node: Any) -> WrittenAggregate:
    """Takes the parts from where they hang; `node` may be FILTER or WITHIN GROUP around the call."""
    span = span_of(node)
    condition = within = None
    while isinstance(node, exp.Filter | exp.WithinGroup):
        if isinstance(node, exp.Filter):
            condition = node.expression.this
        else:
            within = node.expression
        node = node.this
    if not is_aggregate(node):
        around = "FILTER" if condition is not None else "WITHIN GROUP"
        raise grouping_error(f"{around} belongs to an aggregate", span=span)
    operands, distinct, order = _operands(node)
    if isinstance(node, exp.Anonymous):
        title = str(node.this).upper()
        name = AGGREGATE_NAMES[title.casefold()]
    else:
        name = AGGREGATE_NODES[type(node)]
        title = AGGREGATE_TITLES.get(type(node), name.upper())
    if within is not None:
        if order or (distinct and name != "string_agg"):
            what = "an ORDER BY of its own" if order else "DISTINCT"
            raise unknown_function(f"{title} with WITHIN GROUP does not take {what}", span=span_of(node))
        entries = tuple(within.expressions)
        return replace(_within_group(name, title, span_of(node), operands, entries, condition), distinct=distinct)
    constant = None
    if name in _QUANTILES:
        constant = node.args.get("quantile") or (operands.pop() if len(operands) > 1 else None)
    elif name == "string_agg":
        constant = node.args.get("separator") or (operands.pop() if len(operands) > 1 else None)
    return _simplified(name, title, span_of(node), operands, distinct, order, condition, constant)


def _operands(node: Any) -> tuple[list[Any], bool, tuple[Any, ...]]:
    named = [] if isinstance(node, exp.Anonymous) else [node.this, node.args.get("expression")]
    operands = [part for part in (*named, *node.expressions) if part is not None]
    distinct, order = False, ()
    for _ in range(2):  # ORDER BY around DISTINCT, or at the last of several arguments
        for ordinal, part in enumerate(operands):
            if isinstance(part, exp.Order):
                if part.this is None:
                    raise parsing_error("ORDER BY stands behind an argument", span=span_of(node))
                order = tuple(part.expressions)
                operands[ordinal] = part.this
            elif isinstance(part, exp.Distinct):
                if part.args.get("on") is not None:
                    raise unsupported(node, "DISTINCT ON within an aggregate")
                distinct = True
                operands[ordinal : ordinal + 1] = part.expressions
    return [part for part in operands if not isinstance(part, exp.Star)], distinct, order


def _within_group(
    name: str, title: str, span: Span | None, operands: list[Any], order: tuple[Any, ...], condition: Any
) -> WrittenAggregate:
    if name == "string_agg":
        constant = operands.pop() if len(operands) > 1 else None
        return WrittenAggregate(name, title, span, tuple(operands), False, order, condition, constant)
    if name not in {*_QUANTILES, "mode"} or len(order) != 1:
        raise unknown_function(f"{title} does not take WITHIN GROUP with this ORDER BY", span=span)
    if len(operands) > (name != "mode"):
        raise unknown_function(f"{title} takes no further arguments beside WITHIN GROUP", span=span_of(operands[-1]))
    constant = operands[0] if operands else None
    return WrittenAggregate(name, title, span, (order[0].this,), order=order, condition=condition, constant=constant)


def _simplified(
    name: str,
    title: str,
    span: Span | None,
    operands: list[Any],
    distinct: bool,
    order: tuple[Any, ...],
    condition: Any,
    constant: Any,
) -> WrittenAggregate:
    """Aggregates that are another one in other words."""
    arguments = tuple(operands)
    match name:
        case "count_if":
            return WrittenAggregate("count", title, span, arguments, distinct, order, condition, counts_true=True)
        case "approx_count_distinct":
            return WrittenAggregate("count", title, span, arguments, True, order, condition)
        case "median":
            return WrittenAggregate("quantile_cont", title, span, arguments, distinct, order, condition, fraction=0.5)
        case _:
            return WrittenAggregate(name, title, span, arguments, distinct, order, condition, constant)
