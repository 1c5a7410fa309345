"""Statements of many rows make segments, of few rows entries of the memtable: the same rows, errors and guarantees."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import remuda
from remuda.catalog import MapDefinition
from remuda.errors import ConstraintError, SqlError
from remuda.grid import statement_writer
from remuda.optimizer import cost
from remuda.storage import MapStore
from tests.harness.threads import run_together

SIDES = {"segments": 0.0, "memtable": 1e15}


@pytest.fixture(params=SIDES)
def side(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(cost, "SEGMENT_START", SIDES[request.param])
    return str(request.param)


@pytest.fixture
def segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "SEGMENT_START", 0.0)


@pytest.fixture(params=[(1, "memory"), (3, "memory"), (1, "folder")], ids=["1 member", "3 members", "folder"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[int, str | None]:
    members, place = request.param
    return members, None if place == "memory" else str(tmp_path / "grid")


@pytest.fixture
def grid(path: tuple[int, str | None]) -> Iterator[Any]:
    with remuda.open(path[1], members=path[0]) as opened:
        opened.sql("CREATE TABLE m (id BIGINT, n BIGINT, name VARCHAR(8), PRIMARY KEY (id))")
        opened.sql("CREATE INDEX m_n ON m (n) TYPE SORTED")
        yield opened


def definition_of(grid: Any, name: str) -> MapDefinition:
    found = grid.store.catalog.find_map(name, ("public",))
    assert isinstance(found, MapDefinition)
    return found


def store_of(grid: Any, name: str = "m") -> MapStore:
    found = grid.store.map(definition_of(grid, name))
    assert isinstance(found, MapStore)
    return found


def contents(grid: Any) -> dict[int, tuple[Any, ...]]:
    return {row[0]: tuple(row[1:]) for row in grid.sql("SELECT id, n, name FROM m")}


def fill(grid: Any, rows: int) -> None:
    grid.sql(f"INSERT INTO m SELECT i, i % 7, 'r' || (i % 5) FROM generate_series(0, {rows - 1}) AS s(i)")


def check(grid: Any, model: dict[int, tuple[Any, ...]], path: str | None) -> None:
    """Compare by scan, by key and by index, and in a folder after opening it again."""
    assert contents(grid) == model
    assert len(store_of(grid)) == len(model)
    for key in random.sample(sorted(model), min(20, len(model))):
        assert grid.sql("SELECT n, name FROM m WHERE id = ?", key).fetchall() == [model[key]]
    for value in range(-1, 8):
        found = grid.sql("SELECT COUNT(*) FROM m WHERE n = ?", value).fetchall()[0][0]
        assert found == sum(row[0] == value for row in model.values())
    if path is not None:
        with remuda.open(path, read_only=True) as reader:
            assert contents(reader) == model


def test_statements_do_what_a_model_does(grid: Any, side: str, path: tuple[int, str | None]) -> None:
    choose, model = random.Random(5), {}
    fill(grid, 300)
    model = {i: (i % 7, f"r{i % 5}") for i in range(300)}
    for turn in range(40):
        low, by = choose.randrange(400), choose.choice((2, 3, 5))
        match choose.choice(("insert", "sink", "update", "delete", "merge", "put", "checkpoint")):
            case "insert":
                rows = {k + 1000 * (turn + 1): v for k, v in model.items() if k % by == 0 and k < 1000}
                text = "INSERT INTO m SELECT id + ?, n, name FROM m WHERE id % ? = 0 AND id < 1000"
                assert grid.sql(text, 1000 * (turn + 1), by).update_count == len(rows)
                model |= rows
            case "sink":
                rows = {k + 50: (v[0], "sunk") for k, v in model.items() if k % by == 0}
                assert grid.sql(
                    "SINK INTO m SELECT id + 50, n, 'sunk' FROM m WHERE id % ? = 0", by
                ).update_count == len(rows)
                model |= rows
            case "update":
                rows = {k: ((v[0] or 0) + 1, v[1]) for k, v in model.items() if k >= low}
                count = grid.sql("UPDATE m SET n = COALESCE(n, 0) + 1 WHERE id >= ?", low).update_count
                assert count == len(rows)
                model |= rows
            case "delete":
                gone = [k for k in model if k % 11 == by]
                assert grid.sql("DELETE FROM m WHERE id % 11 = ?", by).update_count == len(gone)
                model = {k: v for k, v in model.items() if k not in gone}
            case "merge":
                rows = {k: (None if k in model else 3, "merged") for k in range(low, low + 60)}
                grid.sql(
                    "INSERT INTO m SELECT i, 3, 'merged' FROM generate_series(?, ?) AS s(i)"
                    " ON CONFLICT (id) DO UPDATE SET n = NULL, name = excluded.name",
                    low,
                    low + 59,
                )
                model |= rows
            case "put":
                grid.sql("SINK INTO m VALUES (?, 5, 'put')", low)
                model[low] = (5, "put")
            case _:
                grid.checkpoint()
    check(grid, model, path[1])


def test_the_rows_that_arrive_decide(grid: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One plan, kept by the plan cache, writes either way."""
    cutover = cost.segment_cutover()
    text = "INSERT INTO m SELECT i, 0, 'x' FROM generate_series(?, ?) AS s(i)"
    assert f"segments above {cutover} rows" in str(grid.sql(f"EXPLAIN {text}", 1, 2).fetchall())
    grid.sql(text, 1, cutover)
    assert store_of(grid).memtable_length == cutover
    grid.sql(text, 100_001, 100_001 + cutover)
    assert store_of(grid).memtable_length == 0
    assert len(store_of(grid)) == 2 * cutover + 1
    for first, last, told in ((-9, -1, "memtable: 9 rows"), (-90_000, -10, "segments: 89991 rows")):
        analyzed = "\n".join(str(row[0]) for row in grid.sql(f"EXPLAIN ANALYZE {text}", first, last))
        assert told in analyzed
    analyzed = "\n".join(str(row[0]) for row in grid.sql("EXPLAIN ANALYZE DELETE FROM m WHERE id < 0"))
    assert "deletion vectors: 90000 rows" in analyzed
    assert len(store_of(grid)) == 2 * cutover + 1


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO m SELECT id + 1, n, name FROM m",
        "INSERT INTO m SELECT id % 10 + 5000, n, name FROM m",
        "INSERT INTO m SELECT CASE WHEN id < 299 THEN id + 900 END, n, name FROM m",
        "INSERT INTO m SELECT id + 900, n, CASE WHEN id < 299 THEN name ELSE 'much too long' END FROM m",
        "SINK INTO m SELECT id, n, CASE WHEN id < 299 THEN name ELSE 'much too long' END FROM m",
        "UPDATE m SET n = 5 / (id - 299)",
        "INSERT INTO m SELECT id % 10, 0, 'x' FROM m ON CONFLICT (id) DO UPDATE SET n = 8",
    ],
)
@pytest.mark.parametrize("table_rows", [50, 1_000_000])
def test_a_refused_statement_changes_nothing(
    grid: Any, side: str, path: tuple[int, str | None], text: str, table_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(grid, 300)
    monkeypatch.setattr(statement_writer, "TABLE_ROWS", table_rows)
    grid.checkpoint()
    before, files = contents(grid), _files(path[1])
    with pytest.raises(SqlError) as refused:
        grid.sql(text)
    assert isinstance(refused.value, ConstraintError) or "zero" in str(refused.value) or "long" in str(refused.value)
    del refused  # and the segments that its frames hold
    gc.collect()
    check(grid, before, path[1])
    assert _files(path[1]) == files


def _files(path: str | None) -> set[str]:
    """The files of segments: what a statement that has failed may not leave."""
    return set() if path is None else {str(each) for each in (Path(path) / "maps").rglob("*") if each.is_file()}


def test_both_ways_refuse_with_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {}
    for side, start in SIDES.items():
        monkeypatch.setattr(cost, "SEGMENT_START", start)
        with remuda.open() as grid:
            grid.sql("CREATE TABLE m (id BIGINT, n BIGINT NOT NULL, name VARCHAR(8), PRIMARY KEY (id))")
            fill(grid, 300)
            texts = (
                "INSERT INTO m SELECT id + 299, n, name FROM m",
                "INSERT INTO m SELECT NULLIF(id, 7) + 900, n, name FROM m",
                "UPDATE m SET n = NULLIF(n, 3)",
                "SINK INTO m SELECT id, n, name || 'much too long' FROM m WHERE id >= 299",
                "INSERT INTO m SELECT 5, 0, 'x' FROM m ON CONFLICT (id) DO UPDATE SET n = 8",
            )
            errors = []
            for text in texts:
                with pytest.raises(SqlError) as refused:
                    grid.sql(text)
                errors.append((refused.value.code, refused.value.sqlstate, str(refused.value)))
            told[side] = errors
    assert told["segments"] == told["memtable"]


def test_a_sink_keeps_the_last_row_of_a_key(grid: Any, side: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statement_writer, "TABLE_ROWS", 40)
    text = "SINK INTO m SELECT i % 10, i, 'x' FROM generate_series(0, 299) AS s(i)"
    assert grid.sql(text).update_count == 300
    assert {key: row[0] for key, row in contents(grid).items()} == {key: 290 + key for key in range(10)}


@pytest.mark.parametrize(
    ("statement", "written"),
    [
        ("SINK INTO m SELECT {}", {0: 2, 1: 0, 2: 1}),
        ("INSERT OR REPLACE INTO m SELECT {} DESC", {0: 599, 1: 597, 2: 598}),
        ("INSERT INTO m SELECT {} ON CONFLICT DO NOTHING", {0: 599, 1: 597, 2: 598}),
        ("INSERT OR IGNORE INTO m SELECT {} DESC", {0: 2, 1: 0, 2: 1}),
    ],
)
def test_the_order_of_a_query_tells_which_row_of_a_key_is_written(
    grid: Any, side: str, statement: str, written: dict[int, int]
) -> None:
    """By a column that is not written, from rows that lie in another order, on members too."""
    grid.sql("CREATE TABLE source (id BIGINT, v BIGINT, PRIMARY KEY (id))")
    grid.sql("INSERT INTO source SELECT i, i * 7 % 600 FROM generate_series(0, 599) AS s(i)")
    grid.sql(statement.format("(v + 1) % 3, v, 'x' FROM source ORDER BY 0 - v"))
    assert {key: row[0] for key, row in contents(grid).items()} == written
    grid.sql("SINK INTO m SELECT 1, NULLIF(v, 300), 'x' FROM source ORDER BY NULLIF(v, 300) NULLS LAST")
    assert contents(grid)[1][0] is None


@pytest.mark.parametrize("key", ["x", "x, y"])
def test_two_rows_whose_key_is_nan_have_one_key(side: str, key: str) -> None:
    """To Python two NaNs differ, to SQL they are the same key."""
    with remuda.open() as grid:
        grid.sql(f"CREATE TABLE t (x DOUBLE, y BIGINT, n BIGINT, PRIMARY KEY ({key}))")
        nans = "SELECT i + 'NaN'::DOUBLE, 1, i FROM generate_series(1, 2) AS s(i)"
        for rest in ("", f" ON CONFLICT ({key}) DO UPDATE SET n = excluded.n"):
            with pytest.raises(ConstraintError):
                grid.sql(f"INSERT INTO t {nans}{rest}")
        assert grid.sql(f"INSERT INTO t {nans} ON CONFLICT DO NOTHING").update_count == 1
        grid.sql(f"SINK INTO t {nans}")
        assert grid.sql("SELECT n FROM t").fetchall() == [(2,)]


def test_readers_keep_the_state_before_the_statement(grid: Any, side: str) -> None:
    fill(grid, 300)
    for text in ("INSERT INTO m SELECT id + 900, n, name FROM m", "UPDATE m SET n = 8", "DELETE FROM m WHERE id > 3"):
        before = contents(grid)
        reader = grid.sql("SELECT id, n, name FROM m")
        grid.sql(text)
        assert {row[0]: tuple(row[1:]) for row in reader} == before
        assert contents(grid) != before


@pytest.mark.usefixtures("segments")
def test_a_cancelled_statement_leaves_nothing(grid: Any, path: tuple[int, str | None]) -> None:
    grid.load("m", pa.table({"id": range(400_000), "n": [1] * 400_000, "name": ["x"] * 400_000}))
    files = _files(path[1])
    grid.sql("SET timeout = 0.002")
    for text in (
        "INSERT INTO m SELECT id + 400000, n, name FROM m",
        "UPDATE m SET n = n + 1",
        "DELETE FROM m WHERE n = 1",
    ):
        with pytest.raises(SqlError, match="timeout"):
            grid.sql(text)
    grid.sql("SET timeout = 0")
    assert grid.sql("SELECT COUNT(*), SUM(n) FROM m").fetchall() == [(400_000, 400_000)]
    grid.checkpoint()
    assert _files(path[1]) == files


@pytest.mark.usefixtures("segments")
def test_what_ends_before_the_commit_is_decided_by_the_commit_guard(
    grid: Any, path: tuple[int, str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(grid, 300)
    grid.checkpoint()
    before, files = contents(grid), _files(path[1])

    def refuse(_: MapStore) -> None:
        raise SqlError(remuda.errors.ErrorCode.CANCELLED_BY_USER, "cancelled at the last moment")

    with monkeypatch.context() as patched:
        patched.setattr(MapStore, "begin_commit", refuse)
        for text in (
            "INSERT INTO m SELECT id + 900, n, name FROM m",
            "UPDATE m SET n = 8",
            "DELETE FROM m WHERE id > 3",
        ):
            with pytest.raises(SqlError, match="last moment"):
                grid.sql(text)
    gc.collect()  # the segments that frames of the errors hold
    check(grid, before, path[1])
    assert _files(path[1]) == files


def test_rows_without_a_key_of_their_own_get_one(side: str) -> None:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE t (n BIGINT, name VARCHAR)")
        for _ in range(2):
            grid.sql("INSERT INTO t SELECT i, 'x' FROM generate_series(1, 100) AS s(i)")
        grid.sql("INSERT INTO t SELECT n + 100, name FROM t")
        assert grid.sql("SELECT COUNT(*), SUM(n), MAX(n) FROM t").fetchall() == [(400, 2 * 5050 * 2 + 20_000, 200)]


@pytest.mark.usefixtures("segments")
@pytest.mark.parametrize("place", ["memory", "folder"])
@pytest.mark.timeout(120)
def test_nobody_waits_for_another_forever(place: str, tmp_path: Path) -> None:
    """Every holder of a lock at once: statements of many rows, small writes, loads, checkpoints, indexes, TRUNCATE."""
    with remuda.open(None if place == "memory" else str(tmp_path)) as grid:
        grid.sql("CREATE TABLE m (id BIGINT, n BIGINT, name VARCHAR(8), PRIMARY KEY (id))")
        grid.sql("CREATE TABLE other (id BIGINT, n BIGINT, PRIMARY KEY (id))")
        fill(grid, 2000)
        turns = 12

        def each_turn(*texts: str) -> None:
            for turn in range(turns):
                for text in texts:
                    grid.sql(text.replace("$", str(turn)))

        def load() -> None:
            for turn in range(turns):
                first = 1_000_000 + turn * 20_000
                ids = list(range(first, first + 10_000))
                grid.load("m", pa.table({"id": ids, "n": [0] * 10_000, "name": ["l"] * 10_000}))

        run_together(
            partial(each_turn, "UPDATE m SET n = n + 1 WHERE id < 1000"),
            partial(each_turn, "INSERT INTO m SELECT id + 5000 * ($ + 1), 0, 'i' FROM m WHERE id < 1000"),
            partial(each_turn, "UPDATE m SET n = n + 1 WHERE id = 7", "CHECKPOINT"),
            partial(each_turn, "CREATE INDEX m_n$ ON m (n) TYPE HASH", "DROP INDEX m_n$ ON m"),
            partial(each_turn, "INSERT INTO other SELECT id, n FROM m WHERE id < 1000", "TRUNCATE TABLE other"),
            load,
        )
        counted = grid.sql("SELECT COUNT(*), SUM(n - id % 7) FROM m WHERE id < 1000").fetchall()
        assert counted == [(1000, 1000 * turns + turns)]
        assert grid.sql("SELECT COUNT(*) FROM m").fetchall() == [(2000 + 1000 * turns + 10_000 * turns,)]
        assert grid.sql("SELECT COUNT(*) FROM other").fetchall() == [(0,)]
