"""Implement rules for Aggregate."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from remuda.plan import logical, physical
from remuda.plan.aggregates import AGGREGATES, partial_type
from remuda.plan.physical import Phase
from remuda.plan.traits import PARTITIONED, ROOT, Convention, Distribution, DistributionKind, Traits
from remuda.rules.context import Alternative, PlanningContext

if TYPE_CHECKING:
    from collections.abc import Iterable


def aggregate_at_root(node: logical.Aggregate, _required: Traits, _context: PlanningContext) -> Iterable[Alternative]:
    """Aggregate → HashAggregate complete, over all rows on the initiator."""
    traits = Traits(Convention.LOCAL, ROOT)
    yield Alternative(
        (traits,), lambda source: physical.HashAggregate(source, node.keys, node.calls, (), Phase.COMPLETE, traits)
    )


def aggregate_in_two_phases(
    node: logical.Aggregate, _required: Traits, context: PlanningContext
) -> Iterable[Alternative]:
    """Aggregate → final(RootExchange(partial)): members send one row for each of their groups.

    Not for COUNT(DISTINCT x): the counts of two members may count the same value.
    """
    if any(call.distinct for call in node.calls):
        return
    states = tuple(
        tuple(
            context.new_column(f"{call.column.name}.{function}", partial_type(function, call))
            for function in AGGREGATES[call.function].partials
        )
        for call in node.calls
    )
    for convention in context.conventions:
        below = Traits(convention, PARTITIONED)
        at_root = Traits(Convention.LOCAL, ROOT)

        def build(source: Any, below: Traits = below, at_root: Traits = at_root) -> physical.HashAggregate:
            partial = physical.HashAggregate(source, node.keys, node.calls, states, Phase.PARTIAL, below)
            exchange = physical.RootExchange(partial, at_root)
            return physical.HashAggregate(exchange, node.keys, node.calls, states, Phase.FINAL, at_root)

        yield Alternative((below,), build)


def aggregate_in_place(node: logical.Aggregate, _required: Traits, context: PlanningContext) -> Iterable[Alternative]:
    """Aggregate → HashAggregate complete on each member, where rows of a group are together already.

    That is so where the keys contain all partitioning columns; COUNT(DISTINCT x) included.
    """
    keys = {column.id for column in node.keys}
    for convention in context.conventions:
        below = Traits(convention, PARTITIONED)

        def build(source: Any) -> physical.HashAggregate | None:
            together: Distribution = source.traits.distribution
            if (
                together.kind is not DistributionKind.PARTITIONED
                or not together.columns
                or not set(together.columns) <= keys
            ):
                return None
            traits = replace(source.traits, collation=())
            return physical.HashAggregate(source, node.keys, node.calls, (), Phase.COMPLETE, traits)

        yield Alternative((below,), build)  # type: ignore[arg-type]
