"""The changes between two versions, beside the difference of two plain dictionaries."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import remuda
from remuda.errors import SqlError
from remuda.grid import Grid
from remuda.storage.folder import kept_versions

Rows = dict[tuple[int, str], tuple[Any, ...]]
TYPES = "k BIGINT, t VARCHAR, v DOUBLE, w VARCHAR, d DECIMAL(9, 2), b BOOLEAN, m TIMESTAMP, j JSON"


@pytest.fixture(autouse=True)
def with_versions(monkeypatch: pytest.MonkeyPatch, without_versions: None) -> None:
    monkeypatch.setattr(kept_versions, "DEFAULT_RETENTION", 3600)


def newest(grid: Grid) -> int:
    return max(row.version for row in grid.sql("SHOW VERSIONS"))


def feed(grid: Grid, since: int, until: int | None = None) -> list[tuple[str, tuple[Any, ...]]]:
    found = []
    for row in grid.changes("t", since, until).read_all().to_pylist():
        *values, word, version, _ = row.values()
        assert version == (newest(grid) if until is None else until)
        found.append((word, tuple(values)))
    return sorted(found, key=repr)


def difference(before: Rows, after: Rows) -> list[tuple[str, tuple[Any, ...]]]:
    found = []
    for key in before.keys() | after.keys():
        old, new = before.get(key), after.get(key)
        if old is None and new is not None:
            found.append(("insert", (*key, *new)))
        elif new is None and old is not None:
            found.append(("delete", (*key, *old)))
        elif repr(old) != repr(new):
            found += [("update_preimage", (*key, *(old or ()))), ("update_postimage", (*key, *(new or ())))]
    return sorted(found, key=repr)


def rows_of(grid: Grid) -> Rows:
    """As Arrow gives them: NaN and intervals come as in the feed."""
    table = pa.table(grid.sql("SELECT * FROM t"))
    return {(row["k"], row["t"]): tuple(row.values())[2:] for row in table.to_pylist()}


def write(grid: Grid, draw: random.Random) -> None:
    choices = {
        "v": ["NULL", "1.5", "0.0", "CAST('-0.0' AS DOUBLE)", "CAST('NaN' AS DOUBLE)"],
        "w": ["NULL", "CHR(65)"],
        "d": ["NULL", "2.50"],
        "b": ["NULL", "TRUE", "FALSE"],
        "m": ["NULL", "TIMESTAMP '2024-01-01 00:00:00'"],
        "j": ["NULL", "'[1]'"],
    }
    for _ in range(draw.randrange(1, 12)):
        values = ", ".join(draw.choice(each) for each in choices.values())
        grid.sql(f"SINK INTO t VALUES ({draw.randrange(9)}, '{draw.choice(['a', 'ä', ''])}', {values})")
    grid.sql("DELETE FROM t WHERE k = ?", draw.randrange(9))


@pytest.mark.parametrize("seed", range(3))
def test_changes_are_the_difference_of_two_versions(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    with remuda.open(tmp_path / "shop", durability="os", partitions=5) as grid:
        grid.sql(f"CREATE TABLE t ({TYPES}, PRIMARY KEY (k, t)) WITH (retention = '1 day')")
        versions: dict[int, Rows] = {newest(grid): {}}
        for _ in range(10):
            match draw.choice(["write", "write", "write", "load", "index", "restore", "truncate"]):
                case "write":
                    write(grid, draw)
                case "load":
                    keys = {"k": list(range(5)), "t": ["a"] * 5, "v": [draw.random()] * 5}
                    grid.load("t", pa.table(keys), mode="upsert", missing="null")
                case "index":
                    grid.sql(f"CREATE INDEX i{draw.random() * 1e9:.0f} ON t (v)")
                case "restore":
                    grid.sql(f"RESTORE TABLE t TO VERSION {draw.choice(list(versions))}")
                case "truncate":
                    grid.sql("TRUNCATE TABLE t")
            grid.checkpoint()
            versions[newest(grid)] = rows_of(grid)
        for _ in range(25):
            since, until = sorted(draw.choices(list(versions), k=2))
            assert repr(feed(grid, since, until)) == repr(difference(versions[since], versions[until]))
        assert repr(feed(grid, 0)) == repr(difference({}, versions[newest(grid)]))


def test_only_segments_that_differ_are_compared(tmp_path: Path) -> None:
    with remuda.open(tmp_path / "shop") as grid:
        grid.load("t", pa.table({"id": list(range(50_000)), "v": [1] * 50_000}), key="id")
        since = newest(grid)
        grid.sql("UPDATE t SET v = 2 WHERE id < 3")
        grid.checkpoint()
        definition = grid.store.map(grid.map("t")._definition).definition
        assert grid.store.history.changes(definition, since).most_rows == 6
        assert grid.changes("t", since).read_all().num_rows == 6


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE t (id BIGINT PRIMARY KEY)")
        with pytest.raises(SqlError, match="versions need a folder"):
            grid.changes("t")
    with remuda.open(tmp_path / "shop") as grid:
        grid.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT)")
        first = newest(grid)
        with pytest.raises(SqlError, match=f"since is 0 or a version up to {first}, not 99"):
            grid.changes("t", 99)
        with pytest.raises(SqlError, match="since is the number of a version, not '1'"):
            grid.changes("t", "1")  # type: ignore[arg-type]
        with pytest.raises(SqlError, match="unknown table: s"):
            grid.changes("s")
        grid.sql("DROP TABLE t")
        grid.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, w BIGINT)")
        with pytest.raises(SqlError, match=f"the table t of version {first} was dropped"):
            grid.changes("t", first)
        grid.sql("CREATE TABLE feed (id BIGINT PRIMARY KEY, _change_type VARCHAR)")
        with pytest.raises(SqlError, match="feed has a column _change_type"):
            grid.changes("feed")
        grid.sql("CREATE TABLE late (id BIGINT PRIMARY KEY)")
        grid.sql("INSERT INTO late VALUES (1)")
        grid.checkpoint()
        assert grid.changes("late", first).read_all().column("_change_type").to_pylist() == ["insert"]


def test_a_map_without_a_key_has_changes_too(tmp_path: Path) -> None:
    with remuda.open(tmp_path / "shop") as grid:
        grid.sql("CREATE TABLE t (v BIGINT)")
        grid.sql("INSERT INTO t VALUES (1), (1), (2)")
        grid.checkpoint()
        since = newest(grid)
        grid.sql("DELETE FROM t WHERE v = 2")
        grid.sql("INSERT INTO t VALUES (3)")
        grid.checkpoint()
        assert feed(grid, 0, since) == [("insert", (1,)), ("insert", (1,)), ("insert", (2,))]
        assert feed(grid, since) == [("delete", (2,)), ("insert", (3,))]
