"""Classes of values: for which values of its parameters a plan is good, by the shares of rows that they leave.

    every f JOIN buyers b ON f.cust = b.number WHERE f.region = ? AND f.amount > ?

`'APAC'` leaves one row in 10,000 and `'EMEA'` seven in ten. An access path is chosen at execution; the order of joins,
and what is looked up or held, is not. So a plan of several relations knows the bounds within which lie more or fewer
rows by the values, and values that leave about as many share a plan.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from remuda.expr import Expression, Literal, Parameter, parameters_of
from remuda.optimizer.estimates.selectivity import bound_selectivity, has_unknown_values
from remuda.optimizer.sargable import find_sargable, merge_intervals
from remuda.plan import logical
from remuda.plan.bounds import Bound, End, Interval, Points, bound_expressions
from remuda.plan.fragments import ValueBounds
from remuda.plan.walk import walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from remuda.catalog import MapDefinition, MapStatistics
    from remuda.optimizer.sargable import SargablePredicate

CLASS_FACTOR = 4.0
"""The shares of one class differ by this factor at most."""
FEWEST_ROWS = 0.5
"""Fewer expected rows than this are as good as none."""


def value_bounds(tree: logical.Root, statistics: Mapping[str, MapStatistics]) -> tuple[ValueBounds, ...]:
    """Return for each scan the bounds whose shares depend on values; none where there is nothing to join."""
    scans = [node for node in walk(tree) if isinstance(node, logical.Scan)]
    if len(scans) < 2:
        return ()
    found: dict[ValueBounds, None] = {}
    for scan in scans:
        if scan.filter is None or not parameters_of(scan.filter):
            continue
        known = statistics[scan.map.id].columns
        bounds = tuple(
            (name, bound)
            for name, predicates in find_sargable(scan.filter).items()
            for bound in _bounds(predicates)
            if _is_of_values(bound) and name in known and has_unknown_values(bound, known[name])
        )
        if bounds:
            found[ValueBounds(scan.map, bounds)] = None
    return tuple(found)


def _bounds(predicates: list[SargablePredicate]) -> Iterable[Bound]:
    """Return the bounds of a column, all ranges as one."""
    ranges = [each for each in predicates if isinstance(each.bound, Interval)]
    yield from (each.bound for each in predicates if isinstance(each.bound, Points))
    if ranges:
        yield merge_intervals(ranges)


def _is_of_values(bound: Bound) -> bool:
    return all(isinstance(each, Literal | Parameter) for each in bound_expressions(bound))


def class_of_values(
    bounds: tuple[ValueBounds, ...], values: tuple[Any, ...], statistics: Callable[[MapDefinition], MapStatistics]
) -> tuple[int, ...]:
    """Return the class of these stored values: for each scan the logarithm of the share of rows that they leave."""
    found = []
    for each in bounds:
        known = statistics(each.map)
        share = math.prod(
            bound_selectivity(_valued(bound, values), known.columns.get(name)) for name, bound in each.bounds
        )
        least = min(1.0, FEWEST_ROWS / max(1, known.rows))
        found.append(round(math.log(max(share, least), CLASS_FACTOR)))
    return tuple(found)


def _valued(bound: Bound, values: tuple[Any, ...]) -> Bound:
    """Return a bound with its parameters' values."""

    def literal(expression: Expression) -> Expression:
        return Literal(values[expression.index], expression.type) if isinstance(expression, Parameter) else expression

    if isinstance(bound, Points):
        return Points(tuple(map(literal, bound.values)), bound.or_null)
    assert isinstance(bound, Interval), "of points and ranges alone"
    lows, highs = (tuple(End(literal(end.value), end.inclusive) for end in ends) for ends in (bound.lows, bound.highs))
    return Interval(lows, highs)
