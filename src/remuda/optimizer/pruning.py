"""Partition pruning, symbolically: whether a filter names, for every partitioning column, the values that can matter.

A filter is *partition-complete* if it is `E1 OR E2 OR ...` where each `Ei` bounds every partitioning column by
equalities, or by a two-ended range of a type whose values can be counted. The partitions themselves are found when
the parameters are known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.expr import Expression, conjunction, conjuncts, disjuncts
from remuda.optimizer.candidates import Candidate, find_candidates, merge_intervals
from remuda.plan.bounds import Bound, Points, Pruning
from remuda.types import Kind, SqlType

if TYPE_CHECKING:
    from remuda.catalog import MapDefinition

MAXIMUM_ALTERNATIVES = 1_000


def prune(definition: MapDefinition, filter_: Expression | None) -> Pruning | None:
    """None where the filter is not partition-complete, or the map is on every member anyway."""
    if filter_ is None or definition.replicated:
        return None
    alternatives = _alternatives(definition, filter_)
    return None if alternatives is None else Pruning(definition.partitioned_by, tuple(dict.fromkeys(alternatives)))


def _alternatives(definition: MapDefinition, filter_: Expression) -> list[tuple[Bound, ...]] | None:
    direct = _complete(definition, filter_)
    if direct is not None:
        return [direct]
    parts = conjuncts(filter_)
    for part in parts:
        branches = disjuncts(part)
        if not 1 < len(branches) <= MAXIMUM_ALTERNATIVES:
            continue
        # (E1 OR E2) AND rest: every branch together with the rest must be complete.
        rest = [other for other in parts if other is not part]
        found: list[tuple[Bound, ...]] = []
        for branch in branches:
            whole = conjunction([branch, *rest])
            below = None if whole is None else _alternatives(definition, whole)
            if below is None:
                break
            found.extend(below)
        else:
            return found
    return None


def _complete(definition: MapDefinition, filter_: Expression) -> tuple[Bound, ...] | None:
    """The bounds of all partitioning columns by the conjuncts alone."""
    candidates = find_candidates(filter_)
    bounds: list[Bound] = []
    for column in definition.partitioned_by:
        bound = _countable(candidates.get(column, []), definition.column(column).type)
        if bound is None:
            return None
        bounds.append(bound)
    return tuple(bounds)


def _countable(candidates: list[Candidate], type_: SqlType) -> Bound | None:
    """Equalities before ranges; NULL is never in a key, so `or_null` adds nothing."""
    points = [candidate.bound for candidate in candidates if isinstance(candidate.bound, Points)]
    if points:
        best = min(points, key=lambda bound: len(bound.values))
        return Points(best.values)
    interval = merge_intervals(candidates)
    countable = type_.is_integer or type_.kind is Kind.DATE
    return interval if countable and interval.lows and interval.highs else None


def expected_partitions(pruning: Pruning | None, partitions: int) -> float:
    """How many partitions are probably left, for costs."""
    if pruning is None:
        return partitions
    total = sum(_combinations(alternative) for alternative in pruning.alternatives)
    return min(partitions, max(1.0, total))


TYPICAL_RANGE = 10.0
"""Values in a countable range whose ends are not known at planning."""


def _combinations(alternative: tuple[Bound, ...]) -> float:
    product = 1.0
    for bound in alternative:
        product *= len(bound.values) if isinstance(bound, Points) else TYPICAL_RANGE
    return product
