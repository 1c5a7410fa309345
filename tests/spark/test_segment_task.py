"""How a task cuts its rows into segments."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from remuda.spark.segment_task import PARTITION_COLUMN, in_segments


@pytest.mark.parametrize("batch_rows", [1, 7, 100, 10_000])
@pytest.mark.parametrize("segment_rows", [1, 50, 333, 100_000])
def test_cut_between_partitions_and_nothing_lost(batch_rows: int, segment_rows: int) -> None:
    partitions = np.sort(np.random.default_rng(1).integers(3, 23, 1_000))
    table = pa.table({"row": np.arange(1_000), PARTITION_COLUMN: partitions})
    parts = list(in_segments(iter(table.to_batches(max_chunksize=batch_rows)), [segment_rows] * 1_000))
    assert pa.concat_tables(parts).equals(table)
    owned = [set(part.column(PARTITION_COLUMN).to_pylist()) for part in parts]
    assert sum(map(len, owned)) == len(set().union(*owned))
    largest = int(np.bincount(partitions).max())
    assert all(part.num_rows > segment_rows - largest for part in parts[:-1])
    assert all(part.num_rows < segment_rows + largest + batch_rows for part in parts)


def test_cuts_as_soon_as_it_can() -> None:
    """Four partitions of 100 rows: the second batch of 100 shows that the first partition is complete."""
    table = pa.table({PARTITION_COLUMN: np.repeat(np.arange(4), 100)})
    parts = in_segments(iter(table.to_batches(max_chunksize=100)), [100] * 9)
    assert [part.num_rows for part in parts] == [100, 100, 100, 100]


def test_no_rows_no_segments() -> None:
    assert list(in_segments(iter(()), [100])) == []
    empty = pa.record_batch({PARTITION_COLUMN: pa.array([], pa.int32())})
    assert list(in_segments(iter((empty,)), [1])) == []


def test_last_segment_takes_what_is_left() -> None:
    table = pa.table({PARTITION_COLUMN: np.repeat(np.arange(100), 10)})
    parts = in_segments(iter(table.to_batches(max_chunksize=50)), [100, 200])
    assert [part.num_rows for part in parts] == [90, 200, 710]
