"""What is decided when the parameters are known: which partitions, and so which members, a fragment needs."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from remuda.dataclass import dataclass
from remuda.exec.scan.concrete_bounds import intersect, pruned_partitions
from remuda.plan.physical import Route

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.plan.fragments import Fragment, PartitionMap


@dataclass(frozen=True, slots=True)
class FragmentPlacement:
    """A fragment on a member: `owned` are all partitions the plan expects there, `partitions` those it works on."""

    fragment: Fragment
    member: str
    owned: tuple[int, ...]
    partitions: np.ndarray


def needed_partitions(fragment: Fragment, parameters: tuple[Any, ...]) -> np.ndarray | None:
    """The partitions that any scan of the fragment needs, ascending; None where one of them needs all.

    A replicated map is whole on every member: it needs none of them.
    """
    if any(not lookup.map.replicated for lookup in fragment.lookups):
        return None
    scans = [scan for scan in fragment.scans if not scan.map.replicated]
    if not scans:
        return None
    needed: set[int] = set()
    for scan in scans:
        wanted = None if scan.pruning is None else pruned_partitions(scan.map, scan.pruning, parameters)
        if wanted is None:
            return None
        needed.update(wanted.tolist())
    return np.array(sorted(needed), dtype=np.int64)


def place_fragment(
    fragment: Fragment,
    partition_map: PartitionMap,
    parameters: tuple[Any, ...],
    *,
    routed: bool = False,
) -> list[FragmentPlacement]:
    """One placement for each member that owns a needed partition; the others are not asked.

    A fragment that rows are `routed` to by the partition of their keys is needed wherever there are partitions: a row
    may come that finds no match there, and still belongs to the result.
    """
    needed = None if routed else needed_partitions(fragment, parameters)
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
    """The placements of all fragments but the first, by number. What would feed a fragment that is nowhere is too."""
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


def receiver_of_partition(placements: Sequence[FragmentPlacement]) -> np.ndarray:
    """For each partition the number of the placement that owns it."""
    owners = np.zeros(sum(len(placement.owned) for placement in placements), np.int64)
    for number, placement in enumerate(placements):
        owners[list(placement.owned)] = number
    return owners
