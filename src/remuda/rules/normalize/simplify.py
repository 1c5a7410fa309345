"""Conditions in a simpler form with the same outcome, NULL included: indexes, pruning and joins see more in them."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from remuda.expr import (
    FALSE,
    TRUE,
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Literal,
    can_fail,
    columns_of,
    conjunction,
    conjuncts,
    disjuncts,
    fold,
    rewrite,
)
from remuda.types import BOOLEAN

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

_OPPOSITES = {
    "=": "<>",
    "<>": "=",
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
    "is null": "is not null",
    "is not null": "is null",
    "is true": "is not true",
    "is not true": "is true",
    "is false": "is not false",
    "is not false": "is false",
    "is distinct from": "is not distinct from",
    "is not distinct from": "is distinct from",
}
"""`NOT (a < b)` is `a >= b`, NULL where either is: values of a type are in one line, NaN at its end."""


def simplify(condition: Expression, not_null: Callable[[], Collection[int]]) -> Expression:
    """Fold a condition: NOT moved to the comparisons, short IN lists, and no test that must succeed.

    The same object where nothing changes. `not_null` gives the columns that are never NULL; it is called only where
    something is tested for NULL.
    """
    simpler = fold(rewrite(condition, lambda node: _simplify_node(node, not_null)))
    return condition if simpler == condition else simpler


def simplify_asked(condition: Expression, not_null: Callable[[], Collection[int]]) -> Expression:
    """Simplify a condition of which only matters where it is true: false and NULL are the same.

    `a IS NOT DISTINCT FROM b` is then `a = b` where one of them is never NULL, and `CASE WHEN a IS NOT NULL THEN FALSE
    ELSE NULL END`, which is `a = 1.5` of an INTEGER, is FALSE.
    """
    simpler = simplify(condition, not_null)
    settled = fold(_settle(simpler))
    simpler = simpler if settled == simpler else settled
    parts = conjuncts(simpler)
    if not any(isinstance(part, Call) and part.function == "is not distinct from" for part in parts):
        return simpler
    known = not_null()
    plain = conjunction(_plain_equality(part, known) for part in parts)
    return simpler if plain is None or plain == simpler else plain


def _settle(condition: Expression) -> Expression:
    """Replace a choice between a constant and NULL by the constant, as far as it can be true.

    Only below AND and OR: `NOT NULL` is not true, `NOT FALSE` is.
    """
    match condition:
        case Call(function="and" | "or", arguments=parts):
            settled = tuple(map(_settle, parts))
            return condition if settled == parts else Call(condition.function, settled, BOOLEAN, condition.span)
        case Case(branches=((test, Literal(value=value)),), otherwise=Literal(value=None)) if not can_fail(test):
            return test if value else FALSE
        case _:
            return condition


def _plain_equality(part: Expression, not_null: Collection[int]) -> Expression:
    match part:
        case Call(function="is not distinct from", arguments=arguments) if any(
            _is_known(argument, not_null) for argument in arguments
        ):
            return Call("=", arguments, BOOLEAN, part.span)
        case _:
            return part


def _simplify_node(node: Expression, not_null: Callable[[], Collection[int]]) -> Expression:
    match node:
        case Call(function="not", arguments=(inner,)):
            return _negate(inner, node)
        case Call(function="is null", arguments=(Column() as column,)) if column.id in not_null():
            return FALSE
        case Call(function="is not null", arguments=(Column() as column,)) if column.id in not_null():
            return TRUE
        case Call(function="is not distinct from", arguments=(left, right)):
            plain = _is_known(left, not_null()) and _is_known(right, not_null())
            return Call("=", (left, right), BOOLEAN, node.span) if plain else node
        case Call(function="in"):
            return _shorten(node)
        case _:
            return node


def _is_known(expression: Expression, not_null: Collection[int]) -> bool:
    match expression:
        case Column():
            return expression.id in not_null
        case Literal():
            return expression.value is not None
        case _:
            return False


def _negate(inner: Expression, negated: Call) -> Expression:
    match inner:
        case Call(function="not", arguments=(twice,)):
            return twice
        case Call(function="and" | "or" as function):
            other = "or" if function == "and" else "and"
            parts = tuple(_negate(part, Call("not", (part,), BOOLEAN, negated.span)) for part in inner.arguments)
            return Call(other, parts, BOOLEAN, inner.span)
        case Call(function=function) if function in _OPPOSITES:
            return Call(_OPPOSITES[function], inner.arguments, BOOLEAN, inner.span)
        case _:
            return negated


def _shorten(node: Call) -> Expression:
    """x IN (1, 1, 2) → x IN (1, 2), x IN (1) → x = 1."""
    value, *candidates = node.arguments
    different = tuple(dict.fromkeys(candidates))
    if len(different) == 1:
        return Call("=", (value, different[0]), BOOLEAN, node.span)
    return node if len(different) == len(candidates) else Call("in", (value, *different), BOOLEAN, node.span)


def factor_common(condition: Expression) -> Expression | None:
    """(a AND b) OR (a AND c) → a AND (b OR c) in every conjunct; None where no OR has such an `a`.

    Legal in three-valued logic: AND distributes over OR there too. `a` then moves to where its columns are. Not for
    (b > 0 AND 1 / b > c) OR (b < 0 AND 1 / b > c): the division must stay behind what keeps zero from it.
    """
    changed = False
    parts: list[Expression] = []
    for part in conjuncts(condition):
        factored = _factor(part)
        changed = changed or factored is not None
        parts.append(part if factored is None else factored)
    return conjunction(parts) if changed else None


def _factor(part: Expression) -> Expression | None:
    branches = [conjuncts(branch) for branch in disjuncts(part)]
    if len(branches) < 2 or all(len(branch) == 1 for branch in branches):
        return None
    others = [frozenset(branch) for branch in branches[1:]]
    common = [conjunct for conjunct in branches[0] if all(conjunct in other for other in others)]
    if any(can_fail(conjunct) for conjunct in common):
        shared_start = list(takewhile(lambda same: all(one == same[0] for one in same), zip(*branches, strict=False)))
        common = [same[0] for same in shared_start]
    if not common:
        return None
    shared = frozenset(common)
    rests = [conjunction(conjunct for conjunct in branch if conjunct not in shared) for branch in branches]
    if any(rest is None for rest in rests):
        return conjunction(common)  # a OR (a AND b) is a
    return conjunction([*common, Call("or", tuple(rest for rest in rests if rest is not None), BOOLEAN)])


def implied_by_sides(condition: Expression, side: Collection[int]) -> Iterable[Expression]:
    """Return what an OR over several relations implies for one of them.

    (l.a = 1 AND r.b = 2) OR (l.a = 3 AND r.b = 4) says of l: l.a = 1 OR l.a = 3. It is a consequence and not the
    whole: the OR stays. What can be an error is left out: there it has its turn after the rest of its branch.
    """
    for part in conjuncts(condition):
        branches = disjuncts(part)
        if len(branches) < 2:
            continue
        own = [
            conjunction(
                conjunct for conjunct in conjuncts(branch) if _only_over(conjunct, side) and not can_fail(conjunct)
            )
            for branch in branches
        ]
        if all(branch is not None for branch in own):
            yield Call("or", tuple(dict.fromkeys(branch for branch in own if branch is not None)), BOOLEAN)


def _only_over(expression: Expression, side: Collection[int]) -> bool:
    named = columns_of(expression)
    return bool(named) and all(id_ in side for id_ in named)


_EQUAL_FOR_EQUALS = frozenset(
    {*_OPPOSITES, "and", "or", "not", "in", "coalesce", "+", "-", "*", "/", "%", "negate", "abs"}
)
"""Functions whose values are equal where their arguments are. `1 / 0.0` is an error, and so is `1 / -0.0`."""


def told_apart(expression: Expression) -> frozenset[int]:
    """Return the columns whose equal values an expression may tell apart: -0.0 = 0.0, not as texts.

    A group has one value for all its rows: an expression evaluated once for it must give the value of each row.
    """
    match expression:
        case Column() | Literal():
            return frozenset()
        case Call(function=function) if function in _EQUAL_FOR_EQUALS:
            return frozenset().union(*map(told_apart, expression.arguments))
        case Cast() if expression.type.is_numeric:
            return told_apart(expression.argument)
        case Case():
            parts = (*(part for branch in expression.branches for part in branch), expression.otherwise)
            return frozenset().union(*map(told_apart, parts))
        case _:
            return frozenset(id_ for id_, column in columns_of(expression).items() if column.type.is_floating)
