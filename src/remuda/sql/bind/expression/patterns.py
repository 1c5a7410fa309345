"""Binding of what matches text: LIKE, ILIKE, with ESCAPE, SIMILAR TO, and the regular expressions of `~`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.expr import Call
from remuda.sql.bind.binding import COMMON_PARTS
from remuda.sql.parse.places import unsupported
from remuda.types import BOOLEAN, VARCHAR

if TYPE_CHECKING:
    from remuda.expr import Expression
    from remuda.sql.bind.binding import Binders, Parts
    from remuda.sql.bind.expression.expression import ExpressionBinder
    from remuda.types import SqlType

_OPERATORS: dict[type[exp.Expression], str] = {
    exp.Like: "like",
    exp.ILike: "ilike",
    exp.SimilarTo: "similar to",
    exp.RegexpLike: "~",
    exp.RegexpILike: "~*",
}


def _bind_match(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    return _matched(self, node, self.bind(node.expression, VARCHAR))


def _bind_escape(self: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    """The pattern is rewritten with the escape character that LIKE has without the clause."""
    inner = node.this
    if not isinstance(inner, exp.Like | exp.ILike | exp.SimilarTo):
        raise unsupported(node, "ESCAPE here")
    written = [self.bind(inner.expression, VARCHAR), self.bind(node.expression, VARCHAR)]
    return _matched(self, inner, self.call("like pattern", node, *written))


def _matched(self: ExpressionBinder, node: Any, pattern: Expression) -> Expression:
    matched = self.call(_OPERATORS[type(node)], node, self.bind(node.this, VARCHAR), pattern)
    return Call("not", (matched,), BOOLEAN) if node.args.get("negate") else matched


NODES: Binders = {**dict.fromkeys(_OPERATORS, _bind_match), exp.Escape: _bind_escape}
PARTS: Parts = dict.fromkeys(_OPERATORS, COMMON_PARTS | {"negate"})
