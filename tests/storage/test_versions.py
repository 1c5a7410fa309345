"""Versions: committed roots that are kept, read, restored and given up."""

from __future__ import annotations

import errno
import os
import random
import shutil
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import remuda
from remuda.errors import SqlError, StorageError
from remuda.grid import Grid
from remuda.storage.commit.store_writer import StoreWriter
from remuda.storage.folder import kept_versions, manifest, store_folder
from remuda.storage.folder.manifest import decode_manifest
from remuda.storage.folder.partition_groups import PartitionGroups

Rows = dict[int, int]


@pytest.fixture(autouse=True)
def with_versions(monkeypatch: pytest.MonkeyPatch, without_versions: None) -> None:
    monkeypatch.setattr(kept_versions, "DEFAULT_RETENTION", 3600)


def newest(grid: Grid) -> int:
    (found,) = [row.version for row in grid.sql("SHOW VERSIONS") if row.newest]
    return int(found)


def rows_of(grid: Grid, version: int | None = None) -> Rows:
    if version is None:
        return dict(grid.sql("SELECT id, v FROM t").fetchall())
    return dict(grid.sql("SELECT id, v FROM t FOR VERSION AS OF ?", version).fetchall())


def created(folder: Path, options: str = "") -> Grid:
    grid = remuda.open(folder, durability="os")
    grid.sql(f"CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT) {options}")
    return grid


def committed(grid: Grid, statement: str) -> int:
    grid.sql(statement)
    grid.checkpoint()
    return newest(grid)


def files_of(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.glob("maps/*/*")}


def named_files(folder: Path) -> set[str]:
    """What the roots of all versions name."""
    roots = [folder / "MANIFEST", *folder.glob("versions/*.root")]
    groups = PartitionGroups(folder)
    return {name for path in roots for name, _ in groups.named_files(decode_manifest(path.read_bytes(), path))}


