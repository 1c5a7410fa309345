"""COPY between maps, queries and files; CREATE TABLE AS; ANALYZE."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

import remuda
from remuda.errors import ErrorCode, SqlError, StorageError
from remuda.grid.files.formats import COMPRESSED_ENDINGS, FORMATS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def grid() -> Iterator[Any]:
    with remuda.open() as opened:
        opened.sql("CREATE TABLE items (id BIGINT, name VARCHAR, price DOUBLE, day DATE, PRIMARY KEY (id))")
        opened.sql(
            "INSERT INTO items VALUES (1, 'ä', 1.5, DATE '2024-01-01'), (2, NULL, NULL, NULL), "
            "(3, 'c', 3.0, DATE '2024-02-29')"
        )
        opened.sql("CREATE TABLE copies (id BIGINT, name VARCHAR, price DOUBLE, day DATE, PRIMARY KEY (id))")
        yield opened


def rows(grid: Any, text: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in grid.sql(text)), key=repr)


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "feather", "json"])
def test_what_was_copied_out_can_be_copied_in(grid: Any, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"items.{suffix}"
    assert grid.sql(f"COPY items TO '{path}'").update_count == 3
    assert grid.sql(f"COPY copies FROM '{path}'").update_count == 3
    assert rows(grid, "SELECT * FROM copies") == rows(grid, "SELECT * FROM items")
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


VALUES: dict[str, list[Any]] = {
    "VARCHAR": [
        "007",
        "1.50",
        "",
        "NULL",
        "null",
        "NaN",
        "N/A",
        "2024-01-01",
        "true",
        "1e5",
        'a "b", c',
        "two\nlines",
        " x ",
    ],
    "DOUBLE": [1.5, -0.0, float("nan"), float("inf"), 1e300],
    "DECIMAL(38, 3)": [Decimal("12345678901234567890123456789012345.678"), Decimal("-0.001")],
    "BIGINT": [2**63 - 1, -(2**63), 0],
    "BOOLEAN": [True, False],
    "VARBINARY": [b"\x00\xff", b"", b"text"],
    "DATE": [date(1, 1, 1), date(9999, 12, 31)],
    "TIME": [time(10, 11, 12), time(23, 59, 59, 999_999)],
    "TIMESTAMP": [datetime(2024, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999_999)],
    "JSON": ['{"a": [1, null]}', "7"],
}


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "feather", "json", "csv"])
@pytest.mark.parametrize("type_", VALUES)
def test_values_come_back_as_they_were(tmp_path: Path, type_: str, suffix: str) -> None:
    """Each alone and all together: what a file without types contains is not guessed from its first rows."""
    path = tmp_path / f"values.{suffix}"
    with remuda.open() as grid:
        for values in ([*VALUES[type_], None], *([value] for value in VALUES[type_])):
            for name in ("given", "found"):
                grid.sql(f"CREATE TABLE {name} (id BIGINT, v {type_}, PRIMARY KEY (id))")
            for id_, value in enumerate(values):
                grid.sql("INSERT INTO given VALUES (?, ?)", id_, value)
            grid.sql(f"COPY given TO '{path}' (OVERWRITE)")
            grid.sql(f"COPY found FROM '{path}'")
            assert repr(rows(grid, "SELECT * FROM found")) == repr(rows(grid, "SELECT * FROM given"))
            grid.sql("TRUNCATE TABLE found")
            grid.load("found", path)
            assert repr(rows(grid, "SELECT * FROM found")) == repr(rows(grid, "SELECT * FROM given"))
            grid.sql("DROP TABLE given")
            grid.sql("DROP TABLE found")


def test_a_query_with_parameters_into_a_file_whose_name_says_nothing(grid: Any, tmp_path: Path) -> None:
    path = tmp_path / "cheap"
    statement = f"COPY (SELECT id, price * ? AS p FROM items WHERE price < ?) TO '{path}' (FORMAT csv)"
    assert grid.sql(statement, 2, 2.0).update_count == 1
    assert path.read_text(encoding="utf-8") == '"id","p"\n1,3\n'
    grid.sql("CREATE TABLE cheap (id BIGINT, p DOUBLE, PRIMARY KEY (id))")
    grid.sql(f"COPY cheap FROM '{path}' (FORMAT csv)")
    assert rows(grid, "SELECT * FROM cheap") == [(1, 3.0)]


@pytest.mark.parametrize("compression", sorted({each for kind in FORMATS for each in kind.compressions}))
@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: kind.name)
def test_every_format_can_be_read_and_written(grid: Any, tmp_path: Path, kind: Any, compression: str) -> None:
    """In every compression that it says it has; all others are refused."""
    path = tmp_path / f"items{kind.endings[0]}"
    text = f"COPY items TO '{path}' (COMPRESSION {compression})"
    if compression not in kind.compressions:
        with pytest.raises(SqlError, match=f"COMPRESSION of {kind.name} must be one of") as caught:
            grid.sql(text)
        assert caught.value.span is not None
        return
    assert grid.sql(text).update_count == 3
    if kind.is_text and compression != "none":
        ending = next(each for each, name in COMPRESSED_ENDINGS.items() if name == compression)
        path = path.rename(path.with_name(path.name + ending))
    assert grid.sql(f"COPY copies FROM '{path}'").update_count == 3
    assert rows(grid, "SELECT * FROM copies") == rows(grid, "SELECT * FROM items")


@pytest.mark.parametrize("ending", COMPRESSED_ENDINGS)
@pytest.mark.parametrize("kind", ["csv", "json", "jsonl"])
def test_the_ending_of_a_file_says_how_it_is_compressed(grid: Any, tmp_path: Path, kind: str, ending: str) -> None:
    path = tmp_path / f"items.{kind}{ending}"
    grid.sql(f"COPY items TO '{path}'")
    assert path.read_bytes()[:1] not in {b'"', b"{"}
    assert grid.load("copies", path) == 3
    assert rows(grid, "SELECT * FROM copies") == rows(grid, "SELECT * FROM items")
    with path.open("rb") as file:
        whole = file.read()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(SqlError, match="items"):
        grid.load("copies", path, mode="replace")
    assert rows(grid, "SELECT * FROM copies") == rows(grid, "SELECT * FROM items"), "half of a file is no file"


def test_a_file_is_replaced_only_when_that_is_said(grid: Any, tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    path.write_text("mine")
    with pytest.raises(SqlError, match="is there already") as caught:
        grid.sql(f"COPY items TO '{path}'")
    assert "OVERWRITE" in str(caught.value)
    assert caught.value.span is not None
    with pytest.raises(SqlError, match="is there already"):
        grid.sql(f"COPY items TO '{path}' (OVERWRITE false)")
    assert path.read_text() == "mine"
    assert grid.sql(f"COPY items TO '{path}' (OVERWRITE)").update_count == 3
    assert len(path.read_text().splitlines()) == 4
    with pytest.raises(SqlError, match="it is a folder"):
        grid.sql(f"COPY items TO '{tmp_path}' (FORMAT csv, OVERWRITE)")


PARTITIONED = "CREATE TABLE {} (id BIGINT, s VARCHAR, d DATE, p DECIMAL(6, 2), b BOOLEAN, n BIGINT, PRIMARY KEY (id))"
STRANGE = ["a/b", "", "..", "x=y", "ä %41", "__HIVE_DEFAULT_PARTITION__", " ", "a" * 60, None, "C:\\"]


@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("columns", ["s", "d, p", "B, s, D"])
def test_files_by_the_values_of_columns_come_back_as_they_were(tmp_path: Path, kind: Any, columns: str) -> None:
    with remuda.open() as grid:
        for name in ("given", "found"):
            grid.sql(PARTITIONED.format(name))
        for number in range(60):
            day = None if number % 7 == 0 else date(2024, 1, 1 + number % 5)
            row = (number, STRANGE[number % len(STRANGE)], day, Decimal(number % 4) / 4, number % 3 == 0, None)
            grid.sql("INSERT INTO given VALUES (?, ?, ?, ?, ?, ?)", *row)
        folder = tmp_path / "out"
        text = f"COPY given TO '{folder}' (FORMAT {kind.name}, PARTITION_BY ({columns}))"
        assert grid.sql(text).update_count == 60
        assert grid.sql(f"COPY found FROM '{folder}'").update_count == 60
        assert rows(grid, "SELECT * FROM found") == rows(grid, "SELECT * FROM given")
        assert [each.name for each in tmp_path.iterdir()] == ["out"]
        first = columns.split(", ", maxsplit=1)[0].lower()
        assert all(each.name.lower().startswith(f"{first}=") for each in folder.iterdir())


def test_duckdb_reads_files_by_the_values_of_columns(grid: Any, tmp_path: Path) -> None:
    import duckdb

    grid.sql(f"COPY items TO '{tmp_path / 'out'}' (PARTITION_BY (day), COMPRESSION zstd)")
    pattern = tmp_path / "out" / "*" / "*.parquet"
    found = duckdb.sql(f"SELECT id, name, price, day FROM read_parquet('{pattern}', hive_partitioning = true)")
    assert sorted(found.fetchall(), key=repr) == rows(grid, "SELECT id, name, price, day FROM items")


def test_more_folders_than_open_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remuda.grid.files.partitioned_files.MOST_OPEN", 3)
    with remuda.open() as grid:
        grid.sql("CREATE TABLE t (id BIGINT, k BIGINT, PRIMARY KEY (id))")
        grid.load("t", {"id": range(50_000), "k": [number % 10 for number in range(50_000)]})
        grid.sql(f"COPY t TO '{tmp_path / 'out'}' (PARTITION_BY k)")
        assert len(list((tmp_path / "out").iterdir())) == 10
        assert grid.load("again", tmp_path / "out", key="id") == 50_000
        assert grid.sql("SELECT COUNT(*) FROM again WHERE CAST(k AS BIGINT) = id % 10").fetchone() == (50_000,)


def test_a_folder_is_replaced_only_by_what_it_has(grid: Any, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    text = f"COPY items TO '{folder}' (PARTITION_BY (day)"
    grid.sql(text + ")")
    with pytest.raises(SqlError, match="is there already"):
        grid.sql(text + ")")
    grid.sql("DELETE FROM items WHERE id = 1")
    grid.sql(text + ", OVERWRITE)")
    assert grid.sql(f"COPY copies FROM '{folder}'").update_count == 2
    (folder / "letter.txt").write_text("mine")
    with pytest.raises(SqlError, match="it has other files than parquet"):
        grid.sql(text + ", OVERWRITE)")
    assert (folder / "letter.txt").read_text() == "mine"
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("PARTITION_BY (nothing)", "unknown column: nothing"),
        ("PARTITION_BY (id, ID)", "twice"),
        ("PARTITION_BY (id, name, price, day)", "leaves no column"),
        ("PARTITION_BY", "a column"),
        ("COMPRESSION rar", "must be one of"),
        ("OVERWRITE maybe", "OVERWRITE must be"),
        ("FORMAT xml", "FORMAT must be parquet, csv, json, arrow or feather, not xml"),
        ("FORMAT parquet, FORMAT csv", "given twice"),
        ("MODE append", "unknown option"),
    ],
)
def test_options_of_writing_that_are_refused(grid: Any, tmp_path: Path, options: str, message: str) -> None:
    with pytest.raises(SqlError, match=message) as caught:
        grid.sql(f"COPY items TO '{tmp_path / 'out.parquet'}' ({options})")
    assert caught.value.span is not None
    assert list(tmp_path.iterdir()) == []


def test_columns_of_csv_files_are_found_whatever_the_case_of_their_names(grid: Any, tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    path.write_text('Price,NAME,ID\n1.5,007,1\n,,2\n-0,"",3\n', encoding="utf-8")
    grid.sql(f"COPY copies FROM '{path}'")
    assert repr(rows(grid, "SELECT id, name, price FROM copies")) == "[(1, '007', 1.5), (2, None, None), (3, '', -0.0)]"


@pytest.mark.parametrize(
    ("type_", "text"), [("VARBINARY", "0g"), ("TIME", "25:00"), ("BIGINT", "NULL"), ("BIGINT", "x")]
)
def test_text_that_is_no_value_of_its_column_is_named(grid: Any, tmp_path: Path, type_: str, text: str) -> None:
    grid.sql(f"CREATE TABLE t (id BIGINT, v {type_}, PRIMARY KEY (id))")
    path = tmp_path / "t.csv"
    path.write_text(f"id,v\n1,{text}\n", encoding="utf-8")
    with pytest.raises(SqlError, match=r"\bv\b") as caught:
        grid.sql(f"COPY t FROM '{path}'")
    assert caught.value.code is ErrorCode.DATA_EXCEPTION
    assert repr(text) in caught.value.message


def test_modes_of_loading(grid: Any, tmp_path: Path) -> None:
    path = tmp_path / "items.parquet"
    grid.sql(f"COPY (SELECT * FROM items WHERE id < 3) TO '{path}'")
    grid.sql("INSERT INTO copies (id) VALUES (1), (9)")
    with pytest.raises(SqlError) as caught:
        grid.sql(f"COPY copies FROM '{path}'")
    assert caught.value.code is ErrorCode.DATA_EXCEPTION
    assert rows(grid, "SELECT id FROM copies") == [(1,), (9,)]
    assert grid.sql(f"COPY copies FROM '{path}' (MODE upsert)").update_count == 2
    assert rows(grid, "SELECT id FROM copies") == [(1,), (2,), (9,)]
    grid.sql(f"COPY copies FROM '{path}' (MODE replace)")
    assert rows(grid, "SELECT id FROM copies") == [(1,), (2,)]


def test_a_query_that_fails_leaves_no_file(grid: Any, tmp_path: Path) -> None:
    with pytest.raises(SqlError, match="division by zero"):
        grid.sql(f"COPY (SELECT 1 / (id - 3) AS x FROM items) TO '{tmp_path / 'x.csv'}'")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_copied(grid: Any, tmp_path: Path) -> None:
    with pytest.raises(SqlError, match="name it"):
        grid.sql(f"COPY items TO '{tmp_path / 'x'}'")
    with pytest.raises(SqlError, match="cannot be written"):
        grid.sql(f"COPY items TO '{tmp_path / 'nowhere' / 'x.csv'}'")
    with pytest.raises(StorageError, match="no such file"):
        grid.sql(f"COPY items FROM '{tmp_path / 'x.csv'}'")
    with pytest.raises(SqlError) as caught:
        grid.sql("COPY (SELECT idd FROM items) TO 'x.csv'")
    assert caught.value.position is not None
    assert caught.value.position.column == 14


def test_create_table_as(grid: Any) -> None:
    text = "CREATE TABLE dear (PRIMARY KEY (id)) PARTITION BY (id) AS SELECT id, price FROM items WHERE price > ?"
    assert grid.sql(text, 2).update_count == 1
    assert rows(grid, "SELECT id, price FROM dear WHERE id = 3") == [(3, 3.0)]
    assert [row.key for row in grid.sql("SHOW TABLES") if row.name == "dear"] == ["id"]
    assert grid.sql("CREATE TABLE IF NOT EXISTS dear AS SELECT 1 AS x").update_count == 0


def test_a_table_that_could_not_be_filled_is_not_there(grid: Any) -> None:
    with pytest.raises(SqlError):
        grid.sql("CREATE TABLE t (PRIMARY KEY (k)) AS SELECT id / 2 AS k FROM items")
    with pytest.raises(SqlError, match="two columns"):
        grid.sql("CREATE TABLE t AS SELECT id, id FROM items")
    with pytest.raises(SqlError, match="unknown table"):
        grid.sql("SELECT * FROM t")


def test_analyze_makes_plans_anew(grid: Any) -> None:
    grid.sql("SELECT * FROM items WHERE id = 1").fetchall()
    grid.sql("ANALYZE items")
    assert list(grid.sql("SHOW PLANS")) == []
    grid.sql("ANALYZE")
    with pytest.raises(SqlError, match="unknown table: none"):
        grid.sql("ANALYZE none")


def test_copies_to_one_file_do_not_disturb_each_other(grid: Any, tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    with ThreadPoolExecutor(8) as threads:
        copies = [threads.submit(grid.sql, f"COPY items TO '{path}' (OVERWRITE)") for _ in range(64)]
        assert {each.result().update_count for each in copies} == {3}
    assert len(path.read_text().splitlines()) == 4
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
