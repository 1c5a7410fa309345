"""What is decided when the parameters are known: which partitions, and so which members, a fragment needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from remuda.exec.bounds import intersect, pruned_partitions

if TYPE_CHECKING:
    from remuda.plan.fragments import Fragment, PartitionMap


@dataclass(frozen=True, slots=True)
class FragmentPlacement:
    """A fragment on a member: `owned` are all partitions the plan expects there, `partitions` those it works on."""

    fragment: Fragment
    member: str
    owned: tuple[int, ...]
    partitions: np.ndarray


def needed_partitions(fragment: Fragment, parameters: tuple[Any, ...]) -> np.ndarray | None:
    """The partitions that any scan of the fragment needs, ascending; None where one of them needs all."""
    needed: set[int] = set()
    for scan in fragment.scans:
        wanted = None if scan.pruning is None else pruned_partitions(scan.map, scan.pruning, parameters)
        if wanted is None:
            return None
        needed.update(wanted.tolist())
    return np.array(sorted(needed), dtype=np.int64)


def place_fragments(
    fragment: Fragment, partition_map: PartitionMap, parameters: tuple[Any, ...]
) -> list[FragmentPlacement]:
    """One placement for each member that owns a needed partition; the others are not asked."""
    needed = needed_partitions(fragment, parameters)
    placements: list[FragmentPlacement] = []
    for member, owned in partition_map.owned:
        partitions = intersect(np.array(owned, dtype=np.int64), needed)
        assert partitions is not None
        if len(partitions):
            placements.append(FragmentPlacement(fragment, member, owned, partitions))
    return placements
