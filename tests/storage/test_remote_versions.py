"""Versions of stores on object stores: the roots that the retention keeps, read, listed and restored by any writer."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import fs

import remuda
from remuda.catalog import new_id
from remuda.errors import SqlError
from remuda.storage.load import segment_cut
from remuda.storage.remote import retention
from tests.storage.s3_server import BUCKET, s3_server

Open = Callable[..., Any]
Rows = dict[int, int]

CREATE = "CREATE TABLE t (id BIGINT, v BIGINT, PRIMARY KEY (id))"


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Opens one more grid of a store: a folder behind the interface of remote ones."""
    (tmp_path / "remote").mkdir()
    filesystem = fs.SubTreeFileSystem(str(tmp_path / "remote"), fs.LocalFileSystem())
    grids: list[Any] = []

    def open_one(**options: Any) -> Any:
        durability = {} if options.get("read_only") else {"durability": "none"}
        options = {"filesystem": filesystem, "cache": tmp_path / "cache", **durability, **options}
        grids.append(remuda.open("shop", **options))
        return grids[-1]

    yield open_one
    for grid in grids:
        if not grid.store.closed:
            grid.store.leave("the test is over")


def table_of(rows: Rows) -> pa.Table:
    return pa.table({"id": pa.array(list(rows), pa.int64()), "v": pa.array(list(rows.values()), pa.int64())})


def rows_of(grid: Any, version: int | None = None) -> Rows:
    suffix = "" if version is None else f" FOR VERSION AS OF {version}"
    return dict(grid.sql(f"SELECT id, v FROM t{suffix}").fetchall())


def changes_of(grid: Any, since: int, until: int) -> list[tuple[str, int, int]]:
    rows = grid.changes("t", since, until).read_all().to_pylist()
    return sorted((row["_change_type"], row["id"], row["v"]) for row in rows)


def model_changes(before: Rows, after: Rows) -> list[tuple[str, int, int]]:
    changed = [key for key in before.keys() & after.keys() if before[key] != after[key]]
    return sorted(
        [
            *(("insert", key, after[key]) for key in after.keys() - before.keys()),
            *(("delete", key, before[key]) for key in before.keys() - after.keys()),
            *(("update_preimage", key, before[key]) for key in changed),
            *(("update_postimage", key, after[key]) for key in changed),
        ]
    )


def newest(grid: Any) -> int:
    return int(grid.sql("SHOW VERSIONS").fetchall()[-1][0])


@pytest.mark.parametrize("group_bytes", [500, 512 << 20], ids=["many groups", "one group"])
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 20))])
def test_versions_of_several_writers_agree_with_a_model(
    opened: Open, seed: int, group_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_cut, "GROUP_BYTES", group_bytes)
    random_ = random.Random(seed)
    writers = [opened(), opened()]
    writers[0].sql(CREATE)
    writers[1].refresh()
    rows: Rows = {}
    versions: dict[int, Rows] = {}
    for step in range(12):
        grid = random_.choice(writers)
        grid.refresh()
        keys = random_.sample(range(80), 30)
        match random_.choice(("upsert", "upsert", "replace", "delete", "restore", "optimize")):
            case "upsert" | "replace" as mode:
                grid.load("t", table_of(dict.fromkeys(keys, step)), mode=mode)
                rows = {**(rows if mode == "upsert" else {}), **dict.fromkeys(keys, step)}
            case "delete":
                grid.sql("DELETE FROM t WHERE id IN (?)", keys)
                grid.checkpoint()
                rows = {key: value for key, value in rows.items() if key not in keys}
            case "restore" if versions:
                version = random_.choice(sorted(versions))
                grid.sql(f"RESTORE TABLE t TO VERSION {version}")
                rows = dict(versions[version])
            case _:
                grid.sql("OPTIMIZE t")
        assert rows_of(grid) == rows
        versions[newest(grid)] = dict(rows)
    for grid in (*writers, opened(read_only=True)):
        if grid is not writers[0] and grid is not writers[1]:
            assert rows_of(grid) == rows
        for version, expected in versions.items():
            assert rows_of(grid, version) == expected
        since, until = sorted(random_.sample(sorted(versions), 2))
        assert changes_of(grid, since, until) == model_changes(versions[since], versions[until])


