"""Batches cut so that whoever turns their rows into Python objects can be interrupted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.exec.batch import slice_batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remuda.exec.batch import RowBatch
    from remuda.exec.context import ExecContext

ROWS_AT_ONCE = 16_384
"""Rows that become Python objects at once, 5 to 10 ms in which no other thread does anything."""


def pieces(batch: RowBatch, context: ExecContext) -> Iterator[RowBatch]:
    """The batch in pieces of so many rows; before each it is asked whether the query goes on."""
    for start in range(0, batch.row_count, ROWS_AT_ONCE):
        context.verify()
        yield slice_batch(batch, start, min(ROWS_AT_ONCE, batch.row_count - start))
