"""From keys and aggregate calls to the operators that compute them, and what can be named above them."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from remuda.dataclass import dataclass
from remuda.errors import grouping_error
from remuda.expr import Call, Case, Column, Expression, Literal, columns_of
from remuda.expr.walk import children, with_children
from remuda.plan import logical
from remuda.plan.aggregates import AggregateCall
from remuda.plan.logical import Assignment, LogicalNode
from remuda.plan.traits import SortKey
from remuda.types import BIGINT, BOOLEAN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.sql.bind.bind_context import BindContext
    from remuda.sql.bind.expression.subqueries import Subquery
    from remuda.sql.bind.functions.aggregate_binding import PendingCall
    from remuda.sql.bind.grouping import Grouping, PendingGrouping


@dataclass(slots=True)
class Aggregation:
    """The tree of an aggregated query, and how expressions bound below it are named above it."""

    binding: BindContext
    tree: LogicalNode
    replacements: dict[Expression, Expression]
    """Keys and GROUPING() calls, by what they were bound to."""
    free: frozenset[int]
    """Columns of outer queries: constants here."""
    allowed: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.allowed = {column.id for column in self.tree.columns} | self.free

    def replaced(self, expression: Expression, also: frozenset[int] = frozenset()) -> Expression:
        """Return the expression above the aggregate: each largest part that is a key becomes the key's column."""
        above = _replace_outermost(expression, self.replacements)
        for column in columns_of(above).values():
            if column.id not in self.allowed and column.id not in also:
                raise self._not_grouped(column)
        return above

    def admit(self, subqueries: Sequence[Subquery]) -> list[Subquery]:
        """Admit sub-queries above the aggregate, which may name of this query only keys and calls."""
        admitted: list[Subquery] = []
        exposed: list[Assignment] = []
        for subquery in subqueries:
            for column in subquery.free:
                if column.id in self.allowed:
                    continue
                key = self.replacements.get(column)
                if not isinstance(key, Column):
                    raise self._not_grouped(column)
                exposed.append(Assignment(replace(key, id=column.id, name=column.name), key))
            own = frozenset(column.id for column in subquery.right.columns)
            compared = None if subquery.compared is None else self.replaced(subquery.compared, own)
            admitted.append(replace(subquery, compared=compared))
            self.allowed.update(column.id for column in subquery.columns)
        if exposed:
            # A key of grouping sets is another column above them; the sub-query names it as it was.
            kept = [Assignment(column, column) for column in self.tree.columns]
            new = {assignment.column.id: assignment for assignment in exposed}
            self.tree = logical.Project(self.tree, (*kept, *new.values()))
        return admitted

    def _not_grouped(self, column: Column) -> Exception:
        message = f"the column {column.name} must appear in GROUP BY or within an aggregate"
        return grouping_error(message, span=self.binding.spans.get(column.id))


def _replace_outermost(expression: Expression, replacements: dict[Expression, Expression]) -> Expression:
    """Replace the outermost expressions that are keys.

    Of GROUP BY a, a + 1 the whole `a + 1` is a key, not the `a` in it.
    """
    found = replacements.get(expression)
    if found is not None:
        return found
    old = children(expression)
    new = tuple(_replace_outermost(child, replacements) for child in old)
    return expression if new == old else with_children(expression, new)


def aggregate(
    binding: BindContext,
    tree: LogicalNode,
    grouping: Grouping,
    calls: Sequence[PendingCall],
    groupings: Sequence[PendingGrouping],
    free: frozenset[int],
) -> Aggregation:
    """Keys and arguments become columns below the aggregate; above it, only they and its results can be named."""
    named = _Names(binding)
    keys = tuple(named.column(key) for key in grouping.keys)
    pending = tuple(_call(named, call) for call in calls)
    below = logical.Project(tree, named.assignments) if named.assignments else tree
    if grouping.is_plain:
        # One group without a call, as of HAVING true: its row is counted, for it needs a column to be a row.
        computed = pending if keys or pending else (_count(binding),)
        result: LogicalNode = logical.Aggregate(below, keys, computed)
        replacements: dict[Expression, Expression] = dict(zip(grouping.keys, keys, strict=True))
        for each in groupings:
            replacements[each.column] = Literal(each.value_in(grouping, 0), BIGINT)
        return Aggregation(binding, result, replacements, free)
    return _aggregate_sets(binding, below, keys, grouping, pending, groupings, free)


class _Names:
    """Expressions that become columns below an operator; one asked for twice is one column."""

    def __init__(self, binding: BindContext) -> None:
        self.binding = binding
        self.known: dict[Expression, Column] = {}

    def column(self, expression: Expression) -> Column:
        found = self.known.get(expression)
        if found is None:
            found = self.known[expression] = column_for(self.binding, expression)
        return found

    @property
    def assignments(self) -> tuple[Assignment, ...]:
        return tuple(Assignment(column, expression) for expression, column in self.known.items())


def column_for(binding: BindContext, expression: Expression) -> Column:
    """Return the column under which an expression is known above; a column of this query stays itself."""
    if isinstance(expression, Column):
        if not expression.outer:
            return expression
        return binding.new_column(expression.name, expression.type, nullable=expression.nullable)
    return binding.new_column("expression", expression.type)


