"""Who owns which partition, as a value with a version."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from remuda.plan.fragments import PartitionMap


@dataclass(frozen=True, slots=True)
class PartitionTable:
    version: int
    owners: tuple[str, ...]
    """The id of the owner of each partition."""

    @property
    def partitions(self) -> int:
        return len(self.owners)

    def owned_by(self, member: str) -> tuple[int, ...]:
        """In ascending order; empty for a member that is not in the table."""
        return dict(self.partition_map().owned).get(member, ())

    def partition_map(self) -> PartitionMap:
        return _partition_map(self)


@lru_cache(maxsize=64)
def _partition_map(table: PartitionTable) -> PartitionMap:
    owned: dict[str, list[int]] = {}
    for partition, owner in enumerate(table.owners):
        owned.setdefault(owner, []).append(partition)
    return PartitionMap(table.version, tuple((owner, tuple(partitions)) for owner, partitions in owned.items()))


def assign(members: tuple[str, ...], partitions: int) -> tuple[str, ...]:
    """Each member gets a contiguous block, sizes differing by one at most: contiguous partitions are read as one range.

    >>> assign(("a", "b"), 5)
    ('a', 'a', 'a', 'b', 'b')
    """
    return tuple(members[partition * len(members) // partitions] for partition in range(partitions))
