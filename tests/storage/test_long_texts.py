"""Loads whose texts are longer than one Arrow array can be: cut into segments by bytes. The limits are lowered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import remuda
from remuda.errors import ConstraintError
from remuda.storage.load import group_compaction, map_load, segment_cut
from remuda.types import arrow_texts
from remuda.types.arrow_texts import text_bytes

LIMIT = 200_000
ROWS = 5_000
CREATE = "CREATE TABLE t (id BIGINT, k BIGINT, doc VARCHAR, kind VARCHAR, PRIMARY KEY (id, k)) PARTITION BY (k)"


@pytest.fixture(autouse=True)
def short_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_texts, "TEXT_BYTES", LIMIT)
    monkeypatch.setattr(segment_cut, "SEGMENT_BYTES", LIMIT)
    monkeypatch.setattr(map_load, "SMALL_LOAD_BYTES", LIMIT)


def table(rows: int = ROWS, partitioned: int = 1_000, form: pa.DataType | None = None) -> pa.Table:
    form = form or pa.string()
    ids = np.arange(rows)
    docs = [f"{number}:{'x' * (number % 500)}" if number % 11 else None for number in range(rows)]
    kinds = [f"kind {number % 7} {'y' * 40}" for number in range(rows)]
    given = pa.table({"id": ids, "k": ids % partitioned, "doc": pa.array(docs, form), "kind": pa.array(kinds, form)})
    # In chunks, as a file or a frame brings them.
    return pa.concat_tables([given.slice(start, 700) for start in range(0, rows, 700)])


def rows_of(grid: Any) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in grid.sql("SELECT id, k, doc, kind FROM t ORDER BY id")]


def expected(given: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in given.to_pylist())


def segments(grid: Any) -> list[Any]:
    (definition,) = grid.store.catalog.maps.values()
    return [each.segment for each in grid.store.map(definition).stored]


def check_segments(grid: Any) -> None:
    assert len(segments(grid)) > 3
    for each in segments(grid):
        assert all(text_bytes(column) <= LIMIT for column in each.batch.columns)


@pytest.mark.parametrize("folder", [False, True])
@pytest.mark.parametrize("form", [pa.string(), pa.large_string(), pa.string_view()])
def test_a_table_is_cut_by_bytes(folder: bool, form: pa.DataType, tmp_path: Path) -> None:
    given = table(form=form)
    with remuda.open(tmp_path / "store" if folder else None) as grid:
        grid.sql(CREATE)
        grid.load("t", given)
        check_segments(grid)
        assert rows_of(grid) == expected(given)
        assert grid.map("t").get((499, 499)) == (given["doc"][499].as_py(), given["kind"][499].as_py())
        ends = [(each.first_partition, each.last_partition) for each in segments(grid)]
        assert all(last < first for (_, last), (first, _) in zip(sorted(ends), sorted(ends)[1:], strict=False))


@pytest.mark.parametrize("partitioned", [1, 3])
def test_a_partition_that_is_too_large_is_cut_too(partitioned: int) -> None:
    given = table(partitioned=partitioned)
    with remuda.open() as grid:
        grid.sql(CREATE)
        grid.load("t", given)
        check_segments(grid)
        assert rows_of(grid) == expected(given)
        assert all(grid.map("t").get((row, row % partitioned)) is not None for row in range(0, ROWS, 97))
        with pytest.raises(ConstraintError, match="duplicate key"):
            grid.load("t", given)
        grid.sql("UPDATE t SET kind = 'new' WHERE id < 10")
        grid.checkpoint()
        assert grid.sql("SELECT COUNT(*) FROM t WHERE kind = 'new'").fetchall() == [(10,)]


def test_a_key_twice_in_a_partition_of_several_segments_is_refused() -> None:
    given = pa.concat_tables([table(partitioned=1), table(partitioned=1).slice(4_000, 1)])
    with remuda.open() as grid:
        grid.sql(CREATE)
        with pytest.raises(ConstraintError, match="duplicate key in t: id = 4000, k = 0"):
            grid.load("t", given)
        assert rows_of(grid) == []


def test_an_upsert_takes_the_newest_of_each_key() -> None:
    given = table()
    newer = pa.table({**{name: given[name] for name in ("id", "k", "kind")}, "doc": pa.array(["z" * 99] * ROWS)})
    with remuda.open() as grid:
        grid.sql(CREATE)
        grid.load("t", pa.concat_tables([given, newer.select(given.column_names)]), mode="upsert", order_by="doc")
        check_segments(grid)
        assert {doc for *_, doc, _ in rows_of(grid)} == {"z" * 99}
        assert len(rows_of(grid)) == ROWS


def test_keys_may_be_long() -> None:
    given = pa.table({"name": [f"{number:0200d}" for number in range(ROWS)], "n": range(ROWS)})
    given = pa.concat_tables([given.slice(start, 500) for start in range(0, ROWS, 500)])
    with remuda.open() as grid:
        grid.sql("CREATE TABLE t (name VARCHAR, n BIGINT, PRIMARY KEY (name))")
        grid.load("t", given)
        assert len(segments(grid)) >= 5
        assert grid.map("t").get(f"{77:0200d}") == (77,)
        grid.load("t", given, mode="upsert")
        assert grid.sql("SELECT COUNT(*), SUM(n) FROM t").fetchall() == [(ROWS, ROWS * (ROWS - 1) // 2)]


def test_batches_and_queries_are_loaded_too() -> None:
    given = table()
    with remuda.open() as grid:
        grid.sql(CREATE)
        grid.load("t", given.to_reader())
        grid.sql("CREATE TABLE copied (PRIMARY KEY (id)) AS SELECT * FROM t")
        found = [tuple(row) for row in grid.sql("SELECT id, k, doc, kind FROM copied ORDER BY id")]
        assert found == expected(given)


def test_segments_are_not_merged_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_compaction, "MOST_SEGMENTS", 2)
    given = table()
    with remuda.open() as grid:
        grid.sql(CREATE)
        grid.load("t", given)
        full = {each.id for each in segments(grid) if group_compaction._is_full(stored_of(grid, each))}
        assert len(full) > 3
        for round_ in range(6):
            grid.sql("INSERT INTO t VALUES (?, ?, 'small', 'row')", -1 - round_, round_)
            grid.checkpoint()
        check_segments(grid)
        # Those that are full stay as they are, however many there are; the small ones are merged.
        assert full <= {each.id for each in segments(grid)}
        assert len([each for each in segments(grid) if each.id not in full]) <= 2 + 1
        assert len(rows_of(grid)) == ROWS + 6


def stored_of(grid: Any, segment: Any) -> Any:
    (definition,) = grid.store.catalog.maps.values()
    return next(each for each in grid.store.map(definition).stored if each.segment is segment)


def test_half_deleted_segments_are_written_anew_within_the_limit() -> None:
    given = table()
    with remuda.open() as grid:
        grid.sql(CREATE)
        grid.load("t", given)
        grid.sql("DELETE FROM t WHERE id % 2 = 0")
        grid.checkpoint()
        check_segments(grid)
        assert rows_of(grid) == [row for row in expected(given) if row[0] % 2]


@pytest.mark.slow
def test_a_column_of_more_than_two_gigabytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert arrow_texts.TEXT_BYTES == segment_cut.SEGMENT_BYTES == 2_000_000_000
    rows, width, pieces = 2_300_000, 1_000, 23
    with remuda.open(tmp_path / "store") as grid:
        grid.sql("CREATE TABLE t (id BIGINT, doc VARCHAR, PRIMARY KEY (id))")
        grid.load("t", pa.concat_tables([documents(piece, rows // pieces, width) for piece in range(pieces)]))
        assert all(text_bytes(each.batch.column("doc")) <= 2_000_000_000 for each in segments(grid))
        assert len(segments(grid)) == 2
        assert grid.sql("SELECT COUNT(*), SUM(LENGTH(doc)) FROM t").fetchall() == [(rows, rows * width)]
        assert grid.map("t").get(rows - 1)[0][:10] == f"{rows - 1:010d}"
        found = grid.sql("SELECT * FROM t").to_arrow()
        assert found.num_rows == rows
        assert found["doc"].nbytes > 2**31


def documents(piece: int, rows: int, width: int) -> pa.Table:
    """Texts of `width` characters, each of which begins with its number."""
    ids = np.arange(piece * rows, (piece + 1) * rows)
    data = np.full((rows, width), ord("x"), np.uint8)
    data[:, :10] = np.char.zfill(ids.astype(str), 10).astype("S10").view(np.uint8).reshape(rows, 10)
    offsets = np.arange(rows + 1, dtype=np.int32) * width
    docs = pa.Array.from_buffers(pa.string(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    return pa.table({"id": ids, "doc": docs})
