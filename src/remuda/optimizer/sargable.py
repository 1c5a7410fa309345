"""Sargable predicates: the conjuncts of a filter that bound a single column, for an index or pruning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.dataclass import dataclass, replace
from remuda.expr import (
    FALSE,
    TRUE,
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    conjuncts,
    disjuncts,
    is_constant,
)
from remuda.expr.column_comparison import MIRRORED, recognise
from remuda.expr.functions.strings import following, like_prefix
from remuda.optimizer.narrowed_bounds import BOUNDING, narrowed_bound, rounded_bound
from remuda.plan.bounds import Bound, End, Interval, Points, Prefix, Ranges, bound_of
from remuda.sql.bind.expression.exact_comparison import compare
from remuda.types import Kind, is_widening

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class SargablePredicate:
    """`conjunct` is true only for rows whose column lies within `bound`; where it is `exact`, for all of them."""

    column: str
    bound: Bound
    conjunct: Expression
    source: Column
    """The column itself, where its name alone does not tell which map's it is."""
    exact: bool = True
    tight: bool = True
    """Whether nearly all rows within the bound pass, where it is not exact."""


SargablePredicates = dict[str, list[SargablePredicate]]


def find_sargable(filter_: Expression | None) -> SargablePredicates:
    """Return the sargable predicates of each column, in the order of the filter.

    `a = 1 AND b > 2 AND b < 4` gives a: [=1], b: [>2], [<4].
    """
    found: SargablePredicates = {}
    for conjunct in conjuncts(filter_):
        predicate = as_sargable(conjunct)
        if predicate is not None:
            found.setdefault(predicate.column, []).append(predicate)
    return found


def as_sargable(conjunct: Expression) -> SargablePredicate | None:
    if isinstance(conjunct, Call) and conjunct.function in {"like", "starts_with"}:
        return _begins(conjunct)
    named = _column_and_bound(conjunct)
    if named is not None:
        return SargablePredicate(named[0].name, named[1], conjunct, named[0])
    rounded = rounded_bound(conjunct)
    if rounded is None:
        return None
    return SargablePredicate(rounded[0].name, rounded[1], conjunct, rounded[0], exact=False)


def _begins(conjunct: Call) -> SargablePredicate | None:
    """Return the range of a prefix: `f LIKE 'abc%'` lies from 'abc' up to 'abd'.

    `f LIKE 'abc%x'` does too, but has to be evaluated as well.
    """
    column, pattern = conjunct.arguments[:2]
    if not isinstance(column, Column) or not is_constant(pattern) or len(conjunct.arguments) > 2:
        return None
    if not isinstance(pattern, Literal):
        if conjunct.function != "like":
            return None
        return SargablePredicate(column.name, Prefix(pattern), conjunct, column, exact=False, tight=False)
    if pattern.value is None:
        return None
    prefix, pure = like_prefix(pattern.value) if conjunct.function == "like" else (pattern.value, True)
    if not prefix:
        return None
    high = following(prefix)
    highs = () if high is None else (End(Literal(high, pattern.type), inclusive=False),)
    return SargablePredicate(
        column.name,
        Interval((End(Literal(prefix, pattern.type), inclusive=True),), highs),
        conjunct,
        column,
        exact=pure,
        tight=pure,
    )


