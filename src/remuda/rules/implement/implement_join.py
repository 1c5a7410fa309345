"""Implement rules for Join, but for the lookup join.

Where the rows are decides where a join can be done, with several members or in Spark tasks, which are like them:

    both on the coordinator                      → there
    both partitioned by the same keys          → on each member, in place; an exchange by hash brings rows there
    right side on every member (or broadcast)  → on each member, where the left rows are
    both on every member                       → on every member
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from remuda.plan import logical, physical
from remuda.plan.traits import (
    PARTITIONED,
    REPLICATED,
    ROOT,
    Convention,
    Distribution,
    DistributionKind,
    Traits,
)
from remuda.rules.implement.candidate_branches import candidate_branches
from remuda.rules.implement.join_inputs import JoinSides, with_items
from remuda.rules.rule_context import Alternative, PlanningContext, has_several_places, is_spread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from remuda.plan.joins import JoinKey, JoinKind
    from remuda.plan.physical import PhysicalNode

    Build = Callable[[Any, Any, Traits], PhysicalNode]

AT_ROOT = Traits(Convention.LOCAL, ROOT)


def hash_join(node: logical.Join, required: Traits, context: PlanningContext) -> Iterable[Alternative]:
    """Join → HashJoin, the right side in a table, where the condition has an equality of the sides.

    x IN (SELECT y ...) without another condition is looked up in a table as well.
    """
    sides = context.join_sides(node)
    if not required.collation and sides.is_looked_up:
        yield from _alternatives(sides, required, context)


def commuted_hash_join(node: logical.Join, required: Traits, context: PlanningContext) -> Iterable[Alternative]:
    """Join → HashJoin with the left side in the table: a LEFT join becomes a RIGHT one and vice versa."""
    other = context.commuted_sides(node)
    if other is not None and other.keys and not required.collation:
        for alternative in _alternatives(other, required, context):
            first, second = alternative.requirements
            yield Alternative((second, first), lambda left, right, build=alternative.build: build(right, left))


def nested_loop_join(node: logical.Join, required: Traits, context: PlanningContext) -> Iterable[Alternative]:
    """Join → NestedLoopJoin, where the condition has no equality of the sides that every pair must meet.

    Where the condition is an OR of equalities, or compares the sides by < or >, candidates are found by these.
    """
    sides = context.join_sides(node)
    if required.collation or sides.is_looked_up:
        return
    branches = candidate_branches(node.condition, node.left.columns, node.right.columns)

    def build(left: Any, right: Any, traits: Traits) -> physical.NestedLoopJoin:
        return physical.NestedLoopJoin(
            node.kind, left, right, node.condition, node.compared, node.mark, traits, branches, span=node.span
        )

    yield from _in_one_place(sides, required, context, build)
    yield from _with_right_everywhere(sides, required, context, build)


def _alternatives(sides: JoinSides, required: Traits, context: PlanningContext) -> Iterator[Alternative]:
    def build(left: Any, right: Any, traits: Traits) -> physical.HashJoin:
        return physical.HashJoin(
            sides.kind,
            with_items(left, sides.left_items),
            with_items(right, sides.right_items),
            sides.keys,
            sides.condition,
            sides.compared,
            sides.mark,
            traits,
            span=sides.span,
        )

    yield from _in_one_place(sides, required, context, build)
    yield from _by_partition(sides, required, context, build)
    yield from _with_right_everywhere(sides, required, context, build)


def _in_one_place(sides: JoinSides, required: Traits, context: PlanningContext, build: Build) -> Iterator[Alternative]:
    """On the coordinator; or on every member, where that is required and every member has both sides anyway."""
    several = has_several_places(required.convention, context) or context.members > 1
    match required.distribution.kind:
        case DistributionKind.PARTITIONED if several:
            return
        case DistributionKind.REPLICATED if several:
            if context.is_replicated(sides.left) and context.is_replicated(sides.right):
                everywhere = Traits(required.convention, REPLICATED)
                yield Alternative((everywhere, everywhere), lambda left, right: build(left, right, everywhere))
        case _:
            yield Alternative((AT_ROOT, AT_ROOT), lambda left, right: build(left, right, AT_ROOT))


def _with_right_everywhere(
    sides: JoinSides, required: Traits, context: PlanningContext, build: Build
) -> Iterator[Alternative]:
    """Where the left rows are. Not where right rows without a match come out: every member would find them so."""
    if sides.kind.keeps_right or not is_spread(required, context):
        return
    by = required.distribution.columns
    if by and not _delivers(sides.left, by):
        return
    everywhere = Traits(required.convention, REPLICATED)
    yield Alternative(
        (required, everywhere), lambda left, right: build(left, right, replace(left.traits, collation=()))
    )


def _delivers(relation: logical.Relation, ids: tuple[int, ...]) -> bool:
    return set(ids) <= {column.id for column in relation.columns}


def _by_partition(sides: JoinSides, required: Traits, context: PlanningContext, build: Build) -> Iterator[Alternative]:
    """On each member, or in each task, over rows that the keys bring together.

    Not a MARK join without keys: whether the right side has a row at all is not known on one member.
    """
    if not is_spread(required, context):
        return
    spread = Traits(required.convention, PARTITIONED)
    computed = {item.column.id for item in (*sides.left_items, *sides.right_items)}
    for chosen in _choices(sides, context):
        left_ids, right_ids = tuple(key.left.id for key in chosen), tuple(key.right.id for key in chosen)
        by_left = Distribution(DistributionKind.PARTITIONED, left_ids)
        by_right = Distribution(DistributionKind.PARTITIONED, right_ids)
        together = _together(sides.kind, by_left, by_right)
        if not any(each.satisfies(required.distribution) for each in together):
            continue
        traits = replace(spread, distribution=next(each for each in together if each.satisfies(required.distribution)))
        # A side whose keys are computed is brought to its place after they are.
        first = spread if computed & set(left_ids) else replace(spread, distribution=by_left)
        second = spread if computed & set(right_ids) else replace(spread, distribution=by_right)
        yield Alternative((first, second), _placing(build, by_left, by_right, traits))


def _placing(
    build: Build, by_left: Distribution, by_right: Distribution, traits: Traits
) -> Callable[[Any, Any], PhysicalNode]:
    """Builds the join over sides that are, or are brought, where their keys want them."""

    def build_placed(left: Any, right: Any) -> PhysicalNode:
        joined: Any = build(left, right, traits)
        placed: PhysicalNode = replace(
            joined, left=_placed(joined.left, by_left), right=_placed(joined.right, by_right)
        )
        return placed

    return build_placed


def _choices(sides: JoinSides, context: PlanningContext) -> Iterator[tuple[JoinKey, ...]]:
    """By which keys, and in which order, both sides may be partitioned: as a side is already, or by all of them."""
    seen: set[tuple[JoinKey, ...]] = set()
    by_left, by_right = {key.left.id: key for key in sides.keys}, {key.right.id: key for key in sides.keys}
    for relation, by_id in ((sides.left, by_left), (sides.right, by_right)):
        for partitioning in context.partitionings(relation):
            if all(id_ in by_id for id_ in partitioning):
                chosen = tuple(by_id[id_] for id_ in partitioning)
                if chosen not in seen:
                    seen.add(chosen)
                    yield chosen
    if sides.keys and not seen:
        yield sides.keys


def _together(kind: JoinKind, by_left: Distribution, by_right: Distribution) -> tuple[Distribution, ...]:
    """By which columns the joined rows are together: not by one that is NULL where a side has no match."""
    found: list[Distribution] = []
    if not kind.keeps_right:
        found.append(by_left)
    if not kind.keeps_left and kind.delivers_right:
        found.append(by_right)
    return (*found, PARTITIONED) if not found else tuple(found)


def _placed(source: Any, wanted: Distribution) -> Any:
    if source.traits.distribution == wanted:
        return source
    by_id = {column.id: column for column in source.columns}
    keys = tuple(by_id[id_] for id_ in wanted.columns)
    return physical.HashExchange(source, keys, Traits(source.traits.convention, wanted))
