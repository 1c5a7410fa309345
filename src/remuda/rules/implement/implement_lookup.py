"""The implement rule of lookup joins: few rows on one side, and on the other a map that each of them looks up."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from remuda.dataclass import dataclass
from remuda.expr import Call, Column, Expression, conjunction
from remuda.plan import logical, physical
from remuda.plan.joins import JoinKind
from remuda.plan.partitioning import is_divided_as
from remuda.plan.traits import REPLICATED, ROOT, Convention, Distribution, DistributionKind, Traits
from remuda.rules.implement.join_inputs import keeps_order
from remuda.rules.join_keys import NULL_SAFE
from remuda.rules.rule_context import Alternative, PlanningContext, has_several_places
from remuda.types import BOOLEAN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from remuda.catalog import IndexDefinition
    from remuda.rules.implement.join_inputs import JoinSides

_KINDS = {JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI}

AT_ROOT = Traits(Convention.LOCAL, ROOT)


def lookup_join(node: logical.Join, required: Traits, context: PlanningContext) -> Iterable[Alternative]:
    """Join(x, Scan) → LookupJoin(x), where the condition equates the map's whole key, or leading columns of an index,
    with something of x.

    By cost it is for few rows of x: each is a jump into the map. The order of x is kept.
    """
    sides = context.join_sides(node)
    if keeps_order(sides, required.collation, context):
        for lookup in _lookups(sides, context):
            for below, build in _places(lookup, required, context):
                yield Alternative((below, None), build, (0,))
    other = context.commuted_sides(node) if sides.kind is JoinKind.INNER else None
    if other is not None and keeps_order(other, required.collation, context):
        for lookup in _lookups(other, context):
            for below, build in _places(lookup, required, context):
                yield Alternative((None, below), build, (1,))


@dataclass(frozen=True, slots=True)
class _Lookup:
    """`keys` are what the key's columns, or the index's leading ones, must equal."""

    kind: JoinKind
    scan: logical.Scan
    index: IndexDefinition | None
    keys: tuple[Expression, ...]
    condition: Expression | None
    hold_cutover: int
    hold_entries: int | None
    passing: float

    def build(self, source: Any, distribution: Distribution) -> physical.LookupJoin:
        return physical.LookupJoin(
            self.kind,
            source,
            self.scan.map,
            self.index,
            self.scan.columns,
            self.keys,
            self.scan.filter,
            self.condition,
            Traits(source.traits.convention, distribution, source.traits.collation),
            self.hold_cutover,
            self.hold_entries,
            passing=self.passing,
        )


def _lookups(sides: JoinSides, context: PlanningContext) -> Iterator[_Lookup]:
    scan = context.scan_of(sides.right)
    if scan is None or sides.kind not in _KINDS:
        return
    by_name = {
        each.right.name: each.left
        for each in reversed(sides.equalities)
        if isinstance(each.right, Column) and not each.null_safe
    }
    if all(name in by_name for name in scan.map.key):
        yield _lookup(sides, scan, None, scan.map.key, by_name, context)
    for index, names in _useful_indexes(scan, by_name, context):
        yield _lookup(sides, scan, index, names, by_name, context)


def _useful_indexes(
    scan: logical.Scan, by_name: dict[str, Expression], context: PlanningContext
) -> Iterator[tuple[IndexDefinition, tuple[str, ...]]]:
    """Yield the indexes that can be looked up by, each with its leading columns that are equated.

    An index is left out where another one is looked up by the same columns or more and finds a row no slower.
    """
    found: list[tuple[IndexDefinition, tuple[str, ...]]] = []
    for index in scan.map.indexes:
        leading = tuple(takewhile(by_name.__contains__, index.columns))
        if leading and (len(leading) == len(index.columns) or index.type.serves.leading_columns):
            found.append((index, leading))
    kept: list[set[str]] = []
    for index, leading in sorted(found, key=lambda each: (context.index_row(each[0]), -len(each[1]))):
        if not any(names.issuperset(leading) for names in kept):
            kept.append(set(leading))
            yield index, leading


def _lookup(
    sides: JoinSides,
    scan: logical.Scan,
    index: IndexDefinition | None,
    names: tuple[str, ...],
    by_name: dict[str, Expression],
    context: PlanningContext,
) -> _Lookup:
    """Equalities that are no lookup keys remain to be evaluated for each pair."""
    remaining: list[Expression] = []
    for each in sides.equalities:
        used = isinstance(each.right, Column) and each.right.name in names and by_name[each.right.name] is each.left
        if not used or each.null_safe:
            remaining.append(Call(NULL_SAFE if each.null_safe else "=", (each.left, each.right), BOOLEAN))
    if sides.condition is not None:
        remaining.append(sides.condition)
    keys = tuple(by_name[name] for name in names)
    cutover = context.hold_cutover(scan, by_index=index is not None)
    entries = None if index is None else context.hold_entries(scan, index)
    passing = 1.0 if index is None else context.passing(scan, names)
    return _Lookup(sides.kind, scan, index, keys, conjunction(remaining), cutover, entries, passing)


def _places(lookup: _Lookup, required: Traits, context: PlanningContext) -> Iterator[tuple[Traits, Any]]:
    """Return the distributions of the input in which its matches can be found, and how the join is made then."""
    definition = lookup.scan.map
    if not (has_several_places(required.convention, context) or context.members > 1):
        yield AT_ROOT.in_order(required.collation), lambda source: lookup.build(source, ROOT)
        return
    if definition.replicated:
        if required.distribution.kind is not DistributionKind.REPLICATED:
            yield (
                Traits(required.convention, replace(required.distribution, columns=()), required.collation),
                lambda source: lookup.build(source, source.traits.distribution),
            )
        return
    if required.distribution.kind is not DistributionKind.PARTITIONED:
        return
    names = definition.key if lookup.index is None else lookup.index.columns
    by_name = dict(zip(names, lookup.keys, strict=False))
    columns = [by_name.get(name) for name in definition.partitioned_by]
    divided = is_divided_as(definition, context.partitions)
    if divided and all(isinstance(column, Column) for column in columns):
        by = Distribution(
            DistributionKind.PARTITIONED, tuple(column.id for column in columns if isinstance(column, Column))
        )
        yield Traits(required.convention, by, required.collation), lambda source: lookup.build(source, by)
    elif lookup.kind is JoinKind.INNER:
        # Every member finds the matches in its own partitions: each pair is found once.
        ids = {column.name: column.id for column in lookup.scan.columns}
        known = divided and all(name in ids for name in definition.partitioned_by)
        spread = Distribution(
            DistributionKind.PARTITIONED, tuple(ids[name] for name in definition.partitioned_by) if known else ()
        )
        everywhere = Traits(required.convention, REPLICATED, required.collation)
        yield everywhere, lambda source: lookup.build(source, spread)
