"""How many rows a join has: by the numbers of values on either side of its equalities.

`orders JOIN customers ON orders.customer = customers.id` with 1,000,000 orders of 50,000 customers: every order finds
its one customer, 1,000,000 × 50,000 / 50,000 rows. Of the customers of one country out of 25, 2,000 are left, but the
equality is still met by one in 50,000 pairs: 1,000,000 × 2,000 / 50,000 = 40,000 rows.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from remuda.expr import Cast, Column
from remuda.optimizer.estimates.column_shares import overlap, pair_share
from remuda.optimizer.estimates.selectivity import ANYTHING_ELSE, KnownColumns, selectivity
from remuda.plan.joins import JoinKind
from remuda.rules.join_keys import Equality, split_condition
from remuda.rules.normalize.simplify import implied_by_sides

if TYPE_CHECKING:
    from remuda.catalog import ColumnStatistics
    from remuda.expr import Expression
    from remuda.optimizer.estimates.properties import Properties, UniqueKey
    from remuda.plan import logical

UNMATCHED = 0.1
"""The least share of left rows that an ANTI join keeps: that nothing is left is never sure."""

CERTAIN = 0.99
"""Histograms are estimates: so much of the values is taken for all of them."""
CONTAINED = 2.0
"""Up to so many values for each value of a unique key, all are taken to be values of the key: counts are estimates."""


def join_rows(node: logical.Join, left: Properties, right: Properties) -> float:
    equalities, rest = split_condition(node.condition, node.left.columns, node.right.columns)

    def known(column: Column) -> ColumnStatistics | None:
        return left.columns.get(column.id) or right.columns.get(column.id)

    share = equalities_selectivity(equalities, left, right) * _share_of_rest(rest, node, known)
    pairs = left.rows * right.rows * share
    match node.kind:
        case JoinKind.INNER:
            return pairs
        case JoinKind.LEFT:
            return max(pairs, left.rows)
        case JoinKind.RIGHT:
            return max(pairs, right.rows)
        case JoinKind.FULL:
            return max(pairs, left.rows, right.rows)
        case JoinKind.SEMI:
            return left.rows * _matched(equalities, left, right, pairs)
        case JoinKind.ANTI:
            return left.rows * max(UNMATCHED, 1.0 - _matched(equalities, left, right, pairs))
        case JoinKind.MARK | JoinKind.SINGLE:
            return left.rows


def _share_of_rest(rest: Expression | None, node: logical.Join, known: KnownColumns) -> float:
    """Return the share of pairs that meet what is no equality; what an OR says of one side its rows meet already.

    Of `(l.a = 1 AND r.b = 2) OR (l.a = 3 AND r.b = 4)` the rule `infer_side_filters` has left the left rows in which
    `a` is 1 or 3, and the right ones in which `b` is 2 or 4.
    """
    share = selectivity(rest, known)
    if rest is None or share <= 0.0:
        return share
    for side in (node.left, node.right):
        for implied in implied_by_sides(rest, {column.id for column in side.columns}):
            share /= max(share, selectivity(implied, known))
    return share


def equalities_selectivity(equalities: tuple[Equality, ...], left: Properties, right: Properties) -> float:
    """Return the share of pairs that meet all equalities.

    A unique key of one side within them is met by one of its values, however many of its rows are left; by fewer where
    the other side has more values, as it has beside the groups of a filtered side. Values that are picked, as the days
    of a week in a calendar of two hundred years, are among those that the other side refers to: who asks for them
    expects an answer. Other combinations have no more values than their side has rows.
    """
    if not equalities:
        return 1.0
    for side, own, other_side, other in ((right, "right", left, "left"), (left, "left", right, "right")):
        columns = {getattr(each, own).id for each in equalities if isinstance(getattr(each, own), Column)}
        key = side.unique_within(columns) if columns else None
        if key is not None:
            others = tuple(each for each in equalities if _column(getattr(each, own)) not in key.columns)
            met = [getattr(each, other) for each in equalities if each not in others]
            is_picked = key.picked and len(met) == 1
            listed = 1.0 if is_picked else CONTAINED * key.values
            values = max((other_side.distinct_left(_column(each), listed) or 1.0 for each in met), default=1.0)
            if values <= listed:
                values = max(1.0, key.values)
            if key.grouped:
                values = max(values, _domain(key, side, met, other_side))
            nulls = max((_null_share(each, other_side) for each in met), default=0.0)
            further = 1.0 - nulls
            if any(_column(getattr(each, own)) in key.extremes for each in others):
                others = tuple(each for each in others if _column(getattr(each, own)) not in key.extremes)
                further *= _share_of_extremes(met, other_side)
            further *= _backed_off(others, left, right)
            reached = _reached(key, side, met, other_side)
            if reached is not None:
                within = reached * (other_side.distinct_left(_column(met[0]), key.values / reached) or 1.0)
                return further * reached / max(1.0, key.values, within)
            return further / values
    return _backed_off(equalities, left, right)


def _share_of_extremes(met: list[Expression], other: Properties) -> float:
    """Return the share of rows that have the extreme of their group: one of each.

    `cost = (SELECT MIN(cost) ... WHERE part = o.part)` is met by one of the offers of each part.
    """
    groups = math.prod(other.distinct_left(_column(each)) or 1.0 for each in met)
    return min(1.0, groups / max(1.0, other.rows))


def _domain(key: UniqueKey, side: Properties, met: list[Expression], other: Properties) -> float:
    """Return of how many combinations the groups of the one side, and the rows of the other, are some.

    Groups by several columns are no list of all combinations that there are, as a map is of those that refer to it: of
    5,000 names and 1,800 days one year's shoppers have 3,700 combinations and another's 6,500, hardly any the same.
    """
    own = side.combinations(key.columns)
    others = other.combinations(frozenset(_column(each) for each in met))
    return max(own, others)


def _backed_off(equalities: tuple[Equality, ...], left: Properties, right: Properties) -> float:
    """Multiply the most selective share in full, each further one less: columns of one row are seldom independent."""
    shares = sorted(_pair_share(each, left, right) for each in equalities)
    return float(math.prod(share ** (0.5**ordinal) for ordinal, share in enumerate(shares)))


def _pair_share(equality: Equality, left: Properties, right: Properties) -> float:
    """Return the share of pairs that meet one equality, by most common values where both sides have them."""
    values = max(_domain_values(equality.left, left), _domain_values(equality.right, right))
    one = left.columns.get(_column(equality.left))
    other = right.columns.get(_column(equality.right))
    return 1.0 / values if one is None or other is None else pair_share(one, other, values)


def _reached(key: UniqueKey, side: Properties, met: list[Expression], other: Properties) -> float | None:
    """Return the share of the other side's values between the extremes of the key that is left; None for all of them.

    Of sales in five years out of the two hundred that a calendar has, a fifth meets the days of one of the five. Where
    the key has fewer values than there are between its extremes, as ten of them picked by a LIMIT, fewer meet one.
    """
    if len(key.columns) != 1 or len(met) != 1:
        return None
    own, reference = side.columns.get(next(iter(key.columns))), other.columns.get(_column(met[0]))
    share = None if own is None or reference is None else overlap(reference, own)
    return share if share is not None and 0.0 < share < CERTAIN else None


def _null_share(side: object, properties: Properties) -> float:
    known = properties.columns.get(_column(side))
    return 0.0 if known is None else known.null_share


def _domain_values(side: object, properties: Properties) -> float:
    return properties.combinations(frozenset([_column(side)]))


def _values(side: object, properties: Properties) -> float:
    return properties.distinct_or_guess(_column(side))


def _column(side: object) -> int:
    """Return the id of a column, also of one that is cast: its values are as many."""
    while isinstance(side, Cast):
        side = side.argument
    return side.id if isinstance(side, Column) else -1


def _matched(equalities: tuple[Equality, ...], left: Properties, right: Properties, pairs: float) -> float:
    """Return the share of left rows that find a partner."""
    if left.rows <= 0 or right.rows <= 0:
        return 0.0
    if not equalities:
        return min(1.0, pairs / left.rows) if pairs < left.rows else 1.0 - ANYTHING_ELSE
    found = min(min(1.0, _values(each.right, right) / _values(each.left, left)) for each in equalities)
    return min(found, pairs / left.rows)
