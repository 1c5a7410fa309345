"""The segments of a map of many are opened when they are first read, and only those that a query needs."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import remuda
from remuda.errors import StorageError
from remuda.storage.commit import store_loader
from remuda.storage.folder import kept_versions
from remuda.storage.folder.partition_groups import MOST_OPENED
from remuda.storage.load import group_compaction, map_load, segment_cut
from remuda.storage.segment.lazy_segment import LazySegment

ROWS = 20_000
PARTITIONS = 32


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A map with a segment for each of its partitions."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(segment_cut, "GROUP_BYTES", 4_000)
        patched.setattr(map_load, "SMALL_LOAD", 0)
        patched.setattr(kept_versions, "DEFAULT_RETENTION", 0)
        with remuda.open(folder) as grid:
            grid.sql(f"CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT, s VARCHAR) WITH (partitions = {PARTITIONS})")
            grid.sql("CREATE INDEX t_v ON t (v)")
            grid.load("t", numbered(0, ROWS))
            assert len(store_of(grid).stored) == PARTITIONS > MOST_OPENED
    return folder


@pytest.fixture
def path(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that map, in which it goes on with groups of the same size."""
    monkeypatch.setattr(segment_cut, "GROUP_BYTES", 4_000)
    monkeypatch.setattr(map_load, "SMALL_LOAD", 0)
    return Path(shutil.copytree(made, tmp_path / "shop"))


def numbered(start: int, stop: int) -> pa.Table:
    ids = range(start, stop)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "v": pa.array([key % 1000 for key in ids], pa.int64()),
            "s": pa.array([f"text {key % 7}" for key in ids], pa.string()),
        }
    )


def expected(key: int) -> tuple[int, int, str]:
    return key, key % 1000, f"text {key % 7}"


def store_of(grid: Any) -> Any:
    return grid.store.map(grid.store.catalog.find_map("t", ("public",)))


def opened(grid: Any) -> set[int]:
    """Return the partitions whose segments are open."""
    return {each.segment.first_partition for each in store_of(grid).stored if each.segment.is_open}


def partition_of(grid: Any, key: int) -> int:
    version = store_of(grid).state.version
    return int(version.partition_of_key(key, version.key_hash(key)))


@pytest.mark.parametrize("read_only", [True, False])
def test_opening_and_planning_open_no_segment(path: Path, read_only: bool) -> None:
    with remuda.open(path, read_only=read_only) as grid:
        assert opened(grid) == set()
        assert len(grid.map("t")) == ROWS
        assert all(isinstance(each.segment, LazySegment) for each in store_of(grid).stored)
        assert "rows≈7" in str(grid.explain("SELECT s, COUNT(*) FROM t WHERE s > 'a' GROUP BY s"))
        assert opened(grid) == set()


def test_a_reader_that_the_writer_does_not_know_of_opens_all_at_once(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may not write the folder, so it has no lease, and the writer removes what it reads."""
    monkeypatch.setattr(store_loader, "take_lease", lambda _: None)
    with remuda.open(path, read_only=True) as reader:
        assert opened(reader) == set(range(PARTITIONS))
        with reader.sql("SELECT SUM(v) FROM t") as held:
            for file in path.glob("maps/*/*"):
                file.unlink()
            assert held.fetchall() == [(sum(key % 1000 for key in range(ROWS)),)]


READS = {
    "by SQL": lambda grid, key: grid.sql("SELECT * FROM t WHERE id = ?", key).fetchall() == [expected(key)],
    "by get": lambda grid, key: tuple(grid.map("t").get(key)) == expected(key)[1:],
    "by get_all": lambda grid, key: [row["v"] for row in grid.map("t").get_all([key]).values()] == [expected(key)[1]],
    "by lookup": lambda grid, key: grid.map("t").lookup([key]).column("v").to_pylist() == [expected(key)[1]],
    "by a scan": lambda grid, key: (
        grid.sql("SELECT COUNT(*) FROM t WHERE id = ? AND s LIKE 'text%' AND v >= 0", key).fetchall() == [(1,)]
    ),
    "by a write": lambda grid, key: grid.sql("UPDATE t SET v = -1 WHERE id = ?", key).update_count == 1,
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_one_key_opens_one_segment(path: Path, read: Any) -> None:
    with remuda.open(path) as grid:
        for key in (17, 4711, 17):
            assert read(grid, key)
        assert opened(grid) <= {partition_of(grid, key) for key in (17, 4711)}


def test_a_partition_of_many_segments_that_are_not_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each load has rows of all partitions: a lookup opens all segments, and goes on to look into them."""
    monkeypatch.setattr(map_load, "SMALL_LOAD", 0)
    monkeypatch.setattr(group_compaction, "MOST_SEGMENTS", 100)
    with remuda.open(tmp_path) as grid:
        grid.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT, s VARCHAR) WITH (partitions = 2)")
        for start in range(0, 2 * MOST_OPENED * 50, 50):
            grid.load("t", numbered(start, start + 50))
    with remuda.open(tmp_path) as grid:
        assert len(store_of(grid).stored) == 2 * MOST_OPENED
        assert opened(grid) == set()
        assert tuple(grid.map("t").get(17)) == expected(17)[1:]
        assert [row["v"] for row in grid.map("t").get_all(range(0, 1600, 7)).values()] == [
            key % 1000 for key in range(0, 1600, 7)
        ]
        assert grid.sql("UPDATE t SET v = -1 WHERE id = ?", 1599).update_count == 1
        assert grid.map("t").get(1599)["v"] == -1
        assert grid.map("t").get(1600) is None


