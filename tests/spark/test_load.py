"""DataFrames loaded through Spark tasks into maps of a folder: all rows or none, indexes and all."""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions

import remuda
import remuda.spark
from benchmarks.scale import bytes_to_the_driver
from remuda.errors import ErrorCode, OutcomeUnknownError, SqlError
from remuda.spark.load.change_job import _last_start
from remuda.spark.load.load_job import load_dataframe
from remuda.spark.load.partition_job import batch_rows, borrowed_settings
from remuda.storage import Lookup, Range, Store
from remuda.storage.folder import manifest
from tests.spark.maps import orders

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from remuda.catalog import MapDefinition
    from remuda.storage import MapStore

ROWS = 20_000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(tmp_path / "shop.remuda")
    yield opened
    opened.close()


@pytest.fixture
def empty(store: Store) -> MapStore:
    definition = orders()
    store.create_map(definition)
    return store.map(definition)


@pytest.fixture
def many_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """One for each slot, as of a load of many rows."""
    monkeypatch.setattr("remuda.spark.load.segment_task.LEAST_ROWS", 1_000)


def dataframe(spark: SparkSession, first: int = 0, end: int = ROWS) -> DataFrame:
    return spark.range(first, end, 1, 3).selectExpr(
        "id",
        "concat('C', id % 100) AS Customer",
        "cast(id % 7 AS int) AS QUANTITY",
        "id / 4 AS amount",
        "timestamp_ntz'2024-01-01 00:00:00' + make_interval(0, 0, 0, 0, 0, 0, id) AS created",
    )


def table_of(store_map: MapStore) -> pa.Table:
    """All live rows, strings decoded, in order of ids."""
    names = [column.name for column in store_map.definition.columns]
    schema = pa.schema([(column.name, column.type.arrow) for column in store_map.definition.columns])
    batches = [
        source.read(names, start, stop)
        for source in store_map.snapshot().sources
        for start, stop in source.ranges(None)
    ]
    return pa.concat_tables([pa.Table.from_batches([batch]).cast(schema) for batch in batches]).sort_by("id")


def files_of(store: Store, definition: MapDefinition) -> set[str]:
    assert store.path is not None
    return {path.name for path in (store.path / "maps" / definition.id).glob("*")}


def expected(ids: range) -> pa.Table:
    start = dt.datetime(2024, 1, 1)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "customer": [f"C{number % 100}" for number in ids],
            "quantity": pa.array([number % 7 for number in ids], pa.int32()),
            "amount": [number / 4 for number in ids],
            "created": pa.array([start + dt.timedelta(seconds=number) for number in ids], pa.timestamp("us")),
        }
    )


def test_rows_arrive_and_stay(spark: SparkSession, tmp_path: Path) -> None:
    definition = orders()
    first = Store.open(tmp_path / "shop.remuda")
    first.create_map(definition)
    assert load_dataframe(first.map(definition), dataframe(spark), "append") == ROWS
    assert len(first.map(definition)) == ROWS
    assert table_of(first.map(definition)).equals(expected(range(ROWS)))
    first.close()
    again = Store.open(tmp_path / "shop.remuda")
    assert table_of(again.map(definition)).equals(expected(range(ROWS)))
    assert again.map(definition).lookup(4_711, (0, 1, 3)) == (4_711, "C11", 4_711 / 4)
    again.close()


@pytest.mark.usefixtures("many_segments")
@pytest.mark.parametrize("way", ["load", "write"])
def test_the_driver_gets_descriptions_and_no_rows(spark: SparkSession, store: Store, empty: MapStore, way: str) -> None:
    """200,000 rows take 8 MB. Of a run the driver learns what some ranges of partitions have, of a segment a page."""
    before = bytes_to_the_driver(spark)
    data = dataframe(spark, 0, 200_000)
    if way == "load":
        load_dataframe(empty, data, "append")
        assert len(empty) == 200_000
    else:
        remuda.spark.write(data, str(store.path), "orders")
    assert 0 < bytes_to_the_driver(spark) - before < 100_000


