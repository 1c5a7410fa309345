"""Implement rule for Aggregate over rows that come in the order of its keys."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from remuda.catalog import IndexKind
from remuda.plan import logical, physical
from remuda.plan.traits import Collation, Convention, DistributionKind, SortKey, Traits
from remuda.rules.context import Alternative, PlanningContext

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


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
        place = source.traits.distribution
        together = bool(place.columns) and keys.issuperset(place.columns)
        if place.kind is DistributionKind.PARTITIONED and context.members > 1 and not together:
            return None
        traits = replace(source.traits, collation=source.traits.collation[: len(keys)])
        return physical.StreamingAggregate(source, node.keys, node.calls, traits)

    for order in _orders(node, required.collation, context):
        yield Alternative((replace(required, collation=order),), build)


def _orders(node: logical.Aggregate, wanted: Collation, context: PlanningContext) -> Iterator[Collation]:
    """Orders of all keys that satisfy the wanted one; where none is wanted, those of indexes."""
    keys = {column.id for column in node.keys}
    if wanted:
        named = [key.column for key in wanted]
        if keys.issuperset(named):
            rest = tuple(SortKey(column.id) for column in node.keys if column.id not in named)
            yield (*wanted, *rest)
        return
    scan = context.scan_of(node.input)
    by_name = {} if scan is None else {column.name: column.id for column in scan.columns}
    for index in () if scan is None else scan.map.indexes:
        leading = [by_name.get(name, -1) for name in index.columns[: len(keys)]]
        if index.kind is IndexKind.SORTED and set(leading) == keys:
            yield tuple(SortKey(id_) for id_ in leading)
