"""The partition groups of a map of many segments are read when a lookup, a scan or a write first needs them."""

from __future__ import annotations

import gc
import random
from pathlib import Path
from typing import Any

import pytest

import remuda
from remuda.errors import StorageError
from remuda.storage.folder.definition_entries import MapEntry
from remuda.storage.folder.manifest import read_manifest
from remuda.storage.folder.partition_groups import MOST_OPENED
from remuda.storage.load import map_load, segment_cut
from remuda.storage.segment.stored_groups import StoredGroups
from remuda.storage.segment.summary import saved_statistics
from tests.storage.test_lazy_segments import (
    PARTITIONS,
    READS,
    ROWS,
    expected,
    made,
    numbered,
    partition_of,
    path,
    store_of,
)

__all__ = ["made", "path"]


def groups_read(grid: Any) -> set[int]:
    """Return the first partitions of the groups whose files were read."""
    stored = store_of(grid).stored
    assert isinstance(stored, StoredGroups)
    return {each.ref.first for each in stored.groups if each.is_read}


def entry_of(folder: Path) -> Any:
    (entry,) = [each for each in read_manifest(folder).maps if each.name == "t"]
    return entry


@pytest.mark.parametrize("read_only", [True, False])
def test_opening_and_planning_read_no_group(path: Path, read_only: bool) -> None:
    with remuda.open(path, read_only=read_only) as grid:
        assert len(grid.map("t")) == ROWS
        assert "rows≈7" in str(grid.explain("SELECT s, COUNT(*) FROM t WHERE s > 'a' GROUP BY s"))
        assert store_of(grid).statistics().columns["v"].maximum == 999
        assert groups_read(grid) == set()


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_one_key_reads_one_group(path: Path, read: Any) -> None:
    with remuda.open(path) as grid:
        for key in (17, 4711, 17):
            assert read(grid, key)
        assert groups_read(grid) <= {partition_of(grid, key) for key in (17, 4711)}
        assert len(grid.map("t")) == ROWS


def test_a_key_reads_the_runs_and_its_group(path: Path) -> None:
    with remuda.open(path) as grid:
        grid.sql("UPDATE t SET v = -1 WHERE id < 100")
        grid.checkpoint()
        assert not isinstance(store_of(grid).stored, StoredGroups)
    refs = entry_of(path).groups
    assert (refs[0].first, refs[0].end) == (0, PARTITIONS)
    assert sum(group.deleted for group in refs) == 100
    with remuda.open(path) as grid:
        assert len(grid.map("t")) == ROWS
        assert grid.sql("SELECT COUNT(*) FROM t").fetchall() == [(ROWS,)]
        assert tuple(grid.map("t").get(4711)) == expected(4711)[1:]
        assert grid.map("t").get(50)["v"] == -1
        found = [each.ref.end - each.ref.first for each in store_of(grid).stored.groups if each.is_read]
        assert found[0] == PARTITIONS
        assert set(found[1:]) == {1}


def test_writes_are_applied_and_taken_back_in_the_groups_that_they_meet(path: Path) -> None:
    with remuda.open(path) as grid:
        map_ = store_of(grid)
        with pytest.raises(remuda.errors.ConstraintError):
            grid.sql("INSERT INTO t VALUES (30000, 0, ''), (17, 1, '')")
        assert grid.map("t").get(30000) is None
        assert grid.map("t").get(17)["v"] == 17
        assert grid.sql("DELETE FROM t WHERE id = 18").update_count == 1
        grid.map("t").set(19, {"v": -5, "s": "new"})
        assert groups_read(grid) <= {partition_of(grid, key) for key in (17, 18, 19, 30000)}
        assert len(grid.map("t")) == ROWS - 1
        assert map_.snapshot().rows == ROWS - 1
        assert grid.sql("SELECT COUNT(*), SUM(v) FROM t").fetchall() == [
            (ROWS - 1, sum(key % 1000 for key in range(ROWS)) - 18 - 19 - 5)
        ]
        assert map_.snapshot().rows == ROWS - 1
        grid.checkpoint()
    with remuda.open(path, read_only=True) as grid:
        assert len(grid.map("t")) == ROWS - 1
        assert grid.map("t").get(18) is None
        assert grid.map("t").get(19)["v"] == -5


def test_what_was_only_logged_is_replayed_into_the_groups_that_it_meets(path: Path) -> None:
    with remuda.open(path) as grid:
        grid.sql("UPDATE t SET v = -1 WHERE id = 17")
        with remuda.open(path, read_only=True) as reader:
            assert len(reader.map("t")) == ROWS
            assert reader.map("t").get(17)["v"] == -1
            assert groups_read(reader) == {partition_of(grid, 17)}


