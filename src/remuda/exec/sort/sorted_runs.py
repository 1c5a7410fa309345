"""Sorted runs: an external merge sort, for rows that take more memory than `memory_limit` leaves.

Rows that fill the memory are sorted and written as a run. Sixteen runs of one level are merged into one of the next, so
that a merge never has more than sixteen runs open. A run is written in pieces of a 512th of the limit: the pieces at
hand of sixteen runs, as they are, together and in order, take three 32nds of it. Sorts fill half of the limit before
they spill, so five of them can merge at once, on several members or one above the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.exec.batch import arrow_schema, conformed
from remuda.exec.memory import bytes_of
from remuda.exec.sort.merge import Stream, merge_pending
from remuda.exec.sort.ordering import concatenate, sort_positions
from remuda.types.arrow_arrays import is_dictionary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from remuda.exec.context import ExecContext
    from remuda.exec.spill.spill_file import SpillFile
    from remuda.exec.spill.spill_folder import SpillFolder
    from remuda.expr import Column
    from remuda.plan.traits import Collation

FAN_IN = 16
"""Runs that are merged at once."""
PIECES_OF_LIMIT = 512
"""The limit divided by this is what a piece of a run takes."""


class SortedRuns:
    def __init__(
        self,
        context: ExecContext,
        folder: SpillFolder,
        columns: Sequence[Column],
        ordinals: Sequence[int],
        collation: Collation,
        limit: int,
    ) -> None:
        self._context = context
        self._folder = folder
        self._schema = arrow_schema(columns)
        self._ordinals = ordinals
        self._collation = collation
        self._piece_bytes = limit // PIECES_OF_LIMIT
        self._levels: list[list[SpillFile]] = []
        self._written_runs = self._written_bytes = 0

    def add(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Sort these rows and write them as a run."""
        self._add_run(0, self._write(self._sorted(concatenate(batches))))

    def merged(self) -> Iterator[pa.RecordBatch]:
        """Deliver all rows in order."""
        runs = [run for level in self._levels for run in level]
        self._levels = []
        while len(runs) > FAN_IN:
            runs = [*runs[FAN_IN:], self._write(self._merge(runs[:FAN_IN]))]
        self._context.activity.decide("spilled: {} runs, {:,} bytes", self._written_runs, self._written_bytes)
        return self._merge(runs)

    def _add_run(self, level: int, run: SpillFile) -> None:
        if level == len(self._levels):
            self._levels.append([])
        runs = self._levels[level]
        runs.append(run)
        if len(runs) == FAN_IN:
            self._levels[level] = []
            self._add_run(level + 1, self._write(self._merge(runs)))

    def _sorted(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Copy the rows in order, a piece at a time."""
        self._context.verify()
        positions = sort_positions(batch, self._ordinals, self._collation)
        step = self._rows_of_piece(batch)
        for start in range(0, batch.num_rows, step):
            yield batch.take(positions.slice(start, step))

    def _write(self, batches: Iterable[pa.RecordBatch]) -> SpillFile:
        run = self._folder.new_file()
        for batch in batches:
            step = self._rows_of_piece(batch)
            for start in range(0, batch.num_rows, step):
                self._context.verify()
                run.write(conformed(batch.slice(start, step), self._schema))
        self._written_runs += 1
        self._written_bytes += run.bytes
        return run

    def _rows_of_piece(self, batch: pa.RecordBatch) -> int:
        size = bytes_of(batch) + sum(_bytes_of_texts(column) for column in batch.columns)
        return max(1, int(batch.num_rows) * self._piece_bytes // max(size, 1))

    def _merge(self, runs: Sequence[SpillFile]) -> Iterator[pa.RecordBatch]:
        streams = [Stream() for _ in runs]
        readers = [run.batches() for run in runs]
        while True:
            self._context.verify()
            for stream, reader in zip(streams, readers, strict=True):
                while stream.needs_input:
                    stream.pending = next(reader, None)
                    stream.exhausted = stream.pending is None
            held = sum(bytes_of(stream.pending) for stream in streams if stream.pending is not None)
            self._context.hold(self, "the sort", 3 * held)
            merged = merge_pending(streams, self._ordinals, self._collation)
            if merged is None:
                break
            yield merged
        for run in runs:
            run.close()


def _bytes_of_texts(column: pa.Array) -> int:
    """Return what the texts of a dictionary take, about, when they are written out."""
    if not is_dictionary(column) or not len(column.dictionary):
        return 0
    return len(column) * int(column.dictionary.nbytes) // len(column.dictionary)
