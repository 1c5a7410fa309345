"""Implement rules for Series."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from remuda.expr import Literal, is_volatile
from remuda.plan import logical, physical
from remuda.plan.traits import DistributionKind, Traits
from remuda.rules.context import Alternative, PlanningContext

if TYPE_CHECKING:
    from collections.abc import Iterable


def series_in_place(node: logical.Series, required: Traits, _context: PlanningContext) -> Iterable[Alternative]:
    """Series → Series, wherever its input is: the rows that come of one row stay together, in the input's order.

    Of random() every member would have its own values: it is not computed on all of them for the same rows.
    """
    passed = {column.id for column in node.input.columns}
    known = all(key.column in passed for key in required.collation) and passed.issuperset(required.distribution.columns)
    is_drawn = any(map(is_volatile, node.call.arguments))
    if known and not (is_drawn and required.distribution.kind is DistributionKind.REPLICATED):
        yield Alternative((required,), lambda source: physical.Series(source, node.call, source.traits))


def series_in_its_own_order(node: logical.Series, required: Traits, _context: PlanningContext) -> Iterable[Alternative]:
    """Series → Series whose values ascend, or descend, as is required: over one row they come so by themselves."""
    match required.collation, node.call.step:
        case (key,), Literal(value=int(step)) if key.column == node.call.column.id and key.descending == (step < 0):
            pass
        case _:
            return

    def build(source: Any) -> physical.Series | None:
        if not (isinstance(source, physical.Values) and len(source.rows) == 1):
            return None
        return physical.Series(source, node.call, replace(source.traits, collation=required.collation))

    yield Alternative((replace(required, collation=()),), build)
