"""Inserts, updates and deletions by key in one load, upserts under a condition, batches that come twice."""

from __future__ import annotations

import random
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import remuda
from remuda.errors import SqlError
from remuda.storage.load import change_load, merge_changes
from remuda.storage.load.merge_changes import ChangeCounts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from remuda.grid import Grid

HELD = [(1, "a", 10), (2, "b", 10), (3, "c", 10)]
CHANGES: list[tuple[Any, ...]] = [
    (1, "A", 11, "update"),
    (2, None, 12, "DELETE"),
    (4, "older", 5, "i"),
    (4, "newer", 6, "u"),
    (5, "gone again", 1, "insert"),
    (5, None, 2, "d"),
    (9, None, 1, "delete"),
    (3, "left out", 1, "update_preimage"),
]
APPLIED = [(1, "A", 11), (3, "c", 10), (4, "newer", 6)]
COLUMNS = ("id", "v", "ts", "op")


@pytest.fixture(params=["memory", "folder"])
def grid(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Grid]:
    with remuda.open(None if request.param == "memory" else tmp_path / "shop.remuda") as opened:
        opened.sql("CREATE TABLE t (id BIGINT, v VARCHAR, ts BIGINT, PRIMARY KEY (id))")
        opened.sql("CREATE INDEX t_v ON t (v) TYPE HASH")
        opened.load("t", table(HELD))
        yield opened


def table(rows: list[tuple[Any, ...]]) -> pa.Table:
    types = (pa.int64(), pa.string(), pa.int64(), pa.string())
    given = list(zip(*rows, strict=True)) or [()] * 3
    return pa.table({name: pa.array(column, each) for name, column, each in zip(COLUMNS, given, types, strict=False)})


def rows_of(grid: Grid) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in grid.sql("SELECT id, v, ts FROM t"))


def as_table(_: Path) -> Any:
    return table(CHANGES)


def as_pandas(_: Path) -> Any:
    return pd.DataFrame(CHANGES, columns=list(COLUMNS))


def as_polars(_: Path) -> Any:
    return pl.DataFrame(CHANGES, schema=list(COLUMNS), orient="row")


def as_rows(_: Path) -> Any:
    return [dict(zip(COLUMNS, row, strict=True)) for row in CHANGES]


def as_files(folder: Path) -> Any:
    """Each row in a file of its own: changes of one key come in different batches."""
    for number, row in enumerate(CHANGES):
        pq.write_table(table([row]), folder / f"{number}.parquet")
    return str(folder / "*.parquet")


def as_tables(_: Path) -> Any:
    """Each row in a table of its own, and so in a segment of its own."""
    return [table([row]) for row in CHANGES]


@pytest.mark.parametrize("given", [as_table, as_pandas, as_polars, as_rows, as_files, as_tables])
def test_changes_are_applied_in_their_order(grid: Grid, given: Callable[[Path], Any], tmp_path: Path) -> None:
    counts = grid.load("t", given(tmp_path), mode="apply", operation="OP", order_by="ts")
    assert counts == ChangeCounts(inserted=1, updated=1, deleted=1)
    assert rows_of(grid) == APPLIED
    assert grid.sql("SELECT id FROM t WHERE v = 'newer'").fetchall() == [(4,)]
    assert grid.sql("SELECT id FROM t WHERE v IN ('older', 'b', 'a', 'gone again')").fetchall() == []
    assert len(grid.map("t")) == 3
    assert 5 not in grid.map("t")


