"""Changes from data frames and streams: by `df.write`, by `remuda.spark.write`, by `grid.load`, by `writeStream`."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

import remuda
import remuda.spark
from remuda.storage.load.merge_changes import ChangeCounts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from remuda.grid import Grid

HELD = [(1, "a", 10), (2, "b", 10), (3, "c", 10)]
CHANGES = [
    (1, "A", 11, "update"),
    (2, None, 12, "DELETE"),
    (4, "older", 5, "i"),
    (4, "newer", 6, "u"),
    (9, None, 1, "delete"),
    (3, "left out", 1, "update_preimage"),
]
APPLIED = [(1, "A", 11), (3, "c", 10), (4, "newer", 6)]
SCHEMA = "id BIGINT, v STRING, ts BIGINT"


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    remuda.spark.register(spark)
    return spark


@pytest.fixture
def grid(session: SparkSession, tmp_path: Path) -> Iterator[Grid]:
    with remuda.open(tmp_path / "shop.remuda", spark=session) as opened:
        opened.sql("CREATE TABLE t (id BIGINT, v VARCHAR, ts BIGINT, PRIMARY KEY (id))")
        opened.sql("CREATE INDEX t_v ON t (v) TYPE HASH")
        opened.sql("INSERT INTO t VALUES (1, 'a', 10), (2, 'b', 10), (3, 'c', 10)")
        yield opened


def frame(session: SparkSession, rows: list[Any] = CHANGES, more: str = ", op STRING") -> DataFrame:
    """Rows with one key come from different tasks."""
    return session.createDataFrame(rows, SCHEMA + more).repartition(4, "v", "ts")


def by_write(grid: Grid, data: DataFrame, **words: Any) -> None:
    data.write.format("remuda").options(path=str(grid.store.path), map="t", **words).mode("append").save()


def by_function(grid: Grid, data: DataFrame, **words: Any) -> None:
    assert grid.store.path is not None
    remuda.spark.write(data, grid.store.path, "t", **words)


def by_load(grid: Grid, data: DataFrame, **words: Any) -> Any:
    names = {"orderBy": "order_by", "batchId": "batch_id"}
    return grid.load("t", data, **{names.get(name, name): value for name, value in words.items()})


WAYS = [by_write, by_function, by_load]


def rows_of(grid: Grid) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in grid.sql("SELECT id, v, ts FROM t"))


@pytest.mark.parametrize("load", WAYS)
def test_changes_are_applied_in_their_order(session: SparkSession, grid: Grid, load: Callable[..., Any]) -> None:
    with pytest.raises(Exception, match="duplicate key in t: id = 4"):
        load(grid, frame(session), mode="apply", operation="op")
    assert rows_of(grid) == HELD
    counts = load(grid, frame(session), mode="apply", operation="op", orderBy="ts")
    assert counts is None or counts == ChangeCounts(inserted=1, updated=1, deleted=1)
    assert rows_of(grid) == APPLIED
    assert grid.sql("SELECT id FROM t WHERE v = 'newer'").fetchall() == [(4,)]
    with pytest.raises(Exception, match="op says 'zap', which is no operation"):
        load(grid, frame(session, [(1, "x", 1, "zap")]), mode="apply", operation="op")


@pytest.mark.parametrize("load", WAYS)
def test_a_condition_and_a_batch_that_comes_twice(session: SparkSession, grid: Grid, load: Callable[..., Any]) -> None:
    data = frame(session, [(1, "older", 9), (2, "newer", 11), (4, "new", None)], "")
    words = {"mode": "upsert", "condition": "new.ts > old.ts", "batchId": "feed/1"}
    load(grid, data, **words)
    expected = [(1, "a", 10), (2, "newer", 11), (3, "c", 10), (4, "new", None)]
    assert rows_of(grid) == expected
    load(grid, frame(session, [(1, "again", 99)], ""), **words)
    load(grid, frame(session, [(5, "appended", 1)], ""), batchId="feed/2")
    load(grid, frame(session, [(5, "appended", 1)], ""), batchId="feed/2")
    assert rows_of(grid) == [*expected, (5, "appended", 1)]
    with pytest.raises(Exception, match=r"the condition 'new\.tss > old\.ts': unknown column: tss"):
        load(grid, data, mode="upsert", condition="new.tss > old.ts")


@pytest.mark.parametrize("load", WAYS)
def test_the_presets(session: SparkSession, grid: Grid, load: Callable[..., Any]) -> None:
    envelope = session.sql(
        """SELECT * FROM VALUES
        ('c', NULL, named_struct('id', 4L, 'v', 'e', 'ts', 1L), 1L, named_struct('lsn', 7L)),
        ('u', NULL, named_struct('id', 4L, 'v', 'f', 'ts', 2L), 1L, named_struct('lsn', 8L)),
        ('d', named_struct('id', 1L, 'v', CAST(NULL AS STRING), 'ts', CAST(NULL AS BIGINT)), NULL, 1L,
            named_struct('lsn', 9L)),
        (NULL, NULL, NULL, NULL, NULL)
        AS t(op, before, after, ts_ms, source)"""
    ).repartition(4)
    load(grid, envelope, mode="apply", changes="debezium")
    assert rows_of(grid) == [(2, "b", 10), (3, "c", 10), (4, "f", 2)]
    feed = session.sql(
        """SELECT * FROM VALUES
        (2L, 'b', 10L, 'update_preimage', 5L, current_timestamp()), (2L, 'B', 11L, 'update_postimage', 5L, NULL),
        (3L, 'c', 10L, 'delete', 6L, NULL), (3L, 'C', 12L, 'insert', 7L, NULL)
        AS t(id, v, ts, _change_type, _commit_version, _commit_timestamp)"""
    ).repartition(4)
    load(grid, feed, mode="apply", changes="delta")
    assert rows_of(grid) == [(2, "B", 11), (3, "C", 12), (4, "f", 2)]


def test_a_map_in_memory_takes_changes_of_a_data_frame(session: SparkSession) -> None:
    grid = remuda.open()
    counts = grid.load("t", frame(session), mode="apply", operation="op", order_by="ts", key="id")
    assert counts == ChangeCounts(inserted=2)
    assert rows_of(grid) == [(1, "A", 11), (4, "newer", 6)]


def test_a_stream_of_changes(session: SparkSession, grid: Grid, tmp_path: Path) -> None:
    """Each batch is committed with its number: one that is given again changes nothing, whatever was written since."""
    source, place = str(tmp_path / "source"), {"path": str(grid.store.path), "map": "t"}

    def run(checkpoint: str, **words: str) -> None:
        stream = session.readStream.schema(frame(session).schema).parquet(source).writeStream.format("remuda")
        stream.options(**place, **words, checkpointLocation=str(tmp_path / checkpoint))
        stream.queryName(f"changes {checkpoint}").trigger(availableNow=True).start().awaitTermination()

    words = {"mode": "apply", "operation": "op", "orderBy": "ts"}
    frame(session).write.parquet(source)
    run("one", **words)
    assert rows_of(grid) == APPLIED
    grid.sql("UPDATE t SET v = 'written since' WHERE id = 1")
    for path in (tmp_path / "one" / "commits").iterdir():
        path.unlink()
    run("one", **words)
    assert grid.map("t")[1].v == "written since"
    run("two", **words, batchId="a name of its own")
    assert rows_of(grid) == APPLIED
    (definition,) = grid.store.catalog.maps.values()
    streams = [each.stream for each in grid.store.map(definition).state.batches.last]
    assert len(streams) == 2
    assert streams[1] == "a name of its own"
    with pytest.raises(Exception, match="a stream replaces rows with equal keys"):
        run("three", mode="append")


def test_batches_of_a_stream_by_foreach_batch(session: SparkSession, grid: Grid, tmp_path: Path) -> None:
    source, path = str(tmp_path / "source"), grid.store.path
    assert path is not None
    frame(session).write.parquet(source)
    seen: list[int] = []

    def write(batch: DataFrame, number: int) -> None:
        for _ in range(2):
            words = {"mode": "apply", "operation": "op", "orderBy": "ts", "batchId": ("feed", number)}
            remuda.spark.write(batch, path, "t", **words)
            grid.sql("UPDATE t SET v = 'written since' WHERE id = 1")
        seen.append(number)

    stream = session.readStream.schema(frame(session).schema).parquet(source).writeStream.foreachBatch(write)
    stream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(
        availableNow=True
    ).start().awaitTermination()
    assert seen == [0]
    assert rows_of(grid) == [(1, "written since", 11), *APPLIED[1:]]


Change = tuple[int, str, int, int, str]
"""A key, two values, when it happened, and an operation: i, u or d."""


def told(
    session: SparkSession, changes: list[Change], form: str, draw: random.Random
) -> tuple[DataFrame, dict[str, str]]:
    """Return changes in one of three forms, in any order and cut into tasks by chance, and the words that tell it."""
    rows: list[Any]
    if form == "debezium":
        rows = [
            (op, (key, v, ts) if op == "d" else None, None if op == "d" else (key, v, ts), (at,))
            for key, v, ts, at, op in changes
        ]
        image = "STRUCT<id: BIGINT, v: STRING, ts: BIGINT>"
        schema = f"op STRING, before {image}, after {image}, source STRUCT<lsn: BIGINT>"
        words = {"changes": "debezium"}
    elif form == "delta":
        names = {"i": "insert", "u": "update_postimage", "d": "delete"}
        rows = [(key, v, ts, names[op], at) for key, v, ts, at, op in changes]
        rows += [(key, "before", 0, "update_preimage", at) for key, _, _, at, op in changes if op == "u"]
        schema, words = f"{SCHEMA}, _change_type STRING, _commit_version BIGINT", {"changes": "delta"}
    else:
        rows = [(key, v, ts, at, op) for key, v, ts, at, op in changes]
        schema, words = f"{SCHEMA}, at BIGINT, op STRING", {"operation": "op", "orderBy": "at"}
    draw.shuffle(rows)
    data = session.createDataFrame(rows, schema).repartition(draw.randrange(1, 5))
    return data, {"mode": "apply", **words}


def applied(model: dict[int, tuple[str, int]], changes: list[Change], condition: str | None) -> ChangeCounts:
    """Apply changes to a dictionary: the last of each key, if it may replace what is there."""
    inserted = updated = deleted = 0
    for key in {change[0] for change in changes}:
        _, v, ts, _, operation = max((each for each in changes if each[0] == key), key=lambda each: each[3])
        old = model.get(key)
        if old is not None and condition is not None and not ts > old[1]:
            continue
        if operation == "d":
            deleted += model.pop(key, None) is not None
        else:
            inserted, updated = inserted + (old is None), updated + (old is not None)
            model[key] = (v, ts)
    return ChangeCounts(inserted, updated, deleted)


@pytest.mark.parametrize("load", WAYS)
@pytest.mark.parametrize("turns", [3, pytest.param(25, marks=pytest.mark.slow)])
def test_random_changes_against_a_dictionary(
    session: SparkSession, grid: Grid, load: Callable[..., Any], turns: int
) -> None:
    """In every form, beside statements and checkpoints; batches come again, with other rows even."""
    draw = random.Random(f"{load.__name__} {turns}")
    model = {key: (v, ts) for key, v, ts in HELD}
    for turn in range(turns):
        form = ("debezium", "delta", "columns")[turn % 3]
        happened = draw.sample(range(1000), draw.randrange(1, 40))
        changes = [
            (draw.randrange(15), f"v{draw.randrange(5)}", draw.randrange(99), at, draw.choice("iud")) for at in happened
        ]
        condition = draw.choice([None, "new.ts > old.ts"])
        counts = applied(model, changes, condition)
        data, words = told(session, changes, form, draw)
        words |= {"batchId": f"feed/{turn}"} | ({} if condition is None else {"condition": condition})
        assert load(grid, data, **words) in {None, counts}
        key = draw.randrange(15)
        grid.sql("SINK INTO t VALUES (?, 'sunk', ?)", key, turn)
        model[key] = ("sunk", turn)
        if draw.random() < 0.5:
            again, words = told(session, [(key, "again", 99, 0, "d"), *changes[1:]], "delta", draw)
            load(grid, again, **words, batchId=f"feed/{draw.randrange(turn + 1)}")
        if draw.random() < 0.3:
            grid.checkpoint()
        assert rows_of(grid) == sorted((key, *value) for key, value in model.items())
        v = f"v{draw.randrange(5)}"
        found = sorted(row.id for row in grid.sql("SELECT id FROM t WHERE v = ?", v))
        assert found == sorted(key for key, value in model.items() if value[0] == v)
