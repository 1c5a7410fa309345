"""Data frames that are nothing but Parquet files: which are recognised, and that their rows arrive as Spark's would."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import remuda
from remuda.errors import SqlError
from remuda.spark.load.parquet_frame import RowGroup, row_groups
from remuda.spark.load.parquet_task import cut_groups

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

ROWS = 3_000
CREATE = "CREATE TABLE t (id BIGINT, name VARCHAR, price DECIMAL(9, 2), at TIMESTAMP, day DATE, PRIMARY KEY (id))"


def table(first: int = 0, rows: int = ROWS) -> pa.Table:
    ids = range(first, first + rows)
    start = dt.datetime(2024, 1, 1)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "name": [None if number % 11 == 0 else f"N{number % 100}" for number in ids],
            "price": pa.array([Decimal(number % 1000) for number in ids], pa.decimal128(9, 2)),
            "at": pa.array([start + dt.timedelta(seconds=number) for number in ids], pa.timestamp("us")),
            "day": pa.array([start.date() + dt.timedelta(days=number % 1000) for number in ids], pa.date32()),
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "some files"
    made.mkdir()
    pq.write_table(table(), made / "a.parquet", row_group_size=1_000)
    pq.write_table(table(ROWS), made / "b.parquet", row_group_size=2_000)
    return made


def groups_of(frame: DataFrame) -> list[RowGroup] | None:
    return row_groups(frame, {field.name: field for field in frame.schema.fields})


def test_whole_files_are_recognised(spark: SparkSession, folder: Path) -> None:
    whole = spark.read.parquet(str(folder))
    found = groups_of(whole)
    assert found is not None
    assert sorted((each.path.rpartition("/")[2], each.number, each.rows) for each in found) == [
        ("a.parquet", 0, 1_000),
        ("a.parquet", 1, 1_000),
        ("a.parquet", 2, 1_000),
        ("b.parquet", 0, 2_000),
        ("b.parquet", 1, 1_000),
    ]
    whole.createOrReplaceTempView("whole")
    for same in (
        spark.read.parquet(str(folder / "a.parquet")),
        spark.read.parquet(str(folder / "a.parquet"), str(folder / "b.parquet")),
        spark.sql("SELECT * FROM whole"),
        whole.select("name", "id"),
    ):
        assert groups_of(same) is not None


def test_what_is_more_than_files_is_left_to_spark(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    whole = spark.read.parquet(str(folder))
    whole.write.partitionBy("name").parquet(str(tmp_path / "partitioned"))
    whole.select("id").write.csv(str(tmp_path / "csv"))
    frames: dict[str, DataFrame] = {
        "filter": whole.where("id < 10"),
        "limit": whole.limit(5),
        "union": whole.union(whole),
        "expression": whole.selectExpr("id + 1 AS id"),
        "another name": whole.selectExpr("id AS number"),
        "exchanged names": whole.selectExpr("id", "day AS at"),
        "distinct": whole.distinct(),
        "sample": whole.sample(0.5),
        "option": spark.read.option("pathGlobFilter", "a*").parquet(str(folder)),
        "partition columns": spark.read.parquet(str(tmp_path / "partitioned")),
        "no Parquet": spark.read.csv(str(tmp_path / "csv")),
        "no files": spark.range(5),
    }
    assert {name: groups_of(frame) for name, frame in frames.items()} == dict.fromkeys(frames)
    kept = spark.read.parquet(str(folder)).cache()
    assert groups_of(kept) is None
    kept.unpersist()


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"at": pa.array([0], pa.timestamp("ms"))}, id="milliseconds"),
        pytest.param({"id": pa.array([1], pa.int32())}, id="narrower"),
        pytest.param({"id": None}, id="missing"),
    ],
)
def test_files_whose_types_differ_are_left_to_spark(spark: SparkSession, folder: Path, other: dict[str, Any]) -> None:
    frame = spark.read.parquet(str(folder))
    changed = table(rows=1)
    for name, values in other.items():
        changed = changed.drop([name])
        changed = changed if values is None else changed.append_column(name, values)
    pq.write_table(changed, folder / "b.parquet")
    assert groups_of(frame) is None


def test_dates_of_the_old_calendar_are_left_to_spark(spark: SparkSession, folder: Path) -> None:
    marked = table().replace_schema_metadata({"org.apache.spark.legacyDateTime": ""})
    pq.write_table(marked, folder / "b.parquet")
    frame = spark.read.parquet(str(folder))
    assert groups_of(frame) is None
    assert groups_of(frame.select("id", "name")) is not None


def test_row_groups_are_shared_out_evenly() -> None:
    groups = [RowGroup("f", number, rows) for number, rows in enumerate([100, 100, 50, 50, 100])]
    shares = cut_groups(groups, 2)
    assert [group for share in shares for group in share] == groups
    assert [sum(group.rows for group in share) for share in shares] == [200, 200]
    assert len(cut_groups(groups, 16)) == 5
    assert cut_groups([], 2) == []
    large = [RowGroup("f", number, 3_000_000) for number in range(6)]
    assert len(cut_groups(large, 2)) == 6
    assert len(cut_groups(large, 4)) == 6
    assert len(cut_groups(large * 4, 4)) == 20


@pytest.mark.parametrize("statement", [CREATE, CREATE.replace(", PRIMARY KEY (id)", "")])
def test_rows_arrive_without_spark_reading_them(
    spark: SparkSession, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    monkeypatch.setattr("remuda.spark.load.partition_job._through_spark", None)
    with remuda.open(str(tmp_path / "grid.remuda"), spark=spark) as grid:
        grid.sql(statement)
        assert grid.load("t", spark.read.parquet(str(folder))) == 2 * ROWS
        found = grid.sql("SELECT * FROM t ORDER BY id").to_arrow()
    expected = pa.concat_tables([table(), table(ROWS)])
    assert found.to_pylist() == expected.to_pylist()


def test_file_that_changes_meanwhile_is_read_by_spark(
    spark: SparkSession, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its row groups are no longer there: Spark reads what is."""
    frame = spark.read.parquet(str(folder))
    gone = row_groups(frame, {field.name: field for field in frame.schema.fields})
    pq.write_table(table(ROWS), folder / "b.parquet", row_group_size=ROWS)
    monkeypatch.setattr("remuda.spark.load.partition_job.row_groups", lambda *_: gone)
    with remuda.open(str(tmp_path / "grid.remuda"), spark=spark) as grid:
        grid.sql(CREATE)
        assert grid.load("t", spark.read.parquet(str(folder))) == 2 * ROWS


def test_value_that_does_not_fit_is_told(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    with remuda.open(str(tmp_path / "grid.remuda"), spark=spark) as grid:
        grid.sql("CREATE TABLE t (id SMALLINT, PRIMARY KEY (id))")
        pq.write_table(pa.table({"id": pa.array([1, 70_000], pa.int64())}), folder / "a.parquet")
        with pytest.raises(SqlError, match=r"t.id \(SMALLINT\) cannot hold 70000$"):
            grid.load("t", spark.read.parquet(str(folder / "a.parquet")))
