"""Loads of more than is held at a time: all or nothing, rows counted on, a bar on a terminal."""

from __future__ import annotations

import io
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import remuda
from remuda.errors import SqlError
from remuda.grid.files.progress_bar import ProgressBar


@pytest.fixture(params=["memory", "folder"])
def grid(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Tables of 1,000 rows at a time are enough to see what happens between them."""
    monkeypatch.setattr("remuda.grid.files.load_source.TABLE_ROWS", 1_000)
    monkeypatch.setattr("remuda.grid.files.loading.TABLE_ROWS", 1_000)
    with remuda.open(None if request.param == "memory" else tmp_path / "grid") as opened:
        opened.sql("CREATE TABLE m (id BIGINT, name VARCHAR, PRIMARY KEY (id))")
        opened.sql("CREATE INDEX by_name ON m (name) TYPE HASH")
        yield opened


def _batches(first: int, count: int, size: int = 300) -> Iterator[pa.RecordBatch]:
    for start in range(first, first + count, size):
        ids = range(start, min(start + size, first + count))
        yield pa.record_batch({"id": pa.array(ids, pa.int64()), "name": [f"n{id_ % 10}" for id_ in ids]})


def _answer(grid: Any) -> tuple[Any, ...]:
    return tuple(grid.sql("SELECT COUNT(*), MIN(id), MAX(id) FROM m").fetchone())


def test_batches_one_by_one(grid: Any) -> None:
    assert grid.load("m", _batches(0, 5_000)) == 5_000
    assert _answer(grid) == (5_000, 0, 4_999)
    assert len(grid.sql("SELECT id FROM m WHERE name = 'n3'").fetchall()) == 500
    assert grid.load("m", [pa.Table.from_batches(_batches(5_000, 10)), *_batches(5_010, 10)]) == 20
    assert grid.map("m")[5_015].name == "n5"


def test_a_reader_and_a_file(grid: Any, tmp_path: Path) -> None:
    schema = pa.schema({"id": pa.int64(), "name": pa.string()})
    assert grid.load("m", pa.RecordBatchReader.from_batches(schema, _batches(0, 3_000))) == 3_000
    pq.write_table(pa.Table.from_batches(_batches(3_000, 2_500)), tmp_path / "rows.parquet")
    assert grid.load("m", tmp_path / "rows.parquet") == 2_500
    assert _answer(grid) == (5_500, 0, 5_499)
    assert grid.load("m", pa.RecordBatchReader.from_batches(schema, [])) == 0


def test_a_bad_row_far_down_loads_nothing(grid: Any) -> None:
    bad = pa.record_batch({"id": pa.array([9_000, None], pa.int64()), "name": ["a", "b"]})
    with pytest.raises(SqlError, match=r"the key m.id must not be NULL, row 2502"):
        grid.load("m", [*_batches(0, 2_500), bad])
    with pytest.raises(SqlError, match=r"duplicate key"):
        grid.load("m", [*_batches(0, 2_500), *_batches(7, 1)])
    assert _answer(grid) == (0, None, None)


def test_the_greatest_value_wins_in_an_upsert_of_several_batches(grid: Any) -> None:
    grid.load("m", _batches(0, 2_000))
    newer = pa.record_batch({"id": pa.array([5, 1_500], pa.int64()), "name": ["z new", "z new"]})
    newest = pa.record_batch({"id": pa.array([5], pa.int64()), "name": ["z newest"]})
    pieces = [newest, *_batches(0, 1_200), newer, *_batches(3_000, 1_200)]
    with pytest.raises(SqlError, match="duplicate key in m: id = 5"):
        grid.load("m", pieces, mode="upsert")
    grid.load("m", pieces, mode="upsert", order_by="name")
    m = grid.map("m")
    assert (m[5].name, m[1_500].name, len(m)) == ("z newest", "z new", 3_200)
    grid.load("m", _batches(0, 1_100), mode="replace")
    assert _answer(grid) == (1_100, 0, 1_099)


def test_a_failing_source_loads_nothing(grid: Any) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield from _batches(0, 2_000)
        raise OSError("the pipe broke")

    with pytest.raises(OSError, match="the pipe broke"):
        grid.load("m", failing())
    assert _answer(grid) == (0, None, None)


def test_generated_keys(grid: Any) -> None:
    grid.sql("CREATE TABLE log (line VARCHAR)")
    grid.load("log", pa.table({"line": [f"l{number}" for number in range(2_500)]}))
    grid.load("log", pa.table({"line": ["small"]}))
    grid.sql("INSERT INTO log VALUES ('one'), ('two')")
    assert len(grid.map("log")) == 2_503
    assert grid.sql("SELECT * FROM log WHERE line = 'two'").fetchall() == [("two",)]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remuda.grid.files.progress_bar._PERIOD", 0.0)
    screen = _Terminal()
    bar = ProgressBar("loading m", 1_000, screen)
    bar.advance(500)
    bar.finish()
    assert "loading m ━━━━━━━━━━━━━━━╸" in screen.getvalue()
    assert " 50%  500 rows" in screen.getvalue()
    assert screen.getvalue().endswith("\r\033[K")
    assert ProgressBar("loading m", None, screen).line(7, 1.25) == "loading m  7 rows  1.2 s"
    bar = ProgressBar("loading m", None, screen)
    bar.begin("building segments", 4, "segments")
    assert bar.line(1, 1.25) == f"loading m, building segments {'━' * 7}╸{' ' * 22}  25%  1 segments  1.2 s"
    quiet = io.StringIO()
    bar = ProgressBar("loading m", 1_000, quiet)
    bar.advance(500)
    bar.finish()
    assert quiet.getvalue() == ""


def test_a_map_is_read_as_it_was_until_a_load_that_replaces_it_is_complete(grid: Any) -> None:
    grid.load("m", _batches(0, 2_500))
    meanwhile: list[tuple[Any, ...]] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in _batches(10_000, 3_000):
            meanwhile.append((*_answer(grid), len(grid.sql("SELECT id FROM m WHERE name = 'n3'").fetchall())))
            yield batch

    grid.load("m", batches(), mode="replace")
    assert set(meanwhile) == {(2_500, 0, 2_499, 250)}
    assert _answer(grid) == (3_000, 10_000, 12_999)


def age(value: float | None) -> tuple[int, float]:
    """Order as SQL does: NULL, numbers, NaN."""
    if value is None:
        return (0, 0.0)
    return (2, 0.0) if math.isnan(value) else (1, value)


def newest_rows(rows: list[tuple[int, float | None, str]]) -> dict[int, str] | None:
    """Return the name that each key has after an upsert; None where two rows of a key are the newest."""
    newest: dict[int, str] = {}
    for key in {row[0] for row in rows}:
        ages = [(age(at), name) for number, at, name in rows if number == key]
        last = [name for each, name in ages if each == max(ages)[0]]
        if len(last) > 1:
            return None
        newest[key] = last[0]
    return newest


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("mode", ["upsert", "apply"])
def test_rows_have_one_rule_however_they_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, mode: str
) -> None:
    """Two rows of the same age are refused, unless a newer one is in any table: it depended on the order of tables."""
    monkeypatch.setattr("remuda.grid.files.load_source.TABLE_ROWS", 1)
    monkeypatch.setattr("remuda.grid.files.loading.TABLE_ROWS", 1)
    words: dict[str, Any] = {"mode": mode, "order_by": "at"} | ({"operation": "op"} if mode == "apply" else {})
    draw = random.Random(seed)
    ages = [None, float("nan"), math.inf, -math.inf, -0.0, 0.0, 1.5, 2.0, 2.5]
    model: dict[int, str] = {}
    refused = 0
    with remuda.open(tmp_path if seed % 2 else None) as grid:
        grid.sql("CREATE TABLE t (id BIGINT, at DOUBLE, name VARCHAR, PRIMARY KEY (id))")
        for turn in range(30):
            count = draw.randrange(1, 9)
            rows = [(draw.randrange(4), draw.choice(ages), f"{turn}.{number}") for number in range(count)]
            cut = sorted(draw.sample(range(1, count), draw.randrange(count)))
            pieces = [rows[start:end] for start, end in zip([0, *cut], [*cut, count], strict=True)]
            columns = [[list(column) for column in zip(*piece, strict=True)] for piece in pieces]
            types = (pa.int64(), pa.float64(), pa.string())
            tables = [
                pa.table([pa.array(*each) for each in zip(given, types, strict=True)], ["id", "at", "name"])
                for given in columns
            ]
            newest = newest_rows(rows)
            if mode == "apply":
                tables = [each.append_column("op", pa.array(["u"] * each.num_rows)) for each in tables]
            if newest is None:
                refused += 1
                with pytest.raises(SqlError, match="twice with the same at"):
                    grid.load("t", tables, **words)
            else:
                model |= newest
                grid.load("t", tables, **words)
            assert dict(grid.sql("SELECT id, name FROM t").fetchall()) == model
    assert 0 < refused < 30
