"""What operators hand to each other: a batch of rows, as Arrow columns or, where there are few, as tuples.

Values are in stored form either way. Columns are identified by ordinal; the operators know which column of the query
stands where. A single `Row` is a batch of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from remuda.types.arrow_arrays import stored_list

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from remuda.exec.context import ExecContext
    from remuda.expr import Column


Tuple = tuple[Any, ...]


class RowBatch(Protocol):
    @property
    def columns(self) -> tuple[Column, ...]: ...

    @property
    def row_count(self) -> int: ...

    def row(self, index: int) -> Row: ...

    def tuples(self) -> Sequence[Tuple]:
        """Return all rows as tuples of stored values."""

    def arrow(self) -> pa.RecordBatch:
        """Return all rows as Arrow columns; strings may be dictionary-encoded."""


class ArrowBatch:
    __slots__ = ("_batch", "columns")

    def __init__(self, columns: tuple[Column, ...], batch: pa.RecordBatch) -> None:
        self.columns = columns
        self._batch = batch

    @property
    def row_count(self) -> int:
        return int(self._batch.num_rows)

    def row(self, index: int) -> Row:
        return Row(self.columns, ArrowBatch(self.columns, self._batch.slice(index, 1)).tuples()[0])

    def tuples(self) -> Sequence[Tuple]:
        if not self.columns:
            return [()] * self.row_count
        return list(zip(*stored_columns(self), strict=True))

    def arrow(self) -> pa.RecordBatch:
        return self._batch


class TupleBatch:
    __slots__ = ("_tuples", "columns")

    def __init__(self, columns: tuple[Column, ...], tuples: Sequence[Tuple]) -> None:
        self.columns = columns
        self._tuples = tuples

    @property
    def row_count(self) -> int:
        return len(self._tuples)

    def row(self, index: int) -> Row:
        return Row(self.columns, self._tuples[index])

    def tuples(self) -> Sequence[Tuple]:
        return self._tuples

    def arrow(self) -> pa.RecordBatch:
        if not self.columns:
            return without_columns(len(self._tuples))
        values = list(zip(*self._tuples, strict=True)) if self._tuples else [()] * len(self.columns)
        arrays = [
            pa.array(list(column), type=each.type.arrow) for column, each in zip(values, self.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(self.columns))


class Row(TupleBatch):
    """One row, immutable; wherever a batch is wanted it is the batch that has only itself."""

    __slots__ = ()

    def __init__(self, columns: tuple[Column, ...], values: Tuple) -> None:
        super().__init__(columns, (values,))

    def __getitem__(self, index: int) -> Any:
        return self._tuples[0][index]

    def row(self, index: int) -> Row:
        if index:
            raise IndexError("a row has one row: itself")
        return self


def arrow_schema(columns: Sequence[Column]) -> pa.Schema:
    """Name fields by ordinal: two columns of a query may have the same name."""
    return pa.schema([pa.field(str(ordinal), column.type.arrow) for ordinal, column in enumerate(columns)])


def empty_batch(columns: tuple[Column, ...]) -> RowBatch:
    return TupleBatch(columns, ())


def layout_of(columns: Sequence[Column]) -> dict[int, int]:
    """Return the ordinal of each column, by column id."""
    return {column.id: ordinal for ordinal, column in enumerate(columns)}


def without_columns(row_count: int) -> pa.RecordBatch:
    """Make rows that have no columns: all that is known of them is how many they are."""
    return pa.RecordBatch.from_arrays([pa.nulls(row_count)], names=["0"]).select([])


def positional(arrays: Sequence[pa.Array], row_count: int = 0) -> pa.RecordBatch:
    """Make a record batch of these arrays, named by ordinal; of so many rows where there are no arrays."""
    if not arrays:
        return without_columns(row_count)
    return pa.RecordBatch.from_arrays(list(arrays), names=[str(ordinal) for ordinal in range(len(arrays))])


def stored_columns(batch: RowBatch) -> list[list[Any]]:
    """Return all values, column by column."""
    arrays = batch.arrow().columns
    return [stored_list(array, column.type) for array, column in zip(arrays, batch.columns, strict=True)]


def slice_batch(batch: RowBatch, start: int, count: int) -> RowBatch:
    """Return some neighbouring rows of a batch; no value is copied."""
    if start == 0 and count == batch.row_count:
        return batch
    if isinstance(batch, TupleBatch):
        return TupleBatch(batch.columns, batch.tuples()[start : start + count])
    return ArrowBatch(batch.columns, batch.arrow().slice(start, count))


def conformed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch under the names of what it is handed to, strings written out."""
    arrays = [
        array if array.type == field.type else array.cast(field.type)
        for array, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


# Batches cut so that turning their rows into Python objects can be interrupted.


ROWS_AT_ONCE = 16_384
"""Rows that become Python objects at once, 5 to 10 ms in which no other thread does anything."""


def pieces(batch: RowBatch, context: ExecContext) -> Iterator[RowBatch]:
    """Cut the batch into pieces of so many rows; before each the query is checked for a cancel."""
    for start in range(0, batch.row_count, ROWS_AT_ONCE):
        context.verify()
        yield slice_batch(batch, start, min(ROWS_AT_ONCE, batch.row_count - start))
