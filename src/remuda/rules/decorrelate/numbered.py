"""LIMIT within each group of rows, by numbering the rows of a group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.expr import Expression, call, conjunction
from remuda.plan import logical
from remuda.plan.windows import WindowCall
from remuda.types import BIGINT

if TYPE_CHECKING:
    from remuda.expr import Column
    from remuda.plan.logical import LogicalNode
    from remuda.plan.traits import Collation
    from remuda.rules.new_columns import NewColumns


def first_of_each(
    node: LogicalNode, limit: logical.Limit, partition: tuple[Column, ...], new_columns: NewColumns
) -> LogicalNode:
    """What `limit` keeps of each group of equal `partition`: rows with a number above OFFSET, as many as LIMIT says.

    The number minus OFFSET is compared, for OFFSET plus LIMIT may be too large for a BIGINT.
    """
    number = new_columns.add("number", BIGINT, nullable=False)
    window = logical.Window(node, partition, order_of(limit), (WindowCall(number, "row_number"),))
    conditions: list[Expression] = []
    place: Expression | None = number
    if limit.offset is not None:
        conditions.append(_compare(">", number, limit.offset))
        place = call("-", number, limit.offset)
    if limit.count is not None and place is not None:
        conditions.append(_compare("<=", place, limit.count))
    condition = conjunction(conditions)
    return window if condition is None else logical.Filter(window, condition)


def order_of(limit: logical.Limit) -> Collation:
    """The order by which LIMIT counts: its own, or that of the Sort below it."""
    if not limit.collation and isinstance(limit.input, logical.Sort):
        return limit.input.collation
    return limit.collation


def _compare(function: str, left: Expression, right: Expression) -> Expression:
    compared = call(function, left, right)
    assert compared is not None, "row numbers and limits are BIGINT"
    return compared
