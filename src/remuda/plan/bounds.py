"""What a filter says about one column, kept symbolic: expressions of literals and parameters, valued at execution.

The same values describe the reach of an index scan, of a key lookup and of partition pruning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from remuda.dataclass import dataclass

if TYPE_CHECKING:
    from remuda.expr import Expression
    from remuda.expr.column_comparison import ColumnComparison


MAXIMUM_RANGE = 1_000
"""A range of more values prunes nothing: their partitions would be nearly all there are."""
MAXIMUM_COMBINATIONS = 10_000
"""The same of the values of several columns, all with all."""
MAXIMUM_WRITTEN_ROWS = 32
"""Rows of VALUES whose partitions are computed before a statement runs, in some 10 µs each. Of more rows nearly every
member has one."""


@dataclass(frozen=True, slots=True)
class Points:
    """`column = e` or `column IN (e1, e2, ...)`; a value that turns out NULL matches nothing.

    `or_null` adds the rows in which the column is NULL, which is what IS NULL asks for.
    """

    values: tuple[Expression, ...]
    or_null: bool = False

    @property
    def is_single(self) -> bool:
        return len(self.values) + self.or_null == 1


@dataclass(frozen=True, slots=True)
class End:
    value: Expression
    inclusive: bool


@dataclass(frozen=True, slots=True)
class Interval:
    """`lows` and `highs` may hold several ends each: the tightest is found when the values are known.

    Without any end it is every value but NULL.
    """

    lows: tuple[End, ...] = ()
    highs: tuple[End, ...] = ()


@dataclass(frozen=True, slots=True)
class Prefix:
    """`column LIKE pattern` where the pattern is known only at execution: all values that begin as the pattern does.

    They are more than those that match, so the LIKE is asked as well.
    """

    pattern: Expression


@dataclass(frozen=True, slots=True)
class Ranges:
    """`column < 3 OR column BETWEEN 5 AND 7 OR column = 9`: the values of any of the parts, each once.

    With `nulls_last` NULL, where it is among them, comes behind all other values, not before them.
    """

    parts: tuple[Points | Interval, ...]
    nulls_last: bool = False


Bound = Points | Interval | Prefix | Ranges


def bound_of(comparison: ColumnComparison) -> Points | Interval | None:
    """Return what a comparison says of its column; None for `<>`, which bounds nothing."""
    return Points((comparison.value,)) if comparison.operator == "=" else interval_of(comparison)


def interval_of(comparison: ColumnComparison) -> Interval | None:
    """Return `bound_of` as an interval; `=` is an interval of a single value."""
    sign = comparison.operator
    end = End(comparison.value, inclusive=sign in {"=", "<=", ">="})
    match sign:
        case "=":
            return Interval((end,), (end,))
        case "<" | "<=":
            return Interval(highs=(end,))
        case ">" | ">=":
            return Interval(lows=(end,))
    return None


@dataclass(frozen=True, slots=True)
class Pruning:
    """The filter is partition-complete: each alternative bounds every partitioning column, in order.

    A row that passes the filter lies in a partition of some combination of values of some alternative.
    """

    columns: tuple[str, ...]
    alternatives: tuple[tuple[Bound, ...], ...]
    conjuncts: tuple[Expression, ...] = ()
    """The conjuncts of the filter that the only alternative states in full: EXPLAIN tells them from other filters."""

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return tuple(each for bounds in self.alternatives for bound in bounds for each in bound_expressions(bound))


def bound_expressions(bound: Bound) -> tuple[Expression, ...]:
    """Return the expressions whose values the bound waits for."""
    match bound:
        case Points():
            return bound.values
        case Interval():
            return tuple(end.value for end in (*bound.lows, *bound.highs))
        case Prefix():
            return (bound.pattern,)
        case Ranges():
            return tuple(each for part in bound.parts for each in bound_expressions(part))
        case _:
            assert_never(bound)
