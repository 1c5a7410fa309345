"""How rows are cut by partitions, and put together into segments, without Spark."""

from __future__ import annotations

import itertools
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from remuda.errors import SqlError
from remuda.spark.load.load_job import rows_in
from remuda.spark.load.partition_task import (
    BUCKETS,
    bucket_ends,
    travelling_name,
    write_lots_in_arrow,
    written_rows,
)
from remuda.spark.load.segment_task import SegmentLoad, build_part, columns_of, cut_parts, segment_infos
from remuda.spark.query.batch_file import BatchFile, BatchFileWriter
from remuda.storage.load import segment_cut
from remuda.storage.segment.segment_builder import partition_ids
from tests.spark.maps import orders

if TYPE_CHECKING:
    from pathlib import Path

    from remuda.catalog import MapDefinition


def batches(definition: MapDefinition, rows: int, size: int = 1_000) -> list[pa.RecordBatch]:
    table = pa.table(
        {
            travelling_name(definition, "id"): np.arange(rows),
            travelling_name(definition, "customer"): [f"C{number % 100}" for number in range(rows)],
        }
    )
    return table.to_batches(max_chunksize=size)


def cut(folder: Path, definition: MapDefinition, given: list[pa.RecordBatch]) -> list[Any]:
    answers = write_lots_in_arrow(str(folder), definition, iter(given), keyless=False)
    return [written_rows(answer.column(0)[0].as_py()) for answer in answers]


@pytest.mark.parametrize("partitions", [1, 2, 271, 1_000, 70_000])
def test_rows_are_ordered_by_their_partitions_and_none_is_lost(tmp_path: Path, partitions: int) -> None:
    definition = orders(partitions)
    (written,) = cut(tmp_path, definition, batches(definition, 5_000))
    assert written.rows == 5_000 == rows_in(tmp_path)
    batch = BatchFile(written.file.path).read(written.file.byte_range)
    inside = partition_ids(definition, batch.columns)
    assert (inside[1:] >= inside[:-1]).all()
    first, end = partitions // 5, partitions - partitions // 7
    assert written.file.slice_of(0, first) == (0, int((inside < first).sum()))
    assert written.file.slice_of(first, end)[1] == int(((inside >= first) & (inside < end)).sum())
    starts = np.concatenate([[0], bucket_ends(partitions)])
    assert written.counts.tolist() == [written.file.slice_of(*each)[1] for each in itertools.pairwise(starts)]
    assert len(written.counts) == min(partitions, BUCKETS)
    assert len(pickle.dumps(written)) < 3_000
    assert sorted(batch.column(0).to_pylist()) == list(range(5_000))
    first, end = partitions // 3, partitions - partitions // 3
    start, rows = written.file.slice_of(first, end)
    assert set(inside[start : start + rows]) == {each for each in inside.tolist() if first <= each < end}


def test_strings_travel_as_codes_where_they_are_repeated(tmp_path: Path) -> None:
    definition = orders()
    (written,) = cut(tmp_path, definition, batches(definition, 5_000))
    assert pa.types.is_dictionary(
        BatchFile(written.file.path).read(written.file.byte_range).schema.field("customer").type
    )
    different = pa.record_batch({"column0": range(5_000), "column1": [f"C{number}" for number in range(5_000)]})
    (written,) = cut(tmp_path, definition, [different])
    assert BatchFile(written.file.path).read(written.file.byte_range).schema.field("customer").type == pa.string()


@pytest.mark.parametrize("slots", [1, 2, 3, 7])
def test_parts_have_about_equally_many_rows(tmp_path: Path, slots: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remuda.spark.load.segment_task.LEAST_ROWS", 100)
    definition = orders()
    written = cut(tmp_path, definition, batches(definition, 20_000))
    parts = cut_parts(definition, written, slots)
    assert len(parts) == slots
    assert [first for first, _ in parts[1:]] == [end for _, end in parts[:-1]]
    sizes = [sum(each.file.slice_of(*part)[1] for each in written) for part in parts]
    assert sum(sizes) == 20_000
    assert max(sizes) - min(sizes) < 3 * 20_000 / 64


def test_parts_end_where_the_groups_of_the_map_are_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remuda.spark.load.segment_task.LEAST_ROWS", 100)
    definition = orders(1_000)
    written = cut(tmp_path, definition, batches(definition, 20_000))
    cuts = [90, 333, 700]
    assert len(cut_parts(definition, written, 2, cuts)) == 2  # so few rows are not worth a segment for each group
    monkeypatch.setattr(segment_cut, "GROUP_BYTES", 100_000)
    parts = cut_parts(definition, written, 6, cuts)
    assert parts[0][0] == 0
    assert parts[-1][1] == 1_000
    assert [end for _, end in parts[:-1]] == [first for first, _ in parts[1:]]
    assert {*cuts} <= {first for first, _ in parts}
    assert 5 <= len(parts) <= 8


def test_few_rows_are_one_part(tmp_path: Path) -> None:
    definition = orders()
    assert len(cut_parts(definition, cut(tmp_path, definition, batches(definition, 5_000)), 8)) == 1
    assert cut_parts(definition, [], 8) == []


def test_part_becomes_a_segment(tmp_path: Path) -> None:
    definition = orders()
    alike = batches(definition, 5_000)
    different = pa.record_batch({"column0": range(5_000, 9_000), "column1": [f"D{n}" for n in range(4_000)]})
    written = [*cut(tmp_path, definition, alike), *cut(tmp_path, definition, [different])]
    (tmp_path / "map").mkdir()
    load = SegmentLoad(str(tmp_path / "map"), "load7", definition, tuple(each.file for each in written))
    (info,) = segment_infos(build_part(pickle.loads(pickle.dumps(load)), (0, 271)))
    assert info.rows == 9_000
    assert all(path.name.startswith("load7-") for path in (tmp_path / "map").iterdir())


def test_slice_of_a_lot_keeps_only_its_own_values(tmp_path: Path) -> None:
    definition = orders()
    (written,) = cut(tmp_path, definition, batches(definition, 5_000))
    assert len(BatchFile(written.file.path).read(written.file.byte_range).column("customer").dictionary) == 100
    load = SegmentLoad(str(tmp_path), "load7", definition, (written.file,))
    _, rows = written.file.slice_of(100, 101)
    assert 0 < rows < 100
    ids, customers, *_ = columns_of(load, 0, (100, 101))
    assert len(customers.dictionary) <= rows
    assert customers.to_pylist() == [f"C{number % 100}" for number in ids.to_pylist()]


def test_value_that_does_not_fit_is_told_without_a_row_number(tmp_path: Path) -> None:
    definition = orders()
    given = pa.record_batch({"column0": [1, 2], "column2": [7, 3_000_000_000]})
    with pytest.raises(SqlError, match=r"orders.quantity \(INTEGER\) cannot hold 3000000000$"):
        cut(tmp_path, definition, [given])


def test_batches_of_a_file_are_read_in_any_order(tmp_path: Path) -> None:
    given = [pa.record_batch({"a": range(size), "b": ["x" * size] * size}) for size in (3, 1, 100)]
    with BatchFileWriter(tmp_path / "file") as writer:
        places = [writer.append(batch) for batch in given]
    file = BatchFile(str(tmp_path / "file"))
    for batch, byte_range in reversed(list(zip(given, places, strict=True))):
        assert byte_range.start % 64 == 0
        assert file.read(byte_range).equals(batch)
