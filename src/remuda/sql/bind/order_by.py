"""Entries of ORDER BY, wherever one stands: in a query, an aggregate or a window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.dataclass import dataclass
from remuda.sql.parse.spans import refuse_unknown_parts

if TYPE_CHECKING:
    from remuda.expr import Expression
    from remuda.sql.bind.expression.expression import ExpressionBinder

_PARTS = frozenset({"this", "desc", "nulls_first"})


@dataclass(frozen=True, slots=True)
class OrderEntry:
    expression: Expression
    descending: bool = False
    nulls_first: bool = True


def order_entry(node: Any, expression: Expression) -> OrderEntry:
    refuse_unknown_parts(node, _PARTS)
    return OrderEntry(expression, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))


def bind_order_entry(binder: ExpressionBinder, node: Any) -> OrderEntry:
    return order_entry(node, binder.bind(node.this))