class Model:
    """A table, and what each of its versions had, beside a plain dictionary for each."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.grid = created(folder)
        self.random = random.Random(seed)
        self.rows: Rows = {}
        self.saved: Rows = {}
        """What the newest version has: all but what is in the log."""
        self.versions: dict[int, Rows] = {}
        self.indexed = False
        self.note()

    def note(self) -> None:
        for row in self.grid.sql("SHOW VERSIONS"):
            self.versions.setdefault(row.version, dict(self.saved))

    def step(self) -> None:
        kind = self.random.choice(["write", "write", "write", "checkpoint", "load", "index", "restore", "reopen"])
        getattr(self, kind)()
        self.note()

    def keys(self, count: int) -> list[int]:
        return self.random.sample(range(60), count)

    def write(self) -> None:
        value = self.random.randrange(1000)
        for key in self.keys(8):
            self.grid.sql("SINK INTO t VALUES (?, ?)", key, value)
            self.rows[key] = value
        gone = self.keys(3)
        self.grid.sql("DELETE FROM t WHERE id IN (?)", gone)
        for key in gone:
            self.rows.pop(key, None)

    def checkpoint(self) -> None:
        self.grid.checkpoint()
        self.saved = dict(self.rows)

    def load(self) -> None:
        self.checkpoint()
        self.note()
        value, keys = self.random.randrange(1000), [*self.keys(20), *range(1000, 1000 + 12_000)]
        mode = self.random.choice(["upsert", "replace"])
        self.grid.load("t", pa.table({"id": keys, "v": [value] * len(keys)}), mode=mode)
        self.rows = {**({} if mode == "replace" else self.rows), **dict.fromkeys(keys, value)}
        self.saved = dict(self.rows)

    def index(self) -> None:
        self.grid.sql("DROP INDEX t_v" if self.indexed else "CREATE INDEX t_v ON t (v)")
        self.indexed = not self.indexed

    def restore(self) -> None:
        version = self.random.choice([row.version for row in self.grid.sql("SHOW VERSIONS t")])
        self.grid.sql(f"RESTORE TABLE t TO VERSION {version}")
        self.rows = dict(self.versions[version])
        self.saved = dict(self.rows)

    def reopen(self) -> None:
        self.grid.close()
        self.grid = remuda.open(self.folder, durability="os")

    def check(self) -> None:
        assert rows_of(self.grid) == self.rows
        assert named_files(self.folder) <= files_of(self.folder)
        for row in self.grid.sql("SHOW VERSIONS t").fetchall():
            expected = self.versions[row.version]
            assert rows_of(self.grid, row.version) == expected
            key = self.random.choice([*expected, 77])
            point = "SELECT v FROM t FOR VERSION AS OF ? WHERE id = ?"
            found = [(expected[key],)] if key in expected else []
            assert self.grid.sql(point, row.version, key).fetchall() == found
            value = self.random.choice([*expected.values(), 5])
            equal = "SELECT COUNT(*) FROM t FOR VERSION AS OF ? WHERE v = ?"
            count = sum(each == value for each in expected.values())
            assert self.grid.sql(equal, row.version, value).fetchall() == [(count,)]


@pytest.mark.parametrize("seed", range(4))
def test_versions_have_what_was_committed(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_versions, "MOST_VERSIONS", 6)
    model = Model(tmp_path / "shop", seed)
    for number in range(24):
        model.step()
        if number % 6 == 5:
            model.check()
            assert len(list((tmp_path / "shop" / "versions").iterdir())) <= 6
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now + 3601 * 10**9)
    model.grid.sql("VACUUM t")
    model.grid.close()
    with remuda.open(tmp_path / "shop") as grid:
        grid.sql("VACUUM")
        assert [row.newest for row in grid.sql("SHOW VERSIONS")] == [True]
        assert rows_of(grid) == model.rows
    assert not list((tmp_path / "shop" / "versions").iterdir())
    assert files_of(tmp_path / "shop") == named_files(tmp_path / "shop")


STEPS = ((os, "fsync"), (os, "link"), (manifest, "replace_manifest"), (store_folder, "write_manifest"))


def change_and_die(folder: Path, version: int, step: int) -> bool:
    """Commit a load, a checkpoint and a restore, in a process that is killed at its n-th step."""
    child = os.fork()
    if child == 0:
        grid = remuda.open(folder)
        steps = 0

        def count() -> None:
            nonlocal steps
            steps += 1
            if steps == step:
                os._exit(7)

        def killing(call: Any) -> Any:
            def killed(*given: Any, **named: Any) -> Any:
                count()
                answer = call(*given, **named)
                count()
                return answer

            return killed

        for module, name in STEPS:
            setattr(module, name, killing(getattr(module, name)))
        grid.sql("UPDATE t SET v = 3")
        grid.checkpoint()
        grid.sql(f"RESTORE TABLE t TO VERSION {version}")
        grid.sql("VACUUM")
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_crash_leaves_all_versions(tmp_path: Path) -> None:
    with created(tmp_path / "shop") as grid:
        versions = {committed(grid, f"SINK INTO t SELECT i, {v} FROM range(50) AS r(i)"): v for v in (1, 2)}
    states = set()
    step = 1
    while True:
        copy = tmp_path / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(tmp_path / "shop", copy)
        if not change_and_die(copy, min(versions), step):
            break
        with remuda.open(copy) as grid:
            (value,) = set(rows_of(grid).values())
            states.add(value)
            for version, expected in versions.items():
                assert set(rows_of(grid, version).values()) == {expected}
            grid.sql(f"RESTORE TABLE t TO VERSION {max(versions)}")
            assert set(rows_of(grid).values()) == {2}
            assert [row.status for row in grid.sql("CHECK TABLE")] == ["ok"]
        step += 3
    assert states == {1, 2, 3}
    assert step > 30


def test_queries_of_all_kinds_read_versions(tmp_path: Path) -> None:
    with created(tmp_path) as grid:
        grid.sql("CREATE INDEX t_v ON t (v)")
        one = committed(grid, "INSERT INTO t SELECT i, i FROM range(100) AS r(i)")
        two = committed(grid, "UPDATE t SET v = v + 1000 WHERE id < 50")
        grid.sql("DELETE FROM t WHERE id = 7")  # in the log alone
        assert newest(grid) == two
        joined = "SELECT a.v, b.v FROM t FOR VERSION AS OF {} AS a JOIN t FOR VERSION AS OF {} AS b ON a.id = b.id"
        where = " WHERE a.id = 7"
        assert grid.sql(joined.format(one, two) + where).fetchall() == [(7, 1007)]
        assert grid.sql(joined.format("?", "?") + " WHERE a.id = ?", two, one, 7).fetchall() == [(1007, 7)]
        lost = "SELECT COUNT(*) FROM t FOR VERSION AS OF ? a LEFT JOIN t ON a.id = t.id WHERE t.id IS NULL"
        assert grid.sql(lost, two).fetchall() == [(1,)]
        within = f"SELECT COUNT(*) FROM t WHERE v NOT IN (SELECT v FROM t FOR VERSION AS OF {one})"
        assert grid.sql(within).fetchall() == [(49,)]
        grid.sql(f"CREATE VIEW before AS SELECT * FROM t FOR VERSION AS OF {one}")
        assert grid.sql("SELECT SUM(v) FROM before").fetchall() == [(4950,)]
        with_ = f"WITH p AS (SELECT * FROM t FOR VERSION AS OF {one}) SELECT COUNT(*) FROM p, p AS q WHERE p.id = q.v"
        assert grid.sql(with_).fetchall() == [(100,)]
        grid.sql("CREATE TABLE kept (PRIMARY KEY (id)) AS SELECT * FROM t FOR VERSION AS OF ?", one)
        assert grid.sql("SELECT SUM(v) FROM kept").fetchall() == [(4950,)]
        plan = str(grid.explain("SELECT id FROM t FOR VERSION AS OF ? WHERE v = 1007", two))
        assert "IndexScan" in plan
        assert grid.sql("SELECT id FROM t FOR VERSION AS OF ? WHERE v = 1007", two).fetchall() == [(7,)]
        for words in ("FOR VERSION AS OF", "VERSION AS OF"):
            text = f"SELECT v FROM t {words} ? WHERE id = 7"
            for version, expected in ((one, 7), (two, 1007), (one, 7)):
                assert grid.sql(text, version).fetchall() == [(expected,)]
        assert not [row for row in grid.sql("SHOW PLANS") if "VERSION AS OF" in row.sql]
        with remuda.open(tmp_path, read_only=True) as reader:
            assert rows_of(reader, one) == {number: number for number in range(100)}
            assert 7 not in rows_of(reader)
            with pytest.raises(StorageError, match="reading only"):
                reader.sql(f"RESTORE TABLE t TO VERSION {one}")


def test_a_moment_means_the_version_of_then(tmp_path: Path) -> None:
    with created(tmp_path) as grid:
        moments = {}
        for value in (1, 2, 3):
            committed(grid, f"SINK INTO t VALUES (1, {value})")
            time.sleep(0.002)
            moments[value] = datetime.now(UTC)
            time.sleep(0.002)
        for value, moment in moments.items():
            text = "SELECT v FROM t FOR TIMESTAMP AS OF {}"
            assert grid.sql(text.format("?"), moment).fetchall() == [(value,)]
            assert grid.sql(text.format(f"'{moment.isoformat()}'")).fetchall() == [(value,)]
            assert grid.sql(text.format(f"TIMESTAMP WITH TIME ZONE '{moment.isoformat()}'")).fetchall() == [(value,)]
        with pytest.raises(SqlError, match="there is no version of 2001-01-01"):
            grid.sql("SELECT * FROM t FOR TIMESTAMP AS OF '2001-01-01'")
        future = datetime.now(UTC) + timedelta(days=1)
        query = "SELECT v FROM t FOR TIMESTAMP AS OF ?"
        assert grid.sql(query, future).fetchall() == [(3,)]
        committed(grid, "SINK INTO t VALUES (1, 4)")
        assert grid.sql(query, future).fetchall() == [(4,)]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT * FROM t FOR VERSION AS OF 99", "there is no version 99: there are the versions 1, 2, 3"),
        ("SELECT * FROM t FOR VERSION AS OF -1", "there is no version -1"),
        ("SELECT * FROM t FOR VERSION AS OF 1", "version 1 has no table t"),
        ("SELECT * FROM u FOR VERSION AS OF 2", "version 2 has no table u"),
        ("SELECT * FROM w FOR VERSION AS OF 2", "w is a view"),
        ("SELECT * FROM t FOR VERSION AS OF NULL", "not NULL"),
        ("SELECT * FROM t FOR VERSION AS OF 'x'", "not a value of type BIGINT"),
        ("SELECT * FROM t FOR VERSION AS OF (SELECT 2)", "a constant or a parameter"),
        ("SELECT * FROM t FOR TIMESTAMP AS OF now()", "a constant or a parameter"),
        ("SELECT * FROM t FOR VERSION AS OF id", "a constant or a parameter"),
        ("SELECT * FROM t FOR VERSION BETWEEN 1 AND 2", "not supported"),
        ("SELECT * FROM t FOR VERSION ALL", "not supported"),
        ("UPDATE t FOR VERSION AS OF 2 SET v = 1", "not supported"),
        ("DELETE FROM t FOR VERSION AS OF 2", "not supported"),
        ("SELECT * FROM t FOR VERSION AS OF ?", "parameter"),
        ("RESTORE TABLE t TO VERSION 99", "there is no version 99"),
        ("RESTORE TABLE t TO VERSION 1", "version 1 has no table t"),
        ("RESTORE TABLE u TO VERSION 1", "unknown table: u"),
        ("RESTORE TABLE t TO 1", "expected TO VERSION"),
        ("VACUUM u", "unknown table: u"),
        ("SHOW VERSIONS u", "unknown table: u"),
        ("CREATE TABLE u (id BIGINT PRIMARY KEY) WITH (retention = 'soon')", "not an INTERVAL"),
        ("CREATE TABLE u (id BIGINT PRIMARY KEY) WITH (retention = '1 month')", "versions are kept for"),
        ("CREATE TABLE u (id BIGINT PRIMARY KEY) WITH (retention = '-1 day')", "versions are kept for"),
        ("CREATE TABLE u (id BIGINT PRIMARY KEY) WITH (retention = 3)", "expected an interval"),
    ],
)
def test_what_is_no_version_is_refused(tmp_path: Path, query: str, message: str) -> None:
    with created(tmp_path) as grid:
        grid.sql("CREATE VIEW w AS SELECT * FROM t")
        with pytest.raises(SqlError, match=message):
            grid.sql(query)


def test_a_store_in_memory_has_no_versions() -> None:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE t (id BIGINT PRIMARY KEY)")
        for statement in ("SELECT * FROM t FOR VERSION AS OF 1", "SHOW VERSIONS", "RESTORE TABLE t TO VERSION 1"):
            with pytest.raises(SqlError, match="versions need a folder"):
                grid.sql(statement)
        grid.sql("VACUUM t")


def test_tables_that_were_dropped_or_made_again(tmp_path: Path) -> None:
    with created(tmp_path) as grid:
        one = committed(grid, "INSERT INTO t VALUES (1, 10)")
        grid.sql("DROP TABLE t")
        assert rows_of(grid, one) == {1: 10}
        grid.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT)")
        two = committed(grid, "INSERT INTO t VALUES (2, 20)")
        assert rows_of(grid, one) == {1: 10}
        assert rows_of(grid, two) == {2: 20}
        with pytest.raises(SqlError, match=f"the table t of version {one} was dropped"):
            grid.sql(f"RESTORE TABLE t TO VERSION {one}")
        grid.sql("CREATE OR REPLACE TABLE t (PRIMARY KEY (id)) AS SELECT * FROM t FOR VERSION AS OF ?", one)
        assert rows_of(grid) == {1: 10}


def test_a_table_that_is_dropped_before_it_is_restored_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = StoreWriter.begin_change
    with created(tmp_path) as grid:
        one = committed(grid, "INSERT INTO t VALUES (1, 10)")
        tables = ["t"]

        def drop_first(writer: StoreWriter) -> None:
            if tables:
                grid.sql(f"DROP TABLE {tables.pop()}")
            begin(writer)

        monkeypatch.setattr(StoreWriter, "begin_change", drop_first)
        with pytest.raises(SqlError, match="was dropped"):
            grid.sql(f"RESTORE TABLE t TO VERSION {one}")
        assert files_of(tmp_path) == named_files(tmp_path)


def test_a_restored_table_has_the_indexes_of_now(tmp_path: Path) -> None:
    with created(tmp_path) as grid:
        grid.sql("CREATE INDEX t_v ON t (v)")
        one = committed(grid, "INSERT INTO t SELECT i, i % 10 FROM range(1000) AS r(i)")
        one = committed(grid, "DELETE FROM t WHERE id < 10")
        grid.sql("DROP INDEX t_v")
        grid.sql("CREATE INDEX t_hash ON t (v) TYPE HASH")
        committed(grid, "DELETE FROM t WHERE id < 500")
        grid.sql("INSERT INTO t VALUES (5, 5)")
        grid.sql(f"RESTORE TABLE t TO VERSION {one}")
        expected = {number: number % 10 for number in range(10, 1000)}
    for read_only in (False, True, False):
        with remuda.open(tmp_path, read_only=read_only) as grid:
            assert rows_of(grid) == expected
            assert grid.map("t").get(5) is None
            query = "SELECT COUNT(*) FROM t WHERE v = 3"
            assert "t_hash" in str(grid.explain(query))
            assert grid.sql(query).fetchall() == [(99,)]
            assert rows_of(grid, one) == expected


def test_retentions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time_ns()
    seconds = 0
    monkeypatch.setattr(time, "time_ns", lambda: now + seconds * 10**9)
    with created(tmp_path, "WITH (retention = '1 day')") as grid:
        one = committed(grid, "INSERT INTO t VALUES (1, 1)")
        seconds = 10
        two = committed(grid, "INSERT INTO t VALUES (2, 2)")
        monkeypatch.setattr(kept_versions, "MOST_VERSIONS", 0)
        seconds = 24 * 3600
        grid.sql("VACUUM t")
        assert rows_of(grid, one) == {1: 1}
    with remuda.open(tmp_path) as grid:
        seconds = 24 * 3600 + 11
        grid.sql("VACUUM t")
        with pytest.raises(SqlError, match=f"no version {one}: there are the versions {two}, the first one of"):
            rows_of(grid, one)
        assert rows_of(grid, two) == {1: 1, 2: 2}
        grid.sql("CREATE TABLE never (id BIGINT PRIMARY KEY) WITH (retention = '0 seconds')")


def test_a_clock_that_was_ahead_for_a_time_ends_no_version_early_and_keeps_none_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, seconds = time.time_ns(), 0
    monkeypatch.setattr(time, "time_ns", lambda: now + seconds * 10**9)
    with created(tmp_path, "WITH (retention = '1 day')") as grid:
        one = committed(grid, "INSERT INTO t VALUES (1, 1)")
        seconds = 10 * 365 * 24 * 3600
        two = committed(grid, "INSERT INTO t VALUES (2, 2)")
        seconds = 10
        three = committed(grid, "INSERT INTO t VALUES (3, 3)")
        seconds = 24 * 3600
        grid.sql("VACUUM")
        assert [row.version for row in grid.sql("SHOW VERSIONS")][-3:] == [one, two, three]
        seconds = 24 * 3600 + 10
        four = committed(grid, "INSERT INTO t VALUES (4, 4)")
        assert [row.version for row in grid.sql("SHOW VERSIONS")] == [three, four]
        seconds = 2 * 24 * 3600 + 10
        grid.sql("VACUUM")
        assert [row.version for row in grid.sql("SHOW VERSIONS")] == [four]
    assert files_of(tmp_path) == named_files(tmp_path)


def test_a_damaged_version_ends_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with created(tmp_path, "WITH (retention = '1 day')") as grid:
        one = committed(grid, "INSERT INTO t VALUES (1, 1)")
        two = committed(grid, "INSERT INTO t VALUES (2, 2)")
        committed(grid, "INSERT INTO t VALUES (3, 3)")
        three = committed(grid, "INSERT INTO t VALUES (4, 4)")
    (tmp_path / "versions" / f"{two:012d}.root").write_bytes(b"")
    monkeypatch.setattr(kept_versions, "MOST_VERSIONS", 0)
    with remuda.open(tmp_path) as grid:
        grid.load("t", pa.table({"id": [5], "v": [5]}), mode="replace")
        assert rows_of(grid, one) == {1: 1}
        assert len(rows_of(grid, three)) == 4


@pytest.mark.timeout(60)
def test_a_version_that_cannot_be_removed_stops_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_versions, "MOST_VERSIONS", 2)

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with created(tmp_path) as grid:
        with monkeypatch.context() as failing:
            failing.setattr(kept_versions, "remove_file", fail)
            for value in range(4):
                committed(grid, f"SINK INTO t VALUES (1, {value})")
        assert len(list((tmp_path / "versions").iterdir())) > 2
        committed(grid, "SINK INTO t VALUES (1, 9)")
        assert len(list((tmp_path / "versions").iterdir())) == 2


def test_versions_that_nobody_asked_for_make_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_versions, "SMALLEST_ROOM", 1)
    rows = pa.table({"id": range(20_000), "v": range(20_000)})
    with created(tmp_path) as grid:
        for _ in range(6):
            grid.load("t", rows, mode="replace")
        assert len(grid.sql("SHOW VERSIONS").fetchall()) <= 3
        taken = sum(path.stat().st_size for path in tmp_path.glob("maps/*/*.arrow"))
        (named,) = grid.store.map(grid.store.catalog.find_map("t", ("public",))).stored
        assert taken <= 3 * named.info.row_bytes
        del named
        monkeypatch.setattr(kept_versions, "_LEAST_FREE", 1.1)
        grid.load("t", rows, mode="replace")
        assert len(grid.sql("SHOW VERSIONS").fetchall()) == 1
        grid.sql("VACUUM")
        assert files_of(tmp_path) == named_files(tmp_path)


def test_no_log_is_kept_for_versions(tmp_path: Path) -> None:
    with created(tmp_path, "WITH (retention = '1 day')") as grid:
        for value in range(4):
            committed(grid, f"SINK INTO t VALUES (1, {value})")
        assert len(list((tmp_path / "versions").iterdir())) >= 4
        assert len(list((tmp_path / "wal").iterdir())) == 1
        with remuda.open(tmp_path, read_only=True) as reader:
            assert rows_of(reader) == {1: 3}
            grid.sql("SINK INTO t VALUES (1, 4)")
            log = set((tmp_path / "wal").iterdir())
            committed(grid, "SINK INTO t VALUES (1, 5)")
            assert log < set((tmp_path / "wal").iterdir())
        grid.sql("VACUUM")
        assert len(list((tmp_path / "wal").iterdir())) == 1


def test_a_load_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with created(tmp_path) as grid:
        committed(grid, "INSERT INTO t VALUES (1, 1)")
        before = files_of(tmp_path)
        with pytest.raises(SqlError):
            grid.load("t", pa.table({"id": [*range(2, 30_000), 1], "v": range(29_999)}))
        assert files_of(tmp_path) == before


def test_a_damaged_version_says_so_and_concerns_no_other(tmp_path: Path) -> None:
    with created(tmp_path) as grid:
        one = committed(grid, "INSERT INTO t VALUES (1, 1)")
        two = committed(grid, "INSERT INTO t VALUES (2, 2)")
    path = tmp_path / "versions" / f"{one:012d}.root"
    raw = path.read_bytes()
    path.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
    with remuda.open(tmp_path) as grid:
        with pytest.raises(StorageError, match=r"damaged.*versions/"):
            rows_of(grid, one)
        assert rows_of(grid, two) == rows_of(grid) == {1: 1, 2: 2}
        with pytest.raises(StorageError, match="damaged"):
            grid.sql("SHOW VERSIONS")
        grid.sql("INSERT INTO t VALUES (3, 3)")
        grid.checkpoint()
        assert rows_of(grid, two) == {1: 1, 2: 2}