def test_changes_of_one_key_without_an_order_are_refused(grid: Grid) -> None:
    with pytest.raises(SqlError, match="duplicate key in t: id = 4"):
        grid.load("t", table(CHANGES[:4]), mode="apply", operation="op")
    with pytest.raises(SqlError, match="duplicate key in t: id = 7, twice with the same ts"):
        grid.load("t", table([(7, "x", 1, "i"), (7, None, 1, "d")]), mode="apply", operation="op", order_by="ts")
    tables = [table([(7, "x", 1, "i")]), table([(7, None, 1, "d")])]
    with pytest.raises(SqlError, match="duplicate key in t: id = 7, twice with the same ts"):
        grid.load("t", tables, mode="apply", operation="op", order_by="ts")
    assert rows_of(grid) == HELD
    tied = [table([(7, "x", ts, "i")]) for ts in (1, 1, 2)]
    grid.load("t", tied, mode="apply", operation="op", order_by="ts")
    assert grid.map("t")[7].ts == 2


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(1, "x", 1, "u"), (2, "y", 1, "zap")], "op says 'zap', which is no operation, row 2"),
        ([(1, "x", 1, None)], "op says NULL, which is no operation, row 1"),
        ([(None, "x", 1, "d")], r"the key t\.id must not be NULL, row 1"),
    ],
)
def test_a_change_that_is_none_is_refused_with_its_value(grid: Grid, rows: list[Any], message: str) -> None:
    with pytest.raises(SqlError, match=message):
        grid.load("t", table(rows), mode="apply", operation="op", order_by="ts")
    assert rows_of(grid) == HELD


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"mode": "apply"}, "mode apply needs the column that says insert, update or delete"),
        ({"mode": "apply", "operation": "opp"}, "the data has no column opp, which says the operation"),
        ({"mode": "apply", "operation": "op", "order_by": "tss"}, "the data has no column tss to order by"),
        ({"mode": "apply", "operation": "op", "order_by": "v"}, "changes are ordered by a number, a date or a time"),
        ({"mode": "apply", "operation": "op", "changes": "delta"}, "changes = delta knows the column of the operation"),
        ({"mode": "apply", "changes": "oplog"}, "changes must be one of delta, debezium, not 'oplog'"),
        ({"mode": "upsert", "operation": "op"}, "operation and changes say what rows of mode apply do: mode is upsert"),
        ({"mode": "append", "condition": "TRUE"}, "a condition says which rows of an upsert are written"),
        ({"mode": "upsert", "batch_id": "feed"}, "a batch is named by its stream and a number"),
        ({"mode": "upsert", "batch_id": ("feed", -1)}, "a batch is named by its stream and a number"),
    ],
)
def test_words_that_contradict_each_other_are_refused(grid: Grid, words: dict[str, Any], message: str) -> None:
    with pytest.raises(SqlError, match=message):
        grid.load("t", table(CHANGES), **words)
    assert rows_of(grid) == HELD


def test_columns_that_changes_lack_are_refused_or_null(grid: Grid) -> None:
    lacking = table([(1, "A", 2, "u"), (2, None, 2, "d")]).drop_columns(["ts"])
    with pytest.raises(SqlError, match="the data lacks columns of t: ts"):
        grid.load("t", lacking, mode="apply", operation="op")
    grid.load("t", lacking, mode="apply", operation="op", missing="null")
    assert rows_of(grid) == [(1, "A", None), (3, "c", 10)]


def test_a_deletion_needs_nothing_but_its_key(tmp_path: Path) -> None:
    with remuda.open(tmp_path) as grid:
        grid.sql("CREATE TABLE t (id BIGINT, v VARCHAR NOT NULL, PRIMARY KEY (id))")
        grid.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        given = pa.table({"id": [1, 3], "v": pa.array([None, "c"]), "op": ["d", "i"]})
        assert grid.load("t", given, mode="apply", operation="op") == ChangeCounts(1, 0, 1)
        given = pa.table({"id": [1, 3], "v": pa.array([None, None], pa.string()), "op": ["d", "u"]})
        with pytest.raises(SqlError, match=r"the column t\.v must not be NULL, row 2"):
            grid.load("t", given, mode="apply", operation="op")
        grid.checkpoint()
    with remuda.open(tmp_path) as grid:
        assert sorted(map(tuple, grid.sql("SELECT * FROM t"))) == [(2, "b"), (3, "c")]


def test_a_map_without_a_key_takes_no_changes() -> None:
    grid = remuda.open()
    grid.sql("CREATE TABLE t (v BIGINT)")
    with pytest.raises(SqlError, match="t has no PRIMARY KEY: changes are applied to rows by their key"):
        grid.load("t", pa.table({"v": [1], "op": ["i"]}), mode="apply", operation="op")


