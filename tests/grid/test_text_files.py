"""CSV and JSON files are read with the types of the map: no value, row or member is lost without an error."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import remuda
from remuda.errors import ErrorCode, SqlError
from remuda.grid.files import csv_files, inputs, json_files, load_source

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def grid() -> Iterator[Any]:
    with remuda.open() as opened:
        opened.sql("CREATE TABLE t (n BIGINT, s VARCHAR, d DECIMAL(38, 2), j JSON)")
        yield opened


def loaded(grid: Any, path: Path, text: str | bytes, columns: str = "n, s, d, j") -> list[tuple[Any, ...]]:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    grid.sql("TRUNCATE TABLE t")
    grid.load("t", path, missing="null")
    by_load = sorted((tuple(row) for row in grid.sql(f"SELECT {columns} FROM t")), key=repr)
    grid.sql("TRUNCATE TABLE t")
    grid.sql(f"COPY t FROM '{path}'")
    by_copy = sorted((tuple(row) for row in grid.sql(f"SELECT {columns} FROM t")), key=repr)
    assert by_load == by_copy
    return by_load


def lines(*objects: Any) -> str:
    return "".join(json.dumps(each) + "\n" for each in objects)


@pytest.mark.parametrize("size", [1_100_000, 3_000_000, 9_000_000])
def test_a_first_line_longer_than_a_block(grid: Any, tmp_path: Path, size: int) -> None:
    row = {"n": 5, "s": "x" * size}
    assert loaded(grid, tmp_path / "t.json", lines(row, row), "n, length(s)") == [(5, size)] * 2
    text = f'n,s\n5,{"x" * size}\n6,"{"y" * size}"\n'
    assert loaded(grid, tmp_path / "t.csv", text, "n, length(s)") == [(5, size), (6, size)]


def test_members_that_first_appear_after_the_first_block(grid: Any, tmp_path: Path) -> None:
    rows = [{"n": 1}] * 600_000 + [{"n": 2, "s": "late", "d": 1.25}]
    path = tmp_path / "t.json"
    path.write_text(lines(*rows))
    assert grid.load("t", path, missing="null") == len(rows)
    assert grid.sql("SELECT n, s, d FROM t WHERE s IS NOT NULL").fetchall() == [(2, "late", Decimal("1.25"))]


def test_numbers_for_a_decimal_keep_their_digits(grid: Any, tmp_path: Path) -> None:
    text = '{"n": 1, "d": 12345678901234567890}\n{"n": 2, "d": 123456789012345678901234567890123456.78}\n'
    found = loaded(grid, tmp_path / "t.json", text, "n, d")
    assert found == [(1, Decimal("12345678901234567890.00")), (2, Decimal("123456789012345678901234567890123456.78"))]
    assert loaded(grid, tmp_path / "t.json", '{"d": 1.005}\n{"d": "2.5"}\n', "d") == [
        (Decimal("1.01"),),
        (Decimal("2.50"),),
    ]


def test_a_column_that_is_empty_through_the_first_block(grid: Any, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("n,s,d\n" + "1,,\n" * 600_000 + "2,text,1.5\n")
    assert grid.load("t", path, missing="null") == 600_001
    assert grid.sql("SELECT n, s, d FROM t WHERE s IS NOT NULL").fetchall() == [(2, "text", Decimal("1.50"))]


def test_null_then_text(grid: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_files, "JSON_BLOCK", 20)
    assert loaded(grid, tmp_path / "t.json", lines({"s": None}, {"s": None}, {"s": "x"}), "s") == [
        ("x",),
        (None,),
        (None,),
    ]


def test_objects_in_a_json_column(grid: Any, tmp_path: Path) -> None:
    text = (
        '{"n": 1, "j": {"a":  [1, null, 1.50, 12345678901234567890123]}}\n{"n": 2, "j": [true]}\n{"n": 3, "j": 7.0}\n'
        '{"n": 4, "j": null}\n{"n": 5, "j": "{\\"b\\": 1}"}\n{"n": 6}\n'
    )
    assert loaded(grid, tmp_path / "t.json", text, "n, j") == [
        (1, '{"a":  [1, null, 1.50, 12345678901234567890123]}'),
        (2, "[true]"),
        (3, "7.0"),
        (4, None),
        (5, '{"b": 1}'),
        (6, None),
    ]


def test_values_that_only_the_slower_reading_knows(grid: Any, tmp_path: Path) -> None:
    text = '{"N": "5", "s": 1.50}\n{"n": 6.0, "S": true}\n\n  {"n": 7}\r\n{"n": 1e3, "s": "\\ud83d\\ude00\\u0000"}'
    assert loaded(grid, tmp_path / "t.json", text, "n, s") == [
        (1000, "\U0001f600\0"),
        (5, "1.50"),
        (6, "true"),
        (7, None),
    ]
    text = 'n,s,d\n+5,"",1e2\n 6 ,,\n7.0,NaN,.5\n'
    assert loaded(grid, tmp_path / "t.csv", text, "n, s, d") == [
        (5, "", Decimal("100.00")),
        (6, None, None),
        (7, "NaN", Decimal("0.50")),
    ]


def test_a_byte_order_mark(grid: Any, tmp_path: Path) -> None:
    assert loaded(grid, tmp_path / "t.json", b'\xef\xbb\xbf{"n": 1, "j": {}}\n', "n, j") == [(1, "{}")]
    assert loaded(grid, tmp_path / "t.csv", b"\xef\xbb\xbfn,s\n1,x\n", "n, s") == [(1, "x")]


def test_an_empty_line_of_one_column_is_a_null(grid: Any, tmp_path: Path) -> None:
    assert loaded(grid, tmp_path / "t.csv", "s\nx\n\n", "s") == [("x",), (None,)]
    assert loaded(grid, tmp_path / "t.csv", "n,s\n1,x\n\n2,y\n\n", "n, s") == [(1, "x"), (2, "y")]


def test_files_without_rows(grid: Any, tmp_path: Path) -> None:
    assert loaded(grid, tmp_path / "t.csv", "n,s") == []
    assert loaded(grid, tmp_path / "t.csv", "n,s\n") == []
    assert loaded(grid, tmp_path / "t.json", "") == []
    (tmp_path / "t.csv").write_text("")
    assert grid.sql(f"COPY t FROM '{tmp_path / 't.csv'}' (HEADER false)").update_count == 0


WRONG_JSON = {
    "no object": ('{"n": 1}\nnull\n', "line 2 is not a JSON object"),
    "first line null": ("null\n", "line 1 is not a JSON object"),
    "null after an object": ('{"n": 1} null\n', "line 1 is not a JSON object"),
    "two objects": ('{"n": 1} {"n": 2}\n', "line 1 is not a JSON object"),
    "an array": ('[{"n": 1}]\n', "line 1 is not a JSON object"),
    "cut off": ('{"n": 1}\n{"n"', "line 2 is not a JSON object"),
    "unknown member": ('{"n": 1}\n{"n": 2, "nn": 3}\n', "the table has no column nn"),
    "twice": ('{"n": 1}\n{"n": 2, "n": 3}\n', "line 2: a member is given twice"),
    "twice in other case": ('{"n": 1}\n\n{"n": 2, "N": 3}\n', "line 3: the column n is given twice"),
    "fraction": ('{"n": 1}\n{"n": 1.5}\n', r"line 2: the column n \(BIGINT\) cannot hold '1.5'"),
    "too large": ('{"n": 9223372036854775808}\n', "line 1: .* cannot hold '9223372036854775808'"),
    "true": ('{"n": true}\n', "line 1: .* cannot hold 'true'"),
    "object for text": ('{"s": "x"}\n{"s": {"a": 1}}\n', r"line 2: the column s \(VARCHAR\) cannot hold"),
    "no document": ('{"j": "{"}\n', r"t\.j \(JSON\) cannot hold '\{', row 1 of .*t\.json"),
    "deep": ('{"n": ' + "[" * 100_000 + "]" * 100_000 + "}\n", "line 1 is not a JSON object: it is nested too deeply"),
    "not Unicode": (b'{"s": "\xff"}\n', "it is not valid Unicode, row 1 of"),
    "half a pair": ('{"s": "\\ud83d"}\n', "line 1 is not a JSON object"),
}


@pytest.mark.parametrize("block", [7, 1 << 20])
@pytest.mark.parametrize("name", WRONG_JSON)
def test_what_no_json_file_holds(
    grid: Any, tmp_path: Path, name: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_files, "JSON_BLOCK", block)
    text, message = WRONG_JSON[name]
    if block < len(text) // 1_000:
        monkeypatch.setattr(json_files, "JSON_BLOCK", 1_000)
    _refused(grid, tmp_path / "t.json", text, message)


WRONG_CSV = {
    "not closed": ('n,s\n1,x\n2,"y\n3,z\n', "a quoted value is not closed"),
    "too few": ("n,s\n1,x\n2\n", "row 2 has 1 values where there are 2 columns: '2'"),
    "too many": ("n,s\n\n1,x\n\n2,y,z\n", "row 2 has 3 values where there are 2 columns: '2,y,z'"),
    "no number": ("n,s\n1,x\n2,y\nx,z\n", r"row 3: the column n \(BIGINT\) cannot hold 'x'"),
    "hexadecimal": ("n\n0x10\n", "row 1: .* cannot hold '0x10'"),
    "fraction": ("n\n1.5\n", "row 1: .* cannot hold '1.5'"),
    "empty text": ('n,s\n"",x\n', "row 1: .* cannot hold ''"),
    "too large": ("n\n9223372036854775808\n", "row 1: .* cannot hold '9223372036854775808'"),
    "digits": ("n\n" + "9" * 10_000 + "\n", "row 1: .* cannot hold '999"),
    "digits of a decimal": ("d\n1\n" + "9" * 37 + "\n", r"row 2: the column d \(DECIMAL\(38, 2\)\) cannot hold"),
    "unknown": ("n,names\n1,x\n", "the table has no column names"),
    "named twice": ("n,N\n1,2\n", "the column n is given twice"),
    "not Unicode": (b"n,s\n1,x\n2,\xff\n", "it is not valid Unicode, row 2 of"),
    "a number that is not Unicode": (b"n,s\n1,x\n\xff,x\n", r"row 2: the column n \(BIGINT\) cannot hold"),
    "no document": ("n,j\n1,{}\n2,{\n", r"t\.j \(JSON\) cannot hold '\{', row 2 of .*t\.csv"),
    "empty": ("", "it is empty"),
}


@pytest.mark.parametrize("block", [12, 1 << 20])
@pytest.mark.parametrize("name", WRONG_CSV)
def test_what_no_csv_file_holds(
    grid: Any, tmp_path: Path, name: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_files, "CSV_BLOCK", block)
    text, message = WRONG_CSV[name]
    _refused(grid, tmp_path / "t.csv", text, message)


def _refused(grid: Any, path: Path, text: str | bytes, message: str) -> None:
    """By both ways to load; the error names the file, and nothing of it is loaded."""
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    for load_it in (lambda: grid.load("t", path, missing="null"), lambda: grid.sql(f"COPY t FROM '{path}'")):
        with pytest.raises(SqlError, match=message) as caught:
            load_it()
        assert caught.value.code is ErrorCode.DATA_EXCEPTION
        assert str(path) in caught.value.message or "given twice" in message
        assert len(caught.value.message) < 800
        assert grid.sql("SELECT COUNT(*) FROM t").fetchone()[0] == 0


def test_a_row_longer_than_arrow_holds_is_refused(grid: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_files, "CSV_BLOCK", 100)
    monkeypatch.setattr(json_files, "JSON_BLOCK", 100)
    monkeypatch.setattr(csv_files, "LONGEST_RECORD", 1_000)
    monkeypatch.setattr(json_files, "LONGEST_RECORD", 1_000)
    _refused(grid, tmp_path / "t.csv", f"n,s\n1,x\n2,{'y' * 2_000}\n", "or one after it has more than 1,000 bytes")
    _refused(grid, tmp_path / "t.json", lines({"n": 1}, {"s": "y" * 2_000}), "a line of more than 1,000 bytes")


def test_each_file_of_a_folder_has_its_own_columns(grid: Any, tmp_path: Path) -> None:
    """Arrow's dataset takes the columns of the first file for those of all, and leaves out the others."""
    for kind, written in {
        "csv": ["n\n1\n", "s,n\nx,2\n"],
        "json": [lines({"n": 1}), lines({"s": "x", "n": 2})],
    }.items():
        folder = tmp_path / kind
        folder.mkdir()
        (folder / "_SUCCESS").write_text("")
        for number, text in enumerate(written):
            (folder / f"{number}.{kind}").write_text(text)
        assert grid.load("t", folder, "replace", missing="null") == 2
        assert sorted(grid.sql("SELECT n, s FROM t").fetchall()) == [(1, None), (2, "x")]
    folder = tmp_path / "parquet"
    folder.mkdir()
    pq.write_table(pa.table({"n": [1]}), folder / "0.parquet")
    pq.write_table(pa.table({"n": pa.array([2], pa.int16()), "s": ["x"]}), folder / "1.parquet")
    assert grid.load("t", folder, "replace", missing="null") == 2
    assert sorted(grid.sql("SELECT n, s FROM t").fetchall()) == [(1, None), (2, "x")]
    pq.write_table(pa.table({"n": pa.array([None, 7.5])}), folder / "2.parquet")
    with pytest.raises(SqlError, match=r"t\.n \(BIGINT\) cannot hold 7\.5, row 2 of .*2\.parquet"):
        grid.load("t", folder, missing="null")
    (folder / "3.csv").write_text("n\n1\n")
    with pytest.raises(SqlError, match="files of several kinds: csv, parquet"):
        grid.load("t", folder, missing="null")


