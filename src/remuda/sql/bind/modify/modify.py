"""Binding of INSERT, SINK, UPDATE and DELETE: each is a query for rows, and a `Modify` on top of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.errors import (
    Span,
    SqlError,
    alias_twice,
    column_twice,
    missing_value,
    nearest_column,
    parsing_error,
    unknown_column,
)
from remuda.expr import Call, Column, Expression, Literal
from remuda.plan import logical
from remuda.plan.joins import JoinKind
from remuda.plan.logical import Assignment, LogicalNode, Operation
from remuda.sql.bind.ctes import check_unused, with_ctes
from remuda.sql.bind.expression.expression import ExpressionBinder
from remuda.sql.bind.expression.subqueries import Subquery, attach
from remuda.sql.bind.functions.window_calls import numbered
from remuda.sql.bind.modify.assignments import bind_assignments, refuse_default, store
from remuda.sql.bind.modify.conflict import on_conflict
from remuda.sql.bind.query import bind_query
from remuda.sql.bind.relation.from_clause import Source, bind_map_entry, bind_sources
from remuda.sql.bind.relation.values_clause import rows_of
from remuda.sql.bind.scope import QueryLevel, Scope
from remuda.sql.bind.select import filtered
from remuda.sql.parse.spans import refuse_unknown_parts, span_of
from remuda.types import BIGINT, BOOLEAN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.catalog import ColumnDefinition, MapDefinition
    from remuda.plan.traits import Collation
    from remuda.sql.bind.bind_context import BindContext


def bind_insert(binding: BindContext, node: Any, *, upsert: bool) -> logical.Root:
    refuse_unknown_parts(node, frozenset({"this", "expression", "with_", "conflict", "alternative"}))
    level, defined = with_ctes(node, QueryLevel())
    target = node.this.this if isinstance(node.this, exp.Schema) else node.this
    if not isinstance(target, exp.Table) or not isinstance(target.this, exp.Identifier):
        raise parsing_error("INSERT INTO needs the name of a table", span=span_of(target))
    definition = binding.find_target(target.name, target.db or None, span_of(target))
    given = _target_columns(definition, node)
    rows = node.expression
    if rows is None:
        raise parsing_error("INSERT needs VALUES or a query", span=span_of(target))
    if isinstance(rows, exp.Values) and rows.args.get("alias") is not None:  # VALUES (1, 2) (3, 4)
        span = span_of(rows.args["alias"]) or span_of(rows)
        raise parsing_error("a comma is missing between the rows of VALUES", span=span)
    order: Collation = ()
    if isinstance(rows, exp.Values) and not rows.args.get("order") and not rows.args.get("limit"):
        tree: LogicalNode = _bind_values(binding, rows, given, level)
        sources = tree.columns
    else:
        query = bind_query(binding, rows, level, [column.type for column in given])
        if len(query.columns) != len(given):
            raise _wrong_width(len(given), len(query.columns), span_of(rows))
        tree, sources, order = query.input, query.columns, query.collation  # type: ignore[assignment]
    assignments = _complete_row(binding, definition, given, sources, span_of(node))
    operation = Operation.SINK if upsert else Operation.INSERT
    written = logical.Project(tree, assignments)
    tree, operation = on_conflict(binding, node, definition, written, operation, level, order)
    check_unused(binding, defined)
    return _root(logical.Modify(tree, definition, operation))


def _target_columns(definition: MapDefinition, node: Any) -> list[ColumnDefinition]:
    if not isinstance(node.this, exp.Schema):
        return list(definition.visible_columns)
    columns: list[ColumnDefinition] = []
    for name in node.this.expressions:
        column = definition.find_column(name.name)
        if column is None:
            names = [column.name for column in definition.columns]
            raise unknown_column(
                f"unknown column: {name.name}", span=span_of(name), suggestion=nearest_column(name.name, names)
            )
        if column in columns:
            raise column_twice(f"the column {column.name} is there twice", span=span_of(name))
        columns.append(column)
    return columns


def _bind_values(binding: BindContext, node: Any, given: Sequence[ColumnDefinition], level: QueryLevel) -> LogicalNode:
    columns = tuple(binding.new_column(column.name, column.type) for column in given)
    rows: list[tuple[list[Expression], list[Subquery]]] = []
    for row in node.expressions:
        values = row.expressions if isinstance(row, exp.Tuple) else [row]
        if len(values) != len(given):
            raise _wrong_width(len(given), len(values), span_of(row))
        for value in values:
            refuse_default(value)
        subqueries: list[Subquery] = []
        binder = ExpressionBinder(binding, Scope((), level), clause="VALUES", subqueries=subqueries)
        stored = [
            store(binder.bind(value, column.type), column, span_of(value))
            for value, column in zip(values, given, strict=True)
        ]
        rows.append((stored, subqueries))
    return rows_of(binding, columns, rows)


def _wrong_width(expected: int, found: int, span: Span | None) -> SqlError:
    wanted = "1 value is" if expected == 1 else f"{expected} values are"
    given = "1 is" if found == 1 else f"{found} are"
    return parsing_error(f"{wanted} expected, {given} given", span=span)


def _complete_row(
    binding: BindContext,
    definition: MapDefinition,
    given: Sequence[ColumnDefinition],
    columns: Sequence[Column],
    span: Span | None,
) -> tuple[Assignment, ...]:
    """Complete a row to the map's columns in declared order, with NULL for missing nullable columns."""
    by_name = {declared.name: column for declared, column in zip(given, columns, strict=True)}
    assignments: list[Assignment] = []
    for declared in definition.columns:
        source = by_name.get(declared.name)
        if source is None:
            if not declared.hidden and (declared.name in definition.key or not declared.nullable):
                raise missing_value(f"the column {declared.name} needs a value", span=span)
            value: Expression = Literal(None, declared.type)
        else:
            value = store(source, declared, span)
        assignments.append(Assignment(binding.new_column(declared.name, declared.type), value))
    return tuple(assignments)


