"""Binding of SELECT: FROM, WHERE, GROUP BY, HAVING, the select list, DISTINCT, ORDER BY, LIMIT, in that order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.errors import parsing_error
from remuda.expr import Column, Expression, Literal, Parameter, coerce, columns_of, rewrite
from remuda.plan import logical
from remuda.plan.aggregates import AggregateCall
from remuda.plan.logical import Assignment, LogicalNode
from remuda.plan.traits import SortKey
from remuda.sql.aggregates import AGGREGATE_NODES
from remuda.sql.binding import Binding, Scope, ScopeRelation
from remuda.sql.expression import ExpressionBinder
from remuda.sql.places import place_of, refuse_unknown_parts, unsupported
from remuda.types import BIGINT, NULL, VARCHAR, Kind

if TYPE_CHECKING:
    from remuda.plan.traits import Collation

_SELECT_PARTS = frozenset(
    {"expressions", "from_", "where", "group", "having", "order", "limit", "offset", "distinct", "kind"}
)
_TABLE_PARTS = frozenset({"this", "db", "alias"})
_GROUP_PARTS = frozenset({"expressions"})
_ORDER_PARTS = frozenset({"this", "desc", "nulls_first"})
_LIMIT_PARTS = frozenset({"expression"})


@dataclass(frozen=True, slots=True)
class SelectItem:
    """An entry of the select list: what it computes, what the result calls it, and where it was written."""

    expression: Expression
    name: str


def bind_select(binding: Binding, node: Any) -> logical.Root:
    """A whole SELECT. Its order may need columns beyond the select list: the tree has them, the root drops them."""
    while isinstance(node, exp.Subquery) and not node.args.get("alias"):
        node = node.this
    if not isinstance(node, exp.Select):
        raise unsupported(node, f"{type(node).__name__.upper()} as a query")
    refuse_unknown_parts(node, _SELECT_PARTS)
    if not node.expressions:
        raise parsing_error("the select list is empty")
    tree, scope = _bind_from(binding, node)
    tree = _bind_where(binding, node, tree, scope)
    return _SelectBinder(binding, node, scope).bind(tree)


def bind_table(binding: Binding, node: Any) -> tuple[logical.Scan, ScopeRelation]:
    """A map named in FROM, UPDATE or DELETE."""
    refuse_unknown_parts(node, _TABLE_PARTS)
    if not isinstance(node.this, exp.Identifier):
        raise unsupported(node, "a function in FROM")
    if node.args.get("alias") is not None:
        refuse_unknown_parts(node.args["alias"], frozenset({"this"}))
    definition = binding.find_map(node.name, node.db or None, place_of(node))
    columns = tuple(binding.column_of(column) for column in definition.columns)
    hidden = frozenset(
        column.id for column, declared in zip(columns, definition.columns, strict=True) if declared.hidden
    )
    key = tuple(columns[position] for position in definition.positions(definition.key))
    return logical.Scan(definition, columns), ScopeRelation(node.alias or definition.name, columns, hidden, key)


def _bind_from(binding: Binding, node: Any) -> tuple[LogicalNode, Scope]:
    source = node.args.get("from_")
    if source is None:
        return logical.Values((), ((),)), Scope(())
    table = source.this
    if isinstance(table, exp.Table):
        scan, relation = bind_table(binding, table)
        return scan, Scope((relation,))
    if isinstance(table, exp.Subquery):
        inner = bind_select(binding, table.this)
        renamed = tuple(
            Assignment(binding.new_column(name, column.type, nullable=column.nullable), column)
            for name, column in zip(inner.names, inner.columns, strict=True)
        )
        # The order of a sub-query means nothing to the query around it, unless LIMIT cuts by it.
        tree = inner.input.input if isinstance(inner.input, logical.Sort) else inner.input
        project = logical.Project(tree, renamed)
        return project, Scope((ScopeRelation(table.alias or "", project.columns),))
    raise unsupported(table, f"{type(table).__name__.upper()} in FROM")


def _bind_where(binding: Binding, node: Any, tree: LogicalNode, scope: Scope) -> LogicalNode:
    where = node.args.get("where")
    if where is None:
        return tree
    return logical.Filter(tree, ExpressionBinder(binding, scope, clause="WHERE").bind_condition(where.this))


class _SelectBinder:
    """Everything above WHERE."""

    def __init__(self, binding: Binding, node: Any, scope: Scope) -> None:
        self.binding = binding
        self.node = node
        self.scope = scope
        self.calls: list[tuple[str, Expression | None, bool, Column]] = []
        self.expressions = ExpressionBinder(binding, scope, self.calls)

    def bind(self, tree: LogicalNode) -> logical.Root:
        items = self._bind_items()
        having = self.node.args.get("having")
        condition = None if having is None else self.expressions.bind_condition(having.this)
        order = self._bind_order(items)
        keys = self._bind_group_by(items)
        if keys or self.calls or self.node.args.get("group") is not None or condition is not None:
            tree, replaced = self._aggregate(tree, keys)
            items = [SelectItem(replaced(item.expression), item.name) for item in items]
            order = [(replaced(expression), key) for expression, key in order]
            if condition is not None:
                tree = logical.Filter(tree, replaced(condition))
        return self._project_and_sort(tree, items, order)

    def _bind_items(self) -> list[SelectItem]:
        items: list[SelectItem] = []
        for node in self.node.expressions:
            if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
                table = node.table if isinstance(node, exp.Column) else None
                columns = self.scope.star(table or None)
                if not columns:
                    raise parsing_error("* has no columns here", span=place_of(node))
                span = place_of(node)
                if span is not None:
                    self.binding.places.update(dict.fromkeys((column.id for column in columns), span))
                items.extend(SelectItem(column, column.name) for column in columns)
                continue
            inner = node.this if isinstance(node, exp.Alias) else node
            bound = self.expressions.bind(inner)
            items.append(
                SelectItem(_typed(bound), node.alias if isinstance(node, exp.Alias) else result_name(inner, bound))
            )
        return items

    def _bind_order(self, items: list[SelectItem]) -> list[tuple[Expression, tuple[bool, bool]]]:
        """ORDER BY entries: a position, a result column's name, or an expression; with (descending, nulls first)."""
        order = self.node.args.get("order")
        entries: list[tuple[Expression, tuple[bool, bool]]] = []
        for entry in [] if order is None else order.expressions:
            refuse_unknown_parts(entry, _ORDER_PARTS)
            descending = bool(entry.args.get("desc"))
            expression = self._item_named(entry.this, items) or self.expressions.bind(entry.this)
            entries.append((expression, (descending, bool(entry.args.get("nulls_first")))))
        return entries

    def _item_named(self, node: Any, items: list[SelectItem]) -> Expression | None:
        if isinstance(node, exp.Literal) and not node.is_string:
            place = int(node.this) if node.this.isdigit() else 0
            if not 1 <= place <= len(items):
                raise parsing_error(f"there is no result column number {node.this}", span=place_of(node))
            return items[place - 1].expression
        if isinstance(node, exp.Column) and not node.table:
            named = [item.expression for item in items if item.name.casefold() == node.name.casefold()]
            return named[0] if named and all(expression == named[0] for expression in named) else None
        return None

    def _bind_group_by(self, items: list[SelectItem]) -> list[Expression]:
        group = self.node.args.get("group")
        if group is None:
            return []
        refuse_unknown_parts(group, _GROUP_PARTS)
        keys: list[Expression] = []
        binder = ExpressionBinder(self.binding, self.scope, clause="GROUP BY")
        for node in group.expressions:
            in_scope = isinstance(node, exp.Column) and self._is_column(node)
            if type(node) in AGGREGATE_NODES:
                raise parsing_error("an aggregate is not allowed in GROUP BY", span=place_of(node))
            expression = (None if in_scope else self._item_named(node, items)) or binder.bind(node)
            if any(column.id in columns_of(expression) for _, _, _, column in self.calls):
                raise parsing_error("an aggregate is not allowed in GROUP BY", span=place_of(node))
            keys.append(expression)
        return list(dict.fromkeys(keys))

    def _is_column(self, node: Any) -> bool:
        folded = node.name.casefold()
        return any(column.name.casefold() == folded for relation in self.scope.relations for column in relation.columns)

    def _aggregate(self, tree: LogicalNode, keys: list[Expression]) -> tuple[LogicalNode, Any]:
        """Keys and arguments become columns below the aggregate; above it, only they and its results can be named."""
        named: dict[Expression, Column] = {}
        for expression in [*keys, *(argument for _, argument, _, _ in self.calls if argument is not None)]:
            if expression not in named:
                is_column = isinstance(expression, Column)
                named[expression] = expression if is_column else self._column_for(expression)  # type: ignore[assignment]
        items = tuple(Assignment(column, expression) for expression, column in named.items())
        below = logical.Project(tree, items) if items else tree
        calls = tuple(
            AggregateCall(column, name, None if argument is None else named[argument], distinct)
            for name, argument, distinct, column in self.calls
        )
        key_columns = {expression: named[expression] for expression in keys}
        aggregate = logical.Aggregate(below, tuple(key_columns.values()), calls)
        allowed = {column.id for column in aggregate.columns}

        def replaced(expression: Expression) -> Expression:
            above = _replace_outermost(expression, key_columns)
            for column in columns_of(above).values():
                if column.id not in allowed:
                    message = f"the column {column.name} must appear in GROUP BY or within an aggregate"
                    raise parsing_error(message, span=self.binding.places.get(column.id))
            return above

        return aggregate, replaced

    def _column_for(self, expression: Expression) -> Column:
        return self.binding.new_column("expression", expression.type)

    def _project_and_sort(
        self, tree: LogicalNode, items: list[SelectItem], order: list[tuple[Expression, tuple[bool, bool]]]
    ) -> logical.Root:
        outputs: list[Assignment] = []
        for item in items:
            plain = isinstance(item.expression, Column) and all(item.expression != output.column for output in outputs)
            column = item.expression if plain else self.binding.new_column(item.name, item.expression.type)
            outputs.append(Assignment(column, item.expression))  # type: ignore[arg-type]
        computed = {output.expression: output.column for output in reversed(outputs)}
        hidden: list[Assignment] = []
        collation: list[SortKey] = []
        for expression, (descending, nulls_first) in order:
            if isinstance(expression, Literal):
                continue  # the same for every row
            if expression not in computed:
                is_column = isinstance(expression, Column)
                column = expression if is_column else self._column_for(expression)
                computed[expression] = column  # type: ignore[assignment]
                hidden.append(Assignment(column, expression))  # type: ignore[arg-type]
            key = SortKey(computed[expression].id, descending, nulls_first)
            if all(key.column != other.column for other in collation):
                collation.append(key)
        if self.node.args.get("distinct") is not None:
            if self.node.args["distinct"].args.get("on") is not None:
                raise unsupported(self.node, "DISTINCT ON")
            if hidden:
                raise parsing_error(
                    "ORDER BY of a SELECT DISTINCT must name result columns", span=place_of(self.node.args["order"])
                )
            tree = logical.Project(tree, tuple(outputs))
            tree = logical.Aggregate(tree, tree.columns, ())
        else:
            tree = logical.Project(tree, (*outputs, *hidden))
        tree = self._limit(tree, tuple(collation))
        columns = tuple(output.column for output in outputs)
        return logical.Root(tree, columns, tuple(item.name for item in items), tuple(collation))

    def _limit(self, tree: LogicalNode, collation: Collation) -> LogicalNode:
        if collation:
            tree = logical.Sort(tree, collation)
        count, offset = self._row_count("limit"), self._row_count("offset")
        return tree if count is None and offset is None else logical.Limit(tree, count, offset)

    def _row_count(self, clause: str) -> Expression | None:
        node = self.node.args.get(clause)
        if node is None:
            return None
        if isinstance(node, exp.Fetch):
            raise unsupported(node, "FETCH")
        refuse_unknown_parts(node, _LIMIT_PARTS)
        bound = ExpressionBinder(self.binding, Scope(()), clause=clause.upper()).bind(node.expression, BIGINT)
        span = place_of(node.expression)
        if bound.type.kind is not Kind.NULL and not bound.type.is_integer:
            raise parsing_error(f"{clause.upper()} must be a whole number, this is {bound.type}", span=span)
        if isinstance(bound, Literal) and (bound.value is None or bound.value < 0):
            raise parsing_error(
                f"{clause.upper()} must not be {'NULL' if bound.value is None else 'negative'}", span=span
            )
        return coerce(bound, BIGINT) if not isinstance(bound, Literal) else Literal(bound.value, BIGINT)


def _replace_outermost(expression: Expression, replacements: dict[Expression, Column]) -> Expression:
    """Each largest part that is a group key becomes that key's column."""
    return rewrite(expression, lambda part: replacements.get(part, part))


def _typed(expression: Expression) -> Expression:
    """What is NULL throughout is a VARCHAR in a select list, as in PostgreSQL. A parameter must have a type."""
    return expression if expression.type != NULL or isinstance(expression, Parameter) else coerce(expression, VARCHAR)


def result_name(node: exp.Expression, bound: Expression) -> str:
    """A column is called by its declared name, anything else by its own text."""
    if isinstance(bound, Column) and isinstance(node, exp.Column):
        return bound.name
    return node.sql("postgres").replace(":#", "?")