def test_columns_in_the_names_of_folders(grid: Any, tmp_path: Path) -> None:
    for name, text in {"n=7": "s\nx\n", "n=__HIVE_DEFAULT_PARTITION__": "s\ny\n"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "part.csv").write_text(text)
    assert grid.load("t", tmp_path, missing="null") == 2
    assert sorted(grid.sql("SELECT s, n FROM t").fetchall()) == [("x", 7), ("y", None)]
    (tmp_path / "n=seven").mkdir()
    (tmp_path / "n=seven" / "part.csv").write_text("s\nz\n")
    with pytest.raises(SqlError, match=r"n=seven.part\.csv: the column n \(BIGINT\) cannot hold 'seven'"):
        grid.load("t", tmp_path, missing="null")
    assert len(grid.sql("SELECT * FROM t").fetchall()) == 2


def test_tables_of_bounded_size(grid: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_source, "TABLE_BYTES", 1_000)
    monkeypatch.setattr(json_files, "JSON_BLOCK", 200)
    rows = [{"n": number, "s": "x" * 40} for number in range(500)]
    path = tmp_path / "t.json"
    path.write_text(lines(*rows))
    source = inputs.open_source(path, grid.store.catalog.find_map("t", grid.search_path).columns)
    assert max(table.nbytes for table in source.tables) < 2_000
    assert grid.load("t", path, missing="null") == 500
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet", row_group_size=10)
    assert grid.load("t", tmp_path / "t.parquet", missing="null") == 500
    assert grid.sql("SELECT COUNT(*), SUM(n) FROM t").fetchone() == (1_000, 2 * sum(range(500)))


