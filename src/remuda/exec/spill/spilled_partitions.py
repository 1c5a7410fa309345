"""Spilled partitions: rows in sixteen spill files, by the hash of their keys, so that rows of equal keys are in one.

Aggregates, joins and windows that have no room for all rows work on one file after the other. A file that has no room
either is spread over sixteen files of the next level, by the next four bits of the hash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.exec.batch import arrow_schema, conformed
from remuda.types.column_hash import hash_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from remuda.exec.spill.spill_file import SpillFile
    from remuda.exec.spill.spill_folder import SpillFolder
    from remuda.expr import Column

FAN_OUT = 16
DEEPEST = 15
"""The last level: sixteen levels use up the 64 bits of the hash."""
BUFFERS_OF_LIMIT = 64
"""The limit divided by this is what rows take before they are written: small pieces would cost more than they save."""


class SpilledPartitions:
    """Written by one thread; afterwards several may read the files."""

    def __init__(
        self, folder: SpillFolder, columns: Sequence[Column], keys: Sequence[int], *, level: int, limit: int
    ) -> None:
        """`keys` are the ordinals of the columns that are hashed, `limit` the statement's limit of memory."""
        self._folder = folder
        self._schema = arrow_schema(columns)
        self._keys = keys
        self._types = [columns[ordinal].type for ordinal in keys]
        self._bits = level * (FAN_OUT - 1).bit_length()
        self._buffer_bytes = limit // BUFFERS_OF_LIMIT
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._files: list[SpillFile | None] = [None] * FAN_OUT
        self.rows = [0] * FAN_OUT
        """The rows of each file."""

    def add(self, batch: pa.RecordBatch) -> None:
        plain = conformed(batch, self._schema)
        self._waiting.append(plain)
        self._waiting_bytes += plain.nbytes
        if self._waiting_bytes > self._buffer_bytes:
            self._write()

    def add_everywhere(self, batch: pa.RecordBatch) -> None:
        """Add rows to every file, whatever their keys are."""
        for partition in range(FAN_OUT):
            self._append(partition, conformed(batch, self._schema))

    def finish(self) -> int:
        """Write what is left; return the bytes of all files."""
        self._write()
        return sum(file.bytes for file in self._files if file is not None)

    def batches(self, partition: int) -> Iterator[pa.RecordBatch]:
        """Read the rows of a file, in the order they were added."""
        file = self._files[partition]
        if file is not None:
            yield from file.batches()

    def close(self, partition: int) -> None:
        """Give the space of a file back."""
        file = self._files[partition]
        if file is not None:
            file.close()

    def _write(self) -> None:
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        for batch in pa.Table.from_batches(waiting, self._schema).combine_chunks().to_batches():
            hashes = hash_columns([batch.column(key) for key in self._keys], self._types, null_is_value=True)
            partitions = (hashes >> self._bits) & (FAN_OUT - 1)
            order = np.argsort(partitions, kind="stable")
            ordered = batch.take(pa.array(order))
            stops = np.searchsorted(partitions[order], np.arange(FAN_OUT), side="right").tolist()
            for partition, (start, stop) in enumerate(zip([0, *stops], stops, strict=False)):
                if start < stop:
                    self._append(partition, ordered.slice(start, stop - start))

    def _append(self, partition: int, batch: pa.RecordBatch) -> None:
        file = self._files[partition]
        if file is None:
            file = self._files[partition] = self._folder.new_file()
        file.write(batch)
        self.rows[partition] += batch.num_rows
