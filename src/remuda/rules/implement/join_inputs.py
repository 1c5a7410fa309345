"""A join as its implementations see it: keys as columns, what is computed to have them, and what remains of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.dataclass import dataclass, replace
from remuda.expr import Call, Column, Expression, columns_of, conjunction, conjuncts
from remuda.plan import logical, physical
from remuda.plan.joins import JoinKey, JoinKind, compared_keys
from remuda.rules.join_keys import Equality, split_condition
from remuda.types import BOOLEAN

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.errors import Span
    from remuda.plan.logical import Relation
    from remuda.plan.traits import Collation
    from remuda.rules.rule_context import PlanningContext
    from remuda.types import SqlType

Items = tuple[logical.Assignment, ...]

_COMMUTED = {
    JoinKind.INNER: JoinKind.INNER,
    JoinKind.LEFT: JoinKind.RIGHT,
    JoinKind.RIGHT: JoinKind.LEFT,
    JoinKind.FULL: JoinKind.FULL,
}


@dataclass(frozen=True, slots=True)
class JoinSides:
    """`left_items` and `right_items` are key columns that have to be computed below the join."""

    kind: JoinKind
    left: Relation
    right: Relation
    equalities: tuple[Equality, ...]
    keys: tuple[JoinKey, ...]
    left_items: Items
    right_items: Items
    condition: Expression | None
    """What remains beside the equalities."""
    compared: Expression | None
    mark: Column | None
    span: Span | None

    @property
    def is_looked_up(self) -> bool:
        """Whether rows are found by keys, or the mark of a MARK join is of equalities."""
        return bool(self.keys) or self._is_looked_up_by_comparison()

    def _is_looked_up_by_comparison(self) -> bool:
        right = {column.id for column in self.right.columns} | {item.column.id for item in self.right_items}
        return bool(compared_keys(self.compared, right))

    def commuted(self) -> JoinSides | None:
        """Exchange left and right; None where the kind of join does not allow it."""
        kind = _COMMUTED.get(self.kind)
        if kind is None:
            return None
        return replace(
            self,
            kind=kind,
            left=self.right,
            right=self.left,
            equalities=tuple(each.reversed() for each in self.equalities),
            keys=tuple(JoinKey(key.right, key.left, key.null_safe) for key in self.keys),
            left_items=self.right_items,
            right_items=self.left_items,
        )


def join_sides(node: logical.Join, new_column: Callable[[str, SqlType], Column]) -> JoinSides:
    equalities, condition = split_condition(node.condition, node.left.columns, node.right.columns)
    keys: list[JoinKey] = []
    items: tuple[list[logical.Assignment], list[logical.Assignment]] = ([], [])
    for each in equalities:
        if isinstance(each.left, Column) and isinstance(each.right, Column):
            keys.append(JoinKey(each.left, each.right, each.null_safe))
            continue
        left, right = (
            _as_column(side, expression, new_column)
            for side, expression in zip(items, (each.left, each.right), strict=True)
        )
        keys.append(JoinKey(left, right, each.null_safe))
    compared = node.compared
    if compared is not None:
        compared = _compared_columns(node, items, new_column) or compared
    return JoinSides(
        node.kind,
        node.left,
        node.right,
        equalities,
        tuple(keys),
        tuple(items[0]),
        tuple(items[1]),
        condition,
        compared,
        node.mark,
        node.span,
    )


def _compared_columns(
    node: logical.Join,
    items: tuple[list[logical.Assignment], list[logical.Assignment]],
    new_column: Callable[[str, SqlType], Column],
) -> Expression | None:
    """Return the comparison as equalities of columns, some of which are computed, or None."""
    right_ids = {column.id for column in node.right.columns}
    pairs: list[tuple[Expression, Expression]] = []
    for part in conjuncts(node.compared):
        if not isinstance(part, Call) or part.function != "=":
            return None
        first, second = part.arguments
        if columns_of(second).keys() <= right_ids and right_ids.isdisjoint(columns_of(first)):
            pairs.append((first, second))
        elif columns_of(first).keys() <= right_ids and right_ids.isdisjoint(columns_of(second)):
            pairs.append((second, first))
        else:
            return None
        if first.type != second.type:
            return None
    compared = [
        Call("=", tuple(_as_column(*each, new_column) for each in zip(items, pair, strict=True)), BOOLEAN)
        for pair in pairs
    ]
    return conjunction(compared)


def _as_column(
    items: list[logical.Assignment], expression: Expression, new_column: Callable[[str, SqlType], Column]
) -> Column:
    if isinstance(expression, Column):
        return expression
    known = next((item.column for item in items if item.expression == expression), None)
    if known is None:
        known = new_column("key", expression.type)
        items.append(logical.Assignment(known, expression))
    return known


def keeps_order(sides: JoinSides, collation: Collation, context: PlanningContext) -> bool:
    """Test whether a join that keeps the order of its left rows delivers this order: the left side can come in it.

    By an index, without a sort: a sort of the joined rows is an alternative anyway. Not where right rows without a
    match come out, which is at the end.
    """
    if not collation:
        return True
    ids = tuple(key.column for key in collation)
    orders = () if sides.kind.keeps_right else context.orders(sides.left)
    return any(order[: len(ids)] == ids for order in orders)


def with_items(source: Any, items: Items) -> Any:
    """Add the columns that are computed for the join to those of the source."""
    if not items:
        return source
    same = tuple(logical.Assignment(column, column) for column in source.columns)
    return physical.Project(source, (*same, *items), source.traits)