@pytest.mark.parametrize("delimiter", ["é", '"', "\n", "\r", "\0"])
def test_delimiters_that_are_none(grid: Any, tmp_path: Path, delimiter: str) -> None:
    for way in ("TO", "FROM"):
        with pytest.raises(SqlError, match="DELIMITER takes an ASCII character") as caught:
            grid.sql(f"COPY t {way} '{tmp_path / 't.csv'}' (DELIMITER '{delimiter}')")
        assert caught.value.code is ErrorCode.PARSING


@pytest.mark.parametrize("delimiter", [".", "1", " ", "-", ":", "e", "\t", "|"])
def test_delimiters_that_values_contain(grid: Any, tmp_path: Path, delimiter: str) -> None:
    path = tmp_path / "t.csv"
    grid.sql("INSERT INTO t VALUES (-11, 'a.1 -', 1.5, NULL), (NULL, NULL, -0.25, '{\"e\": 1.5}')")
    before = sorted(grid.sql("SELECT * FROM t").fetchall(), key=repr)
    grid.sql(f"COPY t TO '{path}' (DELIMITER '{delimiter}')")
    grid.sql("TRUNCATE TABLE t")
    grid.sql(f"COPY t FROM '{path}' (DELIMITER '{delimiter}')")
    assert sorted(grid.sql("SELECT * FROM t").fetchall(), key=repr) == before


