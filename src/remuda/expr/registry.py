"""The registry: every function and operator, by name, with its types and its two evaluations.

A new function is one entry in a list of the module that holds its kin: folding, printing and both evaluations find it
here. Binding finds it here too, unless the parser has a node of its own for it; then that node is listed with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.expr.function import Fixed
from remuda.expr.functions import (
    analysis,
    arithmetic,
    bits,
    calendar_fields,
    calendar_values,
    comparison,
    hashes,
    json,
    logic,
    moment_format,
    regular,
    rounding,
    strings,
    text_codes,
    text_parts,
    volatile,
    zones,
)
from remuda.expr.nodes import Call, Cast, Expression, Literal
from remuda.types import Kind

if TYPE_CHECKING:
    from remuda.errors import Span
    from remuda.expr.function import Function
    from remuda.types import SqlType

FUNCTIONS: dict[str, Function] = {
    function.name: function
    for function in (
        *logic.FUNCTIONS,
        *comparison.FUNCTIONS,
        *arithmetic.FUNCTIONS,
        *bits.FUNCTIONS,
        *rounding.FUNCTIONS,
        *analysis.FUNCTIONS,
        *hashes.FUNCTIONS,
        *strings.FUNCTIONS,
        *regular.FUNCTIONS,
        *text_parts.FUNCTIONS,
        *text_codes.FUNCTIONS,
        *calendar_fields.FUNCTIONS,
        *calendar_values.FUNCTIONS,
        *moment_format.FUNCTIONS,
        *zones.FUNCTIONS,
        *json.FUNCTIONS,
        *volatile.FUNCTIONS,
    )
}


def hints_of(function: Function) -> tuple[SqlType, ...]:
    """Return the types that bare parameters and strings take as its arguments; none where all have one type."""
    return function.resolve.arguments if isinstance(function.resolve, Fixed) else function.hints


def call(name: str, *arguments: Expression, span: Span | None = None) -> Call | None:
    """Return a call with its arguments cast to the types that the function wants; None where no types fit."""
    signature = FUNCTIONS[name].resolve(tuple(argument.type for argument in arguments))
    if signature is None:
        return None
    cast = tuple(coerce(argument, type_) for argument, type_ in zip(arguments, signature.arguments, strict=True))
    return Call(name, cast, signature.result, span)


def coerce(expression: Expression, target: SqlType) -> Expression:
    """Return the expression as a value of `target`; types are equal, or the cast is one that loses nothing."""
    if expression.type == target:
        return expression
    if isinstance(expression, Literal) and (expression.value is None or expression.type.kind is Kind.NULL):
        return Literal(None, target)
    return Cast(expression, target)
