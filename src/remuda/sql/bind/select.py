"""Binding of SELECT: FROM, WHERE, GROUP BY, HAVING, windows, QUALIFY, the select list, and what stands on top of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from remuda.errors import grouping_error, parsing_error, window_error
from remuda.expr import Column, Expression, columns_of
from remuda.plan import logical
from remuda.sql.bind.aggregation import Aggregation, aggregate, column_for
from remuda.sql.bind.expression.expression import ExpressionBinder
from remuda.sql.bind.expression.subqueries import Subquery, attach
from remuda.sql.bind.functions.aggregate_arguments import is_aggregate
from remuda.sql.bind.functions.window_calls import compute_windows, named_windows
from remuda.sql.bind.grouping import Grouping, bind_grouping, with_dependent_keys
from remuda.sql.bind.relation.from_clause import bind_from
from remuda.sql.bind.result_clauses import finish
from remuda.sql.bind.scope import QueryLevel, Scope
from remuda.sql.bind.select_list import SelectItem, aliases_of, bind_items, bind_order, item_named
from remuda.sql.parse.spans import refuse_unknown_parts, span_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from remuda.plan.logical import LogicalNode
    from remuda.sql.bind.bind_context import BindContext
    from remuda.sql.bind.expression.expression import Alias
    from remuda.sql.bind.functions.aggregate_binding import PendingCall
    from remuda.sql.bind.functions.window_calls import PendingWindow
    from remuda.sql.bind.grouping import PendingGrouping
    from remuda.sql.bind.order_by import OrderEntry
    from remuda.types import SqlType

_PARTS = frozenset(
    {
        "expressions",
        "from_",
        "joins",
        "where",
        "group",
        "having",
        "windows",
        "qualify",
        "order",
        "limit",
        "offset",
        "distinct",
        "kind",
        "with_",
    }
)


def bind_select(binding: BindContext, node: Any, level: QueryLevel, expected: Sequence[SqlType] = ()) -> logical.Root:
    """Bind a whole SELECT.

    Its order may need columns beyond the select list: the tree has them, the root drops them.
    """
    refuse_unknown_parts(node, _PARTS)
    if not node.expressions:
        raise parsing_error("the select list is empty")
    source = bind_from(binding, node, level)
    scope = Scope(source.relations, level)
    tree = filtered(binding, source.tree, scope, node.args.get("where"), aliases_of(node))
    return _SelectBinder(binding, node, scope, expected, source.order).bind(tree)


def filtered(
    binding: BindContext, tree: LogicalNode, scope: Scope, where: Any, aliases: dict[str, Alias] | None = None
) -> LogicalNode:
    """Filter by WHERE, with the sub-queries in it."""
    if where is None:
        return tree
    subqueries: list[Subquery] = []
    binder = ExpressionBinder(binding, scope, clause="WHERE", subqueries=subqueries, aliases=aliases or {})
    condition = binder.bind_condition(where.this)
    return logical.Filter(attach(tree, subqueries), condition)


class _SelectBinder:
    """Everything above WHERE. Clauses are bound first, for what they ask for decides which operators there are."""

    def __init__(
        self,
        binding: BindContext,
        node: Any,
        scope: Scope,
        expected: Sequence[SqlType],
        source_order: Sequence[OrderEntry] = (),
    ) -> None:
        self.binding = binding
        self.node = node
        self.scope = scope
        self.expected = expected
        self.source_order = source_order
        self.calls: list[PendingCall] = []
        self.groupings: list[PendingGrouping] = []
        self.windows: list[PendingWindow] = []
        self.named_windows = named_windows(node)
        self.aliases = aliases_of(node)
        self.aggregation: Aggregation | None = None

    def bind(self, tree: LogicalNode) -> logical.Root:
        expressions = self._binder("the select list", windows=True)
        items = bind_items(expressions, self.node, self.expected)
        having, having_subqueries = self._bind_condition("having", "HAVING", windows=False)
        qualify, qualify_subqueries = self._bind_condition("qualify", "QUALIFY", windows=True)
        order = bind_order(expressions, self.node.args.get("order"), items)
        distinct_on = self._bind_distinct_on(expressions, items)
        grouping, group_subqueries = self._bind_group_by(items)
        if not order and grouping is None and having is None and self._passes_rows_on():
            order = list(self.source_order)
        subqueries = expressions.subqueries or []
        if grouping is not None or self.calls or self.groupings or having is not None:
            above = [*self._above(items, order, distinct_on, having, qualify, [*subqueries, *having_subqueries])]
            grouping = with_dependent_keys(grouping or Grouping(), self.scope, above)
            below = _using([*subqueries, *having_subqueries, *qualify_subqueries], self._below(grouping))
            tree = attach(tree, [*below, *group_subqueries])
            subqueries, having_subqueries, qualify_subqueries = (
                [each for each in found if each not in below]
                for found in (subqueries, having_subqueries, qualify_subqueries)
            )
            free = frozenset(self.scope.level.free)
            self.aggregation = aggregate(self.binding, tree, grouping, self.calls, self.groupings, free)
            tree = self.aggregation.tree
        replaced = self._replaced
        if having is not None:
            tree = logical.Filter(self._attach(tree, having_subqueries), replaced(having))
        if self.windows:
            within = [part for window in self.windows for part in window.expressions]
            needed = _using([*subqueries, *qualify_subqueries], within)
            tree = self._attach(tree, needed)
            subqueries, qualify_subqueries = (
                [each for each in found if each not in needed] for found in (subqueries, qualify_subqueries)
            )
            tree = compute_windows(tree, self.windows, replaced, self._name)
            self._allow(window.column for window in self.windows)
        if qualify is not None:
            tree = logical.Filter(self._attach(tree, qualify_subqueries), replaced(qualify))
        tree = self._attach(tree, subqueries)
        items = [SelectItem(replaced(item.expression), item.name) for item in items]
        entries = [_with_expression(entry, replaced(entry.expression)) for entry in order]
        distinct_on = None if distinct_on is None else [replaced(part) for part in distinct_on]
        distinct = self.node.args.get("distinct") is not None
        return finish(self.binding, self.node, tree, items, entries, distinct=distinct, distinct_on=distinct_on)

    def _passes_rows_on(self) -> bool:
        """Test whether LIMIT may cut rows by the order of FROM, here or in an enclosing query."""
        has_limit = any(self.node.args.get(part) is not None for part in ("limit", "offset"))
        computes = self.calls or self.groupings or self.windows or self.node.args.get("distinct") is not None
        return (has_limit or isinstance(self.node.parent, exp.Subquery | exp.CTE)) and not computes

    def _binder(self, clause: str, *, windows: bool) -> ExpressionBinder:
        return ExpressionBinder(
            self.binding,
            self.scope,
            self.calls,
            clause,
            windows=self.windows if windows else None,
            groupings=self.groupings,
            subqueries=[],
            named_windows=self.named_windows,
            aliases=self.aliases,
        )

    def _bind_condition(self, part: str, clause: str, *, windows: bool) -> tuple[Expression | None, list[Subquery]]:
        node = self.node.args.get(part)
        if node is None:
            return None, []
        binder = self._binder(clause, windows=windows)
        return binder.bind_condition(node.this), binder.subqueries or []

    def _bind_distinct_on(self, expressions: ExpressionBinder, items: list[SelectItem]) -> list[Expression] | None:
        distinct = self.node.args.get("distinct")
        on = None if distinct is None else distinct.args.get("on")
        if on is None:
            return None
        return [item_named(part, items) or expressions.bind(part) for part in on.expressions]

    def _bind_group_by(self, items: list[SelectItem]) -> tuple[Grouping | None, list[Subquery]]:
        group = self.node.args.get("group")
        if group is None:
            return None, []
        binder = ExpressionBinder(self.binding, self.scope, clause="GROUP BY", subqueries=[], aliases=self.aliases)
        computed = {column.id for column in (*self._call_columns(), *(window.column for window in self.windows))}

        def bind_key(node: Any) -> Expression:
            if is_aggregate(node):
                raise grouping_error("an aggregate is not allowed in GROUP BY", span=span_of(node))
            in_scope = hasattr(node, "table") and not node.table and self.scope.has(node.name)
            expression = (None if in_scope else item_named(node, items)) or binder.bind(node)
            named = columns_of(expression)
            if any(column.id in named for column in self._call_columns()):
                raise grouping_error("an aggregate is not allowed in GROUP BY", span=span_of(node))
            if any(id_ in computed for id_ in named):
                raise window_error("a window function is not allowed in GROUP BY", span=span_of(node))
            return expression

        def all_keys() -> list[Expression]:
            return [item.expression for item in items if not set(columns_of(item.expression)) & computed]

        return bind_grouping(group, bind_key, all_keys), binder.subqueries or []

    def _call_columns(self) -> list[Column]:
        return [*(call.column for call in self.calls), *(grouping.column for grouping in self.groupings)]

    def _below(self, grouping: Grouping) -> Iterable[Expression]:
        """Return the expressions that are evaluated below the aggregate."""
        yield from grouping.keys
        for call in self.calls:
            yield from call.arguments
            yield from (entry.expression for entry in call.order)

    def _above(
        self,
        items: Sequence[SelectItem],
        order: Sequence[OrderEntry],
        distinct_on: Sequence[Expression] | None,
        having: Expression | None,
        qualify: Expression | None,
        subqueries: Sequence[Subquery],
    ) -> Iterable[Expression]:
        """Return the expressions that are evaluated above the aggregate."""
        yield from (item.expression for item in items)
        yield from (entry.expression for entry in order)
        yield from distinct_on or ()
        yield from (condition for condition in (having, qualify) if condition is not None)
        yield from (part for window in self.windows for part in window.expressions)
        yield from (replace(column, outer=False) for subquery in subqueries for column in subquery.needed.values())

    def _replaced(self, expression: Expression) -> Expression:
        return expression if self.aggregation is None else self.aggregation.replaced(expression)

    def _attach(self, tree: LogicalNode, subqueries: Sequence[Subquery]) -> LogicalNode:
        if self.aggregation is None:
            return attach(tree, subqueries)
        self.aggregation.tree = tree
        admitted = self.aggregation.admit(subqueries)
        return attach(self.aggregation.tree, admitted)

    def _allow(self, columns: Iterable[Column]) -> None:
        if self.aggregation is not None:
            self.aggregation.allowed.update(column.id for column in columns)

    def _name(self, expression: Expression) -> Column:
        return column_for(self.binding, expression)


def _using(subqueries: Sequence[Subquery], expressions: Iterable[Expression]) -> list[Subquery]:
    """Return the sub-queries whose values the expressions name."""
    named = columns_of(*expressions)
    return [subquery for subquery in subqueries if any(column.id in named for column in subquery.columns)]


def _with_expression(entry: OrderEntry, expression: Expression) -> OrderEntry:
    return type(entry)(expression, entry.descending, entry.nulls_first)
