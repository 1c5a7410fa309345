"""Implement rules for scans and for the operators that work on rows as they come: filter, project, values, root."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.dataclass import replace
from remuda.expr import Column, is_volatile
from remuda.plan import logical, physical
from remuda.plan.traits import (
    PARTITIONED,
    REPLICATED,
    ROOT,
    Collation,
    Convention,
    Distribution,
    DistributionKind,
    Traits,
)
from remuda.rules.rule_context import Alternative, PlanningContext

if TYPE_CHECKING:
    from collections.abc import Iterable


def implement_scan(node: logical.Scan, required: Traits, context: PlanningContext) -> Iterable[Alternative]:
    """Scan → MapScan, IndexScan or KeyLookup: every access path that its filter and the required order allow."""
    for path in context.access_paths(node, required):
        yield Alternative((), lambda path=path: path)


def implement_values(node: logical.Values, required: Traits, _context: PlanningContext) -> Iterable[Alternative]:
    """Values → Values: constants travel with the plan, so they are on every member and in every task."""
    traits = Traits(required.convention, REPLICATED)
    yield Alternative((), lambda: physical.Values(node.columns, node.rows, traits))


def implement_filter(node: logical.Filter, required: Traits, _context: PlanningContext) -> Iterable[Alternative]:
    """Filter → Filter, wherever its input is: what is required of it is required of the input."""
    yield Alternative((required,), lambda source: physical.Filter(source, node.condition, source.traits), (0,))


def implement_project(node: logical.Project, required: Traits, _context: PlanningContext) -> Iterable[Alternative]:
    """Project → Project. An order, or a distribution by columns, is required below where these pass through unchanged.

    Of random() every member would have its own values: it is not computed on all of them for the same rows.
    """
    passed = {item.column.id: item.expression.id for item in node.assignments if isinstance(item.expression, Column)}
    by = required.distribution.columns
    if any(key.column not in passed for key in required.collation) or any(id_ not in passed for id_ in by):
        return
    below = replace(
        required,
        distribution=replace(required.distribution, columns=tuple(passed[id_] for id_ in by))
        if by
        else required.distribution,
        collation=_renamed(required.collation, passed),
    )
    differs = any(is_volatile(item.expression) for item in node.assignments)
    if not differs or required.distribution.kind is not DistributionKind.REPLICATED:
        yield Alternative((below,), lambda source: project_over(source, node), (0,))


def project_over(source: Any, node: logical.Project) -> physical.Project:
    """Project a source: traits by columns that pass through unchanged hold by their new names."""
    back = {
        item.expression.id: item.column.id for item in reversed(node.assignments) if isinstance(item.expression, Column)
    }
    columns = source.traits.distribution.columns
    known = all(column in back for column in columns)
    distribution = replace(
        source.traits.distribution, columns=tuple(back[column] for column in columns) if known else ()
    )
    collation = _renamed(source.traits.collation, back)
    traits = replace(source.traits, distribution=distribution, collation=collation)
    return physical.Project(source, node.assignments, traits)


def _renamed(collation: Collation, names: dict[int, int]) -> Collation:
    """Rename the order, up to the first key that has no name there."""
    renamed = []
    for key in collation:
        if key.column not in names:
            break
        renamed.append(replace(key, column=names[key.column]))
    return tuple(renamed)


def implement_modify(node: logical.Modify, _required: Traits, context: PlanningContext) -> Iterable[Alternative]:
    """Modify → Modify on the coordinator, or Commit(RootExchange(Modify)) with the rows where their partitions are.

    The members that own the partitions of the map compute the rows and make segments of them; the coordinator gets a
    count from each, and commits. A map that makes its keys by itself takes rows wherever they are. A replicated map has
    no owners. Tasks of Spark do the same where they may write into the folder of the store.
    """
    traits = Traits(Convention.LOCAL, ROOT)
    definition = node.map

    def build(source: Any) -> physical.Modify:
        return physical.Modify(_in_order(source, node.input.columns), definition, node.operation, traits)

    yield Alternative((traits,), build)
    if definition.replicated:
        return
    keys = partitioning_of(node)

    def on_members(convention: Convention) -> Alternative:
        def build_on_members(source: Any) -> physical.Commit:
            ordered = _in_order(source, node.input.columns)
            below = physical.Modify(ordered, definition, node.operation, Traits(convention, PARTITIONED))
            return physical.Commit(physical.RootExchange(below, traits), definition, traits)

        own = Traits(convention, Distribution(DistributionKind.PARTITIONED, keys))
        return Alternative((own,), build_on_members)

    if context.members > 1:
        yield on_members(Convention.LOCAL)
    if context.tasks_write and Convention.SPARK in context.conventions and keys and node.operation in _OF_TASKS:
        yield on_members(Convention.SPARK)


_OF_TASKS = frozenset({logical.Operation.INSERT, logical.Operation.SINK, logical.Operation.UPDATE})
"""What tasks of Spark prepare. A DELETE has keys alone, and DO UPDATE compares them: the coordinator does both."""


def partitioning_of(node: logical.Modify | physical.Modify) -> tuple[int, ...]:
    """Return the columns of the input that say in which partition of the map a row is; none if the map makes them."""
    definition = node.map
    if any(definition.column(name).hidden for name in definition.partitioned_by):
        return ()
    deletes = node.operation is logical.Operation.DELETE
    names = definition.key if deletes else tuple(column.name for column in definition.columns)
    return tuple(node.input.columns[names.index(name)].id for name in definition.partitioned_by)


def _in_order(source: Any, columns: tuple[Column, ...]) -> Any:
    """Project exactly these columns: another order of joins delivers them in another order."""
    if tuple(source.columns) == columns:
        return source
    assignments = tuple(logical.Assignment(column, column) for column in columns)
    return physical.Project(source, assignments, replace(source.traits, collation=()))


def implement_root(node: logical.Root, _required: Traits, _context: PlanningContext) -> Iterable[Alternative]:
    """Root → Root: it requires its input on the coordinator, in this process, in the order of the query."""
    traits = Traits(Convention.LOCAL, ROOT, node.collation)
    yield Alternative((traits,), lambda source: physical.Root(source, node.columns, node.names, traits), (0,))
