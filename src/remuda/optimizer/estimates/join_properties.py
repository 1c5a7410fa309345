"""What is known of the rows of a join: keys that stay keys, equal columns, and what a match tells of a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.dataclass import replace
from remuda.expr import Call, Column, columns_of, conjuncts
from remuda.optimizer.estimates.join_cardinality import join_rows
from remuda.optimizer.estimates.properties import Origin, Properties, UniqueKey
from remuda.plan.joins import JoinKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from remuda.catalog import ColumnStatistics
    from remuda.plan import logical


CERTAIN_SHARE = 0.9
"""A join that leaves more of the rows is taken to leave all combinations of their values."""
PICKED_SHARE = 0.01
"""A SEMI join, a join with one row, or a condition over several relations picks rows if it leaves no more of them."""


def join_properties(node: logical.Join, left: Properties, right: Properties) -> Properties:
    rows = join_rows(node, left, right)
    kind = node.kind
    if kind is JoinKind.SEMI:
        left = picked(left, rows / max(1.0, left.rows))
        left = replace(left, origins=_referring(node, left, right, node.right.columns, rows))
    if not kind.delivers_right:
        return replace(left, rows=rows, partitionings=left.partitionings)
    if kind is JoinKind.INNER:
        left, right = _picked_by_one_row(left, right, rows), _picked_by_one_row(right, left, rows)
    columns = {**left.columns, **right.columns}
    if kind is JoinKind.INNER:
        columns.update(_equal_columns(node, left, right))
    # A column that an outer join fills with NULLs no longer says where its row is.
    partitionings = (
        *(() if kind.keeps_right else left.partitionings),
        *(() if kind.keeps_left else right.partitionings),
    )
    keys = _joined_keys(node, left, right)
    origins = _referring(node, left, right, node.right.columns, rows)
    origins += _referring(node, right, left, node.left.columns, rows)
    return Properties(rows, columns, keys, partitionings, origins=origins)


def picked(source: Properties, share: float) -> Properties:
    """Return the properties of rows of which so many are left by values that only the execution knows."""
    if share >= PICKED_SHARE:
        return source
    return replace(source, keys=tuple(replace(key, picked=True) for key in source.keys))


def _picked_by_one_row(side: Properties, other: Properties, rows: float) -> Properties:
    """Return the properties of a side of which the other one, a single row, picks rows: `week = (SELECT week ...)`."""
    return side if other.unique_within(frozenset()) is None else picked(side, rows / max(1.0, side.rows))


def _referring(
    node: logical.Join, side: Properties, other: Properties, columns: tuple[Column, ...], rows: float
) -> tuple[Origin, ...]:
    """Return the origins of a side whose rows each meet one row of the other side, which has these columns, or none."""
    met = _references(node, {column.id for column in columns})
    has_one = node.kind is JoinKind.INNER and other.unique_within(set(met.values())) is not None
    if not met or not (has_one or node.kind is JoinKind.SEMI):
        return side.origins
    share = min(1.0, rows / max(1.0, side.rows))
    told = columns if has_one else ()
    return tuple(_with_reference(each, met, told, share) for each in side.origins)


def _references(node: logical.Join, other: set[int]) -> dict[int, int]:
    """Return the columns that are set equal to columns of the other side, each with that."""
    found: dict[int, int] = {}
    for part in conjuncts(node.condition):
        match part:
            case Call(function="=", arguments=(Column(id=one), Column(id=two))) if (one in other) is not (two in other):
                own, referred = (two, one) if one in other else (one, two)
                found[own] = referred
    return found


def _with_reference(origin: Origin, met: Mapping[int, int], told: tuple[Column, ...], share: float) -> Origin:
    """Return an origin whose columns tell those of another map, and of whose rows this share has a match there."""
    if not origin.told_by.keys() >= met.keys():
        return origin
    names = frozenset(origin.told_by[id_] for id_ in met)
    reductions = origin.reductions if share > CERTAIN_SHARE else (*origin.reductions, (names, share))
    told_by = origin.told_by
    if len(names) == 1:
        (name,) = names
        told_by = {**told_by, **dict.fromkeys((column.id for column in told), name)}
    return replace(origin, told_by=told_by, reductions=reductions)


def _equal_columns(node: logical.Join, left: Properties, right: Properties) -> dict[int, ColumnStatistics]:
    """Give equal columns the values of the one that has fewer.

    So the rows of a join do not depend on the order in which its parts are joined.
    """
    found: dict[int, ColumnStatistics] = {}
    for part in conjuncts(node.condition):
        if isinstance(part, Call) and part.function == "=":
            known = [
                (statistics, statistics.distinct)
                for side in part.arguments
                if isinstance(side, Column)
                and (statistics := left.columns.get(side.id) or right.columns.get(side.id)) is not None
                and statistics.distinct is not None
            ]
            if len(known) == 2:
                fewer = min(known, key=lambda pair: pair[1])[0]
                found.update((side.id, fewer) for side in part.arguments if isinstance(side, Column))
    return found


def _joined_keys(node: logical.Join, left: Properties, right: Properties) -> tuple[UniqueKey, ...]:
    """Return the keys of a join: a key of the left side where each left row has one match at most, and vice versa."""
    keys: list[UniqueKey] = []
    if not node.kind.keeps_right:
        once = node.kind is JoinKind.SINGLE or _matches_once(node, right, node.right.columns)
        keys.extend(left.keys if once else ())
    if not node.kind.keeps_left and _matches_once(node, left, node.left.columns):
        keys.extend(right.keys)
    return tuple(keys)


def _matches_once(node: logical.Join, side: Properties, columns: tuple[Column, ...]) -> bool:
    """Test whether the condition equates all columns of a unique key of the side with the other side."""
    own = {column.id for column in columns}
    fixed: set[int] = set()
    for part in conjuncts(node.condition):
        if isinstance(part, Call) and part.function == "=":
            first, second = part.arguments
            for one, other in ((first, second), (second, first)):
                if isinstance(one, Column) and one.id in own and not own & set(columns_of(other)):
                    fixed.add(one.id)
    return side.unique_within(fixed) is not None
