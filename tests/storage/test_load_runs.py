"""Loads of many tables: sorted runs beyond what is held, segments of partitions of their own, bounded memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import remuda
from remuda.errors import ConstraintError, SqlError
from remuda.grid.files import load_source
from remuda.storage.load import load_runs, segment_cut
from remuda.types import arrow_texts

ROWS = 20_000
CREATE = "CREATE TABLE t (id BIGINT, kind VARCHAR, doc VARCHAR, n DOUBLE, PRIMARY KEY (id))"


@pytest.fixture(autouse=True)
def small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_source, "TABLE_BYTES", 300_000)
    monkeypatch.setattr(load_runs, "HELD_BYTES", 500_000)
    monkeypatch.setattr(load_runs, "RANGE_BYTES", 400_000)


def batches(rows: int = ROWS, step: int = 1_000, repeated: tuple[int, ...] = ()) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows, step):
        ids = [*range(start, min(start + step, rows)), *(repeated if start == 0 else ())]
        yield pa.record_batch(
            {
                "id": pa.array(ids, pa.int64()),
                "kind": [f"kind {each % 5}" if each % 3 else None for each in ids],
                "doc": [f"{each}:{'x' * (each % 90)}" if each % 7 else None for each in ids],
                "n": [each / 4 if each % 11 else None for each in ids],
            }
        )


def reader(given: Iterator[pa.RecordBatch]) -> pa.RecordBatchReader:
    first = next(given)
    return pa.RecordBatchReader.from_batches(first.schema, (each for part in ([first], given) for each in part))


def rows_of(grid: Any) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in grid.sql("SELECT id, kind, doc, n FROM t ORDER BY id")]


def expected(rows: int = ROWS) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for batch in batches(rows) for row in batch.to_pylist()]


def stored(grid: Any) -> list[Any]:
    (definition,) = grid.store.catalog.maps.values()
    return [each.segment for each in grid.store.map(definition).stored]


def test_segments_have_partitions_of_their_own(tmp_path: Path) -> None:
    with remuda.open(tmp_path / "store") as grid:
        grid.sql(CREATE)
        grid.sql("CREATE INDEX t_kind ON t (kind) TYPE HASH")
        seen: list[int] = []
        grid.load("t", reader(batches()), progress=False)
        ends = sorted((each.first_partition, each.last_partition) for each in stored(grid))
        assert len(ends) > 2
        assert all(last < first for (_, last), (first, _) in pairwise(ends))
        assert rows_of(grid) == expected()
        assert grid.sql("SELECT COUNT(*) FROM t WHERE kind = 'kind 4'").fetchall() == [(2_667,)]
        assert [grid.map("t").get(key)[2] for key in (4, 8, 19_996)] == [1.0, 2.0, 4999.0]
        assert seen == []
    left = [name for _, _, names in os.walk(tmp_path / "store") for name in names]
    assert not [name for name in left if "tmp" in name]
    with remuda.open(tmp_path / "store") as grid:
        assert rows_of(grid) == expected()


def test_what_is_held_needs_no_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("no run is written")

    monkeypatch.setattr(load_runs.SortedRuns, "add", refuse)
    monkeypatch.setattr(load_runs, "HELD_BYTES", 10**8)
    with remuda.open(tmp_path / "store") as grid:
        grid.sql(CREATE)
        grid.load("t", reader(batches()))
        assert len(stored(grid)) == 1
        assert rows_of(grid) == expected()


@pytest.mark.parametrize("held", [0, 500_000, 10**8])
def test_a_key_twice_in_two_tables_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: int) -> None:
    monkeypatch.setattr(load_runs, "HELD_BYTES", held)
    with remuda.open(tmp_path / "store") as grid:
        grid.sql(CREATE)
        with pytest.raises(ConstraintError, match="duplicate key in t: id = 19000"):
            grid.load("t", reader(batches(repeated=(19_000,))))
        assert rows_of(grid) == []
        files = [name for _, _, names in os.walk(tmp_path / "store" / "maps") for name in names]
        assert not [name for name in files if name.endswith(".arrow")]


@pytest.mark.parametrize("held", [0, 500_000, 10**8])
def test_an_upsert_over_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: int) -> None:
    monkeypatch.setattr(load_runs, "HELD_BYTES", held)
    newest = pa.record_batch({"id": [19_000], "kind": ["new"], "doc": ["new"], "n": [1e9]})
    with remuda.open(tmp_path / "store") as grid:
        grid.sql(CREATE)
        given = reader(each for part in ([newest], batches()) for each in part)
        grid.load("t", given, mode="upsert", order_by="n")
        assert len(rows_of(grid)) == ROWS
        assert rows_of(grid)[19_000] == (19_000, "new", "new", 1e9)
        again = reader(each for part in ([newest], batches()) for each in part)
        with pytest.raises(SqlError, match="duplicate key in t: id = 19000"):
            grid.load("t", again, mode="upsert")


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_no_table_at_all(tmp_path: Path, mode: str) -> None:
    with remuda.open(tmp_path / "store") as grid:
        grid.sql(CREATE)
        (definition,) = grid.store.catalog.maps.values()
        assert grid.store.map(definition).load_tables(iter(()), mode) == 0
        assert rows_of(grid) == []


def test_an_error_in_a_late_table_leaves_nothing(tmp_path: Path) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield from batches()
        yield pa.record_batch({"id": pa.array([None], pa.int64()), "kind": ["a"], "doc": ["a"], "n": [1.0]})

    with remuda.open(tmp_path / "store") as grid:
        grid.sql(CREATE)
        with pytest.raises(ConstraintError, match=f"the key t.id must not be NULL, row {ROWS + 1}"):
            grid.load("t", reader(failing()))
        assert rows_of(grid) == []


def test_texts_that_no_array_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_texts, "TEXT_BYTES", 100_000)
    monkeypatch.setattr(segment_cut, "SEGMENT_BYTES", 100_000)
    monkeypatch.setattr(load_runs, "RANGE_BYTES", 50_000)
    with remuda.open(tmp_path / "store") as grid:
        grid.sql(CREATE + " WITH (partitions = 8)")
        grid.load("t", reader(batches()))
        assert rows_of(grid) == expected()
        assert all(each.batch.nbytes < 200_000 for each in stored(grid))


@pytest.mark.parametrize("partitions", [1, 65_536])
def test_any_number_of_partitions(tmp_path: Path, partitions: int) -> None:
    with remuda.open(tmp_path / "store") as grid:
        grid.sql(f"{CREATE} WITH (partitions = {partitions})")
        grid.load("t", reader(batches()))
        assert rows_of(grid) == expected()


MEMORY = """
import resource, sys
import numpy as np, pyarrow as pa, remuda
from remuda.grid.files import load_source
from remuda.storage.load import load_runs
path, megabytes, budget = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) << 20
load_source.TABLE_BYTES = load_runs.HELD_BYTES = load_runs.RANGE_BYTES = budget
rows, width = 4_000, 1_000

