"""Expressions as text for EXPLAIN and for error messages: deterministic, close to the SQL that was written."""

from __future__ import annotations

from typing import assert_never

from remuda.expr.nodes import Call, Case, Cast, Column, Expression, Literal, Parameter
from remuda.expr.registry import FUNCTIONS
from remuda.types import interval_text, to_python

_PRECEDENCE = {"OR": 1, "AND": 2, "NOT": 3, "=": 4, "<>": 4, "<": 4, "<=": 4, ">": 4, ">=": 4, "LIKE": 4, "ILIKE": 4}
_PRECEDENCE |= {"SIMILAR TO": 4, "~": 4, "~*": 4}
_PRECEDENCE |= {"IS DISTINCT FROM": 4, "IS NOT DISTINCT FROM": 4, "->": 8, "->>": 8}
_PRECEDENCE |= {"&": 5, "|": 5, "#": 5, "<<": 5, ">>": 5, "+": 6, "-": 6, "||": 6, "*": 7, "/": 7, "%": 7}
_COMPARISON = 4
_ATOM = 10


def render(expression: Expression) -> str:
    return _render(expression)[0]


def _render(expression: Expression) -> tuple[str, int]:
    """Return the text, and how tightly its outermost operator binds."""
    match expression:
        case Column():
            return expression.name, _ATOM
        case Literal():
            return _render_literal(expression), _ATOM
        case Parameter():
            return "CURRENT_TIMESTAMP" if expression.clock else f"?{expression.index}", _ATOM
        case Cast():
            name = "TRY_CAST" if expression.lenient else "CAST"
            return f"{name}({render(expression.argument)} AS {expression.type})", _ATOM
        case Case():
            branches = " ".join(f"WHEN {render(when)} THEN {render(then)}" for when, then in expression.branches)
            return f"CASE {branches} ELSE {render(expression.otherwise)} END", _ATOM
        case Call():
            return _render_call(expression)
        case _:
            assert_never(expression)


def _render_call(expression: Call) -> tuple[str, int]:
    symbol = FUNCTIONS[expression.function].symbol
    arguments = expression.arguments
    if expression.function == "in":
        candidates = ", ".join(render(argument) for argument in arguments[1:])
        return f"{_within(arguments[0], _COMPARISON + 1)} IN ({candidates})", _COMPARISON
    if symbol is None and expression.function.startswith("is "):
        return f"{_within(arguments[0], _COMPARISON + 1)} {expression.function.upper()}", _COMPARISON
    if expression.function.startswith("extract "):
        field = expression.function.removeprefix("extract ")
        return f"EXTRACT({field.upper()} FROM {render(arguments[0])})", _ATOM
    if expression.function.startswith(("date_trunc ", "date_diff ")):
        name, unit = expression.function.split()
        return f"{name.upper()}('{unit}', {', '.join(render(argument) for argument in arguments)})", _ATOM
    if symbol is None:
        return f"{expression.function.upper()}({', '.join(render(argument) for argument in arguments)})", _ATOM
    binding = _PRECEDENCE[symbol]
    if len(arguments) == 1:
        return (
            f"{symbol} {_within(arguments[0], binding)}" if symbol == "NOT" else f"{symbol}{_within(arguments[0], 9)}",
            binding,
        )
    # The right side of an operator that does not associate (a - (b - c)) needs its parentheses; a comparison within a
    # comparison needs them on either side.
    first, *others = arguments
    associative = symbol in {"AND", "OR"}
    sides = [
        _within(first, binding + (binding == _COMPARISON)),
        *(_within(other, binding if associative else binding + 1) for other in others),
    ]
    return f" {symbol} ".join(sides), binding


def _within(expression: Expression, binding: int) -> str:
    text, own = _render(expression)
    return text if own >= binding else f"({text})"


def _render_literal(literal: Literal) -> str:
    if literal.value is None:
        return "NULL"
    if literal.type.is_interval:
        return interval_text(literal.type, literal.value)
    value = to_python(literal.type, literal.value)
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return ("JSON " if literal.type.json else "") + "'" + value.replace("'", "''") + "'"
    if isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    if literal.type.is_temporal:
        return f"{literal.type.name} '{value}'"
    return str(value)
