"""Queries of every kind: SELECT, set operations, VALUES, in parentheses or not, with WITH or without."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.errors import parsing_error
from remuda.expr.cancellation import check_cancelled
from remuda.plan import logical
from remuda.plan.logical import Assignment
from remuda.sql.bind.ctes import check_unused, with_ctes
from remuda.sql.bind.expression.expression import ExpressionBinder
from remuda.sql.bind.expression.subqueries import named_relation, relation_of
from remuda.sql.bind.relation.values_clause import bind_values
from remuda.sql.bind.result_clauses import finish
from remuda.sql.bind.scope import QueryLevel, Scope, ScopeRelation
from remuda.sql.bind.select import bind_select
from remuda.sql.bind.select_list import SelectItem, bind_order
from remuda.sql.bind.set_operations import bind_set_operation
from remuda.sql.parse.spans import readable, refuse_unknown_parts, span_of, unsupported

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.sql.bind.bind_context import BindContext
    from remuda.types import SqlType

_IN_FROM = (exp.From, exp.Join, exp.Lateral, exp.Subquery)
_MODIFIERS = ("order", "limit", "offset")
_SUBQUERY_PARTS = frozenset({"this", "alias", "with_", *_MODIFIERS})
_OPERATION_PARTS = frozenset({"this", "expression", "distinct", "by_name", "with_", *_MODIFIERS})


def bind_query(binding: BindContext, node: Any, level: QueryLevel, expected: Sequence[SqlType] = ()) -> logical.Root:
    """Bind a query; `expected` are the types that bare parameters take, column by column, where the context tells."""
    check_cancelled()
    level, defined = with_ctes(node, level)
    match node:
        case exp.Select():
            root = bind_select(binding, node, level, expected)
        case exp.SetOperation():
            refuse_unknown_parts(node, _OPERATION_PARTS)
            root = _modified(binding, node, bind_set_operation(binding, node, level, expected), level)
        case exp.Values() if node.args.get("alias") is not None and not isinstance(node.parent, _IN_FROM):
            alias = node.args["alias"]
            raise parsing_error("VALUES has an alias only in FROM", span=span_of(alias) or span_of(node))
        case exp.Values():
            refuse_unknown_parts(node, frozenset({"expressions", "alias", "with_", *_MODIFIERS}))
            root = _modified(binding, node, bind_values(binding, node, level, expected), level)
        case exp.Subquery() if isinstance(node.parent, exp.SetOperation) and node.args.get("alias") is not None:
            raise parsing_error("a part of a set operation has no alias", span=span_of(node.args["alias"]))
        case exp.Subquery():
            refuse_unknown_parts(node, _SUBQUERY_PARTS)
            root = _modified(binding, node, bind_query(binding, node.this, level, expected), level)
        case _:
            raise unsupported(node, f"{readable(node)} as a query")
    check_unused(binding, defined)
    return root


def _modified(binding: BindContext, node: Any, query: logical.Root, level: QueryLevel) -> logical.Root:
    """ORDER BY and LIMIT over a whole query: they name its result columns."""
    if all(node.args.get(part) is None for part in _MODIFIERS):
        return query
    if isinstance(node, exp.Subquery) and node.args.get("order") is None and query.collation:
        tree, columns, entries = named_relation(binding, query, query.names)
        return finish(binding, node, tree, [SelectItem(column, column.name) for column in columns], entries)
    tree = relation_of(query)
    named = tuple(
        Assignment(
            column if column.name == name else binding.new_column(name, column.type, nullable=column.nullable), column
        )
        for column, name in zip(query.columns, query.names, strict=True)
    )
    if any(not assignment.is_identity for assignment in named):
        tree = logical.Project(tree, named)
    items = [SelectItem(assignment.column, assignment.column.name) for assignment in named]
    scope = Scope((ScopeRelation("", tuple(assignment.column for assignment in named)),), level)
    binder = ExpressionBinder(binding, scope, clause="ORDER BY of a set operation")
    order = bind_order(binder, node.args.get("order"), items)
    return finish(binding, node, tree, items, order)
