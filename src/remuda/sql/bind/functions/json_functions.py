"""`->` and `->>`, JSON literals, JSON_OBJECT."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.errors import parsing_error
from remuda.expr import Expression, Literal
from remuda.sql.bind.binding import COMMON_PARTS, Binder, Binders, Parts
from remuda.sql.parse.places import place_of, unsupported
from remuda.types import BIGINT, INTEGER_RANGES, JSON, VARCHAR, Kind

if TYPE_CHECKING:
    from remuda.sql.bind.expression.expression import ExpressionBinder
    from remuda.types import SqlType


def _bind_member(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    """`json -> 'name'`, `json ->> 0`; sqlglot reads a literal as a path, and anything else stays what it is."""
    name = "->>" if isinstance(node, exp.JSONExtractScalar) else "->"
    document = self.bind(node.this, JSON)
    if not isinstance(node.expression, exp.JSONPath):
        return self.call(name, node, document, self.bind(node.expression, VARCHAR))
    parts = node.expression.expressions
    if len(parts) != 2 or not isinstance(parts[1], exp.JSONPathKey | exp.JSONPathSubscript):
        raise unsupported(node, "this form of -> and ->>")
    key = parts[1].this
    if isinstance(key, int) and key > INTEGER_RANGES[Kind.BIGINT][1]:
        raise parsing_error("no array has so many elements", span=place_of(node))
    return self.call(name, node, document, Literal(key, BIGINT if isinstance(key, int) else VARCHAR))


def _bind_object(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    """`json_object('a', 1, 'b', 2)`: sqlglot makes pairs of the arguments."""
    pairs = [part for pair in node.expressions for part in (pair.this, pair.expression)]
    return self.call_with("json_object", node, pairs)


def _bind_json_literal(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    return self.bind(node.this, JSON)


FORMS: dict[str, Binder] = {}
NODES: Binders = {
    exp.JSONExtract: _bind_member,
    exp.JSONExtractScalar: _bind_member,
    exp.ParseJSON: _bind_json_literal,
    exp.JSONObject: _bind_object,
}
PARTS: Parts = {
    exp.JSONExtract: COMMON_PARTS | {"only_json_types"},
    exp.JSONExtractScalar: COMMON_PARTS | {"only_json_types"},
    exp.ParseJSON: COMMON_PARTS | {"is_literal"},
    exp.JSONObject: COMMON_PARTS,
}
