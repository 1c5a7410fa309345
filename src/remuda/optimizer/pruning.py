"""Partition pruning, symbolically: whether a filter names, for every partitioning column, the values that can matter.

A filter is *partition-complete* if it is `E1 OR E2 OR ...` where each `Ei` bounds every partitioning column by
equalities, or by a two-ended range of a type whose values can be counted. The partitions themselves are found when
the parameters are known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.expr import Expression, Literal, columns_of, conjunction, conjuncts, disjuncts
from remuda.optimizer.sargable import SargablePredicate, find_sargable, merge_intervals
from remuda.plan.bounds import MAXIMUM_COMBINATIONS, MAXIMUM_RANGE, Bound, Interval, Points, Pruning
from remuda.types import Kind, SqlType

if TYPE_CHECKING:
    from remuda.catalog import MapDefinition

MAXIMUM_ALTERNATIVES = 1_000


def prune(definition: MapDefinition, filter_: Expression | None) -> Pruning | None:
    """Prune a scan; None where the filter is not partition-complete, or the map is on every member anyway."""
    if filter_ is None or definition.replicated:
        return None
    alternatives = _alternatives(definition, definition.partitioned_by, filter_)
    if alternatives is None:
        return None
    distinct = tuple(dict.fromkeys(alternatives))
    if sum(_combinations(alternative, unknown=0.0) for alternative in distinct) > MAXIMUM_COMBINATIONS:
        return None
    return Pruning(definition.partitioned_by, distinct, _stated(filter_, definition.partitioned_by, distinct))


def key_alternatives(
    definition: MapDefinition, filter_: Expression | None
) -> tuple[tuple[tuple[Points, ...], ...], Expression | None] | None:
    """Return the keys of every branch of an OR, and what remains of the filter; None where a branch has no whole key.

    `(a = 1 AND b = 2) OR (a = 3 AND b = 4 AND x > 5)` over the key (a, b) has two keys. Each row that passes has one of
    them, and not each row that has one passes: all of the filter remains. Where an OR says nothing but keys, its own
    keys are looked up and the rest of the filter remains, other ORs of keys included.
    """
    parts = conjuncts(filter_)
    if filter_ is None or not any(len(disjuncts(part)) > 1 for part in parts):
        return None
    whole = next((part for part in parts if _has_only_keys(definition, part)), None)
    found = _alternatives(definition, definition.key, filter_ if whole is None else whole)
    if not found:
        return None
    keys = [tuple(bound for bound in each if isinstance(bound, Points)) for each in found]
    if any(len(key) < len(definition.key) for key in keys):
        return None
    residual = filter_ if whole is None else conjunction(part for part in parts if part is not whole)
    return tuple(dict.fromkeys(keys)), residual


def _has_only_keys(definition: MapDefinition, part: Expression) -> bool:
    """Test whether every branch of an OR has `=` or IN for each column of the key, once, and nothing else."""
    return all(_is_whole_key(definition, branch) for branch in disjuncts(part))


def _is_whole_key(definition: MapDefinition, branch: Expression) -> bool:
    predicates = find_sargable(branch)
    bounds = [each.bound for name in definition.key for each in predicates.get(name, ()) if each.exact]
    points = [bound for bound in bounds if isinstance(bound, Points) and not bound.or_null]
    return len(points) == len(definition.key) == len(predicates) == len(conjuncts(branch))


def _stated(
    filter_: Expression, columns: tuple[str, ...], alternatives: tuple[tuple[Bound, ...], ...]
) -> tuple[Expression, ...]:
    """Return the conjuncts that a single alternative states in full; several are an OR with parts of its own."""
    if len(alternatives) != 1:
        return ()
    bounds = dict(zip(columns, alternatives[0], strict=True))
    return tuple(
        each.conjunct
        for name, predicates in find_sargable(filter_).items()
        for each in predicates
        if each.exact and name in bounds and _is_part(each.bound, bounds[name])
    )


def _is_part(bound: Bound, whole: Bound) -> bool:
    if isinstance(bound, Interval) and isinstance(whole, Interval):
        return True  # all ranges of a column are merged
    return isinstance(bound, Points) and isinstance(whole, Points) and bound.values == whole.values


def _alternatives(
    definition: MapDefinition, columns: tuple[str, ...], filter_: Expression
) -> list[tuple[Bound, ...]] | None:
    """Return the alternatives: `(E1 OR E2) AND rest` is complete where every branch together with the rest is.

    One OR is taken apart at a time, and none twice: where another order would succeed, this one does. An OR with a
    branch that says nothing of a missing column is left whole, as that branch would have to be complete without it.
    """
    bounds = _bounds(definition, columns, filter_)
    missing = {name for name, bound in bounds.items() if bound is None}
    if not missing:
        return [tuple(bound for bound in bounds.values() if bound is not None)]
    parts = conjuncts(filter_)
    chosen = next((part for part in parts if _says_something_of(missing, part)), None)
    if chosen is None:
        return None
    rest = [part for part in parts if part is not chosen]
    found: list[tuple[Bound, ...]] = []
    for branch in disjuncts(chosen):
        whole = conjunction([branch, *rest])
        assert whole is not None
        below = _alternatives(definition, columns, whole)
        if below is None or len(found) + len(below) > MAXIMUM_ALTERNATIVES:
            return None
        found.extend(below)
    return found


def _says_something_of(missing: set[str], part: Expression) -> bool:
    """Test for an OR whose branches all name a missing column."""
    branches = disjuncts(part)
    return len(branches) > 1 and all(
        any(column.name in missing for column in columns_of(branch).values()) for branch in branches
    )


def _bounds(definition: MapDefinition, columns: tuple[str, ...], filter_: Expression) -> dict[str, Bound | None]:
    """Return the bounds that the conjuncts alone give each of these columns of a key."""
    predicates = find_sargable(filter_)
    return {name: _countable(predicates.get(name, []), definition.column(name).type) for name in columns}


def _countable(predicates: list[SargablePredicate], type_: SqlType) -> Bound | None:
    """Equalities before ranges; NULL is never in a key, so `or_null` adds nothing."""
    points = [predicate.bound for predicate in predicates if isinstance(predicate.bound, Points)]
    if points:
        best = min(points, key=lambda bound: len(bound.values))
        return Points(best.values)
    interval = merge_intervals(predicates)
    countable = type_.is_integer or type_.kind is Kind.DATE
    return interval if countable and interval.lows and interval.highs and not _is_too_long(interval) else None


def _is_too_long(interval: Interval) -> bool:
    """Test whether a range is known to have so many values that it prunes nothing."""
    length = _length(interval)
    return length is not None and length > MAXIMUM_RANGE


def _length(interval: Interval) -> int | None:
    """Return how many values a range of literals has; None where parameters decide."""
    lows = [_literal(end.value, 0 if end.inclusive else 1) for end in interval.lows]
    highs = [_literal(end.value, 0 if end.inclusive else -1) for end in interval.highs]
    first = [low for low in lows if low is not None]
    last = [high for high in highs if high is not None]
    known = len(first) == len(lows) and len(last) == len(highs)
    return max(0, min(last) - max(first) + 1) if known else None


def _literal(value: Expression, change: int) -> int | None:
    return value.value + change if isinstance(value, Literal) and isinstance(value.value, int) else None


def expected_partitions(pruning: Pruning | None, partitions: int) -> float:
    """Estimate how many partitions are left, for costs."""
    if pruning is None:
        return partitions
    total = sum(_combinations(alternative, TYPICAL_RANGE) for alternative in pruning.alternatives)
    return min(partitions, max(1.0, total))


TYPICAL_RANGE = 10.0
"""Values in a countable range whose ends are not known at planning."""


def _combinations(alternative: tuple[Bound, ...], unknown: float) -> float:
    """Return how many combinations of values there are, with so many for a range that parameters decide."""
    product = 1.0
    for bound in alternative:
        length = _length(bound) if isinstance(bound, Interval) else None
        product *= len(bound.values) if isinstance(bound, Points) else unknown if length is None else length
    return product
