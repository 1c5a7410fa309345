"""`LoadSource`: data to load, as tables one after the other."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from remuda.dataclass import dataclass
from remuda.errors import SqlError
from remuda.expr.cancellation import check_cancelled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

TABLE_ROWS = 4_000_000
"""Rows that are held at a time when the data comes in batches."""

TABLE_BYTES = 512 << 20
"""Or so much of them: an Arrow array of strings ends at 2 GiB."""


@dataclass(frozen=True, slots=True)
class LoadSource:
    """Data to load: `tables` one after the other, each of `TABLE_ROWS` at most; `rows` in all, where that is known.

    `origins` has the files from which rows were read so far, each with the number of rows before it. `needs_columns`
    says that the values have no types: once the columns of a map are known the source is opened again with them.
    """

    schema: pa.Schema
    tables: Iterator[pa.Table]
    rows: int | None
    origins: Sequence[tuple[int, Path]] = ()
    needs_columns: bool = False

    @contextmanager
    def naming_files(self) -> Iterator[None]:
        """Give an error that names a row of the load the file of this row, and its number there."""
        try:
            yield
        except SqlError as error:
            counted = _ROW.search(error.message)
            if counted is None or not self.origins:
                raise
            row = int(counted[1])
            first, file = max(origin for origin in self.origins if origin[0] < row)
            if str(file) in error.message:
                raise
            error.message = f"{error.message[: counted.start()]}, row {row - first} of {file}{counted[2]}"
            error.args = (error.message,)
            raise


_ROW = re.compile(r", row (\d+)($|:.*$)", re.DOTALL)


def gathered(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield batches as tables that are worth a segment; other columns than before begin another one.

    A load without any rows is one empty table.
    """
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    given = False
    for batch in batches:
        check_cancelled()
        if waiting and not batch.schema.equals(waiting[0].schema):
            yield pa.Table.from_batches(waiting)
            waiting, rows, size, given = [], 0, 0, True
        waiting.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= TABLE_ROWS or size >= TABLE_BYTES:
            yield pa.Table.from_batches(waiting)
            waiting, rows, size, given = [], 0, 0, True
    if rows or not given:
        yield pa.Table.from_batches(waiting, schema if not waiting else None)


def dataset_source(dataset: Any) -> LoadSource:
    """Read a `pyarrow.dataset.Dataset` batch by batch."""
    return LoadSource(dataset.schema, gathered(dataset.to_batches(), dataset.schema), int(dataset.count_rows()))
