"""The equalities of a join's condition: what it can look up by, and what remains to be evaluated for each pair."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.dataclass import dataclass
from remuda.expr import Call, Column, Expression, columns_of, conjunction, conjuncts

if TYPE_CHECKING:
    from collections.abc import Collection

NULL_SAFE = "is not distinct from"


@dataclass(frozen=True, slots=True)
class Equality:
    """`left = right`, each side an expression over the columns of its own side of the join, both of one type."""

    left: Expression
    right: Expression
    null_safe: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether both sides are columns: nothing has to be computed before the join."""
        return isinstance(self.left, Column) and isinstance(self.right, Column)

    def reversed(self) -> Equality:
        return Equality(self.right, self.left, self.null_safe)


def as_equality(conjunct: Expression, left: Collection[int], right: Collection[int]) -> Equality | None:
    """Return the conjunct as an equality between the sides, whose column ids are given, or None."""
    if not (isinstance(conjunct, Call) and conjunct.function in {"=", NULL_SAFE}):
        return None
    first, second = conjunct.arguments
    if first.type != second.type:
        return None
    null_safe = conjunct.function == NULL_SAFE
    if _over(first, left) and _over(second, right):
        return Equality(first, second, null_safe)
    if _over(second, left) and _over(first, right):
        return Equality(second, first, null_safe)
    return None


def _over(expression: Expression, side: Collection[int]) -> bool:
    """Test whether an expression has columns, and all of them are of this side."""
    if isinstance(expression, Column):
        return expression.id in side
    named = columns_of(expression)
    return bool(named) and all(id_ in side for id_ in named)


def split_condition(
    condition: Expression | None, left: tuple[Column, ...], right: tuple[Column, ...]
) -> tuple[tuple[Equality, ...], Expression | None]:
    """Split a condition into keys and residual: `l.a = r.b AND l.c < r.d` → (l.a = r.b), and l.c < r.d remains."""
    if condition is None:
        return (), None
    left_ids, right_ids = {column.id for column in left}, {column.id for column in right}
    equalities: list[Equality] = []
    rest: list[Expression] = []
    for part in conjuncts(condition):
        equality = as_equality(part, left_ids, right_ids)
        if equality is None:
            rest.append(part)
        else:
            equalities.append(equality)
    return tuple(equalities), conjunction(rest)
