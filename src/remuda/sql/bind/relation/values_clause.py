"""VALUES as a query: rows written out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.errors import parsing_error, type_error
from remuda.expr import Expression, Literal, Parameter, coerce, is_constant
from remuda.plan import logical
from remuda.plan.logical import Assignment
from remuda.sql.bind.expression.expression import ExpressionBinder
from remuda.sql.bind.expression.literals import is_untyped_text
from remuda.sql.bind.expression.subqueries import Subquery, attach
from remuda.sql.bind.scope import QueryLevel, Scope
from remuda.sql.parse.spans import span_of
from remuda.types import INTEGER, NULL, VARCHAR, common_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.expr import Column
    from remuda.plan.logical import LogicalNode
    from remuda.sql.bind.bind_context import BindContext
    from remuda.types import SqlType

Row = tuple[list[Expression], list[Subquery]]


def bind_values(binding: BindContext, node: Any, level: QueryLevel, expected: Sequence[SqlType]) -> logical.Root:
    """Bind VALUES.

    The columns are called column1, column2, ...; their types are unified as the branches of CASE are.
    """
    written = [_row_of(row) for row in node.expressions]
    width = len(written[0])
    if not width:
        raise parsing_error("a row has at least one value", span=span_of(node))
    for row, values in zip(node.expressions, written, strict=True):
        if len(values) != width:
            raise parsing_error(f"this row has {len(values)} values, the first has {width}", span=span_of(row))
    wanted: list[SqlType | None] = [expected[ordinal] if ordinal < len(expected) else None for ordinal in range(width)]
    rows = [_bind_row(binding, values, level, wanted) for values in written]
    types = _shared_types(rows, written)
    is_untold = any(isinstance(value, Parameter) and value.type == NULL for values, _ in rows for value in values)
    if is_untold or any(_is_told(*pair) for values in written for pair in zip(values, types, strict=True)):
        rows = [_bind_row(binding, values, level, types) for values in written]
        types = _shared_types(rows, written)
    settled = [VARCHAR if type_ == NULL else type_ for type_ in types]
    columns = tuple(binding.new_column(f"column{ordinal}", type_) for ordinal, type_ in enumerate(settled, 1))
    tree = rows_of(binding, columns, [([coerce(v, t) for v, t in zip(r, settled, strict=True)], s) for r, s in rows])
    return logical.Root(tree, tree.columns, tuple(column.name for column in columns))


def _row_of(node: Any) -> list[Any]:
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node]


def _bind_row(binding: BindContext, values: Sequence[Any], level: QueryLevel, wanted: Sequence[SqlType | None]) -> Row:
    subqueries: list[Subquery] = []
    binder = ExpressionBinder(binding, Scope((), level), clause="VALUES", subqueries=subqueries)
    bound = [binder.bind(value, type_) for value, type_ in zip(values, wanted, strict=True)]
    return bound, subqueries


def _is_told(node: Any, type_: SqlType) -> bool:
    """Test whether a value is a text in a column that other rows show to be of another type."""
    return type_ not in {NULL, VARCHAR} and is_untyped_text(node)


def _shared_types(rows: Sequence[Row], written: Sequence[Sequence[Any]]) -> list[SqlType]:
    shared = [NULL] * len(written[0])
    for (values, _), nodes in zip(rows, written, strict=True):
        for ordinal, value in enumerate(values):
            if is_untyped_text(nodes[ordinal]) and value.type == VARCHAR:
                continue
            common = common_type(shared[ordinal], value.type)
            if common is None:
                message = f"column {ordinal + 1} of VALUES is {shared[ordinal]} in one row and {value.type} in another"
                raise type_error(message, span=span_of(nodes[ordinal]))
            shared[ordinal] = common
    for values, _ in rows:
        for ordinal, value in enumerate(values):
            if shared[ordinal] == NULL and value.type == VARCHAR:
                shared[ordinal] = VARCHAR
    return shared


def rows_of(binding: BindContext, columns: tuple[Column, ...], rows: Sequence[Row]) -> LogicalNode:
    """Constants stay as they are; a row that names columns around it or has sub-queries is a projection of its own."""
    if all(is_constant(value) for values, _ in rows for value in values):
        return logical.Values(columns, tuple(tuple(values) for values, _ in rows))
    parts: list[LogicalNode] = []
    for values, subqueries in rows:
        own = tuple(binding.new_column(column.name, column.type) for column in columns)
        single = attach(one_row(binding, joined=bool(subqueries)), subqueries)
        parts.append(logical.Project(single, tuple(Assignment(*pair) for pair in zip(own, values, strict=True))))
    if len(parts) == 1:
        return parts[0]
    return logical.Union(tuple(parts), columns, tuple(part.columns for part in parts))


def one_row(binding: BindContext, *, joined: bool) -> logical.Values:
    """Return the single row of a query without FROM.

    Where sub-queries are joined to it, it has a column: batches need one.
    """
    if not joined:
        return logical.Values((), ((),))
    return logical.Values((binding.new_column("row", INTEGER, nullable=False),), ((Literal(1, INTEGER),),))