@pytest.mark.parametrize(
    "order",
    [
        [date(2024, 1, 2), date(2024, 1, 1), None],
        [datetime(2024, 1, 2), datetime(2024, 1, 1), None],
        [Decimal("1.5"), Decimal("-2.5"), None],
        [1.5, -2.5, None],
        [float("nan"), float("inf"), -1.0],
    ],
)
def test_what_changes_are_ordered_by(grid: Grid, order: list[Any]) -> None:
    """Also by a column that the map does not have; NULL is older than all others."""
    given = pa.table({"id": [7] * 3, "v": ["last", "before", "first"], "ts": [1] * 3, "op": ["u"] * 3, "at": order})
    for turn in ([0, 1, 2], [2, 1, 0], [1, 0, 2]):
        for data in (given.take(turn), [given.take([row]) for row in turn]):
            grid.load("t", data, mode="apply", operation="op", order_by="at")
            assert grid.map("t")[7].v == "last"


def test_a_delta_change_feed(grid: Grid) -> None:
    more = ["delete", "insert", "update_preimage", "update_postimage"]
    feed = pa.table(
        {
            "id": [1, 1, 2, 4, 4, 4],
            "v": ["a", "A", None, "x", "x", "y"],
            "ts": [10, 11, None, 1, 1, 2],
            "_change_type": ["update_preimage", "update_postimage", *more],
            "_commit_version": [5, 5, 6, 4, 5, 5],
            "_commit_timestamp": [datetime(2024, 1, 1)] * 6,
        }
    )
    assert grid.load("t", feed, mode="apply", changes="delta") == ChangeCounts(1, 1, 1)
    assert rows_of(grid) == [(1, "A", 11), (3, "c", 10), (4, "y", 2)]
    assert grid.load("made", feed, mode="apply", changes="delta", key="id", indexes="v") == ChangeCounts(2, 0, 0)
    assert sorted(map(tuple, grid.sql("SELECT * FROM made"))) == [(1, "A", 11), (4, "y", 2)]


def test_a_debezium_feed(grid: Grid) -> None:
    def row(number: int, v: str | None, ts: int | None = None) -> dict[str, Any]:
        return {"id": number, "v": v, "ts": ts}

    envelopes = [
        {"op": "r", "before": None, "after": row(1, "snapshot", 0), "ts_ms": 1, "source": {"lsn": None}},
        {"op": "u", "before": row(1, "a"), "after": row(1, "A", 11), "ts_ms": 5, "source": {"lsn": 70}},
        {"op": "d", "before": row(2, None), "after": None, "ts_ms": 5, "source": {"lsn": 71}},
        {"op": "c", "before": None, "after": row(4, "x", 1), "ts_ms": 5, "source": {"lsn": 72}},
        {"op": "d", "before": row(4, "x", 1), "after": None, "ts_ms": 5, "source": {"lsn": 74}},
        {"op": "c", "before": None, "after": row(4, "again", 2), "ts_ms": 5, "source": {"lsn": 75}},
        {"op": None, "before": None, "after": None, "ts_ms": None, "source": None},
    ]
    for data in (pa.Table.from_pylist(envelopes), pl.DataFrame(envelopes)):
        counts = grid.load("t", data, mode="apply", changes="debezium")
        assert rows_of(grid) == [(1, "A", 11), (3, "c", 10), (4, "again", 2)]
    assert counts == ChangeCounts(0, 2, 0)
    with pytest.raises(SqlError, match="twice with the same ts_ms"):
        grid.load("t", data, mode="apply", changes="debezium", order_by="ts_ms")
    with pytest.raises(SqlError, match="op says 't', which is no operation, row 1"):
        grid.load("t", pa.Table.from_pylist([envelopes[0] | {"op": "t"}]), mode="apply", changes="debezium")
    lacking = pa.Table.from_pylist(envelopes).slice(2, 1).set_column(1, "before", pa.array([None], row_type()))
    with pytest.raises(SqlError, match="the change has no before, which would have its key, row 1"):
        grid.load("t", lacking, mode="apply", changes="debezium")
    with pytest.raises(SqlError, match="after is string, not a struct"):
        grid.load("t", pa.table({"op": ["c"], "before": [""], "after": ["{}"]}), mode="apply", changes="debezium")


def row_type() -> pa.DataType:
    return pa.struct({"id": pa.int64(), "v": pa.string(), "ts": pa.int64()})


