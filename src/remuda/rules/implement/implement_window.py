"""Implement rules for Window."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from remuda.plan import logical, physical
from remuda.plan.traits import ROOT, Convention, Distribution, DistributionKind, Traits
from remuda.rules.context import Alternative, PlanningContext, is_spread

if TYPE_CHECKING:
    from collections.abc import Iterable


def window_at_root(node: logical.Window, required: Traits, _context: PlanningContext) -> Iterable[Alternative]:
    """Window → Window over all rows on the initiator."""
    if not required.collation and required.convention is Convention.LOCAL:
        yield _window(node, Traits(Convention.LOCAL, ROOT))


def window_in_place(node: logical.Window, required: Traits, context: PlanningContext) -> Iterable[Alternative]:
    """Window → Window on each member, or in each task, where all rows with the same partition values are together.

    As they are already, or by an exchange. Not without PARTITION BY: then every row's window is all rows.
    """
    if required.collation or not node.partition or not is_spread(required, context):
        return
    ids = tuple(column.id for column in node.partition)
    natural = [each for each in context.partitionings(node.input) if each and set(each) <= set(ids)]
    for columns in natural or [ids]:
        yield _window(node, Traits(required.convention, Distribution(DistributionKind.PARTITIONED, columns)))


def _window(node: logical.Window, below: Traits) -> Alternative:
    def build(source: Any) -> physical.Window:
        traits = replace(source.traits, collation=())
        if below.distribution is ROOT:
            traits = replace(traits, distribution=ROOT)
        return physical.Window(source, node.partition, node.order, node.calls, traits)

    return Alternative((below,), build)