@pytest.mark.usefixtures("many_segments")
def test_partitions_are_those_that_spark_computes(spark: SparkSession, empty: MapStore) -> None:
    load_dataframe(empty, dataframe(spark), "append")
    computed = spark.range(ROWS).selectExpr("id", "pmod(xxhash64(id), 271) AS partition").toArrow()
    partition_of = dict(zip(computed["id"].to_pylist(), computed["partition"].to_pylist(), strict=True))
    spans = []
    for stored in empty.stored:
        segment = stored.segment
        held = np.repeat(np.arange(271), np.diff(segment.partition_offsets))
        assert [partition_of[key] for key in segment.batch.column(0).to_pylist()] == held.tolist()
        spans.append((segment.first_partition, segment.last_partition))
    spans.sort()
    assert len(spans) == 2
    assert spans[0][1] < spans[1][0]


def test_files_stay_where_it_is_unknown_whether_a_manifest_names_them(
    spark: SparkSession, store: Store, empty: MapStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_folder: Path) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(manifest, "sync_folder", failing)
    with pytest.raises(OutcomeUnknownError):
        load_dataframe(empty, dataframe(spark), "append")
    assert {name.rpartition(".")[2] for name in files_of(store, empty.definition)} >= {"arrow", "keys", "index"}


def test_an_interrupt_behind_the_commit_leaves_the_rows(
    spark: SparkSession, tmp_path: Path, store: Store, empty: MapStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = empty.commit_segments

    def interrupted(*given: Any, **named: Any) -> int:
        commit(*given, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr(empty, "commit_segments", interrupted)
    with pytest.raises(KeyboardInterrupt):
        load_dataframe(empty, dataframe(spark), "append")
    assert table_of(empty).equals(expected(range(ROWS)))
    store.close()
    again = Store.open(tmp_path / "shop.remuda")
    assert table_of(again.map(empty.definition)).equals(expected(range(ROWS)))
    assert again.map(empty.definition).damages() == []
    again.close()


def test_each_task_has_whole_groups(spark: SparkSession) -> None:
    starts = [0, 3, 10, 11, 50]
    found = spark.range(100).select("id", _last_start(functions.col("id"), starts, 0, len(starts)).alias("task"))
    assert {row.id: row.task for row in found.collect()} == {id_: bisect_right(starts, id_) - 1 for id_ in range(100)}


def test_indexes_are_written_by_the_tasks_and_answer(spark: SparkSession, store: Store, empty: MapStore) -> None:
    load_dataframe(empty, dataframe(spark), "append")
    by_customer, by_amount = empty.definition.indexes
    assert files_of(store, empty.definition) >= {
        f"{stored.segment.id}.{index.id}.index" for stored in empty.stored for index in (by_customer, by_amount)
    }
    assert _found(empty, by_customer.id, Lookup(("C7",))) == list(range(7, ROWS, 100))
    assert _found(empty, by_amount.id, Lookup(range=Range(10.0, True, 11.0, False))) == [40, 41, 42, 43]


def _found(store_map: MapStore, index_id: str, lookup: Lookup) -> list[int]:
    return sorted(
        number
        for source in store_map.snapshot().sources
        for number in source.take(["id"], source.positions(index_id, lookup, None)).column(0).to_pylist()
    )


def test_append_upsert_and_replace(spark: SparkSession, empty: MapStore) -> None:
    load_dataframe(empty, dataframe(spark, 0, 1_000), "append")
    assert load_dataframe(empty, dataframe(spark, 1_000, 2_000), "append") == 1_000
    assert len(empty) == 2_000
    changed = dataframe(spark, 1_500, 2_500).selectExpr("id", "'X' AS customer")
    assert load_dataframe(empty, changed, "upsert") == 1_000
    assert len(empty) == 2_500
    assert [empty.lookup(key, (1, 2)) for key in (1_499, 1_500, 2_499)] == [("C99", 1), ("X", None), ("X", None)]
    assert load_dataframe(empty, dataframe(spark, 0, 10), "replace") == 10
    assert table_of(empty).equals(expected(range(10)))
    assert load_dataframe(empty, dataframe(spark, 0, 0), "replace") == 0
    assert len(empty) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("id % 15000 AS id", "duplicate key in orders: id = "),
        ("if(id = 777, NULL, id) AS id", "the key orders.id must not be NULL"),
        ("if(id = 777, 3000000000, id) AS quantity", "orders.quantity (INTEGER) cannot hold 3000000000"),
        ("cast(if(id = 777, 1.5, id) AS decimal(20, 1)) AS quantity", "orders.quantity (INTEGER) cannot hold"),
    ],
)
def test_rows_that_do_not_fit_leave_no_trace(
    spark: SparkSession, store: Store, empty: MapStore, change: str, message: str
) -> None:
    load_dataframe(empty, dataframe(spark, 100_000, 100_100), "append")
    before = files_of(store, empty.definition), table_of(empty)
    name = change.rsplit(maxsplit=1)[-1]
    given = dataframe(spark).selectExpr(*[column for column in ("id", "amount") if column != name], change)
    with pytest.raises(SqlError) as without_spark:
        empty.load(given.toArrow(), "append")
    with pytest.raises(SqlError) as caught:
        load_dataframe(empty, given, "append")
    assert caught.value.code is without_spark.value.code
    assert type(caught.value) is type(without_spark.value)
    assert caught.value.message.startswith(message)
    assert "row" not in caught.value.message
    assert (files_of(store, empty.definition), table_of(empty)) == before


