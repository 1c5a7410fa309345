"""The members of this process and the current partition table."""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING

from remuda.dataclass import dataclass
from remuda.errors import ErrorCode, SqlError, option_error
from remuda.plan.partition_map import PartitionMap

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class PartitionTable:
    """Tells which member owns which partition, as a value with a version."""

    version: int
    owners: tuple[str, ...]
    """The id of the owner of each partition."""

    @property
    def partitions(self) -> int:
        return len(self.owners)

    def owned_by(self, member: str, partitions: int | None = None) -> tuple[int, ...]:
        """List the partitions of a member, ascending; none for one that is not in the table."""
        return dict(self.partition_map(partitions).owned).get(member, ())

    def owners_of(self, partitions: int) -> tuple[str, ...]:
        """Tell who owns each partition of a map that has so many of them: neighbours in this table's proportions.

        >>> PartitionTable(1, ("a", "a", "b")).owners_of(6), PartitionTable(1, ("a", "a", "b")).owners_of(2)
        (('a', 'a', 'a', 'a', 'b', 'b'), ('a', 'a'))
        """
        if partitions == self.partitions:
            return self.owners
        return tuple(self.owners[partition * self.partitions // partitions] for partition in range(partitions))

    def partition_map(self, partitions: int | None = None) -> PartitionMap:
        """Tell who owns what in a plan that divides rows into so many partitions; None: into this table's."""
        return _partition_map(self, self.partitions if partitions is None else partitions)


@lru_cache(maxsize=64)
def _partition_map(table: PartitionTable, partitions: int) -> PartitionMap:
    owned: dict[str, list[int]] = {}
    for partition, owner in enumerate(table.owners_of(partitions)):
        owned.setdefault(owner, []).append(partition)
    return PartitionMap(table.version, tuple((owner, tuple(each)) for owner, each in owned.items()), partitions)


def assign(members: tuple[str, ...], partitions: int) -> tuple[str, ...]:
    """Give each member its partitions.

    Each member gets a contiguous block, sizes differing by one at most: contiguous partitions are read as one range.

    >>> assign(("a", "b"), 5)
    ('a', 'a', 'a', 'b', 'b')
    """
    return tuple(members[partition * len(members) // partitions] for partition in range(partitions))


def reassign(owners: tuple[str, ...], members: tuple[str, ...]) -> tuple[str, ...]:
    """Give the partitions to these members: shares differ by one at most, and no fewer partitions could move.

    The members that own the most keep one more where the partitions cannot be divided evenly. A member gives up its
    last partitions. A partition goes to the new owner of the one before it where that has room, so that ranges of
    contiguous partitions stay long.

    >>> reassign(("a", "a", "a", "b", "b", "b"), ("a", "b", "c"))
    ('a', 'a', 'c', 'b', 'b', 'c')
    >>> reassign(("a", "a", "c", "b", "b", "c"), ("a", "b"))
    ('a', 'a', 'a', 'b', 'b', 'b')
    """
    owned = Counter(owners)
    share, larger = divmod(len(owners), len(members))
    by_size = sorted(members, key=lambda member: -owned[member])
    room = {member: share + (place < larger) for place, member in enumerate(by_size)}
    kept = [owner if _take_place(room, owner) else None for owner in owners]
    assigned: list[str] = []
    for owner in kept:
        new = owner
        if new is None:
            before = assigned[-1] if assigned else by_size[0]
            new = before if room[before] else max(members, key=room.__getitem__)
            _take_place(room, new)
        assigned.append(new)
    return tuple(assigned)


def _take_place(room: dict[str, int], member: str) -> bool:
    """Take one place of a member; False where it has none left, or is no member any more."""
    left = room.get(member, 0)
    if left:
        room[member] = left - 1
    return left > 0


@dataclass(slots=True, eq=False)
class Member:
    """One member of the cluster.

    `fragments_run` counts the fragments that this member was asked to run: how tests see who took part.
    """

    id: str
    fragments_run: int = 0
    _lock: Lock = field(default_factory=Lock, repr=False)

    def count_fragment(self) -> None:
        with self._lock:
            self.fragments_run += 1


class Cluster:
    """Changes are serialised; readers see the old table or the new one, never a mixture."""

    def __init__(self, members: int, partitions: int) -> None:
        if members < 1 or partitions < 1:
            raise option_error("a grid has at least one member and one partition")
        self._lock = Lock()
        self.on_change: Callable[[], None] | None = None
        """Called after every change of the table."""
        self.executors: tuple[str, ...] = ()
        """The members of another backend by their names. They read a folder, and own no partitions of this process."""
        self._created = 0
        self._members: tuple[Member, ...] = tuple(self._new_member() for _ in range(members))
        self._table = PartitionTable(1, assign(self._ids(), partitions))

    @property
    def members(self) -> tuple[Member, ...]:
        return self._members

    @property
    def partition_table(self) -> PartitionTable:
        return self._table

    def member(self, id_: str) -> Member:
        found = next((member for member in self._members if member.id == id_), None)
        if found is None:
            raise SqlError(ErrorCode.PARTITION_DISTRIBUTION, f"{id_} has left")
        return found

    def add_member(self) -> Member:
        """Add a member, which takes over its share of the partitions."""
        with self._lock:
            member = self._new_member()
            self._change((*self._members, member))
            return member

    def remove_member(self, id_: str) -> None:
        """Remove a member; the others take over its partitions."""
        with self._lock:
            remaining = tuple(member for member in self._members if member.id != id_)
            if len(remaining) == len(self._members):
                known = ", ".join(self._ids())
                raise option_error(f"there is no member {id_}: members are {known}")
            if not remaining:
                raise option_error("the last member cannot leave")
            self._change(remaining)

    def renew(self, executors: tuple[str, ...] = ()) -> None:
        """Publish the table anew when members of another backend have come or gone, so that plans are made anew."""
        with self._lock:
            self.executors = executors
            self._change(self._members)

    def _change(self, members: tuple[Member, ...]) -> None:
        self._members = members
        self._table = PartitionTable(self._table.version + 1, reassign(self._table.owners, self._ids()))
        if self.on_change is not None:
            self.on_change()

    def _new_member(self) -> Member:
        self._created += 1
        return Member(f"member-{self._created}")

    def _ids(self) -> tuple[str, ...]:
        return tuple(member.id for member in self._members)
