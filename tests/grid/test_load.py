"""`Grid.load` from everything that it takes."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import remuda
from remuda.errors import ErrorCode, RemudaError, SqlError, StorageError

ROWS = [(1, "a", 0.5), (2, None, 1.5), (3, "c", None)]
TABLE = pa.table({"id": [1, 2, 3], "name": ["a", None, "c"], "x": [0.5, 1.5, None]})


@pytest.fixture
def grid() -> Iterator[Any]:
    with remuda.open() as opened:
        opened.sql("CREATE TABLE m (id BIGINT, name VARCHAR, x DOUBLE, PRIMARY KEY (id))")
        yield opened


def contents(grid: Any) -> list[Any]:
    return list(grid.sql("SELECT id, name, x FROM m ORDER BY id").fetchall())


IN_MEMORY: dict[str, Callable[[], Any]] = {
    "table": lambda: TABLE,
    "record batch": lambda: TABLE.to_batches()[0],
    "reader": lambda: pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches()),
    "chunked table": lambda: pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)]),
    "dictionary": lambda: TABLE.set_column(1, "name", TABLE.column("name").dictionary_encode()),
    "other order and case": lambda: TABLE.select(["x", "id", "name"]).rename_columns(["X", "ID", "Name"]),
    "narrower types": lambda: TABLE.set_column(0, "id", TABLE.column("id").cast(pa.int16())),
    "pandas": TABLE.to_pandas,
    "pandas with an index": lambda: TABLE.to_pandas().set_index(pd.Index([7, 8, 9])),
    "polars": lambda: pl.from_arrow(TABLE),
}


@pytest.mark.parametrize("name", IN_MEMORY)
def test_data_in_memory(grid: Any, name: str) -> None:
    assert grid.load("m", IN_MEMORY[name]()) == 3
    assert contents(grid) == ROWS


def write_json(path: Path) -> None:
    path.write_text("\n".join(json.dumps(row) for row in TABLE.to_pylist()))


FILES: dict[str, Callable[[Path], None]] = {
    "data.parquet": lambda path: pa.parquet.write_table(TABLE, path),
    "data.csv": lambda path: pa.csv.write_csv(TABLE.slice(0, 1), path),
    "data.json": write_json,
    "data.arrow": lambda path: pa.feather.write_feather(TABLE, path, compression="uncompressed"),
    "data.feather": lambda path: pa.feather.write_feather(TABLE, path),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("as_text", [True, False])
def test_files_are_loaded_by_their_names(grid: Any, name: str, as_text: bool, tmp_path: Path) -> None:
    path = tmp_path / name
    FILES[name](path)
    count = 1 if name.endswith("csv") else 3
    assert grid.load("m", str(path) if as_text else path) == count
    assert contents(grid) == ROWS[:count]


def test_a_folder_of_files(grid: Any, tmp_path: Path) -> None:
    for number in range(3):
        pa.parquet.write_table(TABLE.slice(number, 1), tmp_path / f"part-{number}.parquet")
    assert grid.load("m", tmp_path) == 3
    assert contents(grid) == ROWS


@pytest.mark.parametrize("data", [5, [1, 2], b"id", None, object()])
def test_what_cannot_be_loaded(grid: Any, data: Any) -> None:
    with pytest.raises(SqlError, match=r"cannot be loaded: give an Arrow table, a data frame, batches, .* or a path"):
        grid.load("m", data)


def test_paths_that_are_none(grid: Any, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="there is no such file"):
        grid.load("m", tmp_path / "missing.parquet")
    (tmp_path / "data.xlsx").write_bytes(b"")
    with pytest.raises(SqlError, match="the kinds of files are"):
        grid.load("m", tmp_path / "data.xlsx")
    (tmp_path / "broken.parquet").write_bytes(b"not Parquet at all")
    with pytest.raises(SqlError, match="cannot be read"):
        grid.load("m", tmp_path / "broken.parquet")
    assert contents(grid) == []


@pytest.mark.parametrize("rows", [3, 20_000], ids=["through the log", "as a segment"])
def test_append_refuses_known_keys_and_upsert_replaces_them(grid: Any, rows: int) -> None:
    def table(ids: range, x: float) -> pa.Table:
        return pa.table({"id": ids, "name": ["n"] * len(ids), "x": [x] * len(ids)})

    grid.load("m", table(range(rows), 1.0))
    with pytest.raises(SqlError) as caught:
        grid.load("m", table(range(rows - 1, 2 * rows), 2.0))
    assert caught.value.code is ErrorCode.DATA_EXCEPTION
    assert grid.sql("SELECT COUNT(*), SUM(x) FROM m").fetchall() == [(rows, float(rows))]
    grid.load("m", table(range(rows - 1, 2 * rows), 2.0), "upsert")
    assert grid.sql("SELECT COUNT(*), SUM(x) FROM m").fetchall() == [(2 * rows, 3.0 * rows + 1)]
    grid.load("m", table(range(5), 7.0), mode="replace")
    assert grid.sql("SELECT COUNT(*), SUM(x) FROM m").fetchall() == [(5, 35.0)]
    with pytest.raises(SqlError, match="mode must be one of append, replace, upsert"):
        grid.load("m", table(range(5), 7.0), mode="merge")


def test_data_that_does_not_fit(grid: Any) -> None:
    for table in (
        TABLE.drop_columns(["id"]),
        TABLE.append_column("more", pa.array([1, 2, 3])),
        TABLE.set_column(0, "id", pa.array(["a", "b", "c"])),
        TABLE.set_column(0, "id", pa.array([1, None, 3])),
        TABLE.set_column(0, "id", pa.array([1, 1, 3])),
    ):
        with pytest.raises(RemudaError):
            grid.load("m", table)
    assert contents(grid) == []


@pytest.mark.parametrize(("type_", "value"), [("DATE", 3_000_000), ("TIMESTAMP", 2**60), ("TIMESTAMP", -(2**60))])
def test_dates_beyond_the_calendar_are_refused(grid: Any, type_: str, value: int) -> None:
    """Arrow holds them, but no date of Python could."""
    grid.sql(f"CREATE TABLE days (id BIGINT, day {type_}, PRIMARY KEY (id))")
    arrow = pa.date32() if type_ == "DATE" else pa.timestamp("us")
    numbers = pa.array([0, value], pa.int32() if type_ == "DATE" else pa.int64())
    with pytest.raises(SqlError, match=r"days.day .* years go from 1 to 9999, row 2"):
        grid.load("days", pa.table({"id": [1, 2], "day": numbers.cast(arrow)}))
    assert len(grid.map("days")) == 0


def test_an_unknown_map_suggests_how_to_create_it(grid: Any) -> None:
    with pytest.raises(SqlError, match=r"CREATE TABLE n \(id BIGINT, name VARCHAR, x DOUBLE, PRIMARY KEY") as caught:
        grid.load("n", TABLE)
    assert caught.value.code is ErrorCode.OBJECT_NOT_FOUND


def test_the_result_of_a_query_can_be_loaded(grid: Any) -> None:
    grid.load("m", TABLE)
    grid.sql("CREATE TABLE copy (id BIGINT, name VARCHAR, x DOUBLE, PRIMARY KEY (id))")
    assert grid.load("copy", grid.sql("SELECT * FROM m")) == 3
    assert grid.sql("SELECT COUNT(*) FROM copy").fetchall() == [(3,)]


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("BIGINT", pa.array([1], pa.timestamp("us"))),
        ("INTEGER", pa.array([1], pa.date32())),
        ("BIGINT", pa.array([1], pa.duration("us"))),
        ("TIMESTAMP", pa.array([1])),
        ("TIME", pa.array([1])),
        ("TIME", pa.array([1], pa.timestamp("us"))),
        ("BOOLEAN", pa.array([1.5])),
        ("VARCHAR", pa.array([1], pa.duration("us"))),
    ],
)
def test_a_moment_is_no_number(type_: str, values: pa.Array) -> None:
    """Arrow casts between a moment and the integer that it is inside; nobody who loads a column means that."""
    with remuda.open() as grid:
        grid.sql(f"CREATE TABLE t (id BIGINT, v {type_}, PRIMARY KEY (id))")
        with pytest.raises(SqlError, match=f"t.v .{type_}. cannot hold values of type"):
            grid.load("t", pa.table({"id": [1], "v": values}))


@pytest.mark.parametrize(
    ("type_", "good", "bad", "message"),
    [
        ("DATE", dt.datetime(2024, 1, 31), dt.datetime(2024, 1, 31, 10), "2024, 1, 31, 10, 0"),
        ("REAL", 1e38, 1e39, "1e\\+39"),
    ],
)
def test_a_value_that_would_lose_a_part_is_refused(type_: str, good: Any, bad: Any, message: str) -> None:
    with remuda.open() as grid:
        grid.sql(f"CREATE TABLE t (id BIGINT, v {type_}, PRIMARY KEY (id))")
        assert grid.load("t", pa.table({"id": [1, 2], "v": [None, good]})) == 2
        with pytest.raises(SqlError, match=f"{message}.*row 2"):
            grid.load("t", pa.table({"id": [3, 4], "v": [None, bad]}))


@pytest.mark.parametrize(
    "values",
    [pa.array([2**62], pa.timestamp("us")), pa.array([10**15], pa.timestamp("s")), pa.array([2**31 - 1], pa.date32())],
)
def test_a_moment_that_python_has_not_is_refused_too(values: pa.Array) -> None:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE t (id BIGINT, v TIMESTAMP, PRIMARY KEY (id))")
        with pytest.raises(SqlError, match=r"t\.v \(TIMESTAMP\) cannot hold"):
            grid.load("t", pa.table({"id": [1], "v": values}))


def test_a_column_that_is_given_twice() -> None:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE t (id BIGINT, v BIGINT, PRIMARY KEY (id))")
        with pytest.raises(SqlError, match="the column id is given twice"):
            grid.load("t", pa.table([[1], [2]], names=["id", "ID"]))


def test_categories_of_polars_and_a_series() -> None:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE t (id BIGINT, v VARCHAR, PRIMARY KEY (id))")
        categories = pl.Series(["a", None, "a"], dtype=pl.Categorical)
        assert grid.load("t", pl.DataFrame({"id": [1, 2, 3], "v": categories})) == 3
        assert grid.sql("SELECT v FROM t ORDER BY id").fetchall() == [("a",), (None,), ("a",)]
        with pytest.raises(SqlError, match="a Series has no columns with names"):
            grid.load("t", categories)


def test_batches_of_different_columns() -> None:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE t (id BIGINT, v VARCHAR, PRIMARY KEY (id))")
        pieces = [pa.table({"id": [1]}), pa.table({"v": ["x"], "id": [2]}), pa.table({"id": pa.array([3], pa.int8())})]
        assert grid.load("t", iter(pieces), missing="null") == 3
        assert grid.sql("SELECT * FROM t ORDER BY id").fetchall() == [(1, None), (2, "x"), (3, None)]
