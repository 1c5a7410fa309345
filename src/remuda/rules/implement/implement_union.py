"""Implement rules for operators that put rows together or multiply them: Union, Expand, Recursive."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from remuda.expr import Literal, is_volatile
from remuda.plan import logical, physical
from remuda.plan.traits import PARTITIONED, REPLICATED, ROOT, Convention, Distribution, DistributionKind, Traits
from remuda.rules.rule_context import Alternative, PlanningContext, has_several_places

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


AT_ROOT = Traits(Convention.LOCAL, ROOT)


def union_in_place(node: logical.Union, required: Traits, context: PlanningContext) -> Iterable[Alternative]:
    """Union → Union of inputs that are all in one ordinal, or all spread over the members."""
    if required.collation:
        return

    def build(*sources: Any) -> physical.Union:
        traits = Traits(required.convention, _shared_place(node, sources))
        return physical.Union(tuple(sources), node.columns, node.sources, traits)

    for ordinal in _places(required, context):
        yield Alternative((ordinal,) * len(node.inputs), build, tuple(range(len(node.inputs))))


def _places(required: Traits, context: PlanningContext) -> Iterator[Traits]:
    """Return the distributions of the inputs that put their rows together where they are required."""
    several = has_several_places(required.convention, context)
    if several and required.distribution.kind is DistributionKind.REPLICATED:
        yield Traits(required.convention, REPLICATED)
        return
    if required.convention is Convention.LOCAL:
        yield AT_ROOT
    if several:
        yield Traits(required.convention, PARTITIONED)


def _shared_place(node: logical.Union, sources: tuple[Any, ...]) -> Distribution:
    """Return the columns of the union by which spread rows are partitioned, if they are the same for all inputs."""
    kinds = {source.traits.distribution.kind for source in sources}
    if kinds == {DistributionKind.REPLICATED}:
        return REPLICATED
    if kinds != {DistributionKind.PARTITIONED}:
        return ROOT
    found = {_positions(source, columns) for source, columns in zip(sources, node.sources, strict=True)}
    positions = found.pop() if len(found) == 1 else None
    if positions is None:
        return PARTITIONED
    return Distribution(DistributionKind.PARTITIONED, tuple(node.columns[ordinal].id for ordinal in positions))


def _positions(source: Any, columns: tuple[Any, ...]) -> tuple[int, ...] | None:
    ordinals = {column.id: ordinal for ordinal, column in enumerate(columns)}
    by = source.traits.distribution.columns
    return tuple(ordinals[id_] for id_ in by) if by and all(id_ in ordinals for id_ in by) else None


def implement_expand(node: logical.Expand, required: Traits, context: PlanningContext) -> Iterable[Alternative]:
    """Expand → Expand, wherever its input is; its columns are new, so rows are no longer together by any."""
    if required.collation or required.distribution.kind is DistributionKind.REPLICATED:
        return

    def build(source: Any) -> physical.Expand:
        ordinal = replace(source.traits.distribution, columns=())
        return physical.Expand(source, node.columns, node.projections, Traits(source.traits.convention, ordinal))

    for ordinal in _places(required, context):
        yield Alternative((ordinal,), build, (0,))


def implement_recursive(node: logical.Recursive, required: Traits, _context: PlanningContext) -> Iterable[Alternative]:
    """Recursive → Recursive on the coordinator."""
    if required.collation:
        return

    def build(first: Any, step: Any) -> physical.Recursive:
        return physical.Recursive((first, step), node.columns, node.sources, node.table, node.distinct, AT_ROOT)

    yield Alternative((AT_ROOT, AT_ROOT), build)


def implement_working_table(
    node: logical.WorkingTable, _required: Traits, _context: PlanningContext
) -> Iterable[Alternative]:
    """WorkingTable → WorkingTable: the rows are where the recursion is."""
    yield Alternative((), lambda: physical.WorkingTable(node.table, node.columns, AT_ROOT))


# Implement rules for Series.


def series_in_place(node: logical.Series, required: Traits, _context: PlanningContext) -> Iterable[Alternative]:
    """Series → Series, wherever its input is: the rows that come of one row stay together, in the input's order.

    Of random() every member would have its own values: it is not computed on all of them for the same rows.
    """
    passed = {column.id for column in node.input.columns}
    known = all(key.column in passed for key in required.collation) and passed.issuperset(required.distribution.columns)
    differs = any(map(is_volatile, node.call.arguments))
    if known and not (differs and required.distribution.kind is DistributionKind.REPLICATED):
        yield Alternative((required,), lambda source: physical.Series(source, node.call, source.traits), (0,))


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

    yield Alternative((replace(required, collation=()),), build, (0,))