def test_a_condition_says_which_rows_are_replaced(grid: Grid) -> None:
    given = table([(1, "older", 9), (2, "newer", 11), (3, "unknown", None), (4, "without an old one", None)])
    assert grid.load("t", given, mode="upsert", condition="new.ts > old.ts") == 2
    assert rows_of(grid) == [(1, "a", 10), (2, "newer", 11), (3, "c", 10), (4, "without an old one", None)]
    deletions = table([(1, None, 9, "d"), (2, None, 12, "d"), (5, None, 1, "d"), (6, "new", 1, "i")])
    counts = grid.load("t", deletions, mode="apply", operation="op", condition="NEW.ts > old.TS OR old.v = 'zzz'")
    assert counts == ChangeCounts(inserted=1, updated=0, deleted=1)
    assert [row[0] for row in rows_of(grid)] == [1, 3, 4, 6]
    assert grid.load("t", table(HELD), mode="upsert", condition="length(new.v) > 5 AND new.v <> old.v") == 1


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("new.ts >", "the statement ends too early"),
        ("ts > 1", "the column ts is ambiguous"),
        ("new.tss > old.ts", "unknown column: tss"),
        ("newest.ts > old.ts", "unknown table in this query: newest"),
        ("new.v > old.ts", "VARCHAR cannot be compared with BIGINT"),
        ("new.ts", "a condition must be BOOLEAN, this is BIGINT"),
        ("new.ts > ?", "it takes no parameters"),
        ("now() > TIMESTAMP '2024-01-01 00:00:00'", "it may not ask for the time"),
        ("random() < 0.5", "random is not allowed in a condition"),
        ("new.ts > (SELECT 1)", "a sub-query is not allowed in a condition"),
        ("COUNT(*) > 1", "COUNT is not allowed in a condition"),
        ("new.ts > old.ts FROM t", "it is one expression"),
        ("new.ts > old.ts; DROP TABLE t", "the condition"),
        ("TRUE, FALSE", "it is one expression"),
        ("DISTINCT TRUE", "it is one expression"),
        ("*", "the condition"),
        (" ", "it is empty"),
    ],
)
def test_a_condition_that_cannot_be_asked_is_refused(grid: Grid, condition: str, message: str) -> None:
    with pytest.raises(SqlError, match=message) as raised:
        grid.load("t", table(HELD), mode="upsert", condition=condition)
    assert raised.value.message.startswith(f"the condition {condition!r}: ")
    assert rows_of(grid) == HELD


def test_a_batch_that_comes_again_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "shop.remuda"
    with remuda.open(path) as grid:
        grid.load("t", table(HELD), key="id", batch_id=("first", 0))
        assert grid.load("t", table([(7, "x", 1)]), batch_id=("feed", 3)) == 1
        grid.load("t", table([(7, "again", 1)]), batch_id=("feed", 3))
        grid.load("t", table([(7, "before", 1)]), mode="upsert", batch_id="feed/2")
        grid.load("t", table([(7, "refused", 1)]), mode="upsert", batch_id=("first", 0))
        grid.sql("UPDATE t SET v = 'written since' WHERE id = 7")
        again = grid.load("t", table([(7, None, 1, "d")]), mode="apply", operation="op", batch_id=("feed", 3))
        assert again == ChangeCounts()
    with remuda.open(path) as grid:
        grid.load("t", table([(7, "after opening", 1)]), mode="replace", batch_id=("feed", 3))
        assert grid.map("t")[7].v == "written since"
        assert len(grid.map("t")) == 4
        counts = grid.load("t", table([(7, None, 1, "d")]), mode="apply", operation="op", batch_id=("feed", 4))
        assert counts == ChangeCounts(deleted=1)
        grid.load("t", table([(8, "another stream", 1)]), batch_id=("feed/of another", 3))
        grid.sql("CREATE INDEX by_ts ON t (ts) TYPE SORTED")
        grid.sql("TRUNCATE TABLE t")
        grid.load("t", table([(9, "x", 1)]), batch_id=("feed", 4))
        assert len(grid.map("t")) == 0


def test_a_batch_that_fails_is_not_counted(grid: Grid) -> None:
    with pytest.raises(SqlError, match="duplicate key"):
        grid.load("t", table(HELD), batch_id=("feed", 1))
    grid.load("t", table([(4, "d", 1)]), batch_id=("feed", 1))
    assert len(grid.map("t")) == 4


