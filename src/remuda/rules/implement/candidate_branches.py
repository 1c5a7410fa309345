"""Finds in a join's condition what narrows the pairs to compare, where no equality holds for all of them.

    l.a = r.a OR l.b = r.b                         two hash tables of the right side, by a and by b
    l.a IN (r.a, r.b)                              the same as l.a = r.a OR l.a = r.b
    l.a = r.a OR (l.a IS NULL AND r.a IS NULL)     a hash table, and the rows of either side that have no value
    r.low <= l.a AND l.a <= r.high                 the right rows in the order of `low`, or of `high`

The condition itself is still evaluated for every pair that is found.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from remuda.dataclass import dataclass
from remuda.expr import Call, Expression, can_fail, columns_of, conjunction, conjuncts, disjuncts, is_volatile
from remuda.plan.joins import CandidateBranch, SideComparison
from remuda.types import BOOLEAN, Kind, SqlType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from remuda.expr import Column

MOST_BRANCHES = 8
_MIRRORED = {"=": "=", "is not distinct from": "is not distinct from", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_EQUALITIES = {"=", "is not distinct from"}
_ORDERED_KINDS = {
    Kind.TINYINT,
    Kind.SMALLINT,
    Kind.INTEGER,
    Kind.BIGINT,
    Kind.REAL,
    Kind.DOUBLE,
    Kind.DATE,
    Kind.TIMESTAMP,
    Kind.TIMESTAMP_TZ,
}
"""Kinds whose values are integers, or become integers, that are in the same order."""


def candidate_branches(
    condition: Expression | None, left: Sequence[Column], right: Sequence[Column]
) -> tuple[CandidateBranch, ...]:
    """Return branches that together find every pair that can meet the condition; none if all pairs must be compared."""
    if condition is None:
        return ()
    sides = _Sides(frozenset(column.id for column in left), frozenset(column.id for column in right))
    parts = conjuncts(condition)
    plain = [part for part in parts if len(_alternatives(part)) == 1]
    base = sides.branch(plain)
    found: tuple[CandidateBranch, ...] = (base,) if base.ranges else ()
    for part in parts:
        alternatives = _alternatives(part)
        if not 1 < len(alternatives) <= MOST_BRANCHES:
            continue
        branches = tuple(sides.branch([*conjuncts(each), *plain]) for each in alternatives)
        if all(branch.equalities for branch in branches):
            return branches
        if not found and all(branch != CandidateBranch() for branch in branches):
            found = branches
    return found


def _alternatives(part: Expression) -> tuple[Expression, ...]:
    """Return the branches of an OR; x IN (y, z) is x = y OR x = z where y and z are no constants."""
    if isinstance(part, Call) and part.function == "in":
        value, *candidates = part.arguments
        if any(columns_of(candidate) for candidate in candidates):
            return tuple(Call("=", (value, candidate), BOOLEAN) for candidate in candidates)
    return tuple(disjuncts(part))


@dataclass(slots=True)
class _Found:
    equalities: list[SideComparison] = field(default_factory=list)
    ranges: list[SideComparison] = field(default_factory=list)
    left: list[Expression] = field(default_factory=list)
    right: list[Expression] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Sides:
    """The column ids of both sides of a join."""

    left: frozenset[int]
    right: frozenset[int]

    def branch(self, parts: Iterable[Expression]) -> CandidateBranch:
        """Sort conjuncts by what they compare; one that mixes the sides otherwise, or can fail, narrows nothing."""
        found = _Found()
        for part in parts:
            named = columns_of(part).keys()
            if not named or can_fail(part) or is_volatile(part):
                continue
            if named <= self.left:
                found.left.append(part)
            elif named <= self.right:
                found.right.append(part)
            else:
                self._add_comparison(part, found)
        return CandidateBranch(
            tuple(found.equalities), tuple(found.ranges), conjunction(found.left), conjunction(found.right)
        )

    def _add_comparison(self, part: Expression, found: _Found) -> None:
        match part:
            case Call(function=operator, arguments=(first, second)) if operator in _MIRRORED:
                if first.type != second.type:
                    return
                one, other = columns_of(first).keys(), columns_of(second).keys()
                if one and other and one <= self.left and other <= self.right:
                    comparison = SideComparison(first, operator, second)
                elif one and other and one <= self.right and other <= self.left:
                    comparison = SideComparison(second, _MIRRORED[operator], first)
                else:
                    return
                if operator in _EQUALITIES:
                    found.equalities.append(comparison)
                elif _has_order(first.type):
                    found.ranges.append(comparison)


def _has_order(type_: SqlType) -> bool:
    return type_.kind in _ORDERED_KINDS