def test_a_refresh_keeps_what_was_read(path: Path) -> None:
    with remuda.open(path) as grid, remuda.open(path, read_only=True) as reader:
        assert reader.map("t").get(17)["v"] == 17
        before = {each.ref.id: each for each in store_of(reader).stored.groups}
        grid.sql("UPDATE t SET v = -1 WHERE id IN (17, 4711)")
        grid.checkpoint()
        reader.refresh()
        groups = store_of(reader).stored.groups
        kept = [each for each in groups if each.ref.id in before]
        assert len(kept) >= PARTITIONS - 2
        assert all(before[each.ref.id] is each for each in kept)
        assert reader.map("t").get(17)["v"] == -1
        assert tuple(reader.map("t").get(18)) == expected(18)[1:]
        grid.sql("UPDATE t SET v = -2 WHERE id = 9000")
        grid.checkpoint()
        opened = {each.segment.id: each.segment for each in store_of(reader).stored.read_segments}
        reader.refresh()
        assert reader.map("t").get(9000)["v"] == -2
        assert reader.map("t").get(17)["v"] == -1
        again = {each.segment.id: each.segment for each in store_of(reader).stored.read_segments}
        assert len(opened.keys() & again.keys()) >= 2
        assert all(again[each] is opened[each] for each in opened.keys() & again.keys()), (
            "runs that stay are not reopened"
        )


def test_groups_that_stay_do_not_keep_the_roots_before(path: Path) -> None:
    with remuda.open(path, read_only=True) as reader:
        for key in range(5):
            with remuda.open(path) as grid:
                grid.sql("UPDATE t SET v = -1 WHERE id = ?", key)
                grid.checkpoint()
            reader.refresh()
            assert reader.map("t").get(key)["v"] == -1
        del grid
        gc.collect()
        kept = [each for each in gc.get_objects() if isinstance(each, MapEntry) and len(each.groups) >= PARTITIONS]
        assert len(kept) <= 2


def test_a_missing_or_damaged_group_is_told_when_it_is_needed(path: Path) -> None:
    refs = entry_of(path).groups
    folder = path / "maps" / entry_of(path).id
    missing, damaged = (folder / f"{refs[number].id}.group" for number in (3, 5))
    missing.unlink()
    raw = bytearray(damaged.read_bytes())
    raw[-20] ^= 0xFF
    damaged.write_bytes(raw)
    with remuda.open(path) as grid:
        keys: dict[int, int] = {}
        for key in range(ROWS):
            keys.setdefault(partition_of(grid, key), key)
        assert grid.map("t").get(keys[7])["v"] == keys[7] % 1000
        for number, file in ((3, missing), (5, damaged)):
            for _ in range(2):
                with pytest.raises(StorageError) as caught:
                    grid.map("t").get(keys[refs[number].first])
                assert str(caught.value.path) == str(file)
        with pytest.raises(StorageError, match="missing"):
            grid.sql("SELECT SUM(v) FROM t").fetchall()
        told = " ".join(str(row) for row in grid.sql("CHECK TABLE t"))
        assert "missing" in told
        assert "damaged" in told
        grid.sql("CREATE TABLE other (id BIGINT PRIMARY KEY)")  # a commit carries on what it has not read
        assert entry_of(path).groups == refs
        assert grid.map("t").get(keys[7])["v"] == keys[7] % 1000
        grid.sql("DROP TABLE t")


def test_a_root_that_counts_other_rows_than_its_group_is_damage(path: Path) -> None:
    from msgspec.structs import replace

    from remuda.storage.folder.manifest import write_manifest

    manifest = read_manifest(path)
    (entry,) = manifest.maps
    first, *others = entry.groups
    for wrong in ({"rows": first.rows + 1}, {"segments": 2}, {"deleted": 1}):
        changed = replace(entry, groups=(replace(first, **wrong), *others))
        write_manifest(path, replace(manifest, maps=[changed]))
        with remuda.open(path, read_only=True) as grid, pytest.raises(StorageError, match="counts other"):
            grid.sql("SELECT SUM(v) FROM t").fetchall()
    for wrong in ({"deleted": first.rows + 1}, {"deleted": -1}):
        changed = replace(entry, groups=(replace(first, **wrong), *others))
        write_manifest(path, replace(manifest, maps=[changed]))
        with pytest.raises(StorageError, match=r"deleted|less than nothing"):
            remuda.open(path, read_only=True)


def test_statistics_that_make_no_sense_are_damage(path: Path) -> None:
    from msgspec.structs import replace

    from remuda.storage.folder.manifest import write_manifest

    manifest = read_manifest(path)
    (entry,) = manifest.maps
    for raw in (b"", b"\xc1", entry.statistics.summaries[:-40]):
        changed = replace(entry, statistics=replace(entry.statistics, summaries=raw))
        write_manifest(path, replace(manifest, maps=[changed]))
        with remuda.open(path, read_only=True) as grid:
            assert grid.map("t").get(17)["v"] == 17
            with pytest.raises(StorageError, match="statistics"):
                grid.explain("SELECT COUNT(*) FROM t WHERE s > 'a' AND v < 5")