def test_the_streams_that_are_remembered_are_bounded(tmp_path: Path) -> None:
    with remuda.open(tmp_path) as grid:
        grid.load("t", table(HELD), key="id")
        for number in range(105):
            grid.load("t", table([(100 + number, "x", 1)]), batch_id=(f"feed {number}", 0))
        (definition,) = grid.store.catalog.maps.values()
        last = grid.store.map(definition).state.batches.last
        assert [each.stream for each in last] == [f"feed {number}" for number in range(5, 105)]


@pytest.mark.parametrize("seed", range(8))
def test_random_changes_against_a_dictionary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Batches of changes in random tables and conditions, beside statements, checkpoints and new openings."""
    draw = random.Random(seed)
    model: dict[int, tuple[str | None, int]] = {}
    grid = remuda.open(tmp_path)
    grid.sql("CREATE TABLE t (id BIGINT, v VARCHAR, ts BIGINT, PRIMARY KEY (id))")
    grid.sql("CREATE INDEX by_v ON t (v) TYPE HASH")
    for turn in range(25):
        ts = turn * 1000
        changes = [
            (draw.randrange(60), f"v{draw.randrange(9)}", ts + number, draw.choice("iud"))
            for number in draw.sample(range(-900, 900), draw.randrange(1, 80))
        ]
        condition = draw.choice([None, "new.ts > old.ts", "new.v <= old.v"])
        before, counts = dict(model), [0, 0, 0]
        for key in {change[0] for change in changes}:
            _, v, at, operation = max((each for each in changes if each[0] == key), key=lambda each: each[2])
            old = before.get(key)
            if old is not None and condition == "new.ts > old.ts" and not at > old[1]:
                continue
            if old is not None and condition == "new.v <= old.v" and not v <= (old[0] or ""):
                continue
            if operation == "d":
                counts[2] += model.pop(key, None) is not None
            else:
                counts[old is not None] += 1
                model[key] = (v, at)
        cut = sorted(draw.sample(range(1, len(changes)), min(len(changes) - 1, draw.randrange(4))))
        parts = [changes[start:end] for start, end in zip([0, *cut], [*cut, len(changes)], strict=True)]
        data = [table(part) for part in parts]
        options: dict[str, Any] = {} if condition is None else {"condition": condition}
        found = grid.load("t", data, mode="apply", operation="op", order_by="ts", batch_id=("feed", turn), **options)
        assert found == ChangeCounts(*counts)
        if draw.random() < 0.3:
            again = draw.choice(parts)
            grid.load("t", table(again), mode="apply", operation="op", order_by="ts", batch_id=("feed", turn))
        if draw.random() < 0.4:
            key = draw.randrange(60)
            grid.sql("DELETE FROM t WHERE id = ?", key)
            model.pop(key, None)
            key = draw.randrange(60)
            grid.sql("SINK INTO t VALUES (?, 'sunk', ?)", key, ts)
            model[key] = ("sunk", ts)
        if draw.random() < 0.2:
            grid.close()
            grid = remuda.open(tmp_path)
        expected = sorted((key, *value) for key, value in model.items())
        assert rows_of(grid) == expected
        assert len(grid.map("t")) == len(model)
        v = f"v{draw.randrange(9)}"
        assert sorted(grid.sql("SELECT id FROM t WHERE v = ?", v).fetchall()) == [
            (key,) for key, value in sorted(model.items()) if value[0] == v
        ]
    grid.close()


def test_a_statement_that_meets_a_change_is_not_lost(grid: Grid, monkeypatch: pytest.MonkeyPatch) -> None:
    """It writes the same key while the changes are merged: they are merged again, on top of it."""
    merge, turns = merge_changes.merge_changes, []

    def merge_and_write(*given: Any) -> Any:
        merged = merge(*given)
        turns.append(len(turns))
        if len(turns) == 1:
            grid.sql("UPDATE t SET ts = 100 WHERE id = 1")
            grid.sql("INSERT INTO t VALUES (50, 'beside', 1)")
        return merged

    monkeypatch.setattr(change_load, "merge_changes", merge_and_write)
    given = table([(1, "A", 50), (2, "B", 50)])
    assert grid.load("t", given, mode="upsert", condition="new.ts > old.ts") == 1
    assert len(turns) == 2
    assert rows_of(grid) == [(1, "a", 100), (2, "B", 50), (3, "c", 10), (50, "beside", 1)]
