"""The short way to free a sub-query of outer columns: what names them moves up to the join.

    EXISTS (SELECT * FROM items WHERE items.order = orders.id AND price > 5)

reads, for each order, `Filter(items, order = orders.id AND price > 5)`. Pulled up it is `Filter(items, price > 5)`,
which names no outer column, and the predicate `order = orders.id` for the join with orders. A predicate passes an
Aggregate or a Window where it picks whole groups: an equality with an inner column makes that column one more key.

What cannot be pulled up (a comparison other than equality below an aggregate, a correlated side of an outer join, a
set operation) is left to `push_domain`.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from remuda.dataclass import dataclass
from remuda.expr import Call, Column, Expression, call, columns_of, conjunction, conjuncts, substitute
from remuda.plan import logical
from remuda.plan.joins import JoinKind
from remuda.plan.logical import Assignment
from remuda.plan.windows import WindowCall
from remuda.rules.construct import filtered
from remuda.rules.decorrelate.free_columns import free_columns
from remuda.types import BIGINT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from remuda.plan.logical import LogicalNode
    from remuda.plan.traits import Collation
    from remuda.rules.construct import NewColumns

# LIMIT within each group of rows, by numbering the rows of a group.


def first_of_each(
    node: LogicalNode, limit: logical.Limit, partition: tuple[Column, ...], new_columns: NewColumns
) -> LogicalNode:
    """Return the rows that `limit` keeps of each group of equal `partition`, by their numbers in the group.

    The number minus OFFSET is compared, for OFFSET plus LIMIT may be too large for a BIGINT.
    """
    number = new_columns.add("number", BIGINT, nullable=False)
    window = logical.Window(node, partition, order_of(limit), (WindowCall(number, "row_number"),))
    conditions: list[Expression] = []
    position: Expression | None = number
    if limit.offset is not None:
        conditions.append(_compare(">", number, limit.offset))
        position = call("-", number, limit.offset)
    if limit.count is not None and position is not None:
        conditions.append(_compare("<=", position, limit.count))
    condition = conjunction(conditions)
    return window if condition is None else logical.Filter(window, condition)


def order_of(limit: logical.Limit) -> Collation:
    """Return the order by which LIMIT counts: its own, or that of the Sort below it."""
    if not limit.collation and isinstance(limit.input, logical.Sort):
        return limit.input.collation
    return limit.collation


def _compare(function: str, left: Expression, right: Expression) -> Expression:
    compared = call(function, left, right)
    assert compared is not None, "row numbers and limits are BIGINT"
    return compared


EQUALITIES = frozenset({"=", "is not distinct from"})


@dataclass(frozen=True, slots=True)
class Pulled:
    """A sub-query as `Project(Filter(node, predicates), meanings)`, of which only `node` is free of outer columns.

    A column of the sub-query is one of `node`, or has a meaning: an expression that names outer columns.
    """

    node: LogicalNode
    predicates: tuple[Expression, ...] = ()
    meanings: Mapping[int, Expression] = field(default_factory=dict)


class PullUp:
    """Pulls up what names `outer`, columns of the left side of one Apply."""

    def __init__(self, outer: frozenset[int], new_columns: NewColumns) -> None:
        self._outer = outer
        self._new_columns = new_columns

    def pull(self, node: Any) -> Pulled | None:
        """Return the same rows with everything correlated on top, or None."""
        if not self._outer & free_columns(node).keys():
            return Pulled(node)
        match node:
            case logical.Filter():
                return self._filter(node)
            case logical.Project():
                return self._project(node)
            case logical.Sort():
                return self.pull(node.input)
            case logical.Limit():
                return self._limit(node)
            case logical.Aggregate():
                return self._aggregate(node) if node.keys else None
            case logical.Window():
                return self._window(node)
            case logical.Join():
                return self._join(node)
            case logical.Values(rows=(row,)):
                meanings = {column.id: value for column, value in zip(node.columns, row, strict=True)}
                return Pulled(logical.Values((), ((),)), (), meanings)
            case _:
                return None

    def _is_outer(self, expression: Expression) -> bool:
        return bool(self._outer & columns_of(expression).keys())

    def _split(self, condition: Expression | None) -> tuple[list[Expression], list[Expression]]:
        """Split conjuncts into those that name outer columns, and the others."""
        parts = conjuncts(condition)
        return [part for part in parts if self._is_outer(part)], [part for part in parts if not self._is_outer(part)]

    def _filter(self, node: logical.Filter) -> Pulled | None:
        below = self.pull(node.input)
        if below is None:
            return None
        outer, inner = self._split(substitute(node.condition, below.meanings))
        return Pulled(filtered(below.node, inner), (*below.predicates, *outer), below.meanings)

    def _project(self, node: logical.Project) -> Pulled | None:
        below = self.pull(node.input)
        if below is None:
            return None
        items = [Assignment(item.column, substitute(item.expression, below.meanings)) for item in node.assignments]
        meanings = {item.column.id: item.expression for item in items if self._is_outer(item.expression)}
        kept = [item for item in items if item.column.id not in meanings]
        return Pulled(self._deliver(below, kept, meanings), below.predicates, meanings)

    def _deliver(self, below: Pulled, items: list[Assignment], meanings: Mapping[int, Expression]) -> LogicalNode:
        """Return a projection that also passes on the columns of predicates and meanings; none without columns."""
        have = {item.column.id for item in items}
        needed = columns_of(*below.predicates, *meanings.values())
        passed = [column for column in below.node.columns if column.id in needed and column.id not in have]
        both = (*items, *(Assignment(column, column) for column in passed))
        return logical.Project(below.node, both) if both else below.node

    def _limit(self, node: logical.Limit) -> Pulled | None:
        """LIMIT within each outer row is LIMIT within each value of the inner columns that it is equal to."""
        below = self.pull(node.input)
        if below is None or not below.meanings.keys().isdisjoint(key.column for key in order_of(node)):
            return None
        found = self._equal_columns(below, frozenset())
        if found is None:
            return None
        tree, predicates, partition = found
        return Pulled(first_of_each(tree, node, partition, self._new_columns), predicates, below.meanings)

    def _aggregate(self, node: logical.Aggregate) -> Pulled | None:
        grouped = self.group(node)
        return None if grouped is None else Pulled(*grouped)

    def group(self, node: logical.Aggregate) -> tuple[logical.Aggregate, tuple[Expression, ...]] | None:
        """Aggregate for every outer row at once, by the inner columns that the outer ones are equal to.

        Without keys of its own it has no row, instead of one, where nothing is equal: the caller sees to that.
        """
        below = self.pull(node.input)
        if below is None:
            return None
        keys = frozenset(column.id for column in node.keys)
        if not below.meanings.keys().isdisjoint(keys.union(*(call.needed for call in node.calls))):
            return None
        found = self._equal_columns(below, keys)
        if found is None:
            return None
        tree, predicates, more = found
        return logical.Aggregate(tree, (*node.keys, *more), node.calls), predicates

    def _window(self, node: logical.Window) -> Pulled | None:
        below = self.pull(node.input)
        if below is None:
            return None
        used = {key.column for key in node.order} | {column.id for column in node.partition}
        used |= columns_of(*(argument for call in node.calls for argument in call.arguments)).keys()
        if not below.meanings.keys().isdisjoint(used):
            return None
        found = self._equal_columns(below, frozenset(column.id for column in node.partition))
        if found is None:
            return None
        tree, predicates, more = found
        return Pulled(replace(node, input=tree, partition=(*node.partition, *more)), predicates, below.meanings)

    def _equal_columns(
        self, below: Pulled, keys: frozenset[int]
    ) -> tuple[LogicalNode, tuple[Expression, ...], tuple[Column, ...]] | None:
        """Return the inner columns that, added to `keys`, make every predicate one that picks whole groups.

        That is a predicate that names only keys, and an equality of something inner with something outer: within a
        group it then has one value. Something inner that is not a column becomes one.
        """
        inner = {column.id for column in below.node.columns}
        computed: dict[Expression, Column] = {}
        more: dict[int, Column] = {}
        predicates: list[Expression] = []
        for predicate in below.predicates:
            if inner & columns_of(predicate).keys() <= keys:
                predicates.append(predicate)
                continue
            sides = self._sides(predicate, inner)
            if sides is None:
                return None
            own, other = sides
            if isinstance(own, Column):
                column = own
            else:
                column = computed.setdefault(own, self._new_columns.add("key", own.type))
            if column.id not in keys:
                more[column.id] = column
            assert isinstance(predicate, Call)
            predicates.append(replace(predicate, arguments=(column, other)))
        tree = below.node
        if computed:
            items = [Assignment(column, column) for column in tree.columns]
            added = [Assignment(column, expression) for expression, column in computed.items()]
            tree = logical.Project(tree, (*items, *added))
        return tree, tuple(predicates), tuple(more.values())

    def _sides(self, predicate: Expression, inner: set[int]) -> tuple[Expression, Expression] | None:
        """Return an equality as (inner side, outer side); None where the two are mixed."""
        if not isinstance(predicate, Call) or predicate.function not in EQUALITIES:
            return None
        left, right = predicate.arguments
        for own, other in ((left, right), (right, left)):
            if not self._is_outer(own) and not inner & columns_of(other).keys():
                return own, other
        return None

    def _renamed(self, pulled: Pulled, taken: Iterable[Column]) -> Pulled:
        """Rename the columns that the other side of a join delivers too.

        A domain is a copy of the left side. What names outer columns is pulled up out of both, and so are the columns
        that it reads, which have the same ids in the copy.
        """
        ids = {column.id for column in taken}
        renamed = {column.id: self._new_columns.copy(column) for column in pulled.node.columns if column.id in ids}
        if not renamed:
            return pulled
        items = tuple(Assignment(renamed.get(column.id, column), column) for column in pulled.node.columns)
        return Pulled(
            logical.Project(pulled.node, items),
            tuple(substitute(predicate, renamed) for predicate in pulled.predicates),
            {id_: substitute(meaning, renamed) for id_, meaning in pulled.meanings.items()},
        )

    def _join(self, node: logical.Join) -> Pulled | None:
        left = self.pull(node.left)
        if left is None:
            return None
        if node.kind is JoinKind.INNER:
            right = self.pull(node.right)
            if right is None:
                return None
            left = self._renamed(left, node.right.columns)
            right = self._renamed(right, left.node.columns)
            meanings = {**left.meanings, **right.meanings}
            condition = None if node.condition is None else substitute(node.condition, meanings)
            outer, inner = self._split(condition)
            joined = logical.Join(JoinKind.INNER, left.node, right.node, conjunction(inner))
            return Pulled(joined, (*left.predicates, *right.predicates, *outer), meanings)
        if node.kind.keeps_right or self._outer & free_columns(node.right).keys():
            return None
        used = columns_of(node.condition, node.compared).keys()
        if self._outer & used or not left.meanings.keys().isdisjoint(used):
            return None
        if node.kind is JoinKind.SINGLE and left.predicates:
            return None  # a left row that no outer row wants may be one with two matches: its error must not be raised
        # A filter of left rows may as well come after the other kinds: each row's fate is its own.
        return Pulled(replace(node, left=left.node), left.predicates, left.meanings)
