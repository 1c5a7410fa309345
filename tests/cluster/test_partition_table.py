"""Members and the partition table: who owns what, and what a change does to it."""

from __future__ import annotations

import random
import threading
from itertools import combinations

import pytest

from remuda.cluster import Cluster
from remuda.cluster.cluster import reassign
from remuda.errors import ErrorCode, RemudaError, SqlError
from remuda.runtime.local import check_ownership


def owned(cluster: Cluster) -> dict[str, tuple[int, ...]]:
    return {member.id: cluster.partition_table.owned_by(member.id) for member in cluster.members}


@pytest.mark.parametrize("members", [1, 2, 3, 7, 271])
def test_every_partition_has_one_owner_and_shares_are_even(members: int) -> None:
    cluster = Cluster(members, 271)
    shares = owned(cluster)
    assert sorted(partition for share in shares.values() for partition in share) == list(range(271))
    sizes = [len(share) for share in shares.values()]
    assert max(sizes) - min(sizes) <= 1
    assert all(share == tuple(range(share[0], share[-1] + 1)) for share in shares.values())


def test_more_members_than_partitions() -> None:
    cluster = Cluster(5, 3)
    assert sorted(partition for share in owned(cluster).values() for partition in share) == [0, 1, 2]
    assert len(cluster.partition_table.partition_map().members) == 3


def test_joining_and_leaving() -> None:
    cluster = Cluster(2, 10)
    changes: list[int] = []
    cluster.on_change = lambda: changes.append(cluster.partition_table.version)
    before = cluster.partition_table
    joined = cluster.add_member()
    assert joined.id not in set(before.owners)
    assert len(cluster.partition_table.owned_by(joined.id)) == 3
    cluster.remove_member("member-1")
    assert [member.id for member in cluster.members] == ["member-2", joined.id]
    assert changes == [2, 3], "the table is the new one when the change is told"
    assert before.owned_by(joined.id) == (), "a table is a value: the old one is as it was"
    assert cluster.add_member().id not in {"member-1", "member-2", joined.id}, "an id is never used again"


def moved(before: tuple[str, ...], after: tuple[str, ...]) -> int:
    return sum(old != new for old, new in zip(before, after, strict=True))


def test_a_member_that_joins_takes_its_share_and_nothing_else_moves() -> None:
    cluster = Cluster(3, 271)
    before = cluster.partition_table.owners
    joined = cluster.add_member()
    after = cluster.partition_table
    assert moved(before, after.owners) == len(after.owned_by(joined.id)) == 67
    cluster.remove_member("member-2")
    assert moved(after.owners, cluster.partition_table.owners) == len(after.owned_by("member-2")) == 68
    before = cluster.partition_table.owners
    cluster.renew(("executor-1",))
    assert cluster.partition_table.owners == before


def fewest_moves(owners: tuple[str, ...], members: tuple[str, ...]) -> int:
    """The fewest partitions that must move, by trying which members have the larger shares."""
    share, larger = divmod(len(owners), len(members))
    return min(
        len(owners) - sum(min(owners.count(member), share + (member in chosen)) for member in members)
        for chosen in combinations(members, larger)
    )


def test_changes_of_members_keep_shares_even_and_move_as_little_as_can_be() -> None:
    chance = random.Random(17)
    for partitions in (1, 2, 7, 31, 64):
        owners = reassign(("a",) * partitions, ("a",))
        members: tuple[str, ...] = ("a",)
        for number in range(60):
            if len(members) == 1 or (len(members) < 8 and chance.random() < 0.5):
                members = (*members, f"m{number}")
            else:
                leaving = chance.choice(members)
                members = tuple(each for each in members if each != leaving)
            after = reassign(owners, members)
            shares = [after.count(member) for member in members]
            assert sum(shares) == partitions
            assert max(shares) - min(shares) <= 1
            assert moved(owners, after) == fewest_moves(owners, members)
            owners = after


def test_members_and_partitions_that_cannot_be_are_refused() -> None:
    cluster = Cluster(1, 10)
    with pytest.raises(RemudaError, match="the last member cannot leave"):
        cluster.remove_member("member-1")
    with pytest.raises(RemudaError, match=r"no member nobody: members are member-1"):
        cluster.remove_member("nobody")
    for members, partitions in ((0, 10), (1, 0)):
        with pytest.raises(RemudaError, match="at least one"):
            Cluster(members, partitions)
    with pytest.raises(SqlError) as caught:
        cluster.member("member-9")
    assert caught.value.code is ErrorCode.PARTITION_DISTRIBUTION


def test_changes_from_many_threads_are_serialised() -> None:
    cluster = Cluster(1, 31)

    def come_and_go() -> None:
        for _ in range(50):
            cluster.remove_member(cluster.add_member().id)

    threads = [threading.Thread(target=come_and_go) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [member.id for member in cluster.members] == ["member-1"]
    assert cluster.partition_table.version == 1 + 2 * 50 * 8
    assert cluster.partition_table.owned_by("member-1") == tuple(range(31))


def test_a_member_must_own_exactly_what_is_expected() -> None:
    """The three cases: what is expected; fewer, so that rows would be missed; more, so that they would be doubled."""
    cluster = Cluster(2, 4)
    stale = cluster.partition_table.version - 1
    check_ownership(cluster.partition_table, "member-1", (0, 1), stale)
    for expected in ((0, 1, 2), (0,), (2, 3), ()):
        with pytest.raises(SqlError, match="have moved") as caught:
            check_ownership(cluster.partition_table, "member-1", expected, stale)
        assert caught.value.code is ErrorCode.PARTITION_DISTRIBUTION
        assert caught.value.invalidates_plan


def test_the_version_is_the_stamp() -> None:
    """As long as it is the plan's, nothing is compared."""
    cluster = Cluster(2, 4)
    check_ownership(cluster.partition_table, "member-1", (3,), cluster.partition_table.version)
