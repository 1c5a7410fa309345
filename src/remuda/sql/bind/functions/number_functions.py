"""ROUND, TRUNC, LOG and XXHASH64: what their arguments are decides about the type or the meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.errors import parsing_error
from remuda.expr import Call, Cast, Expression, Literal
from remuda.sql.parse.places import place_of
from remuda.types import MAXIMUM_PRECISION, Kind, decimal

if TYPE_CHECKING:
    from remuda.sql.bind.binding import Binder, Binders, Parts
    from remuda.sql.bind.expression.expression import ExpressionBinder
    from remuda.types import SqlType


def _bind_rounding(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    """To a number of digits that is written out, a DECIMAL gets that scale."""
    bound = self.call_with(str(node.this).lower(), node, node.expressions)
    if not isinstance(bound, Call) or len(bound.arguments) < 2 or bound.type.kind is not Kind.DECIMAL:
        return bound
    digits, operand = bound.arguments[1], bound.arguments[0].type
    if isinstance(digits, Cast) and isinstance(digits.argument, Literal):
        digits = digits.argument
    if not isinstance(digits, Literal) or digits.value is None:
        return bound
    scale = min(max(digits.value, 0), operand.scale)
    return Cast(bound, decimal(min(operand.precision - operand.scale + 1 + scale, MAXIMUM_PRECISION), scale))


def _bind_logarithm(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    """LOG(x) is LOG10(x); LOG(b, x) has the base first, as in PostgreSQL."""
    count = len(node.expressions)
    if count not in {1, 2}:
        raise parsing_error("LOG takes a number, or a base and a number", span=place_of(node))
    return self.call_with("log10" if count == 1 else "log", node, node.expressions)


def _bind_hash(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    """A bare parameter has no type here: the hash of an INTEGER is not that of the same BIGINT."""
    arguments = [self.bind(argument) for argument in node.expressions]
    self.refuse_untyped(arguments)
    return self.call("xxhash64", node, *arguments)


FORMS: dict[str, Binder] = {
    "round": _bind_rounding,
    "trunc": _bind_rounding,
    "log": _bind_logarithm,
    "xxhash64": _bind_hash,
}
NODES: Binders = {}
PARTS: Parts = {}
