"""Partition groups of a map on an object store: a file of a group is fetched when its partitions are first needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import remuda
from remuda.catalog import new_id
from remuda.errors import StorageError
from remuda.storage.load import map_load, segment_cut
from remuda.storage.segment.stored_groups import StoredGroups
from tests.storage.remote_stores import forget_cached
from tests.storage.s3_server import BUCKET, S3Server, s3_server
from tests.storage.test_groups_read import groups_read
from tests.storage.test_lazy_segments import PARTITIONS, expected, numbered, partition_of, store_of

ROWS = 4_000


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture
def shop(s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(segment_cut, "GROUP_BYTES", 1_000)
    monkeypatch.setattr(map_load, "SMALL_LOAD", 0)
    place = f"{BUCKET}/{new_id()}/shop.remuda"
    with opened(s3, place, tmp_path) as grid:
        grid.sql(f"CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT, s VARCHAR) WITH (partitions = {PARTITIONS})")
        grid.load("t", numbered(0, ROWS))
    return place


def opened(s3: S3Server, place: str, tmp_path: Path, name: str = "cache", **options: Any) -> Any:
    return remuda.open(s3.uri(place), cache=tmp_path / name, **({"durability": "none"} | options))


def reader(s3: S3Server, place: str, tmp_path: Path) -> Any:
    return remuda.open(s3.uri(place), read_only=True, cache=tmp_path / new_id())


def group_files_fetched(s3: S3Server, place: str) -> int:
    return sum(name.endswith(".group") for name in s3.traffic(f"{place}/maps"))


def test_a_reader_fetches_the_groups_that_it_needs(s3: S3Server, shop: str, tmp_path: Path) -> None:
    s3.traffic(f"{shop}/maps")
    with reader(s3, shop, tmp_path) as grid:
        assert len(grid.map("t")) == ROWS
        grid.explain("SELECT s, COUNT(*) FROM t WHERE v > 5 GROUP BY s")
        assert groups_read(grid) == set()
        assert s3.traffic(f"{shop}/maps") == {}
        assert tuple(grid.map("t").get(17)) == expected(17)[1:]
        assert groups_read(grid) == {partition_of(grid, 17)}
        assert group_files_fetched(s3, shop) == 1
        assert grid.sql("SELECT COUNT(*), SUM(id) FROM t").fetchall() == [(ROWS, ROWS * (ROWS - 1) // 2)]
        assert group_files_fetched(s3, shop) == PARTITIONS - 1


def test_writers_commit_on_top_of_each_other(s3: S3Server, shop: str, tmp_path: Path) -> None:
    """Each commits what it has changed, and rebases onto groups of the other that it has not read."""
    with opened(s3, shop, tmp_path, "one") as one, opened(s3, shop, tmp_path, "two") as two:
        assert isinstance(store_of(two).stored, StoredGroups)
        for round_ in range(3):
            for number, writer in enumerate((one, two)):
                key = 100 * round_ + number
                writer.sql("UPDATE t SET v = ? WHERE id = ?", -1 - key, key)
                writer.map("t").delete(key + 50)
                writer.checkpoint()
        one.load("t", numbered(ROWS, ROWS + 100))
        two.sql("DELETE FROM t WHERE id = 3000")
        two.checkpoint()
        two.refresh()
        changed = {100 * round_ + number for round_ in range(3) for number in range(2)}
        gone = {key + 50 for key in changed} | {3000}
        rows = [(key, -1 - key if key in changed else key % 1000) for key in range(ROWS + 100) if key not in gone]
        one.refresh()
        with reader(s3, shop, tmp_path) as third:
            for grid in (one, two, third):
                assert grid.sql("SELECT id, v FROM t ORDER BY id").fetchall() == rows
                assert len(grid.map("t")) == len(rows)
        for grid in (one, two):
            assert [row.status for row in grid.sql("CHECK TABLE t")] == ["ok"]


def test_a_conflict_is_found_in_groups_that_were_not_read(s3: S3Server, shop: str, tmp_path: Path) -> None:
    two = opened(s3, shop, tmp_path, "two")
    two.sql("UPDATE t SET v = v + 1 WHERE id = 17")
    with opened(s3, shop, tmp_path, "one") as one:
        one.sql("UPDATE t SET v = v + 1 WHERE id = 17")
        one.checkpoint()
    for end in (two.checkpoint, two.close):
        with pytest.raises(StorageError, match="changed by another writer"):
            end()


def test_a_commit_uploads_only_what_it_has_made(s3: S3Server, shop: str, tmp_path: Path) -> None:
    with opened(s3, shop, tmp_path, "one") as one, opened(s3, shop, tmp_path, "two") as two:
        one.sql("UPDATE t SET v = -1 WHERE id = 1")
        one.checkpoint()
        two.sql("CREATE TABLE other (id BIGINT PRIMARY KEY)")  # a rebase, and a commit that has read no group
        before = s3.files(f"{shop}/maps")
        two.sql("UPDATE t SET v = -2 WHERE id = 2")
        s3.traffic(f"{shop}/maps")
        two.checkpoint()
        made = s3.files(f"{shop}/maps") - before
        written = {name for name in s3.traffic(f"{shop}/maps") if name.removeprefix("/") in made or name in made}
        assert 0 < len(made) < 10
        assert written
    with reader(s3, shop, tmp_path) as grid:
        assert grid.sql("SELECT id, v FROM t WHERE v < 0 ORDER BY id").fetchall() == [(1, -1), (2, -2)]


def test_a_group_that_is_gone_says_so(s3: S3Server, shop: str, tmp_path: Path) -> None:
    with reader(s3, shop, tmp_path) as grid:
        lost = store_of(grid).stored.groups[5].ref
        map_id = store_of(grid).definition.id
        s3.filesystem.delete_file(f"{shop}/maps/{map_id}/{lost.id}.group")
        inside = next(key for key in range(ROWS) if partition_of(grid, key) == lost.first)
        for _ in range(2):
            with pytest.raises(StorageError, match="a file of the store is gone") as caught:
                grid.map("t").get(inside)
            assert caught.value.sqlstate == "40001"
        other = next(key for key in range(ROWS) if partition_of(grid, key) != lost.first)
        assert tuple(grid.map("t").get(other)) == expected(other)[1:]


def test_groups_are_fetched_again_when_the_cache_was_emptied(s3: S3Server, shop: str, tmp_path: Path) -> None:
    with opened(s3, shop, tmp_path, read_only=True, durability="fsync") as grid:
        assert tuple(grid.map("t").get(17)) == expected(17)[1:]
        forget_cached(tmp_path / "cache")
        grid.store._let_go()
        assert groups_read(grid) == set()
        for key in (17, 18, 19):
            assert tuple(grid.map("t").get(key)) == expected(key)[1:]
