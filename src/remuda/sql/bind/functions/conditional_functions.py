"""NULLIF and IF: functions that are a CASE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.errors import parsing_error
from remuda.expr import Case, Expression, Literal, coerce
from remuda.sql.bind.binding import COMMON_PARTS, Binder, Binders, Parts
from remuda.sql.bind.expression.comparison import compare
from remuda.sql.parse.places import place_of
from remuda.types import VARCHAR, common_type

if TYPE_CHECKING:
    from remuda.sql.bind.expression.expression import ExpressionBinder
    from remuda.types import SqlType


def _bind_nullif(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    if len(node.expressions) != 2:
        raise parsing_error("NULLIF takes two arguments", span=place_of(node))
    left, right = self.bind_pair(*node.expressions)
    equal = compare("=", left, right, place_of(node))
    return Case(((equal, Literal(None, left.type)),), left, left.type)


def _bind_if(self: ExpressionBinder, node: Any, expected: SqlType | None) -> Expression:
    condition = self.bind_condition(node.this)
    other = node.args.get("false")
    value, otherwise = self.bind_alike([node.args["true"], exp.Null() if other is None else other], expected)
    shared = common_type(value.type, otherwise.type)
    if shared is None:
        raise parsing_error(f"IF has values of types {value.type} and {otherwise.type}", span=place_of(node))
    return Case(((condition, coerce(value, shared)),), coerce(otherwise, shared), shared)


def _bind_type_name(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    """TYPEOF: known when the statement is bound."""
    if len(node.expressions) != 1:
        raise parsing_error("TYPEOF takes one argument", span=place_of(node))
    return Literal(str(self.bind(node.expressions[0]).type), VARCHAR)


FORMS: dict[str, Binder] = {"nullif": _bind_nullif, "typeof": _bind_type_name, "pg_typeof": _bind_type_name}
NODES: Binders = {exp.If: _bind_if}
PARTS: Parts = {exp.If: COMMON_PARTS | {"true", "false"}}