def _call(named: _Names, call: PendingCall) -> AggregateCall:
    arguments = [named.column(argument) for argument in call.arguments]
    order = tuple(
        SortKey(named.column(entry.expression).id, entry.descending, entry.nulls_first)
        for entry in call.order
        if not isinstance(entry.expression, Literal)
    )
    first, second = (*arguments, None, None)[:2]
    return AggregateCall(call.column, call.function, first, call.distinct, second, order, call.parameters, call.span)


def _aggregate_sets(
    binding: BindContext,
    below: LogicalNode,
    keys: tuple[Column, ...],
    grouping: Grouping,
    calls: tuple[AggregateCall, ...],
    groupings: Sequence[PendingGrouping],
    free: frozenset[int],
) -> Aggregation:
    """Expand each row once for each grouping set and group by keys and set number; a key outside the set is NULL.

    The empty set has a row even where there is no input, so it is an aggregate without keys of its own.
    """
    number = binding.new_column("set", BIGINT, nullable=False)
    results = tuple(binding.new_column(column.name, column.type) for column in (*keys, *(c.column for c in calls)))
    replacements: dict[Expression, Expression] = dict(zip(grouping.keys, results[: len(keys)], strict=True))
    replacements |= dict(zip((call.column for call in calls), results[len(keys) :], strict=True))
    for each in groupings:
        replacements[each.column] = _by_set(number, [each.value_in(grouping, n) for n in range(len(grouping.sets))])
    parts: list[tuple[LogicalNode, tuple[Column, ...]]] = []
    grouped = [ordinal for ordinal, keys_of_set in enumerate(grouping.sets) if keys_of_set]
    if grouped:
        parts.append(_expanded(binding, below, keys, grouping, grouped, calls))
    parts.extend(
        _totals(binding, below, keys, ordinal, calls)
        for ordinal, keys_of_set in enumerate(grouping.sets)
        if not keys_of_set
    )
    tree = logical.Union(tuple(part for part, _ in parts), (*results, number), tuple(columns for _, columns in parts))
    return Aggregation(binding, tree, replacements, free)


def _expanded(
    binding: BindContext,
    below: LogicalNode,
    keys: tuple[Column, ...],
    grouping: Grouping,
    ordinals: Sequence[int],
    calls: tuple[AggregateCall, ...],
) -> tuple[LogicalNode, tuple[Column, ...]]:
    number = binding.new_column("set", BIGINT, nullable=False)
    set_keys = tuple(binding.new_column(key.name, key.type) for key in keys)
    needed = {id_ for call in calls for id_ in call.needed}
    passed = tuple(column for column in below.columns if column.id in needed)
    projections = tuple(
        (
            *(key if n in grouping.sets[ordinal] else Literal(None, key.type) for n, key in enumerate(keys)),
            *passed,
            Literal(ordinal, BIGINT),
        )
        for ordinal in ordinals
    )
    kept = {column.id: replace(column, id=binding.new_column("", column.type).id) for column in passed}
    expand = logical.Expand(below, (*set_keys, *kept.values(), number), projections)
    renamed = tuple(_renamed(binding, call, kept) for call in calls)
    tree = logical.Aggregate(expand, (*set_keys, number), renamed)
    return tree, (*set_keys, *(call.column for call in renamed), number)


def _renamed(binding: BindContext, call: AggregateCall, kept: dict[int, Column]) -> AggregateCall:
    return replace(
        call,
        column=binding.new_column(call.column.name, call.column.type, nullable=call.column.nullable),
        argument=None if call.argument is None else kept[call.argument.id],
        second=None if call.second is None else kept[call.second.id],
        order=tuple(replace(key, column=kept[key.column].id) for key in call.order),
    )


def _totals(
    binding: BindContext, below: LogicalNode, keys: tuple[Column, ...], ordinal: int, calls: tuple[AggregateCall, ...]
) -> tuple[LogicalNode, tuple[Column, ...]]:
    own = tuple(
        replace(call, column=binding.new_column(call.column.name, call.column.type, nullable=call.column.nullable))
        for call in calls
    )
    tree = logical.Aggregate(below, (), own or (_count(binding),))
    nulls = tuple(Assignment(binding.new_column(key.name, key.type), Literal(None, key.type)) for key in keys)
    number = Assignment(binding.new_column("set", BIGINT, nullable=False), Literal(ordinal, BIGINT))
    results = tuple(Assignment(call.column, call.column) for call in own)
    project = logical.Project(tree, (*nulls, *results, number))
    return project, project.columns


def _count(binding: BindContext) -> AggregateCall:
    return AggregateCall(binding.new_column("count", BIGINT, nullable=False), "count")


def _by_set(number: Column, values: Sequence[int]) -> Expression:
    """Return an expression for the value that belongs to the set of the row."""
    if len(set(values)) == 1:
        return Literal(values[0], BIGINT)
    branches = tuple(
        (Call("=", (number, Literal(ordinal, BIGINT)), BOOLEAN), Literal(value, BIGINT))
        for ordinal, value in enumerate(values[:-1])
    )
    return Case(branches, Literal(values[-1], BIGINT), BIGINT)
