"""Kinds of joins, and what an equality of columns that a join looks up by is."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from remuda.dataclass import dataclass, replace
from remuda.expr import Call, Column, conjuncts

if TYPE_CHECKING:
    from collections.abc import Collection

    from remuda.expr import Expression


class JoinKind(Enum):
    """INNER to FULL are SQL's. The others come from sub-queries and deliver each left row at most once.

    SEMI, ANTI: left rows that have a match, or none.
    MARK: every left row and a BOOLEAN `mark`: what `x IN (SELECT ...)` or `EXISTS (...)` is for it, NULL included.
    SINGLE: as LEFT, but a second match of a left row is an error: a scalar sub-query that returns several rows.
    """

    INNER = "INNER"
    LEFT = "LEFT"
    RIGHT = "RIGHT"
    FULL = "FULL"
    SEMI = "SEMI"
    ANTI = "ANTI"
    MARK = "MARK"
    SINGLE = "SINGLE"

    __hash__ = object.__hash__

    @property
    def keeps_left(self) -> bool:
        """Whether a left row without a match comes out."""
        return self in _KEEP_LEFT

    @property
    def keeps_right(self) -> bool:
        return self in _KEEP_RIGHT

    @property
    def delivers_right(self) -> bool:
        """Whether the right side's columns come out."""
        return self not in _LEAVE_OUT_RIGHT

    @property
    def drops_unmatched_left(self) -> bool:
        """Whether a left row without a match makes no difference."""
        return self not in _KEEP_LEFT

    @property
    def ignores_unmatched_right(self) -> bool:
        """Whether a right row without a match makes no difference. MARK asks whether there is any row, or a NULL."""
        return self not in _NEED_RIGHT


MAXIMUM_COMPARED = 60
"""Columns of a row IN that are hashed: which of them are NULL is kept as bits of one machine word."""

_KEEP_LEFT = {JoinKind.LEFT, JoinKind.FULL, JoinKind.MARK, JoinKind.SINGLE, JoinKind.ANTI}
_KEEP_RIGHT = {JoinKind.RIGHT, JoinKind.FULL}
_LEAVE_OUT_RIGHT = {JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK}
_NEED_RIGHT = {JoinKind.RIGHT, JoinKind.FULL, JoinKind.MARK}


@dataclass(frozen=True, slots=True)
class JoinKey:
    """`left = right`, of one type; `null_safe` where NULL equals NULL (IS NOT DISTINCT FROM)."""

    left: Column
    right: Column
    null_safe: bool = False


def compared_keys(compared: Expression | None, right: Collection[int]) -> tuple[JoinKey, ...]:
    """Return the comparison of a MARK join as keys, where it is of equalities of columns only.

    `right` are ids of its columns.

    They are not among the keys of the join: a NULL in them makes the mark unknown.
    """
    keys: list[JoinKey] = []
    for part in conjuncts(compared):
        match part:
            case Call("=", (Column() as one, Column() as other)) if one.type == other.type and (one.id in right) != (
                other.id in right
            ):
                keys.append(JoinKey(other, one) if one.id in right else JoinKey(one, other))
            case _:
                return ()
    return tuple(keys) if len(keys) <= MAXIMUM_COMPARED else ()


@dataclass(frozen=True, slots=True)
class SideComparison:
    """`left operator right`, each side an expression over the columns of its own side of a join, both of one type.

    The operator is `=`, `is not distinct from`, `<`, `<=`, `>` or `>=`.
    """

    left: Expression
    operator: str
    right: Expression


@dataclass(frozen=True, slots=True)
class CandidateBranch:
    """Finds the pairs of a join that can meet one branch of an OR, without a look at all pairs.

    Pairs are found by equal values or, without equalities, by ranges of values, among the rows of each side that pass
    what the branch asks of that side alone.
    """

    equalities: tuple[SideComparison, ...] = ()
    ranges: tuple[SideComparison, ...] = ()
    left_filter: Expression | None = None
    right_filter: Expression | None = None


def joined_columns(
    kind: JoinKind, left: tuple[Column, ...], right: tuple[Column, ...], mark: Column | None
) -> tuple[Column, ...]:
    """Return the columns of a join; those of a side that may be missing are nullable."""
    if mark is not None:
        return (*left, mark)
    if not kind.delivers_right:
        return left
    return (
        *(_nullable(left) if kind.keeps_right else left),
        *(_nullable(right) if kind.keeps_left else right),
    )


def _nullable(columns: tuple[Column, ...]) -> tuple[Column, ...]:
    return tuple(column if column.nullable else replace(column, nullable=True) for column in columns)
