"""Partition groups: what outgrows its group is split, runs are folded, and every answer stays as it is."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import replace

import remuda
from remuda.errors import SqlError, StorageError
from remuda.storage import snapshot
from remuda.storage.folder import kept_versions, manifest, partition_groups, store_folder
from remuda.storage.folder.group_file import GroupRef, check_groups, encode_group, read_group, write_group
from remuda.storage.folder.manifest import read_manifest, write_manifest
from remuda.storage.load import group_compaction, group_split, map_load, segment_cut
from remuda.storage.lookup import point_lookup
from remuda.storage.segment.group_ranges import cuts_of, ranges_of

CREATE = "CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT, s VARCHAR) WITH (partitions = 16)"
INDEXES = ("CREATE INDEX t_v ON t (v)", "CREATE INDEX t_s ON t (s) TYPE HASH")

Rows = dict[int, tuple[int, str]]


def rows_table(rows: Rows) -> pa.Table:
    values = list(rows.values())
    return pa.table(
        {
            "id": pa.array(list(rows), pa.int64()),
            "v": pa.array([value for value, _ in values], pa.int64()),
            "s": pa.array([text for _, text in values], pa.string()),
        }
    )


def numbered(start: int, stop: int, value: int = 0) -> Rows:
    return {key: (key * 7 % 1000 + value, f"text {key % 17} of {value}") for key in range(start, stop)}


def numbered_keys(keys: list[int]) -> Rows:
    return {key: numbered(key, key + 1)[key] for key in keys}


def changes_between(before: Rows, after: Rows) -> list[tuple[Any, ...]]:
    changed = [key for key in before.keys() & after.keys() if before[key] != after[key]]
    return sorted(
        [
            *(("insert", key, *after[key]) for key in after.keys() - before.keys()),
            *(("delete", key, *before[key]) for key in before.keys() - after.keys()),
            *(("update_preimage", key, *before[key]) for key in changed),
            *(("update_postimage", key, *after[key]) for key in changed),
        ]
    )


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> int:
    """A target size that a few hundred rows outgrow; every load makes segments."""
    monkeypatch.setattr(segment_cut, "GROUP_BYTES", 4_000)
    monkeypatch.setattr(map_load, "SMALL_LOAD", 0)
    return segment_cut.GROUP_BYTES


def created(path: Path | None) -> Any:
    grid = remuda.open(path, durability="os") if path is not None else remuda.open()
    for statement in (CREATE, *INDEXES):
        grid.sql(statement)
    return grid


def store_of(grid: Any) -> Any:
    return grid.store.map(grid.store.catalog.find_map("t", ("public",)))


def groups_in(path: Path) -> tuple[GroupRef, ...]:
    (entry,) = read_manifest(path).maps
    return entry.groups


def check_structure(found: Any) -> None:
    """Groups are disjoint, their members lie inside, and few segments are small."""
    stored, partitions = found.stored, found.definition.partitions
    cuts = cuts_of(stored, partitions)
    ranges = ranges_of(cuts, partitions)
    for each in stored:
        span = (each.segment.first_partition, each.segment.last_partition)
        home = [group for group in ranges if group[0] <= span[0] and span[1] < group[1]]
        # A segment stays a run where the cuts that made it one are gone.
        assert each.group is None or [each.group] == home
    groups = {each.group for each in stored}
    for group in groups:
        members = [each for each in stored if each.group == group]
        small = [each for each in members if not group_compaction._is_full(each)]
        # One commit adds some and merges a bounded amount.
        assert len(small) <= 3 * group_compaction.MOST_SEGMENTS


def check_rows(grid: Any, rows: Rows) -> None:
    expected = sorted((key, *values) for key, values in rows.items())
    assert grid.sql("SELECT id, v, s FROM t ORDER BY id").fetchall() == expected
    assert len(grid.map("t")) == len(rows)
    for key in [*random.Random(len(rows)).sample(sorted(rows), min(20, len(rows))), -1]:
        found = grid.sql("SELECT v, s FROM t WHERE id = ?", key).fetchall()
        assert found == ([rows[key]] if key in rows else [])
    low = [key for key, (value, _) in sorted(rows.items()) if 100 <= value < 150]
    assert [row[0] for row in grid.sql("SELECT id FROM t WHERE v >= 100 AND v < 150 ORDER BY id")] == low
    texts = [key for key, (_, text) in sorted(rows.items()) if text == "text 3 of 0"]
    assert [row[0] for row in grid.sql("SELECT id FROM t WHERE s = 'text 3 of 0' ORDER BY id")] == texts


class History:
    """Random changes of a table beside a plain dictionary."""

    def __init__(self, path: Path | None, seed: int) -> None:
        self.path = path
        self.random = random.Random(seed)
        self.grid = created(path)
        self.rows: Rows = {}
        self.versions: dict[int, Rows] = {}
        self.batches: list[tuple[Rows, list[int]]] = []
        """The changes of each batch, of which the last one has the highest number."""

    STEPS = (
        *("write", "write", "append", "append", "upsert", "apply", "apply", "delete"),
        *("truncate", "checkpoint", "optimize", "index"),
    )
    DURABLE = ("reopen", "restore", "restore", "die", "replace", "vacuum")

    def step(self) -> None:
        steps = (*self.STEPS, *(self.DURABLE if self.path else ()))
        getattr(self, self.random.choice(steps))()
        check_structure(store_of(self.grid))
        if self.path:
            self.versions[self.grid.sql("SHOW VERSIONS").fetchall()[-1][0]] = self.committed()

    def committed(self) -> Rows:
        self.grid.checkpoint()
        self.versions[self.grid.sql("SHOW VERSIONS").fetchall()[-1][0]] = dict(self.rows)
        return dict(self.rows)

    def keys(self, count: int) -> list[int]:
        return self.random.sample(range(300), count)

    def fresh(self, keys: list[int]) -> Rows:
        value = self.random.randrange(3)
        return {key: numbered(key, key + 1, value)[key] for key in keys}

    def write(self) -> None:
        for key, values in self.fresh(self.keys(10)).items():
            self.grid.sql("SINK INTO t VALUES (?, ?, ?)", key, *values)
            self.rows[key] = values

    def append(self) -> None:
        rows = self.fresh([key for key in self.keys(90) if key not in self.rows])
        if rows:
            self.grid.load("t", rows_table(rows))
            self.rows.update(rows)
        if self.rows:
            with pytest.raises(SqlError):
                self.grid.load("t", rows_table(self.fresh([next(iter(self.rows))])))

    def upsert(self) -> None:
        rows = self.fresh(self.keys(100))
        self.grid.load("t", rows_table(rows), mode="upsert")
        self.rows.update(rows)

    def apply(self) -> None:
        """Apply a new batch of changes, or again one that was applied: that changes nothing."""
        is_new = not self.batches or self.random.random() < 0.6
        if is_new:
            keys = self.keys(60)
            self.batches.append((self.fresh(keys[:40]), keys[40:]))
        number = len(self.batches) - 1 if is_new else self.random.randrange(len(self.batches))
        upserts, gone = self.batches[number]
        changes = rows_table({**upserts, **numbered_keys(gone)})
        words = pa.array(["u"] * len(upserts) + ["d"] * len(gone))
        batch = ("feed", number)
        self.grid.load("t", changes.append_column("op", words), mode="apply", operation="op", batch_id=batch)
        if is_new:
            self.rows = {key: values for key, values in {**self.rows, **upserts}.items() if key not in gone}

    def truncate(self) -> None:
        if self.random.random() < 0.3:
            self.grid.sql("TRUNCATE TABLE t")
            self.rows = {}

    def vacuum(self) -> None:
        self.grid.sql("VACUUM t")

    def check_versions(self) -> None:
        """Each version has the rows of then, and the changes between two are their difference."""
        kept = [row[0] for row in self.grid.sql("SHOW VERSIONS t").fetchall() if row[0] in self.versions]
        for version in kept:
            found = self.grid.sql(f"SELECT id, v, s FROM t FOR VERSION AS OF {version}").fetchall()
            assert {key: tuple(values) for key, *values in found} == self.versions[version]
        for _ in range(min(3, len(kept))):
            since, until = sorted(self.random.choices(kept, k=2))
            fed = self.grid.changes("t", since, until).read_all().to_pylist()
            found = sorted((row["_change_type"], row["id"], row["v"], row["s"]) for row in fed)
            assert found == changes_between(self.versions[since], self.versions[until])

    def replace(self) -> None:
        self.rows = self.fresh(self.keys(150))
        self.grid.load("t", rows_table(self.rows), mode="replace")

    def delete(self) -> None:
        gone = self.keys(self.random.choice((5, 80)))
        self.grid.sql("DELETE FROM t WHERE id IN (?)", gone)
        self.rows = {key: values for key, values in self.rows.items() if key not in gone}

    def checkpoint(self) -> None:
        self.grid.checkpoint()

    def optimize(self) -> None:
        self.grid.sql("OPTIMIZE t")
        found = store_of(self.grid)
        assert all(len(each.deleted) == 0 for each in found.stored)
        cuts = cuts_of(found.stored, found.definition.partitions)
        if cuts:
            assert all(each.group is not None for each in found.stored)

    def index(self) -> None:
        self.grid.sql("DROP INDEX t_v")
        self.grid.sql("CREATE INDEX t_v ON t (v)")

    def reopen(self) -> None:
        self.grid.close()
        self.grid = remuda.open(self.path, durability="os")

    def restore(self) -> None:
        kept = [row[0] for row in self.grid.sql("SHOW VERSIONS t").fetchall()]
        version = self.random.choice([each for each in kept if each in self.versions] or [0])
        if version:
            self.grid.sql(f"RESTORE TABLE t TO VERSION {version}")
            self.rows = dict(self.versions[version])

    def die(self) -> None:
        """Go on with a copy of the folder: what a process that is killed leaves."""
        assert self.path is not None
        copy = self.path.with_name(f"{self.path.name}+")
        shutil.copytree(self.path, copy)
        self.grid.close()
        self.path = copy
        self.grid = remuda.open(copy, durability="os")


SEEDS = [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 30))]


@pytest.mark.parametrize("opened", [0, 16], ids=["opened when read", "opened at once"])
@pytest.mark.parametrize("group_bytes", [1_000, 512 << 20], ids=["many groups", "one group"])
@pytest.mark.parametrize("in_folder", [True, False], ids=["folder", "memory"])
@pytest.mark.parametrize("seed", SEEDS)
def test_random_changes_agree_with_a_model(
    tmp_path: Path, seed: int, in_folder: bool, group_bytes: int, opened: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in ((partition_groups, "MOST_OPENED"), (point_lookup, "MOST_OPENED"), (snapshot, "MOST_ASKED")):
        monkeypatch.setattr(module, name, opened)
    monkeypatch.setattr(segment_cut, "GROUP_BYTES", group_bytes)
    monkeypatch.setattr(map_load, "SMALL_LOAD", 100)
    monkeypatch.setattr(group_compaction, "MOST_SEGMENTS", 3)
    monkeypatch.setattr(kept_versions, "DEFAULT_RETENTION", 3600)
    monkeypatch.setattr(kept_versions, "MOST_VERSIONS", 8)
    history = History(tmp_path / "shop" if in_folder else None, seed)
    for _ in range(14):
        history.step()
        check_rows(history.grid, history.rows)
    if in_folder:
        history.check_versions()
        assert [row.status for row in history.grid.sql("CHECK TABLE t")] == ["ok"]
    history.grid.close()


def test_a_map_that_grows_is_split_between_partitions(tmp_path: Path, tiny: int) -> None:
    with created(tmp_path) as grid:
        rows: Rows = {}
        for start in range(0, 1200, 300):
            fresh = numbered(start, start + 300)
            grid.load("t", rows_table(fresh))
            rows.update(fresh)
        grid.sql("OPTIMIZE t")
        check_rows(grid, rows)
        groups = groups_in(tmp_path)
        assert len(groups) > 4
        assert [one.end for one in groups[:-1]] == [other.first for other in groups[1:]]
        assert (groups[0].first, groups[-1].end) == (0, 16)
        for each in store_of(grid).stored:
            one_partition = each.segment.first_partition == each.segment.last_partition
            assert one_partition or group_split.live_bytes(each) <= tiny
    for read_only in (True, False):
        with remuda.open(tmp_path, read_only=read_only) as grid:
            check_rows(grid, rows)
            check_structure(store_of(grid))


def test_a_small_map_is_one_group(tmp_path: Path) -> None:
    with created(tmp_path) as grid:
        grid.load("t", rows_table(numbered(0, 20_000)))
        grid.load("t", rows_table(numbered(20_000, 40_000)))
        (group,) = groups_in(tmp_path)
        assert (group.first, group.end, group.segments) == (0, 16, 2)
        assert [each.group for each in store_of(grid).stored] == [None, None]
        grid.sql("OPTIMIZE t")
        assert groups_in(tmp_path)[0].segments == 1
        check_rows(grid, numbered(0, 40_000))


def test_a_commit_writes_the_groups_that_it_changed(tmp_path: Path, tiny: int) -> None:
    with created(tmp_path) as grid:
        grid.load("t", rows_table(numbered(0, 1200)))
        before = groups_in(tmp_path)
        assert len(before) > 4
        grid.sql("UPDATE t SET v = -1 WHERE id = 5")
        grid.checkpoint()
        changed = set(groups_in(tmp_path)) - set(before)
        # The group whose row is deleted, and the group that has the new row.
        assert len(changed) == 1
        (group,) = changed
        partition = store_of(grid).state.version.partition_of_key(5, store_of(grid).state.version.key_hash(5))
        assert group.first <= partition < group.end
        grid.sql("UPDATE t SET v = -2 WHERE id < 20")
        grid.checkpoint()
        runs = groups_in(tmp_path)[0]
        assert (runs.first, runs.end, runs.segments) == (0, 16, 1)
        check_rows(grid, {key: (-2, text) if key < 20 else (v, text) for key, (v, text) in numbered(0, 1200).items()})


def test_runs_are_folded_once_they_are_worth_it(tmp_path: Path, tiny: int) -> None:
    with created(tmp_path) as grid:
        rows = numbered(0, 1200)
        grid.load("t", rows_table(rows))
        assert all(each.group is not None for each in store_of(grid).stored)
        seen = set()
        for number in range(14):
            fresh = numbered(number * 10, number * 10 + 10, 1)
            grid.load("t", rows_table(fresh), mode="upsert")
            rows.update(fresh)
            found = store_of(grid)
            runs = [each for each in found.stored if each.group is None]
            seen.add(len(runs))
            size = sum(map(group_split.live_bytes, runs))
            folded = (
                segment_cut.FOLDED_SHARE * tiny * (1 + len(cuts_of(found.stored, 16)))
                + group_compaction.MERGED_GROUPS * tiny
            )
            assert size <= folded + tiny
            check_structure(found)
        check_rows(grid, rows)
        assert {0, 1, 2} <= seen


def test_a_group_of_one_partition_stays_whatever_its_size(tmp_path: Path, tiny: int) -> None:
    with remuda.open(tmp_path) as grid:
        grid.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT, s VARCHAR) WITH (partitions = 2)")
        for start in range(0, 1000, 250):
            grid.load("t", rows_table(numbered(start, start + 250)))
        assert {(each.first, each.end) for each in groups_in(tmp_path)} <= {(0, 1), (1, 2)}
        grid.sql("OPTIMIZE t")
        check_rows(grid, numbered(0, 1000))


def test_groups_that_have_shrunk_are_joined(tmp_path: Path, tiny: int) -> None:
    with created(tmp_path) as grid:
        grid.load("t", rows_table(numbered(0, 1200)))
        assert len(groups_in(tmp_path)) > 4
        grid.sql("DELETE FROM t WHERE id >= 20")
        grid.sql("OPTIMIZE t")
        assert [(each.first, each.end) for each in groups_in(tmp_path)] == [(0, 16)]
        check_rows(grid, numbered(0, 20))
        grid.sql("TRUNCATE TABLE t")
        grid.sql("OPTIMIZE t")
        assert groups_in(tmp_path) == ()


STEPS = (
    (os, "fsync"),
    (partition_groups, "write_group"),
    (manifest, "replace_manifest"),
    (store_folder, "write_manifest"),
)


def optimize_and_die(folder: Path, step: int) -> bool:
    """Optimize in a process that is killed at its n-th step. Return False where it has fewer."""
    child = os.fork()
    if child == 0:
        grid = remuda.open(folder, durability="os")
        steps = 0

        def killing(call: Any) -> Any:
            def killed(*given: Any, **named: Any) -> Any:
                nonlocal steps
                steps += 1
                if steps == step:
                    os._exit(7)
                return call(*given, **named)

            return killed

        for module, name in STEPS:
            setattr(module, name, killing(getattr(module, name)))
        grid.sql("OPTIMIZE t")
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_crash_while_groups_are_split_leaves_every_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(map_load, "SMALL_LOAD", 0)
    with created(tmp_path / "shop") as grid:
        for start in range(0, 600, 100):
            grid.load("t", rows_table(numbered(start, start + 100)))
    monkeypatch.setattr(segment_cut, "GROUP_BYTES", 4_000)
    counts, step = set(), 1
    while True:
        copy = tmp_path / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(tmp_path / "shop", copy)
        if not optimize_and_die(copy, step):
            break
        counts.add(len(groups_in(copy)))
        with remuda.open(copy, durability="os") as grid:
            check_rows(grid, numbered(0, 600))
            assert [row.status for row in grid.sql("CHECK TABLE t")] == ["ok"]
        step += 9
    assert min(counts) == 1
    assert step > 20


def test_groups_that_make_no_sense_are_refused(tmp_path: Path, tiny: int) -> None:
    with created(tmp_path) as grid:
        grid.load("t", rows_table(numbered(0, 1200)))
    root = read_manifest(tmp_path)
    (entry,) = root.maps
    one, other, *_ = entry.groups
    runs = GroupRef("0123456789abcdef", 0, 16, 0, 0, 0, 0, 0)
    check_groups((runs, *entry.groups), 16)
    for wrong in ((runs, runs, *entry.groups), (one, runs), (other, one)):
        with pytest.raises(ValueError, match="two groups"):
            check_groups(wrong, 16)
    folder = tmp_path / "maps" / entry.id
    moved, raw = encode_group(other.first, other.end, read_group(folder, one))
    write_group(folder, moved, raw)
    write_manifest(tmp_path, replace(root, maps=[replace(entry, groups=(one, moved, *entry.groups[2:]))]))
    with remuda.open(tmp_path, read_only=True) as grid, pytest.raises(StorageError, match="partitions from"):
        grid.sql("SELECT COUNT(*) FROM t").fetchall()
