"""The operators of both sides of a hash join, and what one tells the other (`wanted_keys.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from remuda.exec.join.runtime_filter import CodeWithin, RuntimeFilter, RuntimeFilterExec
from remuda.exec.join.spooled_probe import MOST_ROWS, LeftFirstExec
from remuda.exec.parallel import in_parallel
from remuda.expr import Column
from remuda.plan import physical
from remuda.plan.joins import JoinKind
from remuda.plan.walk import walk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from remuda.exec.expression_cache import ExpressionCache
    from remuda.exec.operator import Exec

FEWEST_RIGHT_ROWS = 50_000
"""A right side of fewer rows is held before much could be saved."""
LEFT_SHARE = 0.25
"""The left side is read first where it is expected to have no more than this share of the right side's rows."""
NEEDS_MATCH = {JoinKind.INNER, JoinKind.SEMI, JoinKind.RIGHT}
"""Joins of which a left row that has no match needs not come."""
ONLY_MATCHES = {JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI, JoinKind.SINGLE}
"""Joins to which a right row that has no match makes no difference. MARK asks whether there is any row, or a NULL."""


class Asked(NamedTuple):
    """What the left side is told when the right one has been read: its rows are asked for by some of the join's keys.

    `rows` is how many rows of the left side are expected to be asked.
    """

    wanted: RuntimeFilter
    keys: tuple[int, ...]
    rows: float


class _Place(NamedTuple):
    """A node whose rows can be asked, which of the join's keys they have, and as what columns."""

    node: Any
    keys: tuple[int, ...]
    columns: tuple[Column, ...]


def build_sides(
    node: physical.HashJoin, code: ExpressionCache, build: Callable[[Any, ExpressionCache], Exec]
) -> tuple[Exec, Exec, Asked | None]:
    """`build` makes the operator of a node."""
    if _reads_left_first(node):
        wanted = RuntimeFilter()
        rights = _Place(node.right, tuple(range(len(node.keys))), tuple(key.right for key in node.keys))
        place = _below_groups(rights) or rights
        keys = [node.keys[number] for number in place.keys]
        left = LeftFirstExec(in_parallel(build(node.left, code)), node.left.columns, keys, wanted)
        return left, in_parallel(build(node.right, _asking(place, wanted, code))), None
    right = in_parallel(build(node.right, code))
    lefts = _Place(node.left, tuple(range(len(node.keys))), tuple(key.left for key in node.keys))
    found = _below_groups(lefts) if node.keys and node.kind in NEEDS_MATCH else None
    if found is None:
        return build(node.left, code), right, None
    wanted = RuntimeFilter()
    left_side = build(node.left, _asking(found, wanted, code))
    return left_side, right, Asked(wanted, found.keys, found.node.estimate.rows)


def _asking(place: _Place, wanted: RuntimeFilter, code: ExpressionCache) -> CodeWithin:
    columns = place.node.columns
    return CodeWithin(code, place.node, lambda source: RuntimeFilterExec(source, columns, place.columns, wanted))


def _reads_left_first(node: physical.HashJoin) -> bool:
    """Not where rows of the left side come from senders: one that waits for another receiver of theirs, which waits
    for the right side, would wait forever."""
    left: Any = node.left
    right: Any = node.right
    few, many = left.estimate.rows, right.estimate.rows
    return (
        node.kind in ONLY_MATCHES
        and bool(node.keys)
        and many >= FEWEST_RIGHT_ROWS
        and 0 < few <= min(MOST_ROWS, LEFT_SHARE * many)
        and not any(isinstance(each, physical.Receive) for each in walk(left))
    )


def _below_groups(place: _Place) -> _Place | None:
    """The input of an aggregate by the keys of whose groups its rows can be asked; None where there is none.

    A group whose key is not wanted needs not be made. A row left out of a group that is wanted would make it another.
    """
    match place.node:
        case physical.Filter():
            return _below_groups(place._replace(node=place.node.input))
        case physical.Project():
            known = {item.column.id: item.expression for item in place.node.assignments}
            return _below_groups(_as(place, place.node.input, [known[column.id] for column in place.columns]))
        case physical.HashAggregate(phase=physical.Phase.COMPLETE) | physical.StreamingAggregate():
            keys = {column.id for column in place.node.keys}
            below = _as(place, place.node.input, [column if column.id in keys else None for column in place.columns])
            return (_below_groups(below) or below) if below.keys else None
        case _:
            return None


def _as(place: _Place, node: Any, columns: Sequence[Any]) -> _Place:
    """The same keys of another node, as far as they are columns of it."""
    kept = [(key, column) for key, column in zip(place.keys, columns, strict=True) if isinstance(column, Column)]
    return _Place(node, tuple(key for key, _ in kept), tuple(column for _, column in kept))
