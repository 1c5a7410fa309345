"""The condition under which a new row takes the place of an old one: SQL over `new.` and `old.`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.catalog import Catalog
from remuda.errors import SqlError, not_supported, option_error
from remuda.expr import Column
from remuda.expr.walk import columns_of, is_volatile
from remuda.sql.bind.bind import parse_view
from remuda.sql.bind.bind_context import BindContext
from remuda.sql.bind.expression.expression import ExpressionBinder
from remuda.sql.bind.query import bind_query
from remuda.sql.bind.scope import Scope, ScopeRelation
from remuda.sql.parse.parse import parse
from remuda.sql.parse.statements import Query

if TYPE_CHECKING:
    from remuda.catalog import MapDefinition
    from remuda.expr import Expression

_BEFORE = "SELECT "


def bind_condition(text: str, definition: MapDefinition) -> Expression:
    """Bind a condition; the columns of the new row have the ids from 0 on, then come those of the old row.

    It may name no other rows, no parameters and no functions that give another value each time: a commit that another
    process was faster with asks it again.
    """
    try:
        return _bind(text, definition)
    except SqlError as error:
        error.message = f"the condition {text!r}: {error.message}"
        error.args = (error.message,)
        error.span = None
        raise


def _bind(text: str, definition: MapDefinition) -> Expression:
    if not text.strip():
        raise option_error("it is empty")
    query = parse(_BEFORE + text)
    if not isinstance(query, Query) or (
        set(query.tree.args) - {"expressions"}
        and any(value for name, value in query.tree.args.items() if name != "expressions")
    ):
        raise option_error('it is one expression, such as "new.ts > old.ts"')
    if len(query.tree.expressions) != 1:
        raise option_error('it is one expression, such as "new.ts > old.ts"')
    if len(query.parameters):
        raise not_supported("it takes no parameters")
    count = len(definition.columns)
    relations = tuple(
        ScopeRelation(
            alias,
            tuple(Column(first + n, each.name, each.type, each.nullable) for n, each in enumerate(definition.columns)),
        )
        for alias, first in (("new", 0), ("old", count))
    )
    binding = BindContext(Catalog(), (), query.parameters, {}, bind_query, parse_view, next_column=2 * count)
    binder = ExpressionBinder(binding, Scope(relations), clause="a condition")
    bound = binder.bind_condition(query.tree.expressions[0])
    if binding.reads_clock or is_volatile(bound) or not columns_of(bound).keys() <= set(range(2 * count)):
        raise not_supported("it may not ask for the time, nor for random values")
    return bound
