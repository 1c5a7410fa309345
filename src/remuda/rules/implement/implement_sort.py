"""Implement rules for Sort and Limit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from remuda.expr import Expression, Literal, call
from remuda.plan import logical, physical
from remuda.plan.traits import PARTITIONED, ROOT, Convention, Distribution, DistributionKind, Traits
from remuda.rules.rule_context import Alternative, PlanningContext, elsewhere, is_spread

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remuda.plan.physical import PhysicalNode


def require_order(node: logical.Sort, required: Traits, _context: PlanningContext) -> Iterable[Alternative]:
    """Sort → its input in that order: an index delivers it, or the optimizer puts a Sort on top (an enforcer)."""
    yield Alternative((replace(required, collation=node.collation),), lambda source: source, (0,))


def limit_ordered_rows(node: logical.Limit, _required: Traits, context: PlanningContext) -> Iterable[Alternative]:
    """Limit → Limit over rows that come in order already; it stops its input early, which is its row goal.

    Over several members each one stops after as many rows as could be needed, and the streams are merged.
    """
    at_root = Traits(Convention.LOCAL, ROOT, node.collation)
    yield Alternative(
        (at_root,), lambda source: _limit(source, node, replace(at_root, collation=source.traits.collation)), (0,)
    )
    if context.members == 1 and len(context.conventions) > 1:
        # The cheapest way to all rows may be another backend, but not to the first few, which are here.
        here = Traits(Convention.LOCAL, PARTITIONED, node.collation)
        yield Alternative((here,), lambda source: _limit(source, node, replace(source.traits, distribution=ROOT)), (0,))
    enough = rows_needed(node)
    for convention in elsewhere(context) if enough is not None else ():
        below = Traits(convention, PARTITIONED, node.collation)

        def build(source: Any) -> physical.Limit:
            lower = physical.Limit(source, enough, None, source.traits)
            merged = replace(at_root, collation=source.traits.collation)
            return _limit(physical.RootExchange(lower, merged), node, merged)

        yield Alternative((below,), build, (0,))


def limit_by_top_n(node: logical.Limit, _required: Traits, context: PlanningContext) -> Iterable[Alternative]:
    """Limit with an order → TopN, on the coordinator, or on each member and then over what they send."""
    count, enough = node.count, rows_needed(node)
    if not node.collation or count is None or enough is None:
        return
    at_root = Traits(Convention.LOCAL, ROOT)
    ordered = replace(at_root, collation=node.collation)

    def top(source: PhysicalNode) -> physical.TopN:
        return physical.TopN(source, node.collation, count, node.offset, ordered)

    yield Alternative((at_root,), top)
    for convention in elsewhere(context):
        below = Traits(convention, PARTITIONED)

        def build(source: PhysicalNode) -> physical.TopN:
            traits = replace(source.traits, collation=node.collation)
            lower = physical.TopN(source, node.collation, enough, None, traits)
            return top(physical.RootExchange(lower, ordered))

        yield Alternative((below,), build)


def _limit(source: PhysicalNode, node: logical.Limit, traits: Traits) -> physical.Limit:
    return physical.Limit(source, node.count, node.offset, traits)


def rows_needed(node: logical.Limit | physical.Limit | physical.TopN) -> Expression | None:
    """Return how many rows a member or a worker has to send at most: OFFSET plus LIMIT."""
    if node.count is None or node.offset is None:
        return node.count
    if isinstance(node.count, Literal) and isinstance(node.offset, Literal):
        return Literal(node.count.value + node.offset.value, node.count.type)
    return call("+", node.count, node.offset)


# Implement rules for Window.


def window_at_root(node: logical.Window, required: Traits, _context: PlanningContext) -> Iterable[Alternative]:
    """Window → Window over all rows on the coordinator."""
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
