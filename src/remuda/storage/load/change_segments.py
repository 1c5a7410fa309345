"""Segments of changes: each key once, deletions among the rows, and beside them which rows these are and their order.

    <segment id>.changes    which rows are deletions, and the order of all (`array_file`); in the folder of a delivery

A deletion is a row too: its key is found in the segments of the map as that of any row is, and a condition can compare
its other columns. When the changes are merged it is marked as deleted itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.dataclass import dataclass
from remuda.storage.load.bulk_load import build_segments
from remuda.storage.load.conforming import conform, refuse_nulls
from remuda.storage.load.upsert_keys import newest_rows
from remuda.storage.segment.array_file import open_array_file, write_array_file
from remuda.storage.segment.segment_builder import key_hashes, partition_ids
from remuda.types.arrow_arrays import flat

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from remuda.catalog import MapDefinition
    from remuda.storage.load.change_format import Changes
    from remuda.storage.segment.segment import Segment

ENDING = ".changes"


@dataclass(frozen=True, slots=True, eq=False)
class ChangeMarks:
    """Tells for each row of a segment whether it is a deletion, and its order among the changes of its key.

    `order` is None where no column says.
    """

    deletes: np.ndarray
    order: np.ndarray | None = None

    def save(self, folder: Path, segment_id: str) -> None:
        arrays = {"deletes": self.deletes.astype(np.uint8)}
        if self.order is not None:
            arrays["order"] = self.order.astype(np.int64)
        write_array_file(marks_path(folder, segment_id), arrays)

    @classmethod
    def open(cls, folder: Path, segment_id: str) -> ChangeMarks:
        arrays = open_array_file(marks_path(folder, segment_id), ("deletes", "order")).arrays
        return cls(arrays["deletes"].astype(np.bool_), arrays.get("order"))


def marks_path(folder: Path, segment_id: str) -> Path:
    return folder / f"{segment_id}{ENDING}"


def build_change_segments(
    definition: MapDefinition, changes: Changes, first_row: int = 0
) -> Iterator[tuple[Segment, ChangeMarks]]:
    """Yield segments with each key once: of several changes of a key the last one, by their order.

    Without an order a key that comes twice is refused, as in an upsert. Of two last ones the second is in a segment of
    its own: a later one in another segment settles it, else both are refused where the segments meet.
    """
    arrays = [flat(column) for column in _conform(definition, changes, first_row)]
    kept, ties = newest_rows(definition, arrays, changes.order)
    for rows in (None if kept is None else np.flatnonzero(kept), np.array(sorted(ties.values()), np.int64)):
        if rows is None:
            yield from _segments(definition, arrays, changes.deletes, changes.order)
        elif len(rows):
            order = None if changes.order is None else changes.order[rows]
            yield from _segments(
                definition, [each.take(pa.array(rows)) for each in arrays], changes.deletes[rows], order
            )


def _segments(
    definition: MapDefinition, arrays: list[pa.Array], deletes: np.ndarray, order: np.ndarray | None
) -> Iterator[tuple[Segment, ChangeMarks]]:
    # A segment has its rows in order of partitions, and those of one in the order in which they came.
    by_partition = np.argsort(partition_ids(definition, arrays), kind="stable")
    deletes, order = deletes[by_partition], None if order is None else order[by_partition]
    hashes = key_hashes(definition, arrays)[by_partition]
    start = 0
    for segment in build_segments(definition, arrays):
        rows = slice(start, start + segment.rows)
        held = [segment.column(number) for number in range(len(definition.columns))]
        assert np.array_equal(key_hashes(definition, held), hashes[rows]), "marks stand in the order of the rows"
        yield segment, ChangeMarks(deletes[rows], None if order is None else order[rows])
        start = rows.stop


def _conform(definition: MapDefinition, changes: Changes, first_row: int) -> list[pa.Array | pa.ChunkedArray]:
    """Conform the rows. A deletion needs nothing but its key."""
    lenient = replace(
        definition,
        columns=tuple(
            each if each.nullable or each.name in definition.key else replace(each, nullable=True)
            for each in definition.columns
        ),
    )
    arrays = conform(lenient, changes.table, first_row)
    written = ~changes.deletes
    for column, array in zip(definition.columns, arrays, strict=True):
        if not column.nullable and column.name not in definition.key and array.null_count:
            refuse_nulls(definition, column, array, first_row, written)
    return arrays
