"""Expressions as JSON: for a condition that one process gives and another one evaluates.

Not a pickle, as what is read may come from any process that can write a folder: decoding makes nothing but expressions
of registered functions.
"""

from __future__ import annotations

import base64
from decimal import Decimal
from typing import TYPE_CHECKING, Any, assert_never

from remuda.expr.nodes import Call, Case, Cast, Column, Expression, Literal, Parameter
from remuda.expr.registry import FUNCTIONS
from remuda.types import SqlType

if TYPE_CHECKING:
    from collections.abc import Sequence


def to_json(expression: Expression) -> list[Any]:
    """Return lists, texts and numbers that `from_json` reads back."""
    match expression:
        case Column():
            return ["column", expression.id, expression.name, _type(expression.type)]
        case Literal():
            return ["literal", _value(expression.value), _type(expression.type)]
        case Call():
            return [
                "call",
                expression.function,
                [to_json(each) for each in expression.arguments],
                _type(expression.type),
            ]
        case Cast():
            return ["cast", to_json(expression.argument), _type(expression.type), expression.lenient]
        case Case():
            branches = [[to_json(when), to_json(then)] for when, then in expression.branches]
            return ["case", branches, to_json(expression.otherwise), _type(expression.type)]
        case Parameter():
            raise ValueError("an expression with parameters is not written")
        case _:
            assert_never(expression)


def from_json(given: Sequence[Any]) -> Expression:
    """Read an expression; raise `ValueError` for anything else."""
    match given:
        case ["column", int() as number, str() as name, type_]:
            return Column(number, name, _read_type(type_))
        case ["literal", value, type_]:
            return Literal(_read_value(value), _read_type(type_))
        case ["call", str() as function, list() as arguments, type_] if function in FUNCTIONS:
            return Call(function, tuple(map(from_json, arguments)), _read_type(type_))
        case ["cast", list() as argument, type_, bool() as lenient]:
            return Cast(from_json(argument), _read_type(type_), lenient=lenient)
        case ["case", list() as branches, list() as otherwise, type_]:
            pairs = tuple((from_json(when), from_json(then)) for when, then in branches)
            return Case(pairs, from_json(otherwise), _read_type(type_))
        case _:
            raise ValueError(f"no expression: {str(given)[:100]}")


def _type(type_: SqlType) -> list[Any]:
    return [type_.name, type_.precision, type_.scale]


def _read_type(given: Any) -> SqlType:
    match given:
        case [str() as name, int() as precision, int() as scale]:
            return SqlType.named(name, precision, scale)
        case _:
            raise ValueError(f"no type: {str(given)[:100]}")


def _value(value: Any) -> Any:
    """Return a stored value; what JSON does not have, or not exactly, is marked."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return {"float": value.hex()}
        case Decimal():
            return {"decimal": str(value)}
        case bytes():
            return {"bytes": base64.b64encode(value).decode()}
        case tuple() | list():
            return {"tuple": [_value(each) for each in value]}
        case _:
            raise ValueError(f"a {type(value).__name__} is not written")


def _read_value(given: Any) -> Any:
    match given:
        case None | bool() | int() | str():
            return given
        case {"float": str() as text}:
            return float.fromhex(text)
        case {"decimal": str() as text}:
            return Decimal(text)
        case {"bytes": str() as text}:
            return base64.b64decode(text)
        case {"tuple": list() as items}:
            return tuple(map(_read_value, items))
        case _:
            raise ValueError(f"no value: {str(given)[:100]}")