def test_key_that_is_already_there_leaves_no_trace(spark: SparkSession, store: Store, empty: MapStore) -> None:
    load_dataframe(empty, dataframe(spark, 0, 1_000), "append")
    empty.delete([999])
    before = table_of(empty)
    with pytest.raises(SqlError, match="duplicate key in orders: id = 998"):
        load_dataframe(empty, dataframe(spark, 998, 3_000), "append")
    assert table_of(empty).equals(before)
    written = {name.partition(".")[0] for name in files_of(store, empty.definition) if name.startswith("load")}
    assert written == {stored.segment.id for stored in empty.stored}
    assert load_dataframe(empty, dataframe(spark, 999, 3_000), "append") == 2_001


def test_task_that_fails_leaves_no_trace(spark: SparkSession, store: Store, empty: MapStore) -> None:
    before = files_of(store, empty.definition)
    broken = dataframe(spark).selectExpr("id", "if(id = 19999, raise_error('no such order'), 1) AS quantity")
    with pytest.raises(SqlError, match="no such order") as caught:
        load_dataframe(empty, broken, "append")
    assert caught.value.code is ErrorCode.GENERIC
    assert files_of(store, empty.definition) == before
    assert len(empty) == 0


def test_wrong_columns_start_no_job(spark: SparkSession, empty: MapStore) -> None:
    tracker = spark.sparkContext.statusTracker()
    before = set(tracker.getJobIdsForGroup())
    with pytest.raises(SqlError, match="no column colour"):
        load_dataframe(empty, dataframe(spark).selectExpr("id", "1 AS colour"), "append")
    assert set(tracker.getJobIdsForGroup()) == before


@pytest.mark.usefixtures("many_segments")
def test_numbers_of_another_type_travel_to_the_right_partition(spark: SparkSession, empty: MapStore) -> None:
    given = spark.range(ROWS).selectExpr("cast(id AS int) AS id", "cast(id % 7 AS bigint) AS quantity")
    load_dataframe(empty, given, "append")
    spans = sorted((each.segment.first_partition, each.segment.last_partition) for each in empty.stored)
    assert len(spans) == 2
    assert spans[0][1] < spans[1][0]
    assert empty.lookup(19, (0, 2)) == (19, 5)


def test_instants_become_the_clock_of_the_sessions_zone(spark: SparkSession, empty: MapStore) -> None:
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        given = spark.range(3).selectExpr("id", "timestamp_seconds(id + 1) AS created")
        load_dataframe(empty, given, "append")
        (clock,) = given.where("id = 1").selectExpr("CAST(created AS TIMESTAMP_NTZ)").first() or (None,)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert clock == dt.datetime(1969, 12, 31, 19, 0, 2)
    assert empty.lookup(1, (4,)) == (2_000_000 - 5 * 3600 * 1_000_000,)


def test_odd_column_names(spark: SparkSession, store: Store) -> None:
    from dataclasses import replace

    from remuda.catalog import ColumnDefinition
    from remuda.types import BIGINT

    plain = orders()
    definition: MapDefinition = replace(plain, columns=(*plain.columns, ColumnDefinition("a.b `c`", BIGINT)))
    store.create_map(definition)
    given = spark.createDataFrame([(1, 2)], ["id", "a.b `c`"])
    load_dataframe(store.map(definition), given, "append")
    assert store.map(definition).lookup(1, (5,)) == (2,)


