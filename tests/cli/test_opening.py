"""`remuda FILE` and `remuda PATTERN`: the rows of files become tables in memory."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from remuda.cli import main
from remuda.cli.opening import find_target, open_target
from tests.cli.terminal import Terminal, needs_tmux

TABLE = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "Full name": ["ann", None, "o'neil"],
        "order": [1.5, float("inf"), None],
        "day": [dt.date(2024, 2, 29), None, dt.date(1970, 1, 1)],
        "empty": pa.nulls(3),
    }
)
ROWS = [tuple(row.values()) for row in TABLE.to_pylist()]


def write(path: Path, table: pa.Table = TABLE) -> Path:
    match path.suffix:
        case ".parquet":
            pa.parquet.write_table(table, path)
        case ".arrow" | ".feather":
            pa.feather.write_feather(table, path)
        case ".csv":
            path.write_text("id,Full name,order,day\n1,ann,1.5,2024-02-29\n2,,inf,\n3,o'neil,,1970-01-01\n")
        case _:
            path.write_text(
                '{"id": 1, "Full name": "ann", "order": 1.5, "day": "2024-02-29"}\n{"id": 2}\n'
                '{"id": 3, "Full name": "o\'neil", "day": "1970-01-01"}\n'
            )
    return path


@pytest.mark.parametrize("ending", ["parquet", "arrow", "feather", "csv", "json"])
def test_a_file_is_a_table(tmp_path: Path, ending: str) -> None:
    path = write(tmp_path / f"Sales 2024.{ending}")
    before = path.read_bytes()
    target = find_target([str(path)])
    assert target.files == (("sales_2024", str(path)),)
    with open_target(target) as grid:
        rows = [tuple(row) for row in grid.sql("SELECT * FROM sales_2024 ORDER BY id")]
        if ending in {"csv", "json"}:
            assert [row[:2] for row in rows] == [row[:2] for row in ROWS]
            assert str(rows[0][3]) == "2024-02-29"
        else:
            assert rows == ROWS
        grid.sql("DELETE FROM sales_2024 WHERE id = 1")
        assert len(grid.map("sales_2024")) == 2
    assert path.read_bytes() == before


def test_several_files_are_several_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other").mkdir()
    paths = [write(tmp_path / "a.parquet"), write(tmp_path / "b.csv"), write(tmp_path / "other" / "a.json")]
    query = "SELECT (SELECT COUNT(*) FROM a) + (SELECT COUNT(*) FROM b) + (SELECT COUNT(*) FROM a_2) AS n"
    assert main([*map(str, paths), "--format", "csv", "-c", query]) == 0
    assert capsys.readouterr().out == "n\n9\n"


def test_a_pattern_is_one_table(tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path / f"part-{number}.parquet", TABLE.slice(number, 1))
    with open_target(find_target([str(tmp_path / "part-*.parquet")])) as grid:
        assert [tuple(row) for row in grid.sql("SELECT * FROM part ORDER BY id")] == ROWS
    write(tmp_path / "odd[1].parquet")
    with open_target(find_target([str(tmp_path / "odd[1].parquet")])) as grid:
        assert len(grid.map("odd")) == 3


def test_a_folder_of_files_with_an_ending_is_a_table(tmp_path: Path) -> None:
    folder = tmp_path / "sales.parquet"
    folder.mkdir()
    write(folder / "part-0.parquet", TABLE.slice(0, 1))
    write(folder / "part-1.parquet", TABLE.slice(1))
    with open_target(find_target([str(folder)])) as grid:
        assert [tuple(row) for row in grid.sql("SELECT * FROM sales ORDER BY id")] == ROWS


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broken.parquet"
    path.write_bytes(b"no parquet")
    assert main([str(path), "-c", "SELECT 1"]) == 1
    assert str(path) in capsys.readouterr().err
    path = tmp_path / "late.csv"
    path.write_text("n\n" + "1\n" * 2_000_000 + "x\n")
    assert main([str(path), "-c", "SELECT 1"]) == 1
    printed = capsys.readouterr().err
    assert "late.csv" in printed
    assert "x" in printed


@needs_tmux
def test_the_shell_says_what_a_file_became(tmp_path: Path, open_terminal: Callable[..., Terminal]) -> None:
    write(tmp_path / "sales.parquet")
    terminal = open_terminal("sales.parquet")
    terminal.wait_for("sales.parquet is the table sales, 3 rows, in memory: the file stays as it is.")
    terminal.enter("SELECT id, day FROM sales WHERE id < 3;").wait_for("1  2024-02-29\n  2  NULL")