def test_orphans_are_found_when_the_group_files_are_read_behind_the_opening(path: Path) -> None:
    entry = entry_of(path)
    folder = path / "maps" / entry.id
    left = [folder / f"{number:016x}{suffix}" for number in range(3) for suffix in (".arrow", ".keys", ".group")]
    for each in left:
        each.write_bytes(b"left by a process that was killed")
    foreign = folder / "README"
    foreign.write_text("a person's")
    present = set(folder.iterdir()) - set(left)
    with remuda.open(path) as grid:
        grid.store.verification.wait()
        assert set(folder.iterdir()) == present
        assert groups_read(grid) == set()
        assert [row.status for row in grid.sql("CHECK TABLE t")] == ["ok"]


def test_a_file_that_comes_while_orphans_are_looked_for_stays(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from remuda.storage.folder import verification

    monkeypatch.setattr(verification, "PAUSE", 0.02)
    with remuda.open(path) as grid:
        grid.load("t", numbered(ROWS, ROWS + 500))
        grid.sql("CREATE INDEX t_s ON t (s)")
        grid.store.verification.wait()
        assert [row.status for row in grid.sql("CHECK TABLE t")] == ["ok"]
    with remuda.open(path) as grid:
        assert grid.sql("SELECT COUNT(*) FROM t WHERE s = 'text 3'").fetchall() == [
            (sum(key % 7 == 3 for key in range(ROWS + 500)),)
        ]


def test_statistics_of_a_map_follow_its_commits(path: Path) -> None:
    """A value that comes with the newest rows is known, and statistics are made anew when much has changed."""
    with remuda.open(path) as grid:
        grid.load("t", numbered(ROWS, ROWS + 500))
        grid.sql("UPDATE t SET v = 5000 WHERE id < 10")
        grid.checkpoint()
    known = entry_of(path).statistics
    assert known.rows == ROWS
    assert 0 < known.added <= saved_statistics.ADDED_SHARE * ROWS
    with remuda.open(path, read_only=True) as grid:
        columns = store_of(grid).statistics().columns
        assert (columns["v"].minimum, columns["v"].maximum) == (0, 5000)
        assert columns["id"].maximum == ROWS + 499
        assert columns["s"].distinct == 7
        assert groups_read(grid) == set()
    with remuda.open(path) as grid:
        grid.sql("DELETE FROM t WHERE v = 5000")
        grid.load("t", numbered(30_000, 36_000))
    known = entry_of(path).statistics
    assert known.added == 0
    with remuda.open(path, read_only=True) as grid:
        columns = store_of(grid).statistics().columns
        assert columns["id"].maximum == 35_999
        assert columns["v"].null_share == 0


def test_a_small_map_is_read_with_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_cut, "GROUP_BYTES", 4_000)
    monkeypatch.setattr(map_load, "SMALL_LOAD", 0)
    with remuda.open(tmp_path) as grid:
        grid.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT, s VARCHAR) WITH (partitions = 4)")
        grid.load("t", numbered(0, 2_000))
    entry = entry_of(tmp_path)
    assert 1 < sum(group.segments for group in entry.groups) <= MOST_OPENED
    assert entry.statistics is None
    with remuda.open(tmp_path) as grid:
        assert isinstance(store_of(grid).stored, tuple)


@pytest.mark.parametrize("seed", range(3))
def test_any_order_of_reads_and_writes_gives_what_a_model_has(path: Path, seed: int) -> None:
    """Groups are read by whatever comes first: lookups, scans, writes, refreshes, checkpoints."""
    chosen = random.Random(seed)
    model = {key: expected(key)[1:] for key in range(ROWS)}
    for _ in range(3):
        with remuda.open(path) as grid, remuda.open(path, read_only=True) as reader:
            found = grid.map("t")
            for _ in range(60):
                key = chosen.randrange(ROWS + 200)
                match chosen.randrange(8):
                    case 0:
                        found.set(key, {"v": -key, "s": "set"})
                        model[key] = (-key, "set")
                    case 1:
                        found.delete(key)
                        model.pop(key, None)
                    case 2:
                        keys = [chosen.randrange(ROWS + 200) for _ in range(30)]
                        rows = found.get_all(keys)
                        assert {each: tuple(rows[each]) for each in rows} == {k: model[k] for k in keys if k in model}
                    case 3:
                        low = chosen.randrange(ROWS)
                        assert sorted(grid.sql("SELECT id FROM t WHERE id IN (?, ?, ?)", low, low + 1, low + 2)) == [
                            (each,) for each in (low, low + 1, low + 2) if each in model
                        ]
                    case 4:
                        reader.refresh()
                        row = reader.map("t").get(key)
                        assert (None if row is None else tuple(row)) == model.get(key)
                    case 5 if chosen.random() < 0.1:
                        grid.checkpoint()
                    case 6:
                        batch = found.lookup([key, key + 1])
                        assert batch.column("found").to_pylist() == [key in model, key + 1 in model]
                    case _:
                        row = found.get(key)
                        assert (None if row is None else tuple(row)) == model.get(key)
                assert len(found) == len(model)
            assert grid.sql("SELECT COUNT(*), SUM(v) FROM t").fetchall() == [
                (len(model), sum(value for value, _ in model.values()))
            ]