def test_versions_have_numbers_and_times(opened: Open) -> None:
    grid = opened()
    grid.sql(CREATE)
    grid.load("t", table_of({1: 1}))
    one = newest(grid)
    moment = datetime.now(UTC)
    grid.load("t", table_of({2: 2}))
    grid.sql("CREATE TABLE u (id BIGINT PRIMARY KEY)")
    shown = grid.sql("SHOW VERSIONS").fetchall()
    assert [row[3] for row in shown][-3:] == ["t", "t", "u"]
    assert [row[2] for row in shown][-1] is True
    assert rows_of(grid, one) == {1: 1}
    found = grid.sql("SELECT id, v FROM t FOR TIMESTAMP AS OF ?", moment).fetchall()
    assert found == [(1, 1)]
    assert [row[0] for row in grid.sql("SHOW VERSIONS t").fetchall()][-1] < newest(grid)
    with pytest.raises(SqlError, match="there is no version 9000"):
        grid.sql("SELECT * FROM t FOR VERSION AS OF 9000").fetchall()


def test_a_restore_comes_on_top_of_another_writers_commit(opened: Open) -> None:
    one, other = opened(), opened()
    one.sql(CREATE)
    one.load("t", table_of({1: 1, 2: 2}))
    version = newest(one)
    one.load("t", table_of({3: 3}))
    other.refresh()
    other.load("t", table_of({4: 4}))
    one.sql(f"RESTORE TABLE t TO VERSION {version}")
    other.refresh()
    assert rows_of(one) == rows_of(other) == {1: 1, 2: 2}
    one.sql("CREATE INDEX t_v ON t (v)")
    one.sql(f"RESTORE TABLE t TO VERSION {version}")
    assert one.sql("SELECT id FROM t WHERE v = 2").fetchall() == [(2,)]


def test_a_retention_that_a_table_asks_for_keeps_roots(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "SWEEP_COMMITS", 1)
    grid = opened()
    remote = grid.store.state.folder.remote
    remote.location = dataclasses.replace(remote.location, retention=0.0)
    grid.sql(CREATE)
    grid.load("t", table_of({1: 1}))
    gone = newest(grid)
    grid.load("t", table_of({2: 2}))
    grid.load("t", table_of({3: 3}))
    with pytest.raises(SqlError, match=f"there is no version {gone}"):
        rows_of(grid, gone)
    grid.sql("CREATE TABLE u (id BIGINT PRIMARY KEY) WITH (retention = '1 day')")
    kept = newest(grid)
    for key in range(4, 8):
        grid.load("t", table_of({key: key}))
    assert rows_of(grid, kept) == {1: 1, 2: 2, 3: 3}


def test_a_table_that_was_dropped_keeps_its_versions_and_all_their_files(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those of versions between the oldest and the newest, which no sweep of orphans reads."""
    monkeypatch.setattr(retention, "SWEEP_COMMITS", 1)
    monkeypatch.setattr(retention, "ORPHAN_COMMITS", 1)
    grid = opened()
    remote = grid.store.state.folder.remote
    remote.location = dataclasses.replace(remote.location, retention=0.0)
    grid.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT) WITH (retention = '1 day')")
    versions = {}
    for value in range(5):
        grid.load("t", table_of(dict.fromkeys(range(10), value)), mode="replace")
        versions[newest(grid)] = value
    grid.sql("DROP TABLE t")
    for number in range(3):
        grid.sql(f"CREATE TABLE other{number} (id BIGINT PRIMARY KEY)")
    reader = opened(read_only=True)
    for version, value in versions.items():
        assert rows_of(reader, version) == dict.fromkeys(range(10), value)


def test_versions_of_a_bucket(tmp_path: Path) -> None:
    with s3_server() as s3:
        place = s3.uri(f"{BUCKET}/{new_id()}/shop.remuda")
        with remuda.open(place, durability="none", cache=tmp_path / "one") as grid:
            grid.sql(CREATE)
            grid.load("t", table_of(dict.fromkeys(range(20_000), 1)))
            version = newest(grid)
            grid.sql("DELETE FROM t WHERE id < 100")
            grid.checkpoint()
            deleted = newest(grid)
            grid.load("t", table_of({1: 2}), mode="replace")
        with remuda.open(place, read_only=True, cache=tmp_path / "two") as reader:
            assert rows_of(reader) == {1: 2}
            assert len(rows_of(reader, version)) == 20_000
            assert reader.sql(f"SELECT v FROM t FOR VERSION AS OF {version} WHERE id = 7").fetchall() == [(1,)]
            assert len(rows_of(reader, deleted)) == 19_900
        with remuda.open(place, durability="none", cache=tmp_path / "three") as grid:
            grid.sql(f"RESTORE TABLE t TO VERSION {deleted}")
            assert len(rows_of(grid)) == 19_900
