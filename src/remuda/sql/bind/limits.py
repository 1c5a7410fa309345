"""LIMIT, OFFSET and FETCH, on top of ORDER BY."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.errors import parsing_error
from remuda.expr import Call, Expression, Literal, call, coerce
from remuda.plan import logical
from remuda.plan.windows import WindowCall
from remuda.sql.bind.expression.expression import ExpressionBinder
from remuda.sql.bind.scope import Scope
from remuda.sql.parse.places import place_of, refuse_unknown_parts, unsupported
from remuda.types import BIGINT, BOOLEAN, Kind

if TYPE_CHECKING:
    from remuda.plan.logical import LogicalNode
    from remuda.plan.traits import Collation
    from remuda.sql.bind.binding import Binding

_LIMIT_PARTS = frozenset({"expression"})
_FETCH_PARTS = frozenset({"direction", "count", "limit_options"})


def sort_and_limit(binding: Binding, node: Any, tree: LogicalNode, collation: Collation) -> LogicalNode:
    """ORDER BY and LIMIT of a query, over the rows that have the columns it is ordered by."""
    offset = _row_count(binding, node, "offset")
    limit = node.args.get("limit")
    count: Expression | None
    if isinstance(limit, exp.Fetch):
        fetched = count = _fetch_count(binding, limit)
        if limit.args["limit_options"].args.get("with_ties"):
            if not collation:
                raise parsing_error("WITH TIES needs an ORDER BY", span=place_of(limit))
            tree = _with_ties(binding, tree, collation, fetched, offset)
            count = None
    else:
        count = _row_count(binding, node, "limit")
    if collation:
        tree = logical.Sort(tree, collation)
    return tree if count is None and offset is None else logical.Limit(tree, count, offset)


def _fetch_count(binding: Binding, node: Any) -> Expression:
    refuse_unknown_parts(node, _FETCH_PARTS)
    if node.args.get("limit_options") is None:
        raise parsing_error("FETCH ends with ROWS ONLY or ROWS WITH TIES", span=place_of(node))
    if node.args["limit_options"].args.get("percent"):
        raise unsupported(node, "PERCENT")
    count = node.args.get("count")
    return Literal(1, BIGINT) if count is None else _whole_number(binding, count, "FETCH")


def _with_ties(
    binding: Binding, tree: LogicalNode, collation: Collation, count: Expression, offset: Expression | None
) -> LogicalNode:
    """Rows that tie with the last one come too: those whose rank is not above the count."""
    rank = binding.new_column("rank", BIGINT, nullable=False)
    last: Expression | None = count if offset is None else call("+", count, offset)
    assert last is not None, "both are whole numbers"
    ranked = logical.Window(tree, (), collation, (WindowCall(rank, "rank"),))
    return logical.Filter(ranked, Call("<=", (rank, last), BOOLEAN))


def _row_count(binding: Binding, node: Any, clause: str) -> Expression | None:
    limit = node.args.get(clause)
    if limit is None or (isinstance(limit.expression, exp.Var) and limit.expression.name.upper() == "ALL"):
        return None
    refuse_unknown_parts(limit, _LIMIT_PARTS)
    return _whole_number(binding, limit.expression, clause.upper())


def _whole_number(binding: Binding, node: Any, clause: str) -> Expression:
    bound = ExpressionBinder(binding, Scope(()), clause=clause).bind(node, BIGINT)
    span = place_of(node)
    if bound.type.kind is not Kind.NULL and not bound.type.is_integer:
        raise parsing_error(f"{clause} must be a whole number, this is {bound.type}", span=span)
    if isinstance(bound, Literal) and (bound.value is None or bound.value < 0):
        raise parsing_error(f"{clause} must not be {'NULL' if bound.value is None else 'negative'}", span=span)
    return coerce(bound, BIGINT) if not isinstance(bound, Literal) else Literal(bound.value, BIGINT)
