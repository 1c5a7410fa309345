"""Functions on text with a syntax of their own: TRIM(BOTH x FROM y), SUBSTRING(x FROM 2), POSITION(x IN y)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

if TYPE_CHECKING:
    from remuda.expr import Expression
    from remuda.sql.bind.binding import Binder, Binders, Parts
    from remuda.sql.bind.expression.expression import ExpressionBinder
    from remuda.types import SqlType


def as_list(part: Any) -> list[Any]:
    return part if isinstance(part, list) else [] if part is None else [part]


def _bind_trim(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "").upper(), "trim")
    return self.call_with(name, node, [node.this, *as_list(node.args.get("expression"))])


def _bind_substring(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    arguments = [node.this, node.args.get("start"), node.args.get("length")]
    return self.call_with("substring", node, [argument for argument in arguments if argument is not None])


def _bind_position(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    return self.call_with("position", node, [node.this, node.args["substr"]])


def _bind_overlay(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    arguments = [node.this, node.expression, node.args.get("from_"), node.args.get("for_")]
    return self.call_with("overlay", node, [argument for argument in arguments if argument is not None])


FORMS: dict[str, Binder] = {}
NODES: Binders = {
    exp.Trim: _bind_trim,
    exp.Substring: _bind_substring,
    exp.StrPosition: _bind_position,
    exp.Overlay: _bind_overlay,
}
PARTS: Parts = {
    exp.Trim: frozenset({"this", "expression", "position"}),
    exp.Substring: frozenset({"this", "start", "length"}),
    exp.StrPosition: frozenset({"this", "substr"}),
    exp.Overlay: frozenset({"this", "expression", "from_", "for_"}),
}
