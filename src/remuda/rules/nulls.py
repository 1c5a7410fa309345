"""What an expression can come out as when some columns are NULL.

It tells which filters make an outer join an inner one, and which arguments of aggregates a row without a match leaves
NULL.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from remuda.expr import FUNCTIONS, Call, Case, Cast, Column, Expression, Literal

if TYPE_CHECKING:
    from collections.abc import Collection

Outcomes = frozenset[bool | None]
"""Of a predicate. Of another expression {None} is NULL, what lacks None is not NULL."""

_NULL: Outcomes = frozenset({None})
_KNOWN: Outcomes = frozenset({True, False})
_ANY: Outcomes = frozenset({True, False, None})


def rejects_nulls(condition: Expression, missing: Collection[int]) -> bool:
    """Test whether a row in which all the columns of `missing` are NULL can never meet the condition.

    `r.a > 5` rejects rows without r, `r.a > 5 OR l.b = 1` and `r.a IS NULL` do not.
    """
    return True not in outcomes(condition, missing)


def is_null_without(expression: Expression, missing: Collection[int]) -> bool:
    """Return whether the expression is NULL in every row in which all the columns of `missing` are NULL.

    `r.a + l.b` and `CASE WHEN r.a > 5 THEN 1 END` are such; `1`, `COALESCE(r.a, 0)` and `r.a IS NULL` are not.
    """
    return outcomes(expression, missing) == _NULL


def is_never_null(expression: Expression, not_null: Collection[int]) -> bool:
    """Test whether an expression cannot be NULL where the columns of `not_null` are not."""
    return None not in outcomes(expression, (), not_null)


def outcomes(expression: Expression, missing: Collection[int], not_null: Collection[int] = ()) -> Outcomes:
    """Return the possible values of a condition where columns of `missing` are NULL and those of `not_null` are not.

    It may name too many, for it looks at each part alone, never too few.
    """
    match expression:
        case Column():
            if expression.id in missing:
                return _NULL
            return _KNOWN if expression.id in not_null else _ANY
        case Literal(value=None):
            return _NULL
        case Literal(value=bool(value)):
            return frozenset({value})
        case Literal():
            return _KNOWN
        case Cast():
            inner = outcomes(expression.argument, missing, not_null)
            return _NULL if inner == _NULL else _ANY
        case Case():
            return _of_case(expression, missing, not_null)
        case Call():
            return _of_call(expression, [outcomes(argument, missing, not_null) for argument in expression.arguments])
        case _:
            return _ANY


def _of_case(expression: Case, missing: Collection[int], not_null: Collection[int]) -> Outcomes:
    """Return all values of branches that can be taken."""
    found: set[bool | None] = set()
    for condition, value in expression.branches:
        met = outcomes(condition, missing, not_null)
        if True in met:
            found |= outcomes(value, missing, not_null)
        if met == {True}:
            return frozenset(found)
    return frozenset(found) | outcomes(expression.otherwise, missing, not_null)


def _of_call(call: Call, arguments: list[Outcomes]) -> Outcomes:
    match call.function:
        case "and":
            return reduce(lambda one, other: frozenset(_both(a, b) for a in one for b in other), arguments)
        case "or":
            return reduce(lambda one, other: frozenset(_either(a, b) for a in one for b in other), arguments)
        case "not":
            return frozenset(None if value is None else not value for value in arguments[0])
        case "is null":
            return frozenset(value is None for value in arguments[0])
        case "is not null":
            return frozenset(value is not None for value in arguments[0])
        case "is true":
            return frozenset(value is True for value in arguments[0])
        case "is not true":
            return frozenset(value is not True for value in arguments[0])
        case "is false":
            return frozenset(value is False for value in arguments[0])
        case "is not false":
            return frozenset(value is not False for value in arguments[0])
        case "is distinct from" | "is not distinct from":
            return _distinct(arguments[0], arguments[1], same=call.function == "is not distinct from")
        case "in":
            return _of_strict(arguments) if arguments[0] != _NULL else _NULL
        case "coalesce":
            known = [argument - _NULL for argument in arguments]
            return frozenset().union(*known, _NULL if all(None in argument for argument in arguments) else ())
    function = FUNCTIONS.get(call.function)
    if function is not None and function.strict:
        if _NULL in arguments:
            return _NULL
        if call.function in _TOTAL:
            return _of_strict(arguments)
    return _ANY


_TOTAL = frozenset({"=", "<>", "<", "<=", ">", ">="})
"""Strict functions that are never NULL for arguments that are not."""


def _of_strict(arguments: list[Outcomes]) -> Outcomes:
    return _ANY if any(None in argument for argument in arguments) else _KNOWN


def _distinct(left: Outcomes, right: Outcomes, *, same: bool) -> Outcomes:
    if left == _NULL and right == _NULL:
        return frozenset({same})
    if (left == _NULL and None not in right) or (right == _NULL and None not in left):
        return frozenset({not same})
    return _KNOWN


def _both(one: bool | None, other: bool | None) -> bool | None:
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def _either(one: bool | None, other: bool | None) -> bool | None:
    if one is True or other is True:
        return True
    return None if one is None or other is None else False
