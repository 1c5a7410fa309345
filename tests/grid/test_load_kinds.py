"""Everything that `grid.load` takes, into maps that it creates and into those that are there."""

from __future__ import annotations

import datetime as dt
import gzip
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable, write_deltalake

import remuda
from remuda.errors import ErrorCode, RemudaError, SqlError, StorageError

ROWS = [(1, "a", 1.5), (2, None, None), (3, "c", -0.25)]
DICTS = [dict(zip(("id", "name", "x"), row, strict=True)) for row in ROWS]
TABLE = pa.table(
    {"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", None, "c"], "x": pa.array([1.5, None, -0.25], pa.float64())}
)


@pytest.fixture
def grid() -> Iterator[Any]:
    with remuda.open() as opened:
        yield opened


def relation() -> Any:
    return duckdb.sql(
        "SELECT * FROM (VALUES (1::BIGINT, 'a', 1.5::DOUBLE), (2, NULL, NULL), (3, 'c', -0.25)) t(id, name, x)"
    )


class Stream:
    """Something with the Arrow interface and nothing else."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return TABLE.__arrow_c_stream__(requested_schema)


def written(path: Path) -> Path:
    with remuda.open() as grid:
        grid.load("rows", TABLE, key="id")
        grid.sql(f"COPY rows TO '{path}'")
    return path


def delta(folder: Path) -> Path:
    """Make a table of several versions: only the newest counts."""
    write_deltalake(folder / "delta", TABLE.slice(0, 2))
    write_deltalake(folder / "delta", pa.table({"id": [9], "name": ["gone"], "x": [0.0]}), mode="append")
    DeltaTable(folder / "delta").delete("id = 9")
    write_deltalake(folder / "delta", TABLE.slice(2), mode="append")
    return folder / "delta"


KINDS: dict[str, Callable[[Path], Any]] = {
    "list of dicts": lambda _: DICTS,
    "generator of dicts": lambda _: (dict(row) for row in DICTS),
    "dict of lists": lambda _: TABLE.to_pydict(),
    "dict of arrays": lambda _: {"id": np.array([1, 2, 3]), "name": TABLE["name"], "x": pl.Series([1.5, None, -0.25])},
    "table": lambda _: TABLE,
    "batch": lambda _: TABLE.combine_chunks().to_batches()[0],
    "reader": lambda _: TABLE.to_reader(),
    "stream": lambda _: Stream(),
    "list of batches": lambda _: TABLE.to_batches(max_chunksize=1),
    "dataset": lambda _: ds.dataset(TABLE),
    "scanner": lambda _: ds.dataset(TABLE).scanner(),
    "pandas": lambda _: TABLE.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas, index": lambda _: TABLE.to_pandas(types_mapper=pd.ArrowDtype).set_index("id"),
    "pandas, two levels": lambda _: TABLE.to_pandas(types_mapper=pd.ArrowDtype).set_index(["id", "name"]),
    "polars": lambda _: pl.from_arrow(TABLE),
    "lazy frame": lambda _: pl.from_arrow(TABLE).lazy().filter(pl.col("id") < 10),
    "duckdb": lambda _: relation(),
    "parquet": lambda folder: written(folder / "rows.parquet"),
    "csv": lambda folder: written(folder / "rows.csv"),
    "csv.gz": lambda folder: written(folder / "rows.csv.gz"),
    "json": lambda folder: written(folder / "rows.json"),
    "json.zst": lambda folder: written(folder / "rows.json.zst"),
    "arrow": lambda folder: written(folder / "rows.arrow"),
    "folder": lambda folder: written(folder / "rows.parquet").parent,
    "pattern": lambda folder: written(folder / "rows.parquet").parent / "r*.parquet",
    "text of a pattern": lambda folder: str(written(folder / "rows.parquet").parent / "**" / "*.parquet"),
    "delta folder": delta,
    "delta table": lambda folder: DeltaTable(delta(folder)),
}


def contents(grid: Any, name: str = "m") -> list[Any]:
    return grid.sql(f"SELECT id, name, x FROM {name} ORDER BY id").fetchall()


@pytest.mark.parametrize("kind", KINDS)
def test_data_of_every_kind(grid: Any, tmp_path: Path, kind: str) -> None:
    """Into a map that is there, and into one that is made for it, with the same types."""
    data = KINDS[kind]
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    grid.sql("CREATE TABLE m (id BIGINT, name VARCHAR, x DOUBLE, PRIMARY KEY (id))")
    assert grid.load("m", data(tmp_path / "a")) == 3
    assert grid.load("made", data(tmp_path / "b"), key="id") == 3
    assert contents(grid) == contents(grid, "made") == ROWS
    described = [tuple(row) for row in grid.sql("DESCRIBE made")]
    assert sorted(described) == sorted(tuple(row) for row in grid.sql("DESCRIBE m"))
    assert grid.map("made")[3].x == -0.25


def test_a_map_that_is_made_is_there_with_its_rows_or_not_at_all(tmp_path: Path) -> None:
    with remuda.open(tmp_path / "store") as grid:
        with pytest.raises(SqlError, match=r"key"):
            grid.load("m", [{"id": 1}, {"id": 1}], key="id")
        with pytest.raises(SqlError, match="unknown table"):
            grid.sql("SELECT * FROM m")
        assert grid.load("m", [{"id": 1, "v": 2}, {"id": 1, "v": 1}], "upsert", key="id", order_by="v") == 2
        assert grid.sql("SELECT v FROM m").fetchall() == [(2,)]
        plan = grid.sql("SELECT COUNT(*) FROM m")
        assert plan.fetchall() == [(1,)]
    with remuda.open(tmp_path / "store") as grid:
        assert grid.map("m")[1] == (2,)


@pytest.mark.parametrize("mode", ["append", "upsert", "replace"])
@pytest.mark.parametrize("rows", [1, 20_000])
def test_a_map_that_was_made_is_there_after_it_is_opened_again(tmp_path: Path, mode: str, rows: int) -> None:
    for folder, closed in (("closed", True), ("killed", False)):
        code = f"""
