"""What is decided when the parameters are known: which partitions, and so which members, a fragment needs."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from remuda.dataclass import dataclass
from remuda.exec.scan.concrete_bounds import intersect, pruned_partitions
from remuda.exec.scan.partition_shares import in_plan
from remuda.plan.physical import HashJoin, LookupJoin, MergeJoin, Receive, Route, ScanNode
from remuda.plan.traits import DistributionKind
from remuda.plan.walk import inputs, walk
from remuda.runtime.written_keys import joined_partitions, looked_up_partitions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.plan.fragments import Fragment
    from remuda.plan.partition_map import PartitionMap


@dataclass(frozen=True, slots=True)
class FragmentPlacement:
    """A fragment on a member: `owned` are all partitions the plan expects there, `partitions` those it works on."""

    fragment: Fragment
    member: str
    owned: tuple[int, ...]
    partitions: np.ndarray


def needed_partitions(fragment: Fragment, parameters: tuple[Any, ...], count: int) -> np.ndarray | None:
    """Return the partitions, of `count` in all, that any scan of the fragment needs, ascending; None for all of them.

    A replicated map is whole on every member: it needs none of them. A lookup join whose input lies where its matches
    are looks nowhere else; rows that are on every member are looked up in all partitions, or in those of keys that the
    statement writes out.
    """
    return _needed_by(fragment.node, fragment.scans, fragment.lookups, parameters, count)


def _needed_by(
    node: Any, scans: Sequence[ScanNode], lookups: Sequence[LookupJoin], parameters: tuple[Any, ...], count: int
) -> np.ndarray | None:
    """Return the same of the scans and lookup joins of a tree."""
    readers: list[Any] = [scan for scan in scans if not scan.map.replicated]
    readers += filter(_looks_everywhere, lookups)
    if not readers:
        return None
    needed: set[int] = set()
    for reader in readers:
        if isinstance(reader, LookupJoin):
            wanted = looked_up_partitions(reader, parameters)
        elif reader.pruning is None:
            wanted = joined_partitions(reader, node, parameters)
        else:
            wanted = pruned_partitions(reader.map, reader.pruning, parameters)
        if wanted is None:
            return None
        needed.update(in_plan(reader.map, wanted, count).tolist())
    return np.array(sorted(needed), dtype=np.int64)


def _looks_everywhere(lookup: LookupJoin) -> bool:
    source: Any = lookup.input
    return not lookup.map.replicated and source.traits.distribution.kind is not DistributionKind.PARTITIONED


def _needed_by_routed(node: Any, parameters: tuple[Any, ...], count: int) -> np.ndarray | None:
    """Return the same of a fragment to which rows are routed by the partition of their keys.

    HashJoin INNER(Receive, MapScan of one partition)    a row for another partition finds no match there
    HashJoin LEFT(Receive, MapScan of one partition)     it belongs to the result all the same
    """
    match node:
        case HashJoin() | MergeJoin() if _meets_by_partition(node):
            left, right = _is_routed(node.left), _is_routed(node.right)
            if left and not right and node.kind.drops_unmatched_left:
                return _needed_below(node.right, parameters, count)
            if right and not left and node.kind.ignores_unmatched_right:
                return _needed_below(node.left, parameters, count)
            return None
        case _:
            below = inputs(node)
            return _needed_by_routed(below[0], parameters, count) if len(below) == 1 else None


def _is_routed(node: Any) -> bool:
    """Test whether rows come from senders by partition; those of a broadcast are on every member."""
    return any(
        isinstance(each, Receive) and each.traits.distribution.kind is DistributionKind.PARTITIONED
        for each in walk(node)
    )


def _meets_by_partition(node: HashJoin | MergeJoin) -> bool:
    """Test whether rows with equal keys are in one partition: with a single member it is enough that they are there."""
    left, right = (side.traits.distribution.columns for side in (node.left, node.right))  # type: ignore[attr-defined]
    pairs = {(key.left.id, key.right.id) for key in node.keys}
    return bool(left) and len(left) == len(right) and set(zip(left, right, strict=True)) <= pairs


def _needed_below(node: Any, parameters: tuple[Any, ...], count: int) -> np.ndarray | None:
    nodes = list(walk(node))
    scans = [each for each in nodes if isinstance(each, ScanNode)]
    return _needed_by(node, scans, [each for each in nodes if isinstance(each, LookupJoin)], parameters, count)


def place_fragment(
    fragment: Fragment,
    partition_map: PartitionMap,
    parameters: tuple[Any, ...],
    *,
    routed: bool = False,
) -> list[FragmentPlacement]:
    """Place a fragment on each member that owns a needed partition; the others are not asked.

    A fragment that rows are `routed` to by the partition of their keys is needed wherever a row may come that belongs
    to the result.
    """
    count = partition_map.partitions
    if routed:
        needed = _needed_by_routed(fragment.node, parameters, count)
    else:
        needed = needed_partitions(fragment, parameters, count)
    placements: list[FragmentPlacement] = []
    for member, owned in partition_map.owned:
        partitions = intersect(_as_array(owned), needed)
        assert partitions is not None
        if len(partitions):
            placements.append(FragmentPlacement(fragment, member, owned, partitions))
    return placements


@lru_cache(maxsize=64)
def _as_array(owned: tuple[int, ...]) -> np.ndarray:
    """Kept: the partitions of a member are the same for all queries between two changes of the partition table."""
    return np.array(owned, dtype=np.int64)


def place_all(
    fragments: Sequence[Fragment], partition_map: PartitionMap, parameters: tuple[Any, ...]
) -> dict[int, list[FragmentPlacement]]:
    """Place all fragments but the first, by number; without consumers a fragment is not placed."""
    placements: dict[int, list[FragmentPlacement]] = {}
    by_number = {fragment.number: fragment for fragment in fragments}
    fed_by = {edge: fragment.number for fragment in fragments for edge in fragment.received}
    # Those that are fed have higher numbers than those that feed them.
    for fragment in sorted(fragments[1:], key=lambda each: -each.number):
        receiver = fed_by[fragment.number]
        if receiver and not placements[receiver]:
            placements[fragment.number] = []
            continue
        routed = any(by_number[edge].route is Route.HASH for edge in fragment.received)
        placements[fragment.number] = place_fragment(fragment, partition_map, parameters, routed=routed)
    return placements


NOWHERE = -1


def receiver_of_partition(placements: Sequence[FragmentPlacement], count: int) -> np.ndarray:
    """Return for each partition the number of the placement that owns it; NOWHERE where its rows make no difference."""
    owners = np.full(count, NOWHERE, np.int64)
    for number, placement in enumerate(placements):
        owners[list(placement.owned)] = number
    return owners
