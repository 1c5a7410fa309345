"""Loads that are too large to be held: sorted runs, and segments made of a range of partitions of all runs.

The segments of a load then have partitions of their own, as if it had come in one table, and a load needs the memory of
a table and of a segment, however long it is. Runs lie in a file without a name beside the segments: what a killed
process leaves of it, the system frees.
"""

from __future__ import annotations

import itertools
import mmap
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa

from remuda.dataclass import dataclass
from remuda.storage.folder.store_files import make_folder
from remuda.storage.load import segment_cut
from remuda.storage.load.bulk_load import build_segments
from remuda.storage.load.segment_cut import is_worth_cutting, row_sizes, worthwhile_cuts
from remuda.storage.load.upsert_keys import one_of_each_key, shares_with_each_key_once
from remuda.storage.segment.row_memory import release_unused, rows_of, trim_heap
from remuda.storage.segment.segment_builder import partition_ids
from remuda.types.arrow_texts import chunks_of, decoded, fits_one_array, ranges_within

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from remuda.catalog import MapDefinition
    from remuda.storage.segment.segment import Segment

HELD_BYTES = 512 << 20
"""Tables are held up to so many bytes; where there are no more, segments are made of them without runs."""

RANGE_BYTES = 512 << 20
"""Bytes of the rows of a segment that is made of runs: it takes about twice as much while it is made."""

_ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class _Run:
    """Where the batch of a run is in the file, and where each partition begins in it."""

    start: int
    length: int
    offsets: np.ndarray

    def columns(self, file: pa.Buffer, first: int, end: int) -> list[pa.Array | pa.ChunkedArray]:
        """Return the rows of the partitions [first, end), not copied."""
        start, stop = int(self.offsets[first]), int(self.offsets[end])
        batch = pa.ipc.open_stream(file.slice(self.start, self.length)).read_next_batch()
        return batch.slice(start, stop - start).columns  # type: ignore[no-any-return]


class GatheredLoad:
    """Makes segments of tables that come one after the other, by runs only where they are too large to be held."""

    def __init__(
        self,
        definition: MapDefinition,
        folder: Path,
        cuts: Sequence[int],
        *,
        is_upsert: bool,
        order_by: str | None,
        is_share: bool = False,
        budget: int | None = None,
    ) -> None:
        """Begin a load, or a share of one, whose keys others may have too.

        With a budget half of it is held in tables, and a segment that is made of runs has as much as the budget, since
        the rows of runs are in a file.
        """
        self._held_bytes = HELD_BYTES if budget is None else budget // 2
        self._range_bytes = RANGE_BYTES if budget is None else budget
        self._definition = definition
        self._folder = folder
        self._cuts = cuts
        """Where the partition groups of the map are cut."""
        self._is_upsert = is_upsert
        self._is_share = is_share
        self._order_by = order_by

    def segments(self, tables: Iterator[list[pa.Array | pa.ChunkedArray]]) -> Iterator[Segment]:
        """Yield the segments of all tables, given as conforming columns in declared order."""
        held: list[list[pa.Array | pa.ChunkedArray]] = []
        size = 0
        for columns in tables:
            held.append(columns)
            size += sum(column.nbytes for column in columns)
            del columns
            if size > self._held_bytes:
                break
        else:
            yield from self._build(held)
            return
        with SortedRuns(self._definition, self._folder, self._range_bytes) as runs:
            while held:
                runs.add(held.pop(0))
            trim_heap()
            for columns in tables:
                runs.add(columns)
                del columns
                trim_heap()
            for pieces in runs.pieces(self._cuts):
                trim_heap()
                yield from self._build(pieces)

    def _build(self, tables: list[list[pa.Array | pa.ChunkedArray]]) -> Iterator[Segment]:
        """Yield the segments of some tables together, whose list is emptied. Of an upsert each key has one row."""
        columns = together(tables)
        if not columns:
            return
        shares = [columns]
        if self._is_share and self._is_upsert:
            shares = shares_with_each_key_once(self._definition, columns, self._order_by)
        elif self._is_upsert:
            shares = [one_of_each_key(self._definition, columns, self._order_by)]
        del columns
        for share in shares:
            yield from build_segments(self._definition, share, worthwhile_cuts(share, self._cuts))