def test_keys_that_are_not_there_are_not_found(path: Path) -> None:
    with remuda.open(path) as grid:
        assert grid.map("t").get(ROWS + 1) is None
        assert grid.sql("SELECT v FROM t WHERE id = ?", -5).fetchall() == []
        assert grid.map("t").lookup([-5, 3]).column("found").to_pylist() == [False, True]


def test_every_key_is_found_beside_writes(path: Path) -> None:
    with remuda.open(path) as grid:
        find = grid.map("t")
        assert [find.get(key)["v"] for key in range(0, ROWS, 37)] == [key % 1000 for key in range(0, ROWS, 37)]
        grid.sql("DELETE FROM t WHERE id < 100")
        grid.sql("UPDATE t SET v = -1 WHERE id >= 100 AND id < 200")
        assert [find.get(key) for key in range(100)] == [None] * 100
        assert [find.get(key)["v"] for key in range(100, 300)] == [-1] * 100 + [key % 1000 for key in range(200, 300)]
        assert grid.sql("SELECT COUNT(*) FROM t WHERE v = -1").fetchall() == [(100,)]
        grid.checkpoint()
        assert [find.get(key)["v"] for key in range(100, 300)] == [-1] * 100 + [key % 1000 for key in range(200, 300)]
    with remuda.open(path) as grid:
        assert grid.map("t").get(150)["v"] == -1
        assert grid.map("t").get(50) is None
        assert len(grid.map("t")) == ROWS - 100


def test_an_index_is_dropped_without_opening(path: Path) -> None:
    with remuda.open(path) as grid:
        grid.sql("DROP INDEX t_v")
        assert opened(grid) == set()
        assert grid.sql("SELECT COUNT(*) FROM t WHERE v = 7").fetchall() == [(ROWS // 1000,)]
        grid.sql("CREATE INDEX t_v ON t (v)")
        assert grid.sql("SELECT COUNT(*) FROM t WHERE v = 7").fetchall() == [(ROWS // 1000,)]
    with remuda.open(path) as grid:
        assert grid.sql("SELECT COUNT(*) FROM t WHERE v = 7").fetchall() == [(ROWS // 1000,)]
        assert [row.status for row in grid.sql("CHECK TABLE t")] == ["ok"]


def test_a_missing_file_is_told_when_it_is_needed(path: Path) -> None:
    with remuda.open(path) as grid:
        gone = store_of(grid).stored[3]
        lost = gone.segment.first_partition
        inside, outside = (
            next(key for key in range(ROWS) if (partition_of(grid, key) == lost) is lies) for lies in (True, False)
        )
        file = path / "maps" / store_of(grid).definition.id / f"{gone.segment.id}.keys"
        file.unlink()
        assert grid.map("t").get(outside)["v"] == outside % 1000
        with pytest.raises(StorageError, match=r"a file named in the manifest is missing") as caught:
            grid.map("t").get(inside)
        assert str(caught.value.path) == str(file)
        with pytest.raises(StorageError, match="missing"):
            grid.sql("SELECT SUM(v) FROM t").fetchall()
        assert any("missing" in str(row) for row in grid.sql("CHECK TABLE t"))


def test_what_was_opened_is_verified_in_the_background(path: Path) -> None:
    with remuda.open(path) as grid:
        (file,) = (path / "maps").glob(f"*/{store_of(grid).stored[0].segment.id}.*.index")
        raw = bytearray(file.read_bytes())
        raw[len(raw) // 2] ^= 0xFF
        file.write_bytes(raw)
    with remuda.open(path) as grid:
        grid.store.verification.wait()
        for each in store_of(grid).stored:
            each.segment.batch  # noqa: B018  (opens it)
        grid.store.verification.wait()
        with pytest.raises(StorageError, match="cannot be used"):
            grid.sql("SELECT SUM(v) FROM t").fetchall()


def test_threads_open_a_segment_once(path: Path) -> None:
    with remuda.open(path) as grid, ThreadPoolExecutor(8) as pool:
        found = list(pool.map(grid.map("t").get, range(2_000)))
        assert [row["v"] for row in found] == [key % 1000 for key in range(2_000)]
        assert grid.sql("SELECT COUNT(*), SUM(id) FROM t").fetchall() == [(ROWS, ROWS * (ROWS - 1) // 2)]
