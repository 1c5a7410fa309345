"""Who owns which partitions, as plans know it."""

from __future__ import annotations

from remuda.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PartitionMap:
    """Which member owns which partitions, as of one version of the partition table."""

    version: int
    owned: tuple[tuple[str, tuple[int, ...]], ...]
    """Pairs of a member's id and its partitions in ascending order; members in their order in the table."""
    partitions: int
    """Into how many partitions the plan divides rows."""

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(member for member, _ in self.owned)

    def owned_of(self, partitions: int) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Return the same for a map that has so many partitions, each of which lies whole in one of the plan's.

        >>> PartitionMap(1, (("a", (0, 1)), ("b", (2, 3))), 4).owned_of(2)
        (('a', (0,)), ('b', (1,)))
        """
        if partitions == self.partitions:
            return self.owned
        owner = {each: member for member, owned in self.owned for each in owned}
        found: dict[str, list[int]] = {member: [] for member in self.members}
        for partition in range(partitions):
            found[owner[partition * len(owner) // partitions]].append(partition)
        return tuple((member, tuple(owned)) for member, owned in found.items())
