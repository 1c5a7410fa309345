"""Binding of INSERT, SINK, UPDATE and DELETE: each is a query for rows, and a `Modify` on top of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.errors import Span, SqlError, nearest, parsing_error
from remuda.expr import Column, Expression, Literal, coerce
from remuda.plan import logical
from remuda.plan.logical import Assignment, Operation
from remuda.sql.binding import Binding, Scope
from remuda.sql.comparison import adapt_literal
from remuda.sql.expression import ExpressionBinder
from remuda.sql.places import place_of, refuse_unknown_parts
from remuda.sql.select import bind_select, bind_table
from remuda.types import Kind, SqlType, common_type, to_python, to_stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.catalog import ColumnDefinition, MapDefinition


def bind_insert(binding: Binding, node: Any, *, upsert: bool) -> logical.Root:
    refuse_unknown_parts(node, frozenset({"this", "expression"}))
    target = node.this.this if isinstance(node.this, exp.Schema) else node.this
    if not isinstance(target, exp.Table) or not isinstance(target.this, exp.Identifier):
        raise parsing_error("INSERT INTO needs the name of a table", span=place_of(target))
    definition = binding.find_map(target.name, target.db or None, place_of(target))
    given = _target_columns(definition, node)
    rows = node.expression
    if rows is None:
        raise parsing_error("INSERT needs VALUES or a query", span=place_of(target))
    if isinstance(rows, exp.Values):
        tree: logical.LogicalNode = _bind_values(binding, rows, given)
        sources = tree.columns
    else:
        query = bind_select(binding, rows)
        if len(query.columns) != len(given):
            raise _wrong_width(len(given), len(query.columns), place_of(rows))
        tree, sources = query.input, query.columns  # type: ignore[assignment]
    assignments = _complete_row(binding, definition, given, sources, place_of(node))
    tree = logical.Project(tree, assignments)
    operation = Operation.SINK if upsert else Operation.INSERT
    return _root(logical.Modify(tree, definition, operation))


def _target_columns(definition: MapDefinition, node: Any) -> list[ColumnDefinition]:
    if not isinstance(node.this, exp.Schema):
        return list(definition.visible_columns)
    columns: list[ColumnDefinition] = []
    for name in node.this.expressions:
        column = definition.find_column(name.name)
        if column is None:
            names = [column.name for column in definition.columns]
            raise parsing_error(
                f"unknown column: {name.name}", span=place_of(name), suggestion=nearest(name.name, names)
            )
        if column in columns:
            raise parsing_error(f"the column {column.name} is there twice", span=place_of(name))
        columns.append(column)
    return columns


def _bind_values(binding: Binding, node: Any, given: Sequence[ColumnDefinition]) -> logical.Values:
    columns = tuple(binding.new_column(column.name, column.type) for column in given)
    rows: list[tuple[Expression, ...]] = []
    binder = ExpressionBinder(binding, Scope(()), clause="VALUES")
    for row in node.expressions:
        values = row.expressions if isinstance(row, exp.Tuple) else [row]
        if len(values) != len(given):
            raise _wrong_width(len(given), len(values), place_of(row))
        rows.append(
            tuple(
                _store(binder.bind(value, column.type), column, place_of(value))
                for value, column in zip(values, given, strict=True)
            )
        )
    return logical.Values(columns, tuple(rows))


def _wrong_width(expected: int, found: int, span: Span | None) -> SqlError:
    return parsing_error(f"{expected} values are expected, {found} are given", span=span)


def _complete_row(
    binding: Binding,
    definition: MapDefinition,
    given: Sequence[ColumnDefinition],
    columns: Sequence[Column],
    span: Span | None,
) -> tuple[Assignment, ...]:
    """The map's columns in declared order; what is not given is NULL, if it may be."""
    by_name = {declared.name: column for declared, column in zip(given, columns, strict=True)}
    assignments: list[Assignment] = []
    for declared in definition.columns:
        source = by_name.get(declared.name)
        if source is None:
            if not declared.hidden and (declared.name in definition.key or not declared.nullable):
                raise parsing_error(f"the column {declared.name} needs a value", span=span)
            value: Expression = Literal(None, declared.type)
        else:
            value = _store(source, declared, span)
        assignments.append(Assignment(binding.new_column(declared.name, declared.type), value))
    return tuple(assignments)


def _store(value: Expression, column: ColumnDefinition, span: Span | None) -> Expression:
    """The value as one of the column's type: a literal is converted now, what could lose value is refused."""
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
            raise parsing_error(
                f"column {column.name}: {error.message}", span=span, suggestion=error.suggestion
            ) from error
    if not _widens(value.type, column.type):
        hint = f"Use CAST(... AS {column.type})."
        raise parsing_error(
            f"{value.type} is not stored in the column {column.name} of type {column.type}", span=span, suggestion=hint
        )
    return coerce(value, column.type)


def _widens(source: SqlType, target: SqlType) -> bool:
    return source.kind is Kind.NULL or common_type(source, target) == target


def bind_update(binding: Binding, node: Any) -> logical.Root:
    refuse_unknown_parts(node, frozenset({"this", "expressions", "where"}))
    scan, relation = bind_table(binding, node.this)
    scope = Scope((relation,))
    binder = ExpressionBinder(binding, scope, clause="UPDATE")
    assigned: dict[int, Expression] = {}
    if not node.expressions:
        raise parsing_error("SET takes column = value")
    for assignment in node.expressions:
        if not isinstance(assignment, exp.EQ) or not isinstance(assignment.this, exp.Column):
            raise parsing_error("SET takes column = value", span=place_of(assignment))
        span = place_of(assignment)
        column = scope.resolve(assignment.this.name, assignment.this.table or None, place_of(assignment.this))
        declared = scan.map.column(column.name)
        if declared.name in scan.map.key:
            raise parsing_error(f"the key column {declared.name} cannot be updated", span=place_of(assignment.this))
        if column.id in assigned:
            raise parsing_error(f"the column {declared.name} is set twice", span=span)
        value = binder.bind(assignment.expression, declared.type)
        assigned[column.id] = _store(value, declared, place_of(assignment.expression))
    tree = _filtered(binding, node, scan, scope)
    row = tuple(
        Assignment(
            binding.new_column(column.name, column.type) if column.id in assigned else column,
            assigned.get(column.id, column),
        )
        for column in scan.columns
    )
    project = logical.Project(tree, row)
    return _root(logical.Modify(project, scan.map, Operation.UPDATE))


def bind_delete(binding: Binding, node: Any) -> logical.Root:
    refuse_unknown_parts(node, frozenset({"this", "where"}))
    scan, relation = bind_table(binding, node.this)
    tree = _filtered(binding, node, scan, Scope((relation,)))
    key = tuple(
        Assignment(scan.columns[position], scan.columns[position]) for position in scan.map.positions(scan.map.key)
    )
    return _root(logical.Modify(logical.Project(tree, key), scan.map, Operation.DELETE))


def _filtered(binding: Binding, node: Any, scan: logical.Scan, scope: Scope) -> logical.LogicalNode:
    where = node.args.get("where")
    if where is None:
        return scan
    return logical.Filter(scan, ExpressionBinder(binding, scope, clause="WHERE").bind_condition(where.this))


def _root(modify: logical.Modify) -> logical.Root:
    return logical.Root(modify, modify.columns, ("count",))