def bind_update(binding: BindContext, node: Any) -> logical.Root:
    """Bind `UPDATE map SET column = value, ... [FROM ...] [WHERE ...]`."""
    refuse_unknown_parts(node, frozenset({"this", "expressions", "where", "from_", "with_"}))
    level, defined = with_ctes(node, QueryLevel())
    target = bind_map_entry(binding, node.this)
    scan, relation = target.tree, target.relations[0]
    assert isinstance(scan, logical.Scan)
    from_clause = node.args.get("from_")
    others = [] if from_clause is None else [from_clause.this]  # which has the joins after it
    source = _with_others(binding, target, others, level)
    scope = Scope(source.relations, level)
    subqueries: list[Subquery] = []
    binder = ExpressionBinder(binding, scope, clause="UPDATE", subqueries=subqueries)
    if not node.expressions:
        raise parsing_error("SET takes column = value")
    assigned = bind_assignments(binder, node.expressions, scan.map, relation)
    tree = attach(filtered(binding, source.tree, scope, node.args.get("where")), subqueries)
    check_unused(binding, defined)
    if others:
        tree = _once_each(binding, tree, scan)
    row = tuple(
        Assignment(
            binding.new_column(column.name, column.type) if column.id in assigned else column,
            assigned.get(column.id, column),
        )
        for column in scan.columns
    )
    return _root(logical.Modify(logical.Project(tree, row), scan.map, Operation.UPDATE))


def _with_others(binding: BindContext, target: Source, entries: Sequence[Any], level: QueryLevel) -> Source:
    """Join the map with the tables of UPDATE ... FROM or DELETE ... USING; WHERE chooses among all pairs."""
    if not entries:
        return target
    others = bind_sources(binding, entries, level)
    own = target.relations[0].alias.casefold()
    if any(relation.alias.casefold() == own for relation in others.relations):
        raise alias_twice(
            f"the table {target.relations[0].alias} is there twice: give it an alias", span=span_of(entries[0])
        )
    tree = logical.Join(JoinKind.INNER, target.tree, others.tree)
    return Source(tree, (*target.relations, *others.relations))


def _once_each(binding: BindContext, tree: LogicalNode, scan: logical.Scan) -> LogicalNode:
    """Keep one pair of each row of the map, so that a row is updated once."""
    key = tuple(scan.columns[position] for position in scan.map.positions(scan.map.key))
    tree, number = numbered(binding, tree, key, ())
    return logical.Filter(tree, Call("=", (number, Literal(1, BIGINT)), BOOLEAN))


def bind_delete(binding: BindContext, node: Any) -> logical.Root:
    """Bind `DELETE FROM map [USING ...] [WHERE ...]`."""
    refuse_unknown_parts(node, frozenset({"this", "where", "using", "with_"}))
    level, defined = with_ctes(node, QueryLevel())
    target = bind_map_entry(binding, node.this)
    scan = target.tree
    assert isinstance(scan, logical.Scan)
    entries = node.args.get("using") or []
    source = _with_others(binding, target, _joined_by_commas(entries), level)
    tree = filtered(binding, source.tree, Scope(source.relations, level), node.args.get("where"))
    check_unused(binding, defined)
    key = tuple(scan.columns[position] for position in scan.map.positions(scan.map.key))
    tree = logical.Project(tree, tuple(Assignment(column, column) for column in key))
    if entries:
        tree = logical.Aggregate(tree, key, ())
    return _root(logical.Modify(tree, scan.map, Operation.DELETE))


def _joined_by_commas(entries: Sequence[Any]) -> list[Any]:
    """USING a, b: sqlglot gives a list of tables."""
    joined = list(entries[:1])
    for entry in entries[1:]:
        join = exp.Join(this=entry)
        join.meta["word"] = ","
        joined.append(join)
    return joined


def _root(modify: logical.Modify) -> logical.Root:
    return logical.Root(modify, modify.columns, ("count",))
