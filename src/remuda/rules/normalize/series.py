"""Normalise rules for trees with a Series at the root."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.expr import Literal
from remuda.plan import logical

if TYPE_CHECKING:
    from remuda.plan.logical import LogicalNode

WRITTEN_OUT = 256
"""Series of so many values at most become rows of the plan: as tuples, which suit joins and results of few rows."""


def empty_series(node: LogicalNode) -> LogicalNode | None:
    """Series(x, 5 to 1) → no rows; also where an argument is NULL."""
    if isinstance(node, logical.Series) and node.call.known_count == 0:
        return logical.Values(node.columns, ())
    return None


def write_out_series(node: LogicalNode) -> LogicalNode | None:
    """Series(one row, 1 to 3) → Values(1, 2, 3), where the values are known and few.

    Not over several rows, nor where the one row has columns: those would be written out again for each value.
    """
    match node:
        case logical.Series(input=logical.Values(columns=(), rows=(_,)), call=call):
            count, values = call.known_count, call.known_values
            if count is None or values is None or count > WRITTEN_OUT:
                return None
            return logical.Values(node.columns, tuple((Literal(value, call.column.type),) for value in values))
        case _:
            return None
