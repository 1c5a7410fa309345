"""What is given wrongly is refused by an error of Remuda's own, and changes nothing."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import remuda
from remuda.errors import ErrorCode, RemudaError, SqlError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from remuda.grid import Grid


@pytest.fixture
def grid() -> Iterator[Grid]:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE t (k BIGINT, n INTEGER, PRIMARY KEY (k))")
        grid.sql("INSERT INTO t VALUES (1, 7)")
        yield grid
        assert [tuple(row) for row in grid.sql("SELECT * FROM t")] == [(1, 7)]


@pytest.mark.parametrize("text", [None, 5, b"SELECT 1", ["SELECT 1"]])
def test_a_statement_is_text(grid: Grid, text: Any) -> None:
    for call in (grid.sql, grid.explain):
        with pytest.raises(SqlError, match="a statement is text, not a"):
            call(text)


def test_a_map_is_named_by_text(grid: Grid) -> None:
    with pytest.raises(SqlError, match="the name of a map is text, not a NoneType"):
        grid.map(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("entries", [None, 5, [1, 2], [(1, 2, 3)], "ab"])
def test_entries_are_pairs(grid: Grid, entries: Any) -> None:
    with pytest.raises(SqlError, match="entries are a mapping or pairs of key and value"):
        grid.map("t").put_all(entries)


def test_keys_are_given_one_by_one(grid: Grid) -> None:
    with pytest.raises(SqlError, match="keys are given as a list"):
        grid.map("t").get_all(5)  # type: ignore[arg-type]
    with pytest.raises(SqlError, match="keys are given as a list"):
        grid.map("t").get_all(np.array(1))
    with pytest.raises(SqlError, match="cannot be one of the dictionary"):
        grid.map("t").get_all([np.array(1)])
    with pytest.raises(SqlError, match="a ndarray cannot be loaded"):
        grid.load("t", np.array(1))


def test_a_data_frame_of_objects(grid: Grid) -> None:
    with pytest.raises(SqlError, match="the data frame cannot be read") as caught:
        grid.load("t", pd.DataFrame({"k": [object()], "n": [1]}))
    assert caught.value.code is ErrorCode.DATA_EXCEPTION


def test_fetchmany_takes_a_number_of_rows(grid: Grid) -> None:
    for size in (-1, "x", 1.5):
        with pytest.raises(SqlError, match="fetchmany takes a number of rows"):
            grid.sql("SELECT k FROM t").fetchmany(size)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"members": 0}, "at least one member"),
        ({"members": 1.5}, "members must be a whole number"),
        ({"members": None}, "members must be a whole number"),
        ({"partitions": 0}, "at least one"),
        ({"partitions": "many"}, "partitions must be a whole number"),
        ({"path": 5}, "the path is text"),
        ({"path": b"shop"}, "the path is text"),
        ({"path": ""}, "the path is empty"),
        ({"path": "a\0b"}, "the path has a character"),
        ({"durability": 5}, "durability must be one of"),
    ],
)
def test_options_that_cannot_be_are_refused_before_anything_is_made(
    options: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RemudaError, match=message):
        remuda.open(**options)
    assert list(tmp_path.iterdir()) == []


def test_a_long_line_is_shown_in_part(grid: Grid) -> None:
    listed = ", ".join(str(number) for number in range(2000))
    with pytest.raises(SqlError) as caught:
        grid.sql(f"SELECT * FROM t WHERE k IN ({listed}) AND missing = 1 AND k NOT IN ({listed})")
    _, source, caret = str(caught.value).splitlines()[:3]
    assert len(source) < 130
    assert source.startswith("  …")
    assert source.endswith("…")
    assert source[caret.index("^") : caret.rindex("^") + 1] == "missing"


@pytest.mark.parametrize("columns", [None, 5, [], [1], True])
def test_an_index_is_on_named_columns(grid: Grid, columns: Any) -> None:
    with pytest.raises(SqlError, match="the columns of an index are given by their names"):
        grid.map("t").add_index(columns)


def test_the_kind_and_name_of_an_index_are_text(grid: Grid) -> None:
    with pytest.raises(SqlError, match="an index is SORTED or HASH, not None"):
        grid.map("t").add_index("n", kind=None)  # type: ignore[arg-type]
    with pytest.raises(SqlError, match="the name of an index is text, not an int"):
        grid.map("t").add_index("n", name=5)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [None, 5, ("n",)])
def test_a_column_is_named_by_text(grid: Grid, name: Any) -> None:
    with pytest.raises(SqlError, match="the name of a column is text, not a"):
        grid.map("t").set(2, {name: 1})


def test_a_mode_of_loading_is_text(grid: Grid) -> None:
    with pytest.raises(SqlError, match="mode must be one of append, replace, upsert"):
        grid.load("t", pd.DataFrame({"k": [2], "n": [1]}), ["append"])  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [Decimal("1E+400000"), 1e308, "x" * 1000])
def test_a_message_shows_the_beginning_of_a_long_value(grid: Grid, value: Any) -> None:
    with pytest.raises(SqlError) as caught:
        grid.map("t").set(2, {"n": value})
    assert len(caught.value.message) < 250


def test_a_number_that_python_does_not_write(grid: Grid) -> None:
    with pytest.raises(SqlError, match="a number of thousands of digits overflows INTEGER"):
        grid.map("t").set(2, {"n": 10**5000})


@pytest.mark.parametrize("value", [pd.Series([1]), pd.NaT, pd.Timestamp("2024-01-01")])
def test_not_every_object_of_pandas_is_a_data_frame(grid: Grid, value: Any) -> None:
    with pytest.raises(SqlError, match="of pandas is not a data frame"):
        grid.load("t", value)
