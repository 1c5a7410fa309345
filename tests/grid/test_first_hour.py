"""Mistakes of the first hour, made in Python: each message says what to do. Those in SQL are in `errors.txt`."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import remuda

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from remuda.grid import Grid


@pytest.fixture
def grid() -> Iterator[Grid]:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE orders (id BIGINT, customer VARCHAR, amount DOUBLE, PRIMARY KEY (id))")
        grid.sql("INSERT INTO orders VALUES (1, 'C1', 2.5)")
        yield grid


def test_a_folder_that_this_process_has_open(tmp_path: Path) -> None:
    with remuda.open(tmp_path / "shop"), pytest.raises(remuda.FolderInUseError) as caught:
        remuda.open(tmp_path / "shop")
    assert "open for writing by this process already: use that grid, or close it first" in str(caught.value)
    assert caught.value.sqlstate == "55006"


def test_a_folder_that_another_process_has_open(tmp_path: Path) -> None:
    program = "import remuda, sys; g = remuda.open(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "shop")], **pipes) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        with pytest.raises(
            remuda.FolderInUseError, match=f"open for writing in process {other.pid}; open it with read"
        ):
            remuda.open(tmp_path / "shop")
        other.communicate("")


@pytest.mark.parametrize("name", ["shop.duckdb", "sales.parquet", "notes.txt"])
def test_a_file_instead_of_a_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(remuda.SqlError, match="is a file: a grid is kept in a folder") as caught:
        remuda.open(tmp_path / name)
    assert caught.value.sqlstate == "22023"
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_writing_into_what_is_open_for_reading(tmp_path: Path) -> None:
    with remuda.open(tmp_path / "shop") as grid:
        grid.sql("CREATE TABLE t (id BIGINT PRIMARY KEY)")
    with remuda.open(tmp_path / "shop", read_only=True) as grid:
        for statement in ("INSERT INTO t VALUES (1)", "CREATE TABLE u (id BIGINT PRIMARY KEY)"):
            with pytest.raises(remuda.StorageError, match="the folder is open for reading only") as caught:
                grid.sql(statement)
            assert caught.value.sqlstate == "25006"


def test_a_grid_that_is_closed(tmp_path: Path) -> None:
    grid = remuda.open(tmp_path / "shop")
    grid.sql("CREATE TABLE t (id BIGINT PRIMARY KEY)")
    map_ = grid.map("t")
    grid.close()
    for call in (lambda: grid.sql("SELECT 1"), lambda: map_.get(1), lambda: map_.set(1, ())):
        with pytest.raises(remuda.RemudaError, match="closed") as caught:
            call()
        assert caught.value.sqlstate == "08003"


def test_a_key_of_another_type(grid: Grid) -> None:
    with pytest.raises(remuda.SqlError, match=r"'a' \(str\) is not a value of type BIGINT") as caught:
        grid.map("orders").get("a")
    assert caught.value.suggestion == "Give a number, not text."
    assert caught.value.sqlstate == "42804"


def test_a_view_is_no_map(grid: Grid) -> None:
    grid.sql("CREATE VIEW big AS SELECT * FROM orders WHERE amount > 1")
    with pytest.raises(remuda.SqlError, match="big is a view, not a map") as caught:
        grid.map("big")
    assert caught.value.suggestion == "Query it: grid.sql('SELECT * FROM big')."
    assert caught.value.sqlstate == "42809"


def test_a_name_of_a_map_that_is_nearly_right(grid: Grid) -> None:
    with pytest.raises(remuda.SqlError, match="unknown table: order") as caught:
        grid.map("order")
    assert caught.value.suggestion == "orders"


@pytest.mark.parametrize(
    ("text", "values", "message"),
    [
        ("SELECT * FROM orders WHERE id = ?", (), "1 parameter is expected, none was given"),
        ("SELECT * FROM orders WHERE id = ?", (1, 2), "1 parameter is expected, 2 were given"),
        ("SELECT * FROM orders WHERE id = ? OR id = ?", (1,), "2 parameters are expected, 1 was given"),
        ("SELECT * FROM orders", (1,), "no parameter is expected, 1 was given"),
    ],
)
def test_the_number_of_parameters(grid: Grid, text: str, values: tuple[Any, ...], message: str) -> None:
    with pytest.raises(remuda.SqlError) as caught:
        grid.sql(text, *values)
    assert caught.value.message == message
    assert caught.value.sqlstate == "07001"


def test_parameters_in_one_list(grid: Grid) -> None:
    with pytest.raises(remuda.SqlError) as caught:
        grid.sql("SELECT * FROM orders WHERE id = ? AND customer = ?", [1, "C1"])
    assert caught.value.suggestion == "Give the values one by one: grid.sql(text, *values)."


def test_a_parameter_of_another_system_is_named_as_the_mistake(grid: Grid) -> None:
    for text in ("SELECT * FROM orders WHERE id = $1", "SELECT * FROM orders WHERE id = %s"):
        with pytest.raises(remuda.SqlError, match=r"a parameter is written \? or :name"):
            grid.sql(text, 1)


def test_the_cause_of_an_address_that_cannot_be_reached() -> None:
    with pytest.raises(remuda.StorageError) as caught:
        remuda.open("hdfs://nowhere.invalid:1/x", read_only=True)
    assert str(caught.value).startswith("the address of the store cannot be reached: ")
    assert caught.value.sqlstate == "08001"
    with pytest.raises(remuda.StorageError) as caught:
        remuda.open("s3://KEY:SECRET@bucket/x?no_such_option=SECRET", read_only=True)
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("written", ["USING HASH (customer)", "(customer) USING HASH", "(customer) TYPE HASH"])
def test_an_index_in_the_words_of_postgresql(grid: Grid, written: str) -> None:
    grid.sql(f"CREATE INDEX i ON orders {written}")
    grid.sql("CREATE INDEX j ON orders USING BTREE (amount)")
    kinds = {row["name"]: row["type"] for row in grid.sql("SHOW INDEXES")}
    assert kinds == {"i": "HASH", "j": "SORTED"}


@pytest.mark.parametrize("rows", [1, 5000])
def test_the_sqlstate_does_not_depend_on_how_a_value_is_computed(grid: Grid, rows: int) -> None:
    for text, sqlstate in (
        ("SELECT n / 0 FROM range(?) t (n)", "22012"),
        ("SELECT 1.5e0 / CAST(0 AS DOUBLE) FROM range(?) t (n)", "22012"),
        ("SELECT n + 9223372036854775807 FROM range(1, ? + 1) t (n)", "22003"),
        ("SELECT CAST('x' || n AS BIGINT) FROM range(?) t (n)", "22P02"),
        ("SELECT CAST('x' || n AS DATE) FROM range(?) t (n)", "22007"),
    ):
        with pytest.raises(remuda.SqlError) as caught:
            grid.sql(text, rows).fetchall()
        assert (text, caught.value.sqlstate) == (text, sqlstate)
