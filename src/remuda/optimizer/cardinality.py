"""How many rows come out: from statistics where there are any, else from fixed selectivities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

from remuda.expr import Call, Column, Expression, Literal, conjuncts, disjuncts
from remuda.optimizer.candidates import Candidate, as_candidate, merge_intervals
from remuda.plan import logical
from remuda.plan.bounds import Bound, Interval, Points

if TYPE_CHECKING:
    from remuda.catalog import ColumnStatistics, MapStatistics

EQUALITY = 0.15
COMPARISON = 0.5
NOT_NULL = 0.9
ANYTHING_ELSE = 0.25
"""Shares of rows that pass, where nothing is known about the values."""

UNKNOWN_LIMIT = 100.0
"""Rows behind a LIMIT whose value is a parameter."""


def selectivity(predicate: Expression | None, statistics: MapStatistics | None) -> float:
    """The share of rows that pass. Ranges of one column are taken together, all else as independent."""
    share = 1.0
    ranges: dict[str, list[Candidate]] = {}
    for conjunct in conjuncts(predicate):
        candidate = as_candidate(conjunct)
        if candidate is not None and isinstance(candidate.bound, Interval):
            ranges.setdefault(candidate.column, []).append(candidate)
        else:
            share *= _conjunct_selectivity(conjunct, candidate, statistics)
    for column, candidates in ranges.items():
        share *= bound_selectivity(merge_intervals(candidates), _known(column, statistics))
    return share


def _known(column: str, statistics: MapStatistics | None) -> ColumnStatistics | None:
    return None if statistics is None else statistics.columns.get(column)


def _conjunct_selectivity(conjunct: Expression, candidate: Candidate | None, statistics: MapStatistics | None) -> float:
    if candidate is not None:
        return bound_selectivity(candidate.bound, _known(candidate.column, statistics))
    if isinstance(conjunct, Call) and conjunct.function == "or":
        return min(1.0, sum(selectivity(branch, statistics) for branch in disjuncts(conjunct)))
    if isinstance(conjunct, Call) and conjunct.function == "<>" and statistics is not None:
        return 1.0 - EQUALITY
    return COMPARISON if isinstance(conjunct, Call) and conjunct.function in {"<", "<=", ">", ">="} else ANYTHING_ELSE


def bound_selectivity(bound: Bound, known: ColumnStatistics | None) -> float:
    match bound:
        case Points():
            one = EQUALITY if known is None or not known.distinct else (1.0 - known.null_share) / known.distinct
            nulls = EQUALITY if known is None else known.null_share
            return min(1.0, one * len(bound.values) + nulls * bound.or_null)
        case Interval(lows=(), highs=()):
            return NOT_NULL if known is None else 1.0 - known.null_share
        case Interval():
            covered = None if known is None else _covered_share(bound, known)
            return COMPARISON ** bool(bound.lows) * COMPARISON ** bool(bound.highs) if covered is None else covered
        case _:
            assert_never(bound)


def _covered_share(bound: Interval, known: ColumnStatistics) -> float | None:
    """The part of [minimum, maximum] that a range with literal ends covers; None where that cannot be told."""
    low, high = known.minimum, known.maximum
    if not isinstance(low, int | float) or not isinstance(high, int | float) or not high > low:
        return None
    ends = (*bound.lows, *bound.highs)
    if not all(isinstance(end.value, Literal) and isinstance(end.value.value, int | float) for end in ends):
        return None
    start = max([low, *(_number(end.value) for end in bound.lows)])
    stop = min([high, *(_number(end.value) for end in bound.highs)])
    return float(max(0.0, min(1.0, (stop - start) / (high - low))) * (1.0 - known.null_share))


def _number(expression: Expression) -> Any:
    assert isinstance(expression, Literal)
    return expression.value


def has_unknown_values(bound: Bound) -> bool:
    """Whether a parameter decides how much of the column the bound covers."""
    match bound:
        case Points():
            return False
        case Interval():
            return any(not isinstance(end.value, Literal) for end in (*bound.lows, *bound.highs))
        case _:
            assert_never(bound)


def estimate_rows(node: logical.LogicalNode, input_rows: float, statistics: dict[str, MapStatistics]) -> float:
    """Rows of an operator from the rows of its input; statistics by map id."""
    match node:
        case logical.Scan():
            known = statistics.get(node.map.id)
            return (0.0 if known is None else known.rows) * selectivity(node.filter, known)
        case logical.Values():
            return float(len(node.rows))
        case logical.Filter():
            return input_rows * selectivity(node.condition, None)
        case logical.Project() | logical.Sort() | logical.Root():
            return input_rows
        case logical.Aggregate():
            return 1.0 if not node.keys else max(1.0, min(input_rows, _groups(node.keys, input_rows, statistics)))
        case logical.Limit():
            count = float(node.count.value) if isinstance(node.count, Literal) else UNKNOWN_LIMIT
            return input_rows if node.count is None else min(input_rows, count)
        case logical.Modify():
            return 1.0
        case _:
            assert_never(node)


def _groups(keys: tuple[Column, ...], input_rows: float, statistics: dict[str, MapStatistics]) -> float:
    groups = 1.0
    for key in keys:
        distinct = [known.columns[key.name].distinct for known in statistics.values() if key.name in known.columns]
        groups *= next((float(count) for count in distinct if count), input_rows**0.5)
    return groups
