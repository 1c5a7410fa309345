"""Implement rules for Aggregate."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from remuda.plan import logical, physical
from remuda.plan.aggregates import AGGREGATES, partial_type
from remuda.plan.physical import Phase
from remuda.plan.traits import PARTITIONED, ROOT, Collation, Convention, Distribution, DistributionKind, SortKey, Traits
from remuda.rules.rule_context import Alternative, PlanningContext, elsewhere, is_spread
from remuda.types import BIGINT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


AT_ROOT = Traits(Convention.LOCAL, ROOT)


def aggregate_at_root(node: logical.Aggregate, required: Traits, _context: PlanningContext) -> Iterable[Alternative]:
    """Aggregate → HashAggregate complete, over all rows on the coordinator."""
    if not _is_wanted_at_root(required):
        return
    yield Alternative(
        (AT_ROOT,), lambda source: physical.HashAggregate(source, node.keys, node.calls, (), Phase.COMPLETE, AT_ROOT)
    )


def count_by_index(node: logical.Aggregate, required: Traits, context: PlanningContext) -> Iterable[Alternative]:
    """COUNT(*) of a Scan → final(IndexCount): an index whose bounds are the whole filter knows how many rows there are.

    Not with a residual, for which rows would have to be read, and not for COUNT(x) where x may be NULL.
    """
    scan = context.scan_of(node.input)
    if scan is None or node.keys or not node.calls or not _is_wanted_at_root(required):
        return
    if any(call.function != "count" or call.argument is not None or call.distinct for call in node.calls):
        return
    for path in context.access_paths(scan, Traits(Convention.LOCAL, PARTITIONED)):
        if not isinstance(path, physical.IndexScan) or path.residual is not None:
            continue
        if path.traits.convention is Convention.LOCAL:
            yield Alternative((None,), _counting(node, path, context))


def _counting(
    node: logical.Aggregate, path: physical.IndexScan, context: PlanningContext
) -> Callable[[], physical.HashAggregate]:
    count = context.new_column("count", BIGINT)

    def build() -> physical.HashAggregate:
        traits = replace(path.traits, distribution=replace(path.traits.distribution, columns=()))
        source: Any = physical.IndexCount(path.map, path.index, path.bounds, count, path.pruning, traits)
        if context.members > 1 and not path.map.replicated:
            source = physical.RootExchange(source, AT_ROOT)
        states = ((count,),) * len(node.calls)
        return physical.HashAggregate(source, (), node.calls, states, Phase.FINAL, AT_ROOT)

    return build


def aggregate_in_two_phases(
    node: logical.Aggregate, required: Traits, context: PlanningContext
) -> Iterable[Alternative]:
    """Aggregate → final(exchange(partial)): members send one row for each of their groups.

    To the coordinator or, where groups are many, to the members (or tasks), each of which finishes its part. Not for
    COUNT(DISTINCT x): the counts of two members may count the same value.
    """
    if required.collation or not all(call.splits for call in node.calls):
        return
    if _is_wanted_at_root(required):
        for convention in elsewhere(context):
            yield Alternative((Traits(convention, PARTITIONED),), _two_phases(node, context, AT_ROOT))
    elif is_spread(required, context) and node.keys:
        keys = {column.id for column in node.keys}
        by = required.distribution.columns or tuple(column.id for column in node.keys)
        if set(by) <= keys:
            together = Traits(required.convention, Distribution(DistributionKind.PARTITIONED, by))
            yield Alternative((Traits(required.convention, PARTITIONED),), _two_phases(node, context, together))


def _is_wanted_at_root(required: Traits) -> bool:
    return required.distribution.kind is DistributionKind.ROOT and not required.collation


def _two_phases(
    node: logical.Aggregate, context: PlanningContext, traits: Traits
) -> Callable[[Any], physical.HashAggregate]:
    states = tuple(
        tuple(
            context.new_column(f"{call.column.name}.{function}", partial_type(function, call))
            for function in AGGREGATES[call.function].partials
        )
        for call in node.calls
    )

    def build(source: Any) -> physical.HashAggregate:
        below = Traits(source.traits.convention, PARTITIONED)
        partial = physical.HashAggregate(source, node.keys, node.calls, states, Phase.PARTIAL, below)
        exchange: physical.ExchangeNode
        if traits.distribution is ROOT:
            exchange = physical.RootExchange(partial, traits)
        else:
            by_id = {column.id: column for column in node.keys}
            exchange = physical.HashExchange(partial, tuple(by_id[id_] for id_ in traits.distribution.columns), traits)
        return physical.HashAggregate(exchange, node.keys, node.calls, states, Phase.FINAL, traits)

    return build


def aggregate_in_place(node: logical.Aggregate, required: Traits, context: PlanningContext) -> Iterable[Alternative]:
    """Aggregate → HashAggregate complete on each member, or in each task, where rows of a group are together.

    That is so where the keys contain all partitioning columns, or after an exchange by the keys: every aggregate can be
    done like this, COUNT(DISTINCT x) included.
    """
    if required.collation or not node.keys or not is_spread(required, context):
        return
    keys = tuple(column.id for column in node.keys)

    def build(source: Any) -> physical.HashAggregate | None:
        together: Distribution = source.traits.distribution
        if not (together.columns and set(together.columns) <= set(keys)):
            return None
        traits = replace(source.traits, collation=())
        return physical.HashAggregate(source, node.keys, node.calls, (), Phase.COMPLETE, traits)

    natural = [each for each in context.partitionings(node.input) if each and set(each) <= set(keys)]
    for columns in natural or [keys]:
        together = Traits(required.convention, Distribution(DistributionKind.PARTITIONED, columns))
        yield Alternative((together,), build)


# Implement rule for Aggregate over rows that come in the order of its keys.


def aggregate_ordered_rows(
    node: logical.Aggregate, required: Traits, context: PlanningContext
) -> Iterable[Alternative]:
    """Aggregate → StreamingAggregate, where rows come in an order of all keys: an index delivers them so.

    Groups come out in that order, the first ones early: for ORDER BY the keys, and for LIMIT. On several members only
    where rows of a group are together.
    """
    if not node.keys or required.convention is not Convention.LOCAL:
        return
    keys = {column.id for column in node.keys}
    if required.distribution.kind not in {DistributionKind.ROOT, DistributionKind.PARTITIONED}:
        return
    if not keys.issuperset(required.distribution.columns):
        return  # by an aggregate: its input has no such column

    def build(source: Any) -> physical.StreamingAggregate | None:
        distribution = source.traits.distribution
        together = bool(distribution.columns) and keys.issuperset(distribution.columns)
        if distribution.kind is DistributionKind.PARTITIONED and context.members > 1 and not together:
            return None
        traits = replace(source.traits, collation=source.traits.collation[: len(keys)])
        return physical.StreamingAggregate(source, node.keys, node.calls, traits)

    for order in _orders(node, required.collation, context):
        yield Alternative((replace(required, collation=order),), build)


def _orders(node: logical.Aggregate, required: Collation, context: PlanningContext) -> Iterator[Collation]:
    """Orders of all keys that satisfy the required one; where none is required, those of indexes."""
    keys = {column.id for column in node.keys}
    if required:
        named = [key.column for key in required]
        if keys.issuperset(named):
            rest = tuple(SortKey(column.id) for column in node.keys if column.id not in named)
            yield (*required, *rest)
        return
    scan = context.scan_of(node.input)
    by_name = {} if scan is None else {column.name: column.id for column in scan.columns}
    for index in () if scan is None else scan.map.indexes:
        leading = [by_name.get(name, -1) for name in index.columns[: len(keys)]]
        if index.type.serves.order and set(leading) == keys:
            yield tuple(SortKey(id_) for id_ in leading)
