"""Implement rules for Join, but for the lookup join.

Where the rows are decides where a join can be done, with several members or in Spark tasks, which are like them:

    both on the coordinator                      → there
    both partitioned by the same keys          → on each member, in ordinal; an exchange by hash brings rows there
    right side on every member (or broadcast)  → on each member, where the left rows are
    both on every member                       → on every member
"""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from remuda.plan import logical, physical
from remuda.plan.joins import JoinKind
from remuda.plan.traits import (
    PARTITIONED,
    REPLICATED,
    ROOT,
    Convention,
    Distribution,
    DistributionKind,
    SortKey,
    Traits,
)
from remuda.rules.implement.candidate_branches import candidate_branches
from remuda.rules.implement.join_inputs import JoinSides, keeps_order, with_items
from remuda.rules.rule_context import Alternative, PlanningContext, has_several_places, is_spread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from remuda.plan.joins import JoinKey
    from remuda.plan.physical import PhysicalNode
    from remuda.plan.traits import Collation

    Build = Callable[[Any, Any, Traits], PhysicalNode]

AT_ROOT = Traits(Convention.LOCAL, ROOT)


def hash_join(node: logical.Join, required: Traits, context: PlanningContext) -> Iterable[Alternative]:
    """Join → HashJoin, the right side in a table, where the condition has an equality of the sides.

    Left rows pass through as they come, so their order is kept. x IN (SELECT y ...) without another condition is looked
    up in a table as well.
    """
    sides = context.join_sides(node)
    if sides.is_looked_up and keeps_order(sides, required.collation, context):
        yield from _alternatives(sides, required, context)


def commuted_hash_join(node: logical.Join, required: Traits, context: PlanningContext) -> Iterable[Alternative]:
    """Join → HashJoin with the left side in the table: a LEFT join becomes a RIGHT one and vice versa."""
    other = context.commuted_sides(node)
    if other is not None and other.keys and keeps_order(other, required.collation, context):
        for alternative in _alternatives(other, required, context):
            first, second = alternative.requirements
            yield Alternative(
                (second, first),
                lambda left, right, build=alternative.build: build(right, left),
                tuple(1 - ordinal for ordinal in alternative.streamed),
            )


def merge_join(node: logical.Join, required: Traits, context: PlanningContext) -> Iterable[Alternative]:
    """Join → MergeJoin over two inputs that can come in the order of the keys without a sort.

    It holds no side, so it delivers its first rows at once, and it keeps the order. On the coordinator, or on each
    member where both sides are partitioned by keys as they are. Not where keys are computed: they come in no order.
    """
    sides = context.join_sides(node)
    if required.convention is not Convention.LOCAL or sides.left_items or sides.right_items:
        return
    if required.collation and sides.kind.keeps_right:
        return
    for keys in _ordered_keys(sides, context):
        order = _merge_order(sides.kind, keys, required.collation)
        if order is not None:
            yield from _merged(sides, order, required, context)


def _ordered_keys(sides: JoinSides, context: PlanningContext) -> Iterator[tuple[JoinKey, ...]]:
    """Yield keys by whose order both inputs can come, the longest that an order of the left one begins with."""
    by_left = {key.left.id: key for key in reversed(sides.keys)}
    others = context.orders(sides.right)
    seen: set[tuple[JoinKey, ...]] = set()
    for order in context.orders(sides.left) if others else ():
        keys = tuple(by_left[id_] for id_ in takewhile(by_left.__contains__, order))
        while keys and not any(other[: len(keys)] == tuple(key.right.id for key in keys) for other in others):
            keys = keys[:-1]
        if keys and keys not in seen:
            seen.add(keys)
            yield keys


def _merge_order(kind: JoinKind, keys: tuple[JoinKey, ...], required: Collation) -> Collation | None:
    """Return the order of the keys, in columns of the left side, by which the result has the order that is required."""
    first = required[0] if required else SortKey(0)
    order = tuple(replace(first, column=key.left.id) for key in keys)
    for ordinal, sort_key in enumerate(required[: len(keys)]):
        names = {keys[ordinal].left.id, *((keys[ordinal].right.id,) if kind is JoinKind.INNER else ())}
        if sort_key.column not in names:
            return None
        order = (*order[:ordinal], replace(sort_key, column=keys[ordinal].left.id), *order[ordinal + 1 :])
    return order if len(required) <= len(keys) else None


def _merged(sides: JoinSides, order: Collation, required: Traits, context: PlanningContext) -> Iterator[Alternative]:
    equal = {key.left.id: key.right.id for key in reversed(sides.keys)}
    right_order = tuple(replace(key, column=equal[key.column]) for key in order)

    def build(left: Any, right: Any, distribution: Distribution) -> physical.MergeJoin:
        collation = () if sides.kind.keeps_right else required.collation or left.traits.collation
        traits = Traits(required.convention, distribution, collation)
        return physical.MergeJoin(
            sides.kind,
            left,
            right,
            sides.keys,
            order,
            sides.condition,
            sides.compared,
            sides.mark,
            traits,
            span=sides.span,
        )

    if not is_spread(required, context):
        if required.distribution.kind is not DistributionKind.REPLICATED or context.members == 1:
            below = (replace(AT_ROOT, collation=order), replace(AT_ROOT, collation=right_order))
            yield Alternative(below, lambda left, right: build(left, right, ROOT), (0, 1))
        return
    for columns in context.partitionings(sides.left):
        others = tuple(equal.get(id_) for id_ in columns)
        by_left = Distribution(DistributionKind.PARTITIONED, columns)
        if others not in context.partitionings(sides.right) or not by_left.satisfies(required.distribution):
            continue
        by_right = replace(by_left, columns=tuple(id_ for id_ in others if id_ is not None))
        yield Alternative(
            (Traits(required.convention, by_left, order), Traits(required.convention, by_right, right_order)),
            lambda left, right, placed=PARTITIONED if sides.kind.keeps_right else by_left: build(left, right, placed),
            (0, 1),
        )


