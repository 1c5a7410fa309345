"""Which conjuncts of a filter say something about a single column that an index or pruning can use."""

from __future__ import annotations

from dataclasses import dataclass

from remuda.expr import FALSE, TRUE, Call, Column, Expression, conjuncts, disjuncts, is_constant
from remuda.plan.bounds import Bound, End, Interval, Points
from remuda.types import Kind

MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Candidate:
    """`conjunct` is true for exactly the rows whose column lies within `bound`."""

    column: str
    bound: Bound
    conjunct: Expression


Candidates = dict[str, list[Candidate]]


def find_candidates(filter_: Expression | None) -> Candidates:
    """The candidates of each column, in the order of the filter.

    `a = 1 AND b > 2 AND b < 4` gives a: [=1], b: [>2], [<4].
    """
    found: Candidates = {}
    for conjunct in conjuncts(filter_):
        candidate = as_candidate(conjunct)
        if candidate is not None:
            found.setdefault(candidate.column, []).append(candidate)
    return found


def as_candidate(conjunct: Expression) -> Candidate | None:
    named = _column_and_bound(conjunct)
    return None if named is None else Candidate(named[0].name, named[1], conjunct)


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
        case Call(arguments=(Column() as column, value)) if predicate.function in MIRRORED and is_constant(value):
            return column, _comparison(predicate.function, value)
        case Call(arguments=(value, Column() as column)) if predicate.function in MIRRORED and is_constant(value):
            return column, _comparison(MIRRORED[predicate.function], value)
    return None


_TESTS: dict[str, Bound] = {
    "is null": Points((), or_null=True),
    "is not null": Interval(),
    "is true": Points((TRUE,)),
    "is false": Points((FALSE,)),
    "is not true": Points((FALSE,), or_null=True),
    "is not false": Points((TRUE,), or_null=True),
}


def _comparison(operator: str, value: Expression) -> Bound:
    match operator:
        case "=":
            return Points((value,))
        case ">" | ">=":
            return Interval(lows=(End(value, operator == ">="),))
        case _:
            return Interval(highs=(End(value, operator == "<="),))


def _union(predicate: Expression) -> tuple[Column, Bound] | None:
    """`f = 1 OR f = 2 OR f IS NULL`: one column throughout, equalities throughout."""
    values: list[Expression] = []
    or_null = False
    shared: Column | None = None
    for branch in disjuncts(predicate):
        named = _column_and_bound(branch)
        if named is None or not isinstance(named[1], Points) or (shared is not None and named[0] != shared):
            return None
        shared = named[0]
        values.extend(named[1].values)
        or_null = or_null or named[1].or_null
    return None if shared is None else (shared, Points(tuple(dict.fromkeys(values)), or_null))


def merge_intervals(candidates: list[Candidate]) -> Interval:
    """Several ranges on one column are one range; the tightest of its ends is found when the values are known."""
    lows = tuple(
        end for candidate in candidates if isinstance(candidate.bound, Interval) for end in candidate.bound.lows
    )
    highs = tuple(
        end for candidate in candidates if isinstance(candidate.bound, Interval) for end in candidate.bound.highs
    )
    return Interval(lows, highs)