def together(tables: list[list[pa.Array | pa.ChunkedArray]]) -> list[pa.Array | pa.ChunkedArray]:
    """Return the columns of some tables put together; their list is emptied.

    Values with and without dictionaries come together as values.
    """
    columns: list[pa.Array | pa.ChunkedArray] = []
    for parts in zip(*tables, strict=True):
        alike = all(part.type == parts[0].type for part in parts)
        chunks = [chunk for part in parts for chunk in chunks_of(part if alike else decoded(part))]
        columns.append(pa.chunked_array(chunks, chunks[0].type if chunks else parts[0].type))
    tables.clear()
    return columns


class SortedRuns:
    """Takes tables one after the other, then gives their rows by ranges of partitions."""

    def __init__(self, definition: MapDefinition, folder: Path, range_bytes: int | None = None) -> None:
        self._definition = definition
        self._range_bytes = RANGE_BYTES if range_bytes is None else range_bytes
        make_folder(folder)
        self._file = TemporaryFile(dir=folder)  # noqa: SIM115  (closed by __exit__)
        # Arrow copies what it writes to a file of Python's: this one is the descriptor's.
        self._sink = pa.OSFile(f"/dev/fd/{self._file.fileno()}", "wb")
        self._runs: list[_Run] = []
        self._rows = np.zeros(definition.partitions, np.int64)
        self._sizes = np.zeros(definition.partitions, np.int64)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._sink.close()
        self._file.close()

    def add(self, columns: Sequence[pa.Array | pa.ChunkedArray]) -> None:
        """Write the rows of conforming columns in declared order as a run, or as several where texts are too long."""
        plain = [decoded(column) for column in columns]
        if all(map(fits_one_array, plain)):
            self._add(plain)
            return
        for start, stop in ranges_within(row_sizes(plain), self._range_bytes):
            self._add([column.slice(start, stop - start) for column in plain])

    def _add(self, columns: Sequence[pa.Array | pa.ChunkedArray]) -> None:
        partitions = partition_ids(self._definition, columns)
        count = self._definition.partitions
        rows = np.bincount(partitions, minlength=count)
        self._rows += rows
        self._sizes += np.bincount(partitions, weights=row_sizes(columns), minlength=count).astype(np.int64)
        order = pa.array(np.argsort(partitions, kind="stable").astype(np.uint32))
        del partitions
        names = [column.name for column in self._definition.columns]
        batch = pa.RecordBatch.from_arrays([rows_of(column, order) for column in columns], names=names)
        self._sink.write(bytes(-self._sink.tell() % _ALIGNMENT))
        start = self._sink.tell()
        with pa.ipc.new_stream(self._sink, batch.schema) as writer:
            writer.write_batch(batch)
        self._runs.append(_Run(start, self._sink.tell() - start, np.concatenate([[0], np.cumsum(rows)])))
        del batch
        release_unused()

    def pieces(self, groups: Sequence[int] = ()) -> Iterator[list[list[pa.Array | pa.ChunkedArray]]]:
        """Yield the rows of ranges of partitions, those of each run as columns: to be let go before the next ones.

        `groups` are the partitions at which the groups of the map are cut: the ranges end there, if they are not too
        small for that.
        """
        cuts = groups if is_worth_cutting(int(self._sizes.sum()), groups) else ()
        for first, end in self._ranges(cuts):
            # No page of the file stays when a mapping goes; one that all ranges shared would keep all of them.
            mapped = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
            whole = pa.py_buffer(mapped)
            yield [run.columns(whole, first, end) for run in self._runs]
            mapped.madvise(mmap.MADV_DONTNEED)
            del whole, mapped
            release_unused()

    def _ranges(self, groups: Sequence[int]) -> list[tuple[int, int]]:
        """Return ranges [first, end) of partitions: no larger than a segment of a load is, and about equally large."""
        most = min(self._range_bytes, segment_cut.most_bytes())
        weights = np.maximum(self._sizes / most, self._rows / segment_cut.PART_ROWS)
        parts = max(1, int(np.ceil(weights.sum())))
        ends = np.cumsum(weights)
        cuts = [int(np.searchsorted(ends, ends[-1] * part / parts)) + 1 for part in range(1, parts)]
        ranges = itertools.pairwise(sorted({0, *cuts, *groups, len(weights)}))
        return [(first, end) for first, end in ranges if self._rows[first:end].any()]
