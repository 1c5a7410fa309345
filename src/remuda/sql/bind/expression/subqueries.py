"""Sub-queries in expressions: each becomes an `Apply` below the operator of its clause, and a column in its place."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlglot import exp

from remuda.dataclass import dataclass
from remuda.errors import not_supported, parsing_error
from remuda.expr import Call, Column, columns_of
from remuda.plan import logical
from remuda.plan.joins import JoinKind
from remuda.plan.logical import Assignment, LogicalNode
from remuda.sql.bind.bind_context import COMMON_PARTS, Binders, Parts
from remuda.sql.bind.expression.row_comparison import compare_rows, is_row, key_row
from remuda.sql.bind.order_by import OrderEntry
from remuda.sql.bind.scope import QueryLevel
from remuda.sql.parse.spans import span_of
from remuda.types import BOOLEAN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from remuda.errors import Span
    from remuda.expr import Expression
    from remuda.sql.bind.bind_context import BindContext
    from remuda.sql.bind.expression.expression import ExpressionBinder
    from remuda.types import SqlType

NEGATED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True, slots=True)
class Subquery:
    """A sub-query of an expression, in which `columns` stand for it now: one, or those of a row."""

    columns: tuple[Column, ...]
    kind: JoinKind
    right: LogicalNode
    free: tuple[Column, ...]
    """Columns of the query around it that it names."""
    compared: Expression | None = None
    span: Span | None = None
    volatile: Expression | None = None
    """A value of random() in the place of a query: nothing is joined, a column is computed."""

    @property
    def needed(self) -> dict[int, Column]:
        """What the operator below has to deliver, by id."""
        own = {column.id for column in self.right.columns}
        compared = {id_: column for id_, column in columns_of(self.compared).items() if id_ not in own}
        return {**{column.id: column for column in self.free}, **compared}


def attach(
    tree: LogicalNode,
    subqueries: Iterable[Subquery],
    replaced: Callable[[Expression], Expression] = lambda expression: expression,
) -> LogicalNode:
    """Attach the sub-queries and return the tree with their columns. `replaced` names the renames of an aggregate."""
    for subquery in subqueries:
        if subquery.volatile is not None:
            same = (Assignment(column, column) for column in tree.columns)
            tree = logical.Project(tree, (*same, Assignment(subquery.columns[0], subquery.volatile)))
            continue
        mark = subquery.columns[0] if subquery.kind is JoinKind.MARK else None
        compared = None if subquery.compared is None else replaced(subquery.compared)
        tree = logical.Apply(subquery.kind, tree, subquery.right, None, compared, mark, subquery.span)
    return tree


def volatile(column: Column, value: Expression) -> Subquery:
    """Return the volatile expressions, which `attach` computes as columns, once for each row."""
    return Subquery((column,), JoinKind.INNER, logical.Values((), ((),)), (), volatile=value)


def _bind_scalar(binder: ExpressionBinder, node: Any, expected: SqlType | None) -> Expression:
    """Bind `(SELECT ...)` as a value: NULL where it has no row, an error where it has several."""
    right, columns, free = _bind_inner(binder, node, () if expected is None else (expected,))
    if len(columns) != 1:
        raise parsing_error(
            f"a sub-query that is a value has one column, this one has {len(columns)}", span=span_of(node)
        )
    column = replace(columns[0], nullable=True)
    _add(binder, Subquery((column,), JoinKind.SINGLE, right, free, span=span_of(node)), node)
    return column


def bind_row_query(binder: ExpressionBinder, node: Any, operator: str) -> Expression:
    """Bind `(x, y) = (SELECT ...)`: NULL where the query has no row, an error where it has several."""
    operands = [binder.bind(part) for part in node.this.expressions]
    values = bind_row_value(binder, node.expression, [part.type for part in operands])
    return compare_rows(operator, list(zip(operands, values, strict=True)), span_of(node))


def bind_row_value(binder: ExpressionBinder, node: Any, expected: Sequence[SqlType]) -> tuple[Column, ...]:
    """Bind `(SELECT a, b ...)` as a row of values: NULLs where it has no row, an error where it has several."""
    right, columns, free = _bind_inner(binder, node, expected)
    _refuse_other_width(len(expected), len(columns), node)
    values = tuple(replace(column, nullable=True) for column in columns)
    _add(binder, Subquery(values, JoinKind.SINGLE, right, free, span=span_of(node)), node)
    return values


def _refuse_other_width(wanted: int, found: int, query: Any) -> None:
    if found != wanted:
        columns = "one column" if wanted == 1 else f"{wanted} columns"
        raise parsing_error(f"the sub-query must have {columns}, it has {found}", span=span_of(query))


def _bind_exists(binder: ExpressionBinder, node: Any, _: SqlType | None) -> Expression:
    right, _columns, free = _bind_inner(binder, node.this)
    mark = binder.binding.new_column("exists", BOOLEAN, nullable=False)
    _add(binder, Subquery((mark,), JoinKind.MARK, right, free, span=span_of(node)), node)
    return mark


def bind_in_query(binder: ExpressionBinder, node: Any, query: Any) -> Expression:
    """Bind `x IN (SELECT ...)` and `(x, y) IN (SELECT ...)`."""
    return _bind_quantified(binder, node, "=", node.this, query)


def bind_in_rows(
    binder: ExpressionBinder,
    operands: Sequence[Expression],
    rows: tuple[tuple[Expression, ...], ...],
    span: Span | None,
) -> Expression:
    """Bind `(x, y) IN ((1, 2), (3, 4), ...)` as `(x, y) IN (VALUES (1, 2), ...)`, of rows that are bound already."""
    columns = tuple(
        binder.binding.new_column(f"column{ordinal}", value.type) for ordinal, value in enumerate(rows[0], 1)
    )
    compared = compare_rows("=", list(zip(operands, columns, strict=True)), span)
    mark = binder.binding.new_column("in", BOOLEAN)
    assert binder.subqueries is not None, "WHERE may have sub-queries"
    binder.subqueries.append(Subquery((mark,), JoinKind.MARK, logical.Values(columns, rows), (), compared, span))
    return mark


def bind_quantified(binder: ExpressionBinder, node: Any, operator: str) -> Expression:
    """Bind `x < ANY (SELECT ...)`; ALL is the negation of ANY with the opposite comparison."""
    quantified = node.expression
    if isinstance(quantified, exp.All):
        opposite = _bind_quantified(binder, node, NEGATED[operator], node.this, quantified.this)
        return Call("not", (opposite,), BOOLEAN)
    return _bind_quantified(binder, node, operator, node.this, quantified.this)


def _bind_quantified(binder: ExpressionBinder, node: Any, operator: str, operand: Any, query: Any) -> Expression:
    written: list[Any] = operand.expressions if is_row(operand) else [operand]
    key = key_row(binder.scope, operand)
    if key is not None:
        written = list(key)
    span = span_of(node)
    operands = [part if isinstance(part, Column) else binder.bind(part) for part in written]
    right, columns, free = _bind_inner(binder, query, [part.type for part in operands])
    _refuse_other_width(len(written), len(columns), query)
    operands = [
        binder.bind(part, column.type) if isinstance(part, exp.Placeholder) else bound
        for part, bound, column in zip(written, operands, columns, strict=True)
    ]
    compared = compare_rows(operator, list(zip(operands, columns, strict=True)), span)
    mark = binder.binding.new_column("in", BOOLEAN)
    _add(binder, Subquery((mark,), JoinKind.MARK, right, free, compared, span), node)
    return mark


def _add(binder: ExpressionBinder, subquery: Subquery, node: Any) -> None:
    if binder.subqueries is None:
        raise not_supported(f"a sub-query is not allowed in {binder.clause}", span=span_of(node))
    binder.subqueries.append(subquery)


def _bind_inner(
    binder: ExpressionBinder, node: Any, expected: Sequence[SqlType] = ()
) -> tuple[LogicalNode, tuple[Column, ...], tuple[Column, ...]]:
    """Bind a sub-query; return its tree, its columns, and the outer columns that it names."""
    if binder.subqueries is None:
        raise not_supported(f"a sub-query is not allowed in {binder.clause}", span=span_of(node))
    level = QueryLevel(binder, binder.scope.level.ctes)
    query = binder.binding.bind_query(binder.binding, node, level, expected)
    return relation_of(query), query.columns, tuple(level.free.values())


def relation_of(query: logical.Root) -> LogicalNode:
    """Return a query as a relation of its columns, without its order unless a LIMIT cuts by it."""
    tree: Any = query.input.input if isinstance(query.input, logical.Sort) else query.input
    if tree.columns == query.columns:
        return tree  # type: ignore[no-any-return]
    return logical.Project(tree, tuple(Assignment(column, column) for column in query.columns))


class NamedRelation(NamedTuple):
    """A query in FROM: its tree, its columns, and the order by which a LIMIT right above it cuts.

    The order means nothing else to the query around it. Columns that only the order needs are in the tree too.
    """

    tree: LogicalNode
    columns: tuple[Column, ...]
    order: tuple[OrderEntry, ...] = ()


def named_relation(binding: BindContext, query: logical.Root, names: Sequence[str]) -> NamedRelation:
    """Return the query under these names of its columns."""
    tree: Any = query.input.input if isinstance(query.input, logical.Sort) else query.input
    renamed = [
        Assignment(binding.new_column(name, column.type, nullable=column.nullable), column)
        for name, column in zip(names, query.columns, strict=True)
    ]
    columns = tuple(item.column for item in renamed)
    delivered = {column.id: column for column in tree.columns}
    meant = {column.id: item.column for column, item in zip(query.columns, renamed, strict=True)}
    for key in query.collation:
        if key.column not in meant:
            column = delivered[key.column]
            meant[key.column] = binding.new_column(column.name, column.type, nullable=column.nullable)
            renamed.append(Assignment(meant[key.column], column))
    order = tuple(OrderEntry(meant[key.column], key.descending, key.nulls_first) for key in query.collation)
    return NamedRelation(logical.Project(tree, tuple(renamed)), columns, order)


NODES: Binders = {exp.Subquery: _bind_scalar, exp.Exists: _bind_exists}
PARTS: Parts = {exp.Subquery: COMMON_PARTS | {"order", "limit", "offset", "with_"}}
