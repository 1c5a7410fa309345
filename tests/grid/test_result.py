"""Results: every way of reading, misuse, Arrow and its friends, and that reading streams."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import remuda
from remuda.errors import ErrorCode, SqlError
from remuda.grid.result import CURSOR_BUFFER_SIZE

ROWS = 10_000
WAYS = {
    "batches": ("SELECT id FROM m ORDER BY id", ROWS),
    "index shortcut": ("SELECT id FROM m WHERE few = 3", 10),
    "shortcut": ("SELECT id FROM m WHERE id = 0", 1),
    "nothing": ("SELECT id FROM m WHERE id = -1", 0),
}
"""Statements whose rows come from fragments, and from shortcuts; all of them begin at 0 and count up."""


@pytest.fixture(scope="module", params=[1, 3], ids=["1 member", "3 members"])
def grid(request: pytest.FixtureRequest) -> Iterator[Any]:
    with remuda.open(members=request.param) as opened:
        opened.sql("CREATE TABLE m (id BIGINT, few BIGINT, PRIMARY KEY (id))")
        opened.sql("CREATE INDEX m_few ON m (few) TYPE HASH")
        few = [3 if id_ < 10 else None for id_ in range(ROWS)]
        opened.load("m", pa.table({"id": range(ROWS), "few": pa.array(few, pa.int64())}))
        yield opened


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> tuple[str, int]:
    found: tuple[str, int] = WAYS[request.param]
    return found


def run(grid: Any, way: tuple[str, int]) -> tuple[Any, list[tuple[int]]]:
    text, count = way
    return grid.sql(text), [(id_,) for id_ in range(count)]


def in_order(rows: Any) -> list[Any]:
    """Without ORDER BY rows come in any order."""
    return sorted(rows)


def test_every_way_of_reading(grid: Any, way: tuple[str, int]) -> None:
    result, rows = run(grid, way)
    assert in_order(result) == rows
    result, rows = run(grid, way)
    assert in_order(result.fetchall()) == rows
    result, rows = run(grid, way)
    found = []
    while (row := result.fetchone()) is not None:
        found.append(row)
    assert in_order(found) == rows
    result, rows = run(grid, way)
    found = []
    while many := result.fetchmany(7):
        assert len(many) <= 7
        found += many
    assert in_order(found) == rows
    result, rows = run(grid, way)
    assert in_order(result.to_arrow().column("id").to_pylist()) == [row[0] for row in rows]
    result, rows = run(grid, way)
    assert in_order(result.to_pandas()["id"].tolist()) == [row[0] for row in rows]
    result, rows = run(grid, way)
    assert in_order(result.to_polars()["id"].to_list()) == [row[0] for row in rows]
    result, rows = run(grid, way)
    assert in_order(pa.table(result).column("id").to_pylist()) == [row[0] for row in rows]


@pytest.mark.parametrize("read", [0, 1, 5, CURSOR_BUFFER_SIZE, CURSOR_BUFFER_SIZE + 1])
@pytest.mark.parametrize("rest", ["fetchall", "to_arrow", "stream", "iterate"])
def test_what_is_left_after_a_partial_reading(grid: Any, way: tuple[str, int], read: int, rest: str) -> None:
    """No row twice, none lost, however the reading goes on."""
    result, rows = run(grid, way)
    found = [tuple(row) for row in result.fetchmany(read)]
    assert len(found) == min(read, len(rows))
    match rest:
        case "fetchall":
            found += [tuple(row) for row in result.fetchall()]
        case "iterate":
            found += [tuple(row) for row in result]
        case "to_arrow":
            found += [(value,) for value in result.to_arrow().column("id").to_pylist()]
        case "stream":
            reader = pa.RecordBatchReader.from_stream(result)
            found += [(value,) for batch in reader for value in batch.column(0).to_pylist()]
    assert in_order(found) == rows


TAKES_ALL: dict[str, Callable[[Any], Any]] = {
    "for": list,
    "fetchall": lambda result: result.fetchall(),
    "dicts": lambda result: result.dicts(),
    "json": lambda result: json.loads(result.json()),
    "arrow": lambda result: result.arrow().to_pylist(),
    "df": lambda result: result.df().to_dict("records"),
    "pl": lambda result: result.pl().to_dicts(),
    "stream": lambda result: pa.table(result).to_pylist(),
    "record_batches": lambda result: [row for batch in result.record_batches() for row in batch.to_pylist()],
}


@pytest.mark.parametrize("first", TAKES_ALL)
def test_a_second_reading_says_that_the_result_was_read(grid: Any, way: tuple[str, int], first: str) -> None:
    result, rows = run(grid, way)
    assert not result.was_read
    assert len(TAKES_ALL[first](result)) == len(rows)
    assert result.was_read
    for again in TAKES_ALL.values():
        with pytest.raises(SqlError, match="was read already") as caught:
            again(result)
        assert caught.value.code is ErrorCode.DATA_EXCEPTION
    with pytest.raises(SqlError, match="was read already"):
        result.show()
    assert repr(result) == "<Result: id BIGINT; was read already>"
    assert "was read already" in result._repr_html_()


def test_a_cursor_that_is_at_the_end_says_so_for_ever(grid: Any, way: tuple[str, int]) -> None:
    result, rows = run(grid, way)
    assert len(result.fetchmany(ROWS + 1)) == len(rows)
    for _ in range(2):
        assert result.fetchone() is None
        assert result.fetchmany(3) == []
    assert result.fetchall() == [], "nothing is left, and nothing was taken twice"
    for _ in range(2):
        assert result.fetchone() is None
        assert result.fetchmany(3) == []
    with pytest.raises(SqlError, match="was read already"):
        result.fetchall()


def test_a_statement_without_rows_can_be_read_for_ever(grid: Any) -> None:
    result = grid.sql("DELETE FROM m WHERE id = -1")
    for _ in range(3):
        assert (result.fetchall(), list(result), result.fetchone()) == ([], [], None)
    assert repr(result) == "<Result: 0 rows changed>"


def test_a_statement_without_rows_says_what_it_did(grid: Any, tmp_path: Path) -> None:
    path = tmp_path / "made.parquet"
    outcomes = {
        "CREATE TABLE made (PRIMARY KEY (n)) AS SELECT n FROM range(3) AS r (n)": "3 rows written",
        f"COPY made TO '{path}'": "3 rows copied",
        f"COPY made FROM '{path}' (MODE replace)": "3 rows copied",
        "DELETE FROM made WHERE n = 0": "1 row changed",
        "TRUNCATE made": "2 rows changed",
        "CREATE INDEX made_n ON made (n)": "done",
        "SET engine = local": "done",
        "DROP TABLE made": "done",
    }
    for text, outcome in outcomes.items():
        result = grid.sql(text)
        assert (result.outcome, repr(result)) == (outcome, f"<Result: {outcome}>"), text
        assert max(result.update_count, 0) == int("".join(filter(str.isdigit, outcome)) or 0)
    assert grid.sql("SELECT 1").outcome == ""


@pytest.mark.parametrize("read", [0, 1, 5, CURSOR_BUFFER_SIZE - 1, CURSOR_BUFFER_SIZE])
@pytest.mark.parametrize("take_rest", TAKES_ALL)
def test_looking_at_a_result_takes_no_row_away(grid: Any, way: tuple[str, int], read: int, take_rest: str) -> None:
    result, rows = run(grid, way)
    found = [tuple(row) for row in result.fetchmany(read)]
    for size in (0, 1, 3, 11, 3):
        looked_at = result.peek(size)
        assert len(looked_at) == min(size, max(0, len(rows) - read))
        assert repr(result).count("\n") >= 2
        assert "<table" in result._repr_html_()
        if looked_at and size == 3:
            following = result.fetchone()
            assert following == looked_at[0]
            found.append(tuple(following))
            read += 1
    rest = TAKES_ALL[take_rest](result)
    found += [tuple(row.values()) if isinstance(row, dict) else tuple(row) for row in rest]
    assert in_order(found) == rows


def test_looking_at_a_result_reads_little_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from functools import partial

    from remuda.exec import ExecContext
    from remuda.runtime import local

    monkeypatch.setattr(local, "ExecContext", partial(ExecContext, scan_batch_rows=100))
    with remuda.open() as grid:
        grid.sql("CREATE TABLE m (id BIGINT, PRIMARY KEY (id))")
        grid.load("m", pa.table({"id": range(50_000)}))
        result = grid.sql("SELECT id FROM m")
        assert repr(result).endswith("(first 10 rows)")
        assert len(result.peek(250)) == 250
        assert sum(each.rows_read for each in result._execution.activity) < 10_000
        assert sorted(result.fetchall()) == [(id_,) for id_ in range(50_000)]


def test_a_repr_tells_the_error_of_a_query_and_leaves_it_to_the_reader(grid: Any) -> None:
    result = grid.sql("SELECT 1 / (id - id) AS x FROM m WHERE id < 100")
    assert "division by zero" in repr(result)
    assert "division by zero" in result._repr_html_()
    for _ in range(2):
        with pytest.raises(SqlError, match="division by zero"):
            result.fetchall()


def test_html_escapes_what_values_and_names_contain(grid: Any) -> None:
    html = grid.sql("SELECT '<script>&' AS \"<b>\", NULL AS n, 5 AS five")._repr_html_()
    assert "&lt;script&gt;&amp;" in html
    assert "&lt;b&gt;" in html
    assert "<script>" not in html
    assert ">NULL</td>" in html
    assert 'text-align: right">5</td>' in html


def test_a_closed_result_cannot_be_read_on(grid: Any, way: tuple[str, int]) -> None:
    for read_first in (False, True):
        result, _ = run(grid, way)
        if read_first:
            result.fetchone()
        result.close()
        result.close()
        for read in (
            result.fetchone,
            result.fetchmany,
            result.fetchall,
            result.to_arrow,
            result.to_pandas,
            result.to_polars,
            result.__arrow_c_stream__,
            result.__next__,
            result.__iter__,
        ):
            with pytest.raises(SqlError, match="the result is closed") as caught:
                read()
            assert caught.value.code is ErrorCode.CANCELLED_BY_USER
        assert [column.name for column in result.columns] == ["id"]


def test_with_closes(grid: Any, way: tuple[str, int]) -> None:
    with run(grid, way)[0] as result:
        result.fetchone()
    with pytest.raises(SqlError, match="closed"):
        result.fetchone()


def test_update_count(grid: Any) -> None:
    assert grid.sql("SELECT id FROM m WHERE id = 0").update_count == -1
    assert grid.sql("SELECT id FROM m").update_count == -1
    created = grid.sql("CREATE TABLE IF NOT EXISTS other (id BIGINT, n BIGINT, PRIMARY KEY (id))")
    assert (created.update_count, created.fetchall(), created.columns) == (0, [], ())
    grid.sql("TRUNCATE TABLE other")
    assert grid.sql("INSERT INTO other VALUES (1, 1), (2, 2), (3, 3)").update_count == 3
    assert grid.sql("UPDATE other SET n = 5 WHERE n > 1").update_count == 2
    assert grid.sql("UPDATE other SET n = 5 WHERE id = 9").update_count == 0
    assert grid.sql("SINK INTO other VALUES (3, 4), (4, 4)").update_count == 2
    assert grid.sql("DELETE FROM other WHERE n = 5").update_count == 1
    assert grid.sql("DELETE FROM other WHERE id = 1").update_count == 1
    result = grid.sql("TRUNCATE TABLE other")
    assert result.update_count == 2
    assert list(result) == []


def test_columns_have_name_type_and_nullability(grid: Any) -> None:
    columns = grid.sql("SELECT id, few AS little, COUNT(*) FROM m GROUP BY id, few").columns
    assert [(column.name, str(column.type)) for column in columns] == [
        ("id", "BIGINT"),
        ("little", "BIGINT"),
        ("COUNT(*)", "BIGINT"),
    ]
    assert [column.nullable for column in columns[:2]] == [False, True]


def test_streaming_does_not_materialise(monkeypatch: pytest.MonkeyPatch) -> None:
    from functools import partial

    from remuda.exec import ExecContext
    from remuda.runtime import local

    monkeypatch.setattr(local, "ExecContext", partial(ExecContext, scan_batch_rows=100))
    for members in (1, 3):
        with remuda.open(members=members) as grid:
            grid.sql("CREATE TABLE m (id BIGINT, PRIMARY KEY (id))")
            grid.load("m", pa.table({"id": range(50_000)}))
            for begin in (next, lambda result: pa.RecordBatchReader.from_stream(result).read_next_batch()):
                result = grid.sql("SELECT id FROM m")
                begin(result)
                assert sum(each.rows_read for each in result._execution.activity) < 10_000
                result.close()


EVERY_TYPE = (
    "CREATE TABLE every (id BIGINT, b BOOLEAN, t TINYINT, s SMALLINT, i INTEGER, x DECIMAL(12, 3), r REAL, d DOUBLE, "
    "v VARCHAR, y VARBINARY, day DATE, clock TIME, ts TIMESTAMP, z TIMESTAMP WITH TIME ZONE, PRIMARY KEY (id))"
)
VALUES: tuple[Any, ...] = (
    True,
    -128,
    -32768,
    2**31 - 1,
    Decimal("-123456789.125"),
    0.5,
    math.inf,
    "grüß\x00e",
    b"\x00\xff",
    dt.date(1969, 12, 31),
    dt.time(23, 59, 59, 999999),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
    dt.datetime(2024, 2, 29, 12, 0, tzinfo=dt.UTC),
)


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("folded", [False, True], ids=["log", "segment"])
def test_every_type_comes_back_as_it_was_given(members: int, folded: bool) -> None:
    with remuda.open(members=members) as grid:
        grid.sql(EVERY_TYPE)
        marks = ", ".join("?" for _ in range(1 + len(VALUES)))
        grid.sql(f"INSERT INTO every VALUES ({marks})", 1, *VALUES)
        grid.sql(f"INSERT INTO every VALUES ({marks})", 2, *([None] * len(VALUES)))
        if folded:
            grid.checkpoint()
        expected = [(1, *VALUES), (2, *([None] * len(VALUES)))]
        for text in ("SELECT * FROM every ORDER BY id", "SELECT * FROM every WHERE d IS NULL OR d > 0 ORDER BY id"):
            assert grid.sql(text).fetchall() == expected
            assert [tuple(row.values()) for row in grid.sql(text).to_arrow().to_pylist()] == expected
            partly = grid.sql(text)
            assert partly.fetchone() == expected[0]
            assert [tuple(row.values()) for row in partly.to_arrow().to_pylist()] == expected[1:]
        for row in expected:
            assert grid.sql("SELECT * FROM every WHERE id = ?", row[0]).fetchall() == [row]
            assert grid.sql("SELECT * FROM every WHERE id = ?", row[0]).to_arrow().to_pylist()[0]["z"] == row[-1]
        for column in ("b", "t", "x", "v", "y", "day", "clock", "ts", "z"):
            assert len(grid.sql(f"SELECT {column} FROM every ORDER BY {column} DESC LIMIT 1").fetchall()) == 1
            assert len(grid.sql(f"SELECT {column}, COUNT(*) FROM every GROUP BY {column}").fetchall()) == 2
            assert grid.sql(f"SELECT MAX({column}) FROM every").fetchone() == (expected[0][1 + NAMES.index(column)],)


NAMES = ("b", "t", "s", "i", "x", "r", "d", "v", "y", "day", "clock", "ts", "z")


def test_an_error_shows_the_place_whenever_it_comes(grid: Any) -> None:
    """At planning, on a shortcut, on the same shortcut from the cache, and while rows are read."""
    for text in ("SELECT 1 / (id - 5) FROM m WHERE id = 5", "SELECT 1 / (id - 5) FROM m WHERE id < 100"):
        for _ in range(2):
            with pytest.raises(SqlError, match="division by zero") as caught:
                grid.sql(text).fetchall()
            assert caught.value.position is not None
            assert "^^^" in str(caught.value)


def test_what_is_shown_in_a_notebook(tmp_path: Path) -> None:
    with remuda.open(tmp_path / "shop.remuda") as grid:
        assert repr(grid) == f"<Grid {tmp_path / 'shop.remuda'}>"
        grid.sql("CREATE TABLE t (k BIGINT, d DECIMAL(6, 2), PRIMARY KEY (k))")
        assert repr(grid.sql("INSERT INTO t VALUES (1, 2.5), (2, NULL)")) == "<Result: 2 rows changed>"
        shown = grid.sql("SELECT k, d AS price FROM t ORDER BY k")
        assert repr(shown).splitlines() == [" k  price", "──  ─────", " 1   2.50", " 2   NULL", "(2 rows)"]
        shown.close()
        assert repr(shown) == "<Result: k BIGINT, price DECIMAL(6, 2); closed>"
    assert repr(grid).endswith(", closed>")
    assert repr(remuda.open()) == "<Grid in memory>"


@pytest.mark.parametrize("seed", range(20))
def test_ways_of_reading_may_be_mixed(seed: int) -> None:
    """Each goes on where the one before it stopped, whatever it had begun."""
    random = Random(seed)
    with remuda.open() as grid:
        grid.sql("CREATE TABLE many (id BIGINT, half DOUBLE, PRIMARY KEY (id))")
        rows = random.choice([10, 5_000, 200_000])
        grid.load("many", pa.table({"id": range(rows), "half": [number / 2 for number in range(rows)]}))
        result = grid.sql("SELECT id, half FROM many ORDER BY id" if seed % 2 else "SELECT id, half FROM many")
        found: list[tuple[Any, ...]] = []
        for _ in range(random.randrange(1, 6)):
            match random.randrange(3):
                case 0:
                    found.extend([tuple(row)] if (row := result.fetchone()) is not None else [])
                case 1:
                    found.extend(map(tuple, result.fetchmany(random.choice([1, 100, 5_000]))))
                case _:
                    batch = next(result.record_batches(), None)
                    found.extend(zip(*batch.to_pydict().values(), strict=True) if batch is not None else ())
            if result.was_read:
                break
            if random.random() < 0.5:
                result.peek(random.choice([0, 3, 9_000]))
        if not result.was_read:
            rest = result.to_arrow().to_pydict() if seed % 3 else None
            found.extend(zip(*rest.values(), strict=True) if rest is not None else map(tuple, result.fetchall()))
        assert len(found) == rows
        assert sorted(found) == [(number, number / 2) for number in range(rows)]
        assert not seed % 2 or found == sorted(found)


def test_arrow_after_some_rows_takes_the_rest_of_a_batch_as_it_is() -> None:
    """Rows are made only of the part of the batch that was begun."""
    with remuda.open() as grid:
        grid.sql("CREATE TABLE many (id BIGINT, PRIMARY KEY (id))")
        grid.load("many", pa.table({"id": range(100_000)}))
        result = grid.sql("SELECT id FROM many")
        assert result.fetchone() is not None
        lengths = [batch.num_rows for batch in result.record_batches()]
        assert sum(lengths) == 99_999
        assert lengths[0] < CURSOR_BUFFER_SIZE < max(lengths)