def test_settings_of_the_session_stay(spark: SparkSession, empty: MapStore) -> None:
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    spark.conf.set(name, "777")
    before = spark.conf.getAll
    try:
        load_dataframe(empty, dataframe(spark, 0, 10), "append")
        assert spark.conf.getAll == before
    finally:
        spark.conf.set(name, "100000")


def test_limit_of_bytes_that_the_user_has_set_stays_one(
    spark: SparkSession, empty: MapStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even the attempt without a limit would be one too many for whoever has set it."""
    name = "spark.sql.execution.arrow.maxBytesPerBatch"
    monkeypatch.setattr("remuda.spark.load.partition_job._NO_LIMIT", "no number: Spark would refuse it")
    spark.conf.set(name, "4096")
    try:
        assert load_dataframe(empty, dataframe(spark), "append") == ROWS
        assert spark.conf.get(name) == "4096"
    finally:
        spark.conf.unset(name)
    assert table_of(empty).equals(expected(range(ROWS)))


def test_batches_that_are_too_large_come_again_with_a_limit(
    spark: SparkSession, store: Store, empty: MapStore, tmp_path: Path
) -> None:
    """The first attempt has written rows of other tasks by then."""
    from pyspark.sql.functions import udf

    failed = tmp_path / "failed"

    def fail_once(number: int) -> int:
        if number == ROWS - 1 and not failed.exists():
            failed.touch()
            raise MemoryError("as org.apache.arrow.memory.OutOfMemoryException is shown")
        return number

    given = dataframe(spark)
    given = given.withColumn("id", udf(fail_once, "long", useArrow=False)("id"))
    assert load_dataframe(empty, given, "append") == ROWS
    assert failed.exists()
    assert table_of(empty).equals(expected(range(ROWS)))
    assert store.path is not None
    assert list((store.path / "inbox").iterdir()) == []


def test_batches_are_small_where_values_may_be_long(spark: SparkSession) -> None:
    fields = {field.name: field for field in dataframe(spark).schema.fields}
    texts = fields.pop("Customer")
    assert batch_rows(fields.values()) > batch_rows([texts, *fields.values()]) == 20_000


def test_map_in_memory(spark: SparkSession) -> None:
    definition = orders()
    store: Any = Store.open(None)
    store.create_map(definition)
    assert load_dataframe(store.map(definition), dataframe(spark), "append") == ROWS
    assert table_of(store.map(definition)).equals(expected(range(ROWS)))
    store.close()


def test_map_without_a_key_gets_generated_ones(spark: SparkSession, tmp_path: Path, many_segments: None) -> None:
    import remuda

    with remuda.open(tmp_path / "grid.remuda") as grid:
        grid.sql("CREATE TABLE events (name VARCHAR, amount DOUBLE)")
        events = spark.range(0, ROWS, 1, 3).selectExpr("concat('E', id) AS name", "id / 2 AS amount")
        assert grid.load("events", events) == ROWS
        assert grid.load("events", events.limit(10)) == 10
        found = grid.sql("SELECT COUNT(*), COUNT(DISTINCT __key), COUNT(DISTINCT name) FROM events").fetchall()
        assert [tuple(row) for row in found] == [(ROWS + 10, ROWS + 10, ROWS)]
        segments = [each.segment for each in grid.store.map(grid.store.catalog.find_map("events", ("public",))).stored]
        assert sum(segment.rows for segment in segments) == ROWS + 10
        key = grid.sql("SELECT __key FROM events WHERE name = 'E77' LIMIT 1").fetchall()[0][0]
        assert tuple(grid.sql("SELECT name FROM events WHERE __key = ?", key).fetchall()[0]) == ("E77",)


def test_map_in_memory_without_a_key(spark: SparkSession) -> None:
    import remuda

    with remuda.open() as grid:
        grid.sql("CREATE TABLE events (name VARCHAR)")
        assert grid.load("events", spark.range(100).selectExpr("concat('E', id) AS name")) == 100
        assert grid.map("events").size() == 100


class Told:
    """What a load has told of its progress: the steps, and how far each was."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, int | None, str]] = []
        self.done: list[list[int]] = []

    def begin(self, step: str, total: int | None, unit: str = "rows") -> None:
        self.steps.append((step, total, unit))
        self.done.append([])

    def advance(self, done: int) -> None:
        if self.done:
            self.done[-1].append(done)


def test_progress_counts_the_rows_and_then_the_segments(
    spark: SparkSession, empty: MapStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("remuda.spark.load.load_job._PERIOD", 0.005)
    path = str(tmp_path / "files")
    dataframe(spark).write.parquet(path)
    spark.conf.set("spark.sql.parquet.datetimeRebaseModeInRead", "CORRECTED")
    for frame, total in ((dataframe(spark), None), (spark.read.parquet(path), ROWS)):
        told = Told()
        assert load_dataframe(empty, frame, "replace", progress=told) == ROWS
        segments = len(empty.stored)
        assert told.steps == [("reading rows", total, "rows"), ("building segments", segments, "segments")]
        for done, most in zip(told.done, (ROWS, segments), strict=True):
            assert done == sorted(done)
            assert all(0 <= each <= most for each in done)
        assert any(told.done[0])


def test_a_load_is_described_in_the_ui_and_told_to_the_logger(
    spark: SparkSession, empty: MapStore, caplog: pytest.LogCaptureFixture
) -> None:
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", "a load")
    try:
        with caplog.at_level("INFO", logger="remuda.spark"):
            load_dataframe(empty, dataframe(spark), "append")
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    store = spark.sparkContext._jsc.sc().statusStore()
    jobs = sorted(spark.sparkContext.statusTracker().getJobIdsForGroup("a load"))
    described = [store.job(job).description().get() for job in jobs]
    assert described == ["remuda: load orders: read rows", "remuda: load orders: build segments"]
    size = sum(each.info.row_bytes for each in empty.stored)
    told = f"load orders: {ROWS} rows, {len(empty.stored)} segments, {size} bytes"
    assert any(record.message.startswith(told) for record in caplog.records), caplog.text


def test_nothing_is_left_between_the_tasks(spark: SparkSession, store: Store, empty: MapStore) -> None:
    assert store.path is not None
    load_dataframe(empty, dataframe(spark), "append")
    assert list((store.path / "inbox").iterdir()) == []
    with pytest.raises(SqlError):
        load_dataframe(empty, dataframe(spark), "append")
    assert list((store.path / "inbox").iterdir()) == []


def test_a_map_is_created_for_a_dataframe(spark: SparkSession, tmp_path: Path) -> None:
    """With the types of its columns; it is gone again where its rows are refused."""
    with remuda.open(tmp_path / "made.remuda", spark=spark) as grid:
        assert grid.load("orders", dataframe(spark), key="id") == ROWS
        types = {column.name: str(column.type) for column in grid.sql("SELECT * FROM orders").columns}
        assert types == {
            "id": "BIGINT",
            "Customer": "VARCHAR",
            "QUANTITY": "INTEGER",
            "amount": "DOUBLE",
            "created": "TIMESTAMP",
        }
        assert grid.map("orders")[7].amount == 1.75
        with pytest.raises(SqlError, match="key"):
            grid.load("twice", spark.range(10).selectExpr("id % 2 AS k", "id AS v"), key="k")
        with pytest.raises(SqlError, match="unknown table"):
            grid.sql("SELECT * FROM twice")
        with pytest.raises(SqlError, match="lacks columns of orders: Customer"):
            grid.load("orders", spark.range(ROWS, ROWS + 5))
        assert grid.load("orders", spark.range(ROWS, ROWS + 5), missing="null") == 5
        assert grid.sql("SELECT COUNT(*) FROM orders WHERE customer IS NULL").fetchone() == (5,)


@pytest.mark.parametrize("own", [None, "5000"])
def test_loads_that_overlap_leave_the_settings_of_the_session(spark: SparkSession, own: str | None) -> None:
    """The second found those of the first, and set them for good when it ended after it."""
    rows, size = "spark.sql.execution.arrow.maxRecordsPerBatch", "spark.sql.execution.arrow.maxBytesPerBatch"
    given = spark.conf.getAll
    if own is not None:
        spark.conf.set(size, own)
    before = spark.conf.getAll
    try:
        first = borrowed_settings(spark, {rows: 7, size: 2**31 - 1})
        second = borrowed_settings(spark, {rows: 9, size: None})
        with ExitStack() as late:
            with first:
                late.enter_context(second)
                assert spark.conf.get(rows) == "9"
                assert spark.conf.getAll.get(size) == own
            assert spark.conf.get(rows) == "9"
        assert spark.conf.getAll == before
    finally:
        if size not in given:
            spark.conf.unset(size)
    assert spark.conf.getAll == given