def batch(number):
    ids = np.arange(number * rows, (number + 1) * rows)
    data = np.full((rows, width), 120, np.uint8)
    data[:, :10] = np.char.zfill(ids.astype(str), 10).astype("S10").view(np.uint8).reshape(rows, 10)
    offsets = np.arange(rows + 1, dtype=np.int32) * width
    docs = pa.Array.from_buffers(pa.string(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    return pa.record_batch({"id": ids, "doc": docs})

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10

with remuda.open(path) as grid:
    grid.sql("CREATE TABLE t (id BIGINT, doc VARCHAR, PRIMARY KEY (id))")
    grid.load("t", pa.RecordBatchReader.from_batches(batch(0).schema, [batch(0)]))
    grid.sql("TRUNCATE t")
    before = peak()
    count = (megabytes << 20) // (rows * width)
    grid.load("t", pa.RecordBatchReader.from_batches(batch(0).schema, map(batch, range(count))))
    grown = peak() - before
    assert grid.sql("SELECT COUNT(*), SUM(LENGTH(doc)) FROM t").fetchall() == [(count * rows, count * rows * width)]
print(grown)
"""


def grown(path: Path, megabytes: int, budget: int) -> int:
    """Return by how many bytes the peak of a process grows in a load."""
    run = subprocess.run(
        [sys.executable, "-c", MEMORY, str(path), str(megabytes), str(budget)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return int(run.stdout)


def bound(budget: int) -> int:
    """A table and what is made of it, the library's own pools, and the samples for statistics."""
    return (5 * budget // 2 + 128) << 20


def test_memory_follows_the_budget_and_not_the_load(tmp_path: Path) -> None:
    assert grown(tmp_path / "store", megabytes=384, budget=32) < bound(32)


@pytest.mark.slow
def test_memory_of_a_large_load(tmp_path: Path) -> None:
    assert grown(tmp_path / "store", megabytes=4_096, budget=512) < bound(512)