def nested_loop_join(node: logical.Join, required: Traits, context: PlanningContext) -> Iterable[Alternative]:
    """Join → NestedLoopJoin, where the condition has no equality of the sides that every pair must meet.

    Where the condition is an OR of equalities, or compares the sides by < or >, candidates are found by these.
    """
    sides = context.join_sides(node)
    if sides.is_looked_up or not keeps_order(sides, required.collation, context):
        return
    branches = candidate_branches(node.condition, node.left.columns, node.right.columns)

    def build(left: Any, right: Any, traits: Traits) -> physical.NestedLoopJoin:
        return physical.NestedLoopJoin(
            node.kind, left, right, node.condition, node.compared, node.mark, traits, branches, span=node.span
        )

    yield from _in_one_place(sides, required, context, build)
    yield from _with_right_replicated(sides, required, context, build)


def _alternatives(sides: JoinSides, required: Traits, context: PlanningContext) -> Iterator[Alternative]:
    is_unique = _is_build_unique(sides, context)

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
            has_unique_build=is_unique,
        )

    yield from _in_one_place(sides, required, context, build)
    yield from _by_partition(sides, required, context, build)
    yield from _with_right_replicated(sides, required, context, build)


def _is_build_unique(sides: JoinSides, context: PlanningContext) -> bool:
    """Test whether the table has one row for each key, or none: a SEMI join only asks which keys there are."""
    is_tested = sides.kind in {JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK}
    if is_tested and sides.condition is None and sides.compared is None:
        return True
    return context.is_unique(sides.right, frozenset(key.right.id for key in sides.keys))


def _in_one_place(sides: JoinSides, required: Traits, context: PlanningContext, build: Build) -> Iterator[Alternative]:
    """Join on the coordinator, or on every member where that is required and every member has both sides."""
    several = has_several_places(required.convention, context) or context.members > 1
    match required.distribution.kind:
        case DistributionKind.PARTITIONED if several:
            return
        case DistributionKind.REPLICATED if several:
            if context.is_replicated(sides.left) and context.is_replicated(sides.right):
                replicated = Traits(required.convention, REPLICATED)
                below = replicated.in_order(required.collation)
                yield Alternative((below, replicated), lambda left, right: build(left, right, below), (0,))
        case _:
            below = AT_ROOT.in_order(required.collation)
            yield Alternative((below, AT_ROOT), lambda left, right: build(left, right, below), (0,))


def _with_right_replicated(
    sides: JoinSides, required: Traits, context: PlanningContext, build: Build
) -> Iterator[Alternative]:
    """Join where the left rows are, with the right side replicated.

    Not where unmatched right rows are kept: every member would find them.
    """
    if sides.kind.keeps_right or not is_spread(required, context):
        return
    by = required.distribution.columns
    if by and not _delivers(sides.left, by):
        return
    replicated = Traits(required.convention, REPLICATED)
    yield Alternative(
        (required, replicated),
        lambda left, right: build(left, right, left.traits.in_order(required.collation)),
        (0,),
    )


def _delivers(relation: logical.Relation, ids: tuple[int, ...]) -> bool:
    return set(ids) <= {column.id for column in relation.columns}


def _by_partition(sides: JoinSides, required: Traits, context: PlanningContext, build: Build) -> Iterator[Alternative]:
    """Join on each member, or in each task, rows that the keys bring together.

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
        # A side whose keys are computed is brought to its ordinal after they are, which keeps no order.
        is_moved = not computed.isdisjoint(left_ids)
        if is_moved and required.collation:
            continue
        first = spread if is_moved else replace(spread, distribution=by_left, collation=required.collation)
        second = spread if computed & set(right_ids) else replace(spread, distribution=by_right)
        placed = _placing(build, by_left, by_right, traits.in_order(required.collation))
        yield Alternative((first, second), placed, () if is_moved else (0,))


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
    """Return the keys, in order, by which both sides may be partitioned: as a side is already, or by all of them."""
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
    """Return the columns by which the joined rows are partitioned: none that is NULL where a side has no match."""
    found: list[Distribution] = []
    if not kind.keeps_right:
        found.append(by_left)
    if not kind.keeps_left and kind.delivers_right:
        found.append(by_right)
    return (*found, PARTITIONED) if not found else tuple(found)


def _placed(source: Any, required: Distribution) -> Any:
    if source.traits.distribution == required:
        return source
    by_id = {column.id: column for column in source.columns}
    keys = tuple(by_id[id_] for id_ in required.columns)
    return physical.HashExchange(source, keys, Traits(source.traits.convention, required))
