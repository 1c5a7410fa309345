"""Binding an index: which bounds its columns get from a filter, and what remains of the filter.

For `a = 1 AND b > 2 AND b < 4` and SORTED(a, b): a = 1, 2 < b < 4, nothing remains. For SORTED(a, c): a = 1, and `b
> 2 AND b < 4` remains. For HASH(a, b): unusable, as HASH needs every column by equality.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.dataclass import dataclass
from remuda.expr import Expression, conjunction, conjuncts
from remuda.optimizer.cost import INDEX_ROW
from remuda.optimizer.sargable import SargablePredicate, SargablePredicates, merge_intervals
from remuda.plan.bounds import Bound, Interval, Points

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remuda.catalog import IndexDefinition


@dataclass(frozen=True, slots=True)
class BoundIndex:
    """`bounds` for the leading columns of the index; `used AND residual` is equivalent to the filter.

    `used` is what the bounds stand for exactly; beside it they may only leave out rows that the residual rejects.
    """

    index: IndexDefinition
    bounds: tuple[Bound, ...]
    used: Expression | None
    residual: Expression | None


def bind_index(index: IndexDefinition, filter_: Expression | None, predicates: SargablePredicates) -> BoundIndex | None:
    """Bind a filter to an index; None where the index cannot serve any part of it."""
    bounds: list[Bound] = []
    used: list[Expression] = []
    for column in index.columns:
        chosen = _choose(predicates.get(column, []), ranges=index.type.serves.ranges)
        if chosen is None:
            break
        bound, conjuncts_used = chosen
        bounds.append(bound)
        used.extend(conjuncts_used)
        if not (isinstance(bound, Points) and bound.is_single):
            break
    if not bounds or (len(bounds) < len(index.columns) and not index.type.serves.leading_columns):
        return None
    residual = conjunction(part for part in conjuncts(filter_) if part not in used)
    return BoundIndex(index, tuple(bounds), conjunction(used), residual)


def _choose(predicates: list[SargablePredicate], *, ranges: bool) -> tuple[Bound, list[Expression]] | None:
    """Choose one equality, else a union of equalities, all ranges together, or a union of ranges.

    A predicate that is not exact is bound, and evaluated again as part of the residual.
    """
    points = [(predicate, predicate.bound) for predicate in predicates if isinstance(predicate.bound, Points)]
    for predicate, bound in sorted(points, key=lambda pair: not pair[1].is_single):
        return bound, [predicate.conjunct] if predicate.exact else []
    intervals = [predicate for predicate in predicates if isinstance(predicate.bound, Interval)]
    if ranges and intervals:
        return merge_intervals(intervals), [predicate.conjunct for predicate in intervals if predicate.exact]
    for predicate in predicates if ranges else ():
        return predicate.bound, [predicate.conjunct] if predicate.exact else []
    return None


def bind_key(
    key: tuple[str, ...], filter_: Expression | None, predicates: SargablePredicates
) -> tuple[tuple[Points, ...], Expression | None] | None:
    """Bind every key column to points; return them and the residual, or None where a key column has none."""
    points: list[Points] = []
    used: list[Expression] = []
    for column in key:
        chosen = _choose(predicates.get(column, []), ranges=False)
        if chosen is None or not isinstance(chosen[0], Points) or chosen[0].or_null:
            return None
        points.append(chosen[0])
        used.extend(chosen[1])
    return tuple(points), conjunction(part for part in conjuncts(filter_) if part not in used)


def undominated(bounds: list[BoundIndex]) -> list[BoundIndex]:
    """Leave out each index for which another one has all of its bounds and finds a row no slower.

    For `a = 1 AND b > 2`: SORTED(a, c), with `a = 1`, is dominated by SORTED(a, b), and SORTED(a) by HASH(a) for
    `a = 1` alone. All of the given indexes deliver the order that is required. Of equal ones the first stays.
    """
    kept: list[BoundIndex] = []
    for bound in sorted(bounds, key=lambda each: (INDEX_ROW[each.index.type], -len(each.bounds))):
        if not any(_has_bounds(other, bound) for other in kept):
            kept.append(bound)
    return kept


def beside(best: BoundIndex, others: Iterable[BoundIndex]) -> tuple[BoundIndex, ...]:
    """Return those of the others that may have fewer entries than the best: not one all of whose bounds it has too."""
    return tuple(other for other in others if not _has_bounds(best, other))


def _has_bounds(one: BoundIndex, other: BoundIndex) -> bool:
    own = dict(zip(one.index.columns, one.bounds, strict=False))
    return all(own.get(name) == bound for name, bound in zip(other.index.columns, other.bounds, strict=False))