def _column_and_bound(predicate: Expression) -> tuple[Column, Bound] | None:
    match predicate:
        case Column() if predicate.type.kind is Kind.BOOLEAN:
            return predicate, Points((TRUE,))
        case Call(function="not", arguments=(Column() as column,)):
            return column, Points((FALSE,))
        case Call(function="or"):
            return _union(predicate)
        case Call(function="in", arguments=(Column() as column, *values)) if all(
            is_constant(value) for value in values
        ):
            return column, Points(tuple(values))
        case Call(arguments=(Column() as column,)) if predicate.function in _TESTS:
            return column, _TESTS[predicate.function]
        case Call() if (comparison := recognise(predicate)) is not None:
            bound = bound_of(comparison)
            return None if bound is None else (comparison.column, bound)
        case Call(arguments=(Cast(argument=Column() as column) as cast, Literal() as value)) if (
            predicate.function in BOUNDING and value.value is not None and is_widening(column.type, cast.type)
        ):
            # The same question of the column itself; where no value of its type can answer it, it is none.
            narrowed = compare(predicate.function, column, value, predicate.span)
            return None if narrowed == predicate else _column_and_bound(narrowed)
        case Call(arguments=(Cast(argument=Column() as column) as cast, value)) if (
            predicate.function in BOUNDING
            and is_constant(value)
            and column.type.is_integer
            and value.type == cast.type
            and is_widening(column.type, cast.type)
        ):
            return column, narrowed_bound(predicate.function, value, column.type)
        case Call(arguments=(value, Cast(argument=Column()) as cast)) if predicate.function in BOUNDING and is_constant(
            value
        ):
            mirrored = replace(predicate, function=MIRRORED[predicate.function], arguments=(cast, value))
            return _column_and_bound(mirrored)
        case Call(function="in", arguments=(Cast(argument=Column()) as cast, *values)):
            return _union_of([replace(predicate, function="=", arguments=(cast, value)) for value in values])
        case Call(function="is null" | "is not null", arguments=(Cast(argument=Column() as column) as cast,)) if (
            is_widening(column.type, cast.type)
        ):
            return column, _TESTS[predicate.function]
    return None


_TESTS: dict[str, Bound] = {
    "is null": Points((), or_null=True),
    "is not null": Interval(),
    "is true": Points((TRUE,)),
    "is false": Points((FALSE,)),
    "is not true": Points((FALSE,), or_null=True),
    "is not false": Points((TRUE,), or_null=True),
}


def _union(predicate: Expression) -> tuple[Column, Bound] | None:
    """Return the bound of `f = 1 OR f = 2 OR f IS NULL` or `f < 3 OR (f > 5 AND f < 7)`: one column throughout."""
    return _union_of(disjuncts(predicate))


def _union_of(branches: Iterable[Expression]) -> tuple[Column, Bound] | None:
    parts: list[Points | Interval] = []
    shared: Column | None = None
    for branch in branches:
        named = _branch(branch)
        if named is None or (shared is not None and named[0] != shared):
            return None
        shared = named[0]
        parts.extend(named[1])
    if shared is None:
        return None
    points = [part for part in parts if isinstance(part, Points)]
    if len(points) < len(parts):
        return shared, Ranges(tuple(dict.fromkeys(parts)))
    values = tuple(dict.fromkeys(value for part in points for value in part.values))
    return shared, Points(values, or_null=any(part.or_null for part in points))


def _branch(branch: Expression) -> tuple[Column, tuple[Points | Interval, ...]] | None:
    """Return one branch of an OR: a bound, or several ranges that must all hold and so are one."""
    conditions = conjuncts(branch)
    if len(conditions) == 1:
        named = _column_and_bound(branch)
        if named is None or isinstance(named[1], Prefix):
            return None
        return named[0], named[1].parts if isinstance(named[1], Ranges) else (named[1],)
    found = [as_sargable(condition) for condition in conditions]
    ranges = [each for each in found if each is not None and each.exact and isinstance(each.bound, Interval)]
    if len(ranges) < len(conditions) or any(each.source != ranges[0].source for each in ranges):
        return None
    return ranges[0].source, (merge_intervals(ranges),)


def merge_intervals(predicates: list[SargablePredicate]) -> Interval:
    """Several ranges on one column are one range; the tightest of its ends is found when the values are known."""
    lows = tuple(
        end for predicate in predicates if isinstance(predicate.bound, Interval) for end in predicate.bound.lows
    )
    highs = tuple(
        end for predicate in predicates if isinstance(predicate.bound, Interval) for end in predicate.bound.highs
    )
    return Interval(lows, highs)
