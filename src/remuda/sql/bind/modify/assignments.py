"""What is written into a column: a value as one of its type, `SET column = value`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.errors import (
    Condition,
    ErrorCode,
    Span,
    SqlError,
    column_twice,
    not_supported,
    parsing_error,
    type_error,
)
from remuda.expr import Cast, Column, Expression, Literal, can_cast, coerce, evaluate_constant
from remuda.sql.bind.expression.exact_comparison import adapt_literal
from remuda.sql.bind.expression.row_comparison import is_row
from remuda.sql.bind.expression.subqueries import bind_row_value
from remuda.sql.bind.scope import Scope, ScopeRelation, table_of
from remuda.sql.parse.spans import refuse_unknown_parts, span_of
from remuda.types import VARCHAR, Kind, SqlType, common_type, to_python, to_stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.catalog import ColumnDefinition, MapDefinition
    from remuda.sql.bind.expression.expression import ExpressionBinder


def store(value: Expression, column: ColumnDefinition, span: Span | None) -> Expression:
    """Convert a value to the column's type: a literal now, a number when it is evaluated."""
    if value.type == column.type:
        return value
    if isinstance(value, Literal):
        if value.value is None:
            return Literal(None, column.type)
        adapted = adapt_literal(value, column.type, span)
        if adapted.type == column.type:
            return adapted
        if _is_written_out(value.type, column.type):
            return Literal(evaluate_constant(Cast(value, column.type)), column.type)
        try:
            return Literal(to_stored(column.type, to_python(value.type, value.value)), column.type)
        except SqlError as error:
            are_numbers = value.type.is_numeric and column.type.is_numeric
            refused = Condition(ErrorCode.DATA_EXCEPTION if are_numbers else ErrorCode.PARSING, error.sqlstate)
            raise refused(f"column {column.name}: {error.message}", span=span, suggestion=error.suggestion) from error
    if _is_checked(value.type, column.type) or _is_written_out(value.type, column.type):
        return Cast(value, column.type, span)
    if not _widens(value.type, column.type):
        is_told = column.type.json and value.type != VARCHAR
        hint = "Use to_json(...)." if is_told else f"Use CAST(... AS {column.type})."
        raise type_error(
            f"{value.type} is not stored in the column {column.name} of type {column.type}", span=span, suggestion=hint
        )
    return coerce(value, column.type)


def _is_written_out(source: SqlType, target: SqlType) -> bool:
    """Test whether a column of texts takes the value's text, as in PostgreSQL: `SET note = 12`."""
    return target == VARCHAR and source.kind not in {Kind.NULL, Kind.VARCHAR} and can_cast(source, target)


def _is_checked(source: SqlType, target: SqlType) -> bool:
    """Test whether a value is checked at execution: `SET stock = stock + 1` of a SMALLINT may be too large.

    `price * 1.1` of a DECIMAL rounds.

    A sum of BIGINTs, a DECIMAL(38, 0), is a whole number too. A fraction is not stored as an integer: 2.5
    would become 3.
    """
    is_whole = source.is_exact and source.scale == 0
    return (source.is_numeric and target.kind is Kind.DECIMAL) or (is_whole and target.is_integer)


def _widens(source: SqlType, target: SqlType) -> bool:
    """Test whether a value is widened without loss.

    This includes one TIMESTAMP to the other, which has the same instants: `SET seen = now()`.
    """
    if {source.kind, target.kind} == {Kind.TIMESTAMP, Kind.TIMESTAMP_TZ}:
        return True
    return source.kind is Kind.NULL or common_type(source, target) == target


def bind_assignments(
    binder: ExpressionBinder, nodes: Sequence[Any], definition: MapDefinition, relation: ScopeRelation
) -> dict[int, Expression]:
    """Bind `SET a = value, (b, c) = (value, value)` to values by the ids of their columns, all of the updated map."""
    assigned: dict[int, Expression] = {}
    for node in nodes:
        for column, value in _bind_assignment(binder, node, definition, relation):
            if column.id in assigned:
                raise column_twice(f"the column {column.name} is set twice", span=span_of(node))
            assigned[column.id] = value
    return assigned


def _bind_assignment(
    binder: ExpressionBinder, assignment: Any, definition: MapDefinition, relation: ScopeRelation
) -> list[tuple[Column, Expression]]:
    if not isinstance(assignment, exp.EQ):
        raise parsing_error("SET takes column = value", span=span_of(assignment))
    named = assignment.this.expressions if isinstance(assignment.this, exp.Tuple) else [assignment.this]
    targets = [_bind_target(node, assignment, definition, relation) for node in named]
    types = [declared.type for _, declared in targets]
    if not isinstance(assignment.this, exp.Tuple):
        parts = [assignment.expression]
        values = [_bind_value(binder, assignment.expression, types[0])]
    elif isinstance(assignment.expression, exp.Subquery):
        parts = [assignment.expression] * len(targets)
        values = [*bind_row_value(binder, assignment.expression, types)]
    elif is_row(assignment.expression):
        parts = assignment.expression.expressions
        if len(parts) != len(targets):
            message = f"{len(targets)} values are expected, {len(parts)} are given"
            raise parsing_error(message, span=span_of(assignment.expression))
        values = [_bind_value(binder, part, type_) for part, type_ in zip(parts, types, strict=True)]
    else:
        message = "the columns of a row are set to a row or to a sub-query of so many columns"
        raise parsing_error(message, span=span_of(assignment.expression))
    return [
        (column, store(value, declared, span_of(part)))
        for (column, declared), value, part in zip(targets, values, parts, strict=True)
    ]


def _bind_value(binder: ExpressionBinder, node: Any, type_: SqlType) -> Expression:
    refuse_default(node)
    return binder.bind(node, type_)


def _bind_target(
    node: Any, assignment: Any, definition: MapDefinition, relation: ScopeRelation
) -> tuple[Column, ColumnDefinition]:
    if not isinstance(node, exp.Column):
        raise parsing_error("SET takes column = value", span=span_of(assignment))
    refuse_unknown_parts(node, frozenset({"this", "table", "db"}))
    column = Scope((relation,)).resolve(node.name, table_of(node), span_of(node))
    declared = definition.column(column.name)
    if declared.name in definition.key:
        message = f"the key column {declared.name} cannot be updated"
        raise not_supported(
            message, span=span_of(node), suggestion="INSERT the row under its new key, DELETE the old one."
        )
    return column, declared


def refuse_default(node: Any) -> None:
    """Refuse `SET column = DEFAULT` and `VALUES (1, DEFAULT)`: sqlglot reads DEFAULT as a name, or as a word."""
    if isinstance(node, exp.Column | exp.Var) and node.sql().upper() == "DEFAULT":
        hint = "Columns have no other default than NULL."
        raise not_supported("DEFAULT is not supported yet", span=span_of(node), suggestion=hint)
