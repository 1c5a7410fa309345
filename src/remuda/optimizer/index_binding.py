"""Binding candidates to an index: which bounds it can serve, and what remains of the filter.

For `a = 1 AND b > 2 AND b < 4` and SORTED(a, b): a = 1, 2 < b < 4, nothing remains. For SORTED(a, c): a = 1, and
`b > 2 AND b < 4` remains. For HASH(a, b): unusable, as HASH needs every column by equality.
"""

from __future__ import annotations

from dataclasses import dataclass

from remuda.catalog import IndexDefinition, IndexKind
from remuda.expr import Expression, conjunction, conjuncts
from remuda.optimizer.candidates import Candidate, Candidates, merge_intervals
from remuda.plan.bounds import Bound, Interval, Points


@dataclass(frozen=True, slots=True)
class BoundIndex:
    """`bounds` for the leading columns of the index; `used AND remainder` is equivalent to the filter.

    `used` is what the bounds stand for exactly; beside it they may only leave out rows that the remainder rejects.
    """

    index: IndexDefinition
    bounds: tuple[Bound, ...]
    used: Expression | None
    remainder: Expression | None


def bind_index(index: IndexDefinition, filter_: Expression | None, candidates: Candidates) -> BoundIndex | None:
    """None where the index cannot serve any part of the filter."""
    bounds: list[Bound] = []
    used: list[Expression] = []
    for column in index.columns:
        chosen = _choose(candidates.get(column, []), ranges=index.kind is IndexKind.SORTED)
        if chosen is None:
            break
        bound, conjuncts_used = chosen
        bounds.append(bound)
        used.extend(conjuncts_used)
        if not (isinstance(bound, Points) and bound.is_single):
            break
    if not bounds or (index.kind is IndexKind.HASH and len(bounds) < len(index.columns)):
        return None
    remainder = conjunction(part for part in conjuncts(filter_) if part not in used)
    return BoundIndex(index, tuple(bounds), conjunction(used), remainder)


def _choose(candidates: list[Candidate], *, ranges: bool) -> tuple[Bound, list[Expression]] | None:
    """In this order: one equality, a union of equalities, all ranges together, a union of ranges.

    A candidate that is not exact is bound, and asked again as part of the remainder.
    """
    points = [(candidate, candidate.bound) for candidate in candidates if isinstance(candidate.bound, Points)]
    for candidate, bound in sorted(points, key=lambda pair: not pair[1].is_single):
        return bound, [candidate.conjunct]
    intervals = [candidate for candidate in candidates if isinstance(candidate.bound, Interval)]
    if ranges and intervals:
        return merge_intervals(intervals), [candidate.conjunct for candidate in intervals if candidate.exact]
    for candidate in candidates if ranges else ():
        return candidate.bound, [candidate.conjunct] if candidate.exact else []
    return None


def bind_key(
    key: tuple[str, ...], filter_: Expression | None, candidates: Candidates
) -> tuple[tuple[Points, ...], Expression | None] | None:
    """The points of every key column, and what remains of the filter; None where a key column has none."""
    points: list[Points] = []
    used: list[Expression] = []
    for column in key:
        chosen = _choose(candidates.get(column, []), ranges=False)
        if chosen is None or not isinstance(chosen[0], Points) or chosen[0].or_null:
            return None
        points.append(chosen[0])
        used.extend(chosen[1])
    return tuple(points), conjunction(part for part in conjuncts(filter_) if part not in used)
