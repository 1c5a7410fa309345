"""Results are not held in memory: what waits for a slow reader is bounded by bytes, however wide the rows are."""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import remuda
from remuda.exec import batch_size
from remuda.exec.batch_size import BATCH_BYTES, FIRST_ROWS
from remuda.optimizer import cost
from remuda.runtime import BoundedChannel, edges, local
from remuda.runtime.channel import MOST_BYTES
from tests.runtime.quiet import wait_until_quiet

ROWS = 1_000_000
COLUMNS = 32
ROW_BYTES = COLUMNS * 8
NAMES = ["id", *(f"c{number}" for number in range(1, COLUMNS))]
COMPUTED = ", ".join(f"{name} + 1" for name in NAMES)
TEXTS = f"repeat('x', {ROW_BYTES - 8}) AS x, id"


@pytest.fixture
def channels(monkeypatch: pytest.MonkeyPatch) -> list[BoundedChannel]:
    """All channels that are made."""
    made: list[BoundedChannel] = []

    def make(*arguments: Any, **options: Any) -> BoundedChannel:
        made.append(BoundedChannel(*arguments, **options))
        return made[-1]

    monkeypatch.setattr(edges, "BoundedChannel", make)
    monkeypatch.setattr(local, "BoundedChannel", make)
    return made


@pytest.fixture(scope="module")
def wide_rows() -> pa.Table:
    numbers = pa.array(range(ROWS))
    return pa.table(dict.fromkeys(NAMES, numbers))


def grid_of(members: int, rows: pa.Table) -> Any:
    grid = remuda.open(members=members)
    grid.load("m", rows, key="id")
    return grid


@pytest.mark.parametrize("members", [1, 3, 5])
def test_after_one_row_little_of_a_result_is_held(
    members: int, wide_rows: pa.Table, channels: list[BoundedChannel]
) -> None:
    """A quarter of a gigabyte, of which the reader has taken one row."""
    first = FIRST_ROWS * ROW_BYTES * 1.1
    with grid_of(members, wide_rows) as grid:
        for text in ("SELECT * FROM m", f"SELECT {COMPUTED} FROM m", f"SELECT {TEXTS} FROM m WHERE c1 >= 0"):
            channels.clear()
            before = pa.total_allocated_bytes()
            result = grid.sql(text)
            assert result.fetchone() is not None
            wait_until_quiet(grid, result._reader.execution)
            assert channels
            held = sum(channel.bytes_held for channel in channels)
            # Each member sends and has workers, and either may hold so much; one member has workers alone.
            edges_held = members * (max(MOST_BYTES, first) + max(MOST_BYTES, 2 * first))
            assert 0 < held <= edges_held
            unsent = len(channels) * 2 * BATCH_BYTES
            assert pa.total_allocated_bytes() - before <= edges_held + unsent + first
            assert held < ROWS * ROW_BYTES * 2 / 3
            result.close()
            wait_until_quiet(grid, result._reader.execution)


def tiny_channel(signal: Any = None, **_: Any) -> BoundedChannel:
    return BoundedChannel(signal, most_bytes=1_000)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Channels that hold less than a batch, and scans that begin with many rows."""
    monkeypatch.setattr(cost, "FORK_ROWS", 1_000)
    for module in (edges, local):
        monkeypatch.setattr(module, "BoundedChannel", tiny_channel)
    monkeypatch.setattr(batch_size, "BATCH_BYTES", 16_000)


QUERIES = (
    "SELECT id, n FROM m",
    "SELECT id, n FROM m ORDER BY n, id",
    "SELECT a.id, b.n FROM m AS a JOIN m AS b ON a.n = b.id",
    "SELECT a.id, b.id FROM m AS a LEFT JOIN m AS b ON a.n = b.n AND b.id < 500",
    "SELECT n, COUNT(*), SUM(id) FROM m GROUP BY n",
    "SELECT id FROM m WHERE n IN (SELECT n FROM m WHERE id > 100 AND id < 700)",
    "SELECT id, ROW_NUMBER() OVER (PARTITION BY n ORDER BY id) FROM m",
    "SELECT id FROM m UNION ALL SELECT n FROM m",
)


@pytest.mark.parametrize("members", [1, 3, 5])
@pytest.mark.usefixtures("tiny")
def test_batches_larger_than_the_bound_block_no_query(members: int) -> None:
    rows = 20_000
    data = pa.table({"id": range(rows), "n": [id_ * 7 % 997 for id_ in range(rows)]})
    with remuda.open(members=members) as grid, duckdb.connect(config={"threads": 1}) as other:
        other.register("m", data)
        grid.sql("CREATE TABLE m (id BIGINT, n BIGINT, PRIMARY KEY (id))")
        grid.load("m", data)
        for text in QUERIES:
            with grid.sql(text, timeout=60.0) as result:
                found = [tuple(row) for row in result]
            assert Counter(found) == Counter(other.sql(text).fetchall()), text