def test_what_text_files_have_no_form_for(grid: Any, tmp_path: Path) -> None:
    for kind, expected in {"csv": '"x"\n"1 day"\n', "json": '{"x": "1 day"}\n'}.items():
        grid.sql(f"COPY (SELECT INTERVAL '1' DAY AS x) TO '{tmp_path / 'x'}' (FORMAT {kind}, OVERWRITE)")
        assert (tmp_path / "x").read_text() == expected
    grid.sql(f"COPY (SELECT CAST('NaN' AS DOUBLE) AS x, CAST('-Infinity' AS REAL) AS y) TO '{tmp_path / 'x.json'}'")
    assert (tmp_path / "x.json").read_text() == '{"x": "NaN", "y": "-Infinity"}\n'
    with pytest.raises(SqlError, match="no two members a"):
        grid.sql(f"COPY (SELECT 1 AS a, 2 AS a) TO '{tmp_path / 'x.json'}' (OVERWRITE)")


def test_an_unknown_map_is_suggested_for_files_too(grid: Any, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,name\n1,x\n")
    (tmp_path / "t.json").write_text('{"id": 1, "name": "x", "extra": {}}\n')
    for name in ("t.csv", "t.json"):
        with pytest.raises(SqlError, match=r"CREATE TABLE new \(id BIGINT, name VARCHAR"):
            grid.load("new", tmp_path / name)


def test_readers_that_are_given_up_do_not_disturb_later_ones(grid: Any, tmp_path: Path) -> None:
    """Arrow's thread read on through a descriptor that was meanwhile another file's: the first block was missing."""
    path = tmp_path / "t.csv"
    path.write_text("n,s\n" + "".join(f"{number},{'x' * 2_000_000}\n" for number in range(3)))
    columns = grid.store.catalog.find_map("t", grid.search_path).columns
    for _ in range(100):
        assert next(csv_files.read_csv(path, None, columns))["n"][0].as_py() == 0
    before = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0
    for _ in range(20):
        next(csv_files.read_csv(path, None, columns))
    if before:
        assert len(list(Path("/proc/self/fd").iterdir())) <= before + 4