import os, remuda
grid = remuda.open({str(tmp_path / folder)!r})
assert grid.load("m", {{"id": range({rows}), "v": range({rows})}}, {mode!r}, key="id") == {rows}
grid.map("m").increment(0, "v", 5)
grid.close() if {closed} else os._exit(0)
"""
        subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": "src"})
        with remuda.open(tmp_path / folder) as grid:
            assert (len(grid.map("m")), grid.map("m")[0].v, grid.map("m")[rows - 1].v) == (rows, 5, rows - 1 or 5)


def test_a_key_of_several_columns(grid: Any) -> None:
    grid.load("k", {"a": [1, 1], "v": [5, 6], "b": ["x", "y"]}, key=["b", "A"])
    assert grid.map("k")["y", 1] == (6,)
    assert grid.load("k", {"a": [2], "v": [7], "b": ["x"]}, key=("b", "a")) == 1
    with pytest.raises(SqlError, match=r"the key of k is \(b, a\), not \(a\)"):
        grid.load("k", {"a": [2], "v": [7], "b": ["x"]}, key="a")


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (DICTS, {}, r"unknown table: new(.|\n)*key=(.|\n)*CREATE TABLE new \(id BIGINT, name VARCHAR, x DOUBLE"),
        (DICTS, {"key": "idd"}, r"no column idd(.|\n)*id"),
        (DICTS, {"key": ["id", "ID"]}, "in the key twice"),
        (DICTS, {"key": 5}, "key is the name of a column"),
        (DICTS, {"key": []}, "key is the name of a column"),
        (DICTS, {"key": "id", "missing": "maybe"}, "missing must be one of error, null"),
        (DICTS, {"key": "id", "mode": "later"}, "mode must be one of"),
        ([], {"key": "id"}, "no rows or batches"),
        ([{"id": 1}, (2,)], {"key": "id"}, "row 2 is a tuple, not a dictionary"),
        ([(1, 2)], {"key": "id"}, "rows without names"),
        ([{"id": 1}, {"id": "x"}], {"key": "id"}, "several types: int, str"),
        ([{"id": 1, "v": object()}], {"key": "id"}, "which no table holds"),
        ({"id": [1, 2], "v": [1]}, {"key": "id"}, "different numbers of rows: id 2, v 1"),
        ({"id": 1}, {"key": "id"}, "a dictionary is loaded as columns"),
        ({"id": "abc"}, {"key": "id"}, "a dictionary is loaded as columns"),
        (
            pa.table({"id": [1], "v": [[1, 2]]}),
            {"key": "id"},
            "the column v is list<item: int64>, which no column holds",
        ),
        (pa.table([[1], [2]], names=["id", "ID"]), {"key": "id"}, "given twice"),
        (pd.DataFrame({"id": [1]}, index=pd.Index([1], name="id")), {"key": "id"}, "an index and a column called id"),
        (pd.Series([1]), {"key": "id"}, "not a data frame"),
    ],
)
def test_what_makes_no_map(grid: Any, data: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(SqlError, match=message):
        grid.load("new", data, **options)
    assert "new" not in [row.name for row in grid.sql("SHOW TABLES")]


def test_a_view_is_no_map(grid: Any) -> None:
    grid.load("m", DICTS, key="id")
    grid.sql("CREATE VIEW v AS SELECT id FROM m")
    with pytest.raises(SqlError, match="is a view"):
        grid.load("v", DICTS, key="id")


def test_types_are_told_from_python_values(grid: Any) -> None:
    moment = dt.datetime(2024, 1, 31, 12, 30, tzinfo=dt.UTC)
    row = {
        "id": 1,
        "big": 2**70,
        "half": 1,
        "exact": Decimal("1.25"),
        "flag": True,
        "raw": b"\x00",
        "day": dt.date(2024, 1, 31),
        "clock": dt.time(1, 2),
        "local": moment.replace(tzinfo=None),
        "instant": moment,
        "document": {"a": [1, None]},
        "unique": UUID(int=5),
        "nothing": None,
        "scalar": np.int32(7),
        "mixed": dt.date(2024, 1, 1),
    }
    later = {**dict.fromkeys(row), "id": 2, "half": 0.5, "exact": Decimal(1000), "mixed": moment.replace(tzinfo=None)}
    assert grid.load("t", [row, later], key="id") == 2
    types = {column.name: str(column.type) for column in grid.sql("SELECT * FROM t").columns}
    assert types == {
        "id": "BIGINT",
        "big": "DECIMAL(38, 0)",
        "half": "DOUBLE",
        "exact": "DECIMAL(6, 2)",
        "flag": "BOOLEAN",
        "raw": "VARBINARY",
        "day": "DATE",
        "clock": "TIME",
        "local": "TIMESTAMP",
        "instant": "TIMESTAMP WITH TIME ZONE",
        "document": "JSON",
        "unique": "VARCHAR",
        "nothing": "VARCHAR",
        "scalar": "BIGINT",
        "mixed": "TIMESTAMP",
    }
    found = grid.sql("SELECT * FROM t WHERE id = 1").fetchone().asdict()
    assert json.loads(found.pop("document")) == {"a": [1, None]}
    expected = {**row, "half": 1.0, "unique": str(UUID(int=5)), "mixed": dt.datetime(2024, 1, 1)}
    assert found == {name: value for name, value in expected.items() if name != "document"}


def test_types_of_text_files_are_guessed(grid: Any, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,zip,n,x,day,flag\n1,01234,5,0.5,2024-01-31,true\n2,99999,,7,,false\n")
    grid.load("t", tmp_path / "t.csv", key="id")
    types = [str(column.type) for column in grid.sql("SELECT * FROM t").columns]
    assert types == ["BIGINT", "VARCHAR", "BIGINT", "DOUBLE", "DATE", "BOOLEAN"]
    assert grid.sql("SELECT zip FROM t ORDER BY id").fetchall() == [("01234",), ("99999",)], "no number loses its zeros"
    (tmp_path / "j.json").write_text('{"id": 1, "x": 1, "deep": {"a": 1}}\n{"id": 2, "x": 0.5, "late": "y"}\n')
    grid.load("j", tmp_path / "j.json", key="id")
    assert [str(column.type) for column in grid.sql("SELECT * FROM j").columns] == [
        "BIGINT",
        "DOUBLE",
        "JSON",
        "VARCHAR",
    ]


def test_rows_of_a_result_and_tuples_with_names_can_be_loaded(grid: Any) -> None:
    grid.load("m", DICTS, key="id")
    assert grid.load("again", grid.sql("SELECT * FROM m").fetchall(), key="id") == 3
    assert grid.load("stream", grid.sql("SELECT * FROM m"), key="id") == 3
    assert contents(grid, "again") == contents(grid, "stream") == ROWS


def test_values_that_a_column_does_not_hold_are_named_with_their_row(grid: Any) -> None:
    grid.sql("CREATE TABLE m (id BIGINT, n TINYINT, PRIMARY KEY (id))")
    rows = ({"id": number, "n": 1000 if number == 70_000 else 1} for number in range(80_000))
    with pytest.raises(SqlError, match=r"the column n \(TINYINT\) cannot hold 1000, row 70001"):
        grid.load("m", rows)
    assert len(grid.map("m")) == 0
    late = ({"id": number} if number < 60_000 else {"id": number, "late": 1} for number in range(70_000))
    with pytest.raises(SqlError, match="the column late comes first after 50,000 rows"):
        grid.load("new", late, key="id")


@pytest.mark.parametrize("data", [[{"id": 1}], {"id": [1]}, pa.table({"id": [1]}), pl.DataFrame({"id": [1]})])
def test_data_that_lacks_columns_is_refused_unless_told_otherwise(grid: Any, data: Any) -> None:
    grid.sql("CREATE TABLE m (id BIGINT, name VARCHAR, x DOUBLE, PRIMARY KEY (id))")
    with pytest.raises(SqlError, match="lacks columns of m: name, x") as caught:
        grid.load("m", data)
    assert 'missing="null"' in str(caught.value)
    assert caught.value.code is ErrorCode.DATA_EXCEPTION
    assert grid.load("m", data, missing="null") == 1
    assert contents(grid) == [(1, None, None)]


def test_an_index_without_a_name_is_no_column(grid: Any) -> None:
    frame = TABLE.to_pandas(types_mapper=pd.ArrowDtype)
    assert grid.load("m", frame[frame["id"] > 1], key="id") == 2
    assert [column.name for column in grid.sql("SELECT * FROM m").columns] == ["id", "name", "x"]


def test_patterns_with_values_in_the_names_of_folders(grid: Any, tmp_path: Path) -> None:
    for day in (1, 2):
        folder = tmp_path / f"day=2024-01-0{day}"
        folder.mkdir()
        (folder / "part.csv").write_text(f"id\n{day}\n")
        (folder / "other.txt").write_text("no data")
    grid.sql("CREATE TABLE m (id BIGINT, day DATE, PRIMARY KEY (id))")
    assert grid.load("m", tmp_path / "day=*" / "*.csv") == 2
    assert grid.sql("SELECT * FROM m ORDER BY id").fetchall() == [(1, dt.date(2024, 1, 1)), (2, dt.date(2024, 1, 2))]
    with pytest.raises(StorageError, match="no file matches"):
        grid.load("m", tmp_path / "month=*" / "*.csv")
    with pytest.raises(SqlError, match=r"other.txt cannot be loaded: the kinds of files are \.parquet"):
        grid.load("m", tmp_path / "day=*")


def test_a_compressed_file_that_is_damaged_loads_nothing(grid: Any, tmp_path: Path) -> None:
    whole = gzip.compress(("id\n" + "\n".join(map(str, range(200_000)))).encode())
    path = tmp_path / "m.csv.gz"
    grid.sql("CREATE TABLE m (id BIGINT, PRIMARY KEY (id))")
    for damaged in (whole[:-8], whole[: len(whole) // 2], whole[:50_000] + b"\0" * 10 + whole[50_010:], b"id\n1\n"):
        path.write_bytes(damaged)
        with pytest.raises(SqlError, match=r"m\.csv\.gz"):
            grid.load("m", path)
        assert len(grid.map("m")) == 0
    path.write_bytes(whole)
    assert grid.load("m", path) == 200_000


def test_a_missing_package_for_delta_tables_is_named(
    grid: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = delta(tmp_path)
    monkeypatch.setattr("remuda.grid.files.file_sources.find_spec", lambda _: None)
    with pytest.raises(RemudaError, match="pip install deltalake"):
        grid.load("m", folder, key="id")


def test_progress_is_shown_when_asked_for(grid: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remuda.grid.files.progress_bar._PERIOD", 0.0)
    monkeypatch.setattr("remuda.grid.files.load_source.TABLE_ROWS", 10)
    monkeypatch.setattr("remuda.grid.files.loading.TABLE_ROWS", 10)
    rows = [{"id": number} for number in range(100)]
    for progress, expected in ((None, False), (False, False), (True, True)):
        monkeypatch.setattr(sys, "stderr", stream := io.StringIO())
        grid.load("m", [pa.table({"id": [each["id"]]}) for each in rows], mode="upsert", key="id", progress=progress)
        assert ("loading m" in stream.getvalue()) is expected
    monkeypatch.setattr(sys, "stderr", stream := io.StringIO())
    grid.load("m", rows, mode="upsert", progress=True)
    assert "100%" in stream.getvalue()
    assert "100 rows" in stream.getvalue()
