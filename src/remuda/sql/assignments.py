"""What is written into a column: a value as one of its type, `SET column = value`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.errors import Span, SqlError, data_error, parsing_error
from remuda.expr import Cast, Column, Expression, Literal, coerce
from remuda.sql.comparison import adapt_literal
from remuda.sql.places import place_of, refuse_unknown_parts
from remuda.sql.scope import Scope, ScopeRelation, table_of
from remuda.types import VARCHAR, Kind, SqlType, common_type, to_python, to_stored

if TYPE_CHECKING:
    from remuda.catalog import ColumnDefinition, MapDefinition
    from remuda.sql.expression import ExpressionBinder


def store(value: Expression, column: ColumnDefinition, span: Span | None) -> Expression:
    """The value as one of the column's type: a literal is converted now, a number is checked when it is there."""
    if value.type == column.type:
        return value
    if isinstance(value, Literal):
        if value.value is None:
            return Literal(None, column.type)
        adapted = adapt_literal(value, column.type, span)
        if adapted.type == column.type:
            return adapted
        try:
            return Literal(to_stored(column.type, to_python(value.type, value.value)), column.type)
        except SqlError as error:
            are_numbers = value.type.is_numeric and column.type.is_numeric
            refused = data_error if are_numbers else parsing_error
            raise refused(f"column {column.name}: {error.message}", span=span, suggestion=error.suggestion) from error
    if _is_checked(value.type, column.type):
        return Cast(value, column.type, span)
    if not _widens(value.type, column.type):
        is_told = column.type.json and value.type != VARCHAR
        hint = "Use to_json(...)." if is_told else f"Use CAST(... AS {column.type})."
        raise parsing_error(
            f"{value.type} is not stored in the column {column.name} of type {column.type}", span=span, suggestion=hint
        )
    return coerce(value, column.type)


def _is_checked(source: SqlType, target: SqlType) -> bool:
    """`SET stock = stock + 1` of a SMALLINT, `price * 1.1` of a DECIMAL, which rounds: too large is an error, later.

    A sum of BIGINTs, a DECIMAL(38, 0), is a whole number too. Not a fraction as an integer: nobody who stores 2.5
    wants 3.
    """
    is_whole = source.is_exact and source.scale == 0
    return (source.is_numeric and target.kind is Kind.DECIMAL) or (is_whole and target.is_integer)


def _widens(source: SqlType, target: SqlType) -> bool:
    """Also from one TIMESTAMP to the other, which has the same instants: `SET seen = now()`."""
    if {source.kind, target.kind} == {Kind.TIMESTAMP, Kind.TIMESTAMP_TZ}:
        return True
    return source.kind is Kind.NULL or common_type(source, target) == target


def bind_assignment(
    binder: ExpressionBinder, assignment: Any, definition: MapDefinition, relation: ScopeRelation
) -> tuple[Column, Expression]:
    """`column = value`: the column is always one of the map that is updated."""
    if not isinstance(assignment, exp.EQ) or not isinstance(assignment.this, exp.Column):
        raise parsing_error("SET takes column = value", span=place_of(assignment))
    refuse_unknown_parts(assignment.this, frozenset({"this", "table", "db"}))
    target = Scope((relation,))
    column = target.resolve(assignment.this.name, table_of(assignment.this), place_of(assignment.this))
    declared = definition.column(column.name)
    if declared.name in definition.key:
        raise parsing_error(f"the key column {declared.name} cannot be updated", span=place_of(assignment.this))
    refuse_default(assignment.expression)
    value = binder.bind(assignment.expression, declared.type)
    return column, store(value, declared, place_of(assignment.expression))


def refuse_default(node: Any) -> None:
    """`SET column = DEFAULT`, `VALUES (1, DEFAULT)`: to sqlglot it is a name, or a word."""
    if isinstance(node, exp.Column | exp.Var) and node.sql().upper() == "DEFAULT":
        hint = "Columns have no other default than NULL."
        raise parsing_error("DEFAULT is not supported yet", span=place_of(node), suggestion=hint)
