"""Short ranges of rows, as those of a few partitions, are read as one batch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import remuda
from remuda.exec.scan import map_scan
from tests.harness.generated import rows_of

ROWS = 20_000
CONTENTS = f"SELECT i AS id, 'text ' || (i % 7) AS name, i % 11 AS n FROM range({ROWS}) AS r(i)"
TEXT = "SELECT id, name FROM t WHERE id BETWEEN ? AND ? AND n <> 3"


@pytest.fixture(scope="module", params=[1, 3])
def grid(request: Any) -> Iterator[Any]:
    with remuda.open(members=request.param) as opened:
        opened.sql("CREATE TABLE t (id BIGINT, name VARCHAR, n BIGINT, PRIMARY KEY (id))")
        opened.load("t", rows_of(CONTENTS))
        opened.sql("UPDATE t SET name = 'late' WHERE id IN (100, 150)")
        opened.sql("DELETE FROM t WHERE id = 120")
        yield opened


def _scan(grid: Any, *values: Any) -> dict[str, Any]:
    (found,) = grid.sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {TEXT}", *values).fetchall()
    node: dict[str, Any] = json.loads(found[0])["plan"]
    while node["operator"] != "MapScan":
        (node,) = node["inputs"]
    return node


@pytest.mark.parametrize("joined_rows", [0, 5, 100, 1 << 40])
@pytest.mark.parametrize("batch_rows", [3, 100, None])
def test_rows_are_the_same_however_they_are_put_together(
    grid: Any, joined_rows: int, batch_rows: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(map_scan, "JOINED_ROWS", joined_rows)
    if batch_rows is not None:
        scan_pieces = map_scan.scan_pieces

        def pieces(found: Any, context: Any) -> Any:
            context.scan_batch_rows = batch_rows
            return scan_pieces(found, context)

        monkeypatch.setattr(map_scan, "scan_pieces", pieces)
    for first, last in ((100, 199), (0, ROWS - 1), (5, 5), (7, 6)):
        expected = sorted(
            (at, "late" if at in {100, 150} else f"text {at % 7}")
            for at in range(first, last + 1)
            if at != 120 and at % 11 != 3
        )
        assert sorted(map(tuple, grid.sql(TEXT, first, last))) == expected


def test_a_pruned_scan_reads_few_batches(grid: Any) -> None:
    scan = _scan(grid, 1_000, 1_099)
    actual = scan["actual"]
    assert scan["partitions"]["needed"] == actual["partitions"] < 200
    # One from the segment for each member, and perhaps one from the memtable.
    assert actual["batches"] <= 2 * actual["members"]
    assert grid.sql(TEXT + " LIMIT 3", 1_000, 1_099).fetchall()


def test_wide_rows_are_not_put_together_beyond_some_bytes(grid: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    few = _scan(grid, 1_000, 1_099)["actual"]["batches"]
    monkeypatch.setattr(map_scan, "JOINED_BYTES", 10_000)
    many = _scan(grid, 1_000, 1_099)["actual"]["batches"]
    monkeypatch.setattr(map_scan, "JOINED_BYTES", 0)
    assert few < many < _scan(grid, 1_000, 1_099)["actual"]["batches"]
