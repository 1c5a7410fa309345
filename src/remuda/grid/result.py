"""What a statement gives back: rows to iterate or fetch, Arrow, pandas, polars; or the number of rows it changed."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from remuda.errors import ErrorCode, RemudaError, SqlError, option_error
from remuda.exec.batch import conformed, slice_batch
from remuda.extras import require_extra
from remuda.grid.garbage import full_collections_put_off
from remuda.grid.rows import RowShape
from remuda.storage import ColumnRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import TracebackType

    from remuda.exec import RowBatch
    from remuda.grid.rows import NamedRow
    from remuda.plan.fragments import ResultColumn
    from remuda.runtime import Execution

CURSOR_BUFFER_SIZE = 4_096
"""Rows that are turned into Python objects at a time, where they are handed out one by one."""
ROWS_AT_ONCE = 8_192
"""The same where all are wanted: few enough that a cancel need not wait for them."""

Restart = Callable[[SqlError, bool], "Execution"]
"""What is done about an error: the query is run again, if it may be (the second argument) and that helps; else it is
raised."""

NO_UPDATE = -1
NO_COLUMNS = RowShape(())


class Result:
    """The result of one statement; it can be read once.

    Rows are computed as they are read. As long as none has been handed out, a query that meets a stale plan is run
    again by `restart`.
    """

    update_count: int = NO_UPDATE
    """How many rows the statement changed; -1 for a query."""

    # Defaults of the class: a result of one row is made in less time than its attributes would take to be set.
    _execution: Execution | None = None
    _restart: Restart | None = None
    _refuse_damaged: Callable[[], None] | None = None
    _iterator: Iterator[NamedRow] | None = None
    _part: Iterator[NamedRow] | None = None
    """What is left of the part of a batch that rows are handed out of."""
    _rest: tuple[RowBatch, int] | None = None
    """The batch of that part, and where in it the next one begins."""
    _handed_out = False
    _closed = False
    _end: SqlError | None = None

    def __init__(
        self,
        shape: RowShape,
        tuples: Iterable[tuple[Any, ...]] | None = None,
        made: Iterable[NamedRow] | None = None,
    ) -> None:
        """Of `tuples` in stored form, or of rows that are `made` as they are handed out; of neither for what is yet to
        be run."""
        self._shape = shape
        self._tuples = tuples
        self._made = made

    @classmethod
    def of_execution(
        cls, shape: RowShape, execution: Execution, restart: Restart, refuse_damaged: Callable[[], None]
    ) -> Result:
        """`refuse_damaged` raises where a damaged file explains an error that nothing else does."""
        result = cls(shape)
        result._refuse_damaged = refuse_damaged
        result._execution = execution
        result._restart = restart
        return result

    @classmethod
    def of_update(cls, count: int) -> Result:
        result = cls(NO_COLUMNS, ())
        result.update_count = count
        return result

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        """Name, type and nullability of each column."""
        return self._shape.columns

    def __iter__(self) -> Iterator[NamedRow]:
        self._refuse_closed()
        return self

    def __next__(self) -> NamedRow:
        if self._closed:
            self._refuse_closed()
        iterator = self._iterator
        if iterator is None:
            iterator = self._iterator = self._rows()
        return next(iterator)

    def fetchone(self) -> NamedRow | None:
        return next(self, None)

    def fetchmany(self, size: int = CURSOR_BUFFER_SIZE) -> list[NamedRow]:
        self._refuse_closed()
        try:
            rows = islice(self, size)
        except ValueError:
            raise option_error(f"fetchmany takes a number of rows, not {size!r}") from None
        return list(rows)

    def fetchall(self) -> list[NamedRow]:
        """All rows that are left."""
        if self._closed:
            self._refuse_closed()
        if self._iterator is not None:
            return list(self._iterator)
        made = self._made
        if made is not None:
            self._made = ()
            return list(made)
        tuples = self._tuples
        if tuples is not None:
            self._tuples = ()
            return list(self._shape.rows(tuples))
        rows: list[NamedRow] = []
        batches = self._all_batches()
        with full_collections_put_off:
            for batch in batches:
                for part in self._parts(batch, ROWS_AT_ONCE):
                    rows.extend(self._shape.rows_of(part))
        return rows

    def to_arrow(self) -> pa.Table:
        """All rows that are left as an Arrow table."""
        self._refuse_closed()
        schema = self._arrow_schema()
        if self._iterator is None and self._tuples is None and self._made is None:
            parts = (part for batch in self._all_batches() for part in self._parts(batch, batch.row_count))
            return pa.Table.from_batches([conformed(part.arrow(), schema) for part in parts], schema)
        return pa.Table.from_batches(self._arrow_batches(schema), schema)

    def to_pandas(self) -> Any:
        require_extra("pandas", "pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        require_extra("polars", "polars")
        import polars as pl

        return pl.from_arrow(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The Arrow PyCapsule interface: batches are handed over as they are computed."""
        self._refuse_closed()
        schema = self._arrow_schema()
        reader = pa.RecordBatchReader.from_batches(schema, self._arrow_batches(schema))
        return reader.__arrow_c_stream__(requested_schema)

    def record_batches(self) -> Iterator[pa.RecordBatch]:
        """All rows that are left as Arrow batches, as they are computed."""
        self._refuse_closed()
        return self._arrow_batches(self._arrow_schema())

    def close(self) -> None:
        """Stops the query if it still runs; what has not been read is gone."""
        self._closed = True
        if self._execution is not None:
            self._execution.close()

    def leave(self, error: SqlError) -> None:
        """Refuse reads with this error and leave the query alone: it runs in the process that this was forked from."""
        self._end = error
        self._closed = True
        self._execution = None

    def end(self, error: SqlError) -> None:
        """Stops the query; whoever reads on gets this error."""
        self._end = error
        self._closed = True
        if self._execution is not None:
            self._execution.fail(error)
            self._execution.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if not self.columns:
            return f"<Result: {self.update_count} rows changed>"
        return f"<Result: {', '.join(f'{column.name} {column.type}' for column in self.columns)}>"

    def _arrow_batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """All rows that are left, in batches as they come; after a partial reading the rest of a part is rows."""
        if self._part is not None:
            part, self._part, self._iterator = self._part, None, None
            if rows := list(part):
                yield _arrow_batch(rows, schema)
            for batch in self._batches():
                yield conformed(batch.arrow(), schema)
        elif self._iterator is not None:
            while rows := list(islice(self._iterator, CURSOR_BUFFER_SIZE)):
                yield _arrow_batch(rows, schema)
        elif self._made is not None:
            made, self._made = self._made, ()
            yield _arrow_columns(made.columns, schema) if isinstance(made, ColumnRows) else _arrow_batch(made, schema)
        elif self._tuples is not None:
            tuples, self._tuples = self._tuples, ()
            yield _arrow_batch(tuples, schema)
        else:
            for batch in self._batches():
                yield conformed(batch.arrow(), schema)

    def _rows(self) -> Iterator[NamedRow]:
        if self._made is not None:
            made, self._made = self._made, ()
            return iter(made)
        if self._tuples is not None:
            tuples, self._tuples = self._tuples, ()
            return iter(self._shape.rows(tuples))
        return self._rows_of_batches()

    def _rows_of_batches(self) -> Iterator[NamedRow]:
        """What has not been handed out is kept where `_arrow_batches` finds it: rows of a part, the rest of a batch."""
        for batch in self._batches():
            start = 0
            for part in self._parts(batch, CURSOR_BUFFER_SIZE):
                start += part.row_count
                self._rest = (batch, start) if start < batch.row_count else None
                self._part = rows = iter(self._shape.rows_of(part))
                yield from rows
        self._part = None

    def _parts(self, batch: RowBatch, size: int) -> Iterator[RowBatch]:
        """A batch in parts of so many rows: before each of them the reader may be told that there is no more."""
        for start in range(0, batch.row_count, size):
            self._refuse_closed()
            if self._execution is not None:
                self._execution.check_time()
            yield slice_batch(batch, start, min(size, batch.row_count - start))

    def _batches(self) -> Iterator[RowBatch]:
        """Batches as they come; the query is run again while it is unnoticed."""
        if self._execution is None:
            return
        yield from self._rest_of_batch()
        while (batch := self._next_batch()) is not None:
            self._handed_out = True
            yield batch

    def _rest_of_batch(self) -> Iterator[RowBatch]:
        """What others have left of the batch that was read last, if anything."""
        if self._rest is not None:
            (batch, start), self._rest = self._rest, None
            yield slice_batch(batch, start, batch.row_count - start)

    def _next_batch(self) -> RowBatch | None:
        while True:
            assert self._execution is not None
            try:
                return self._execution.next_batch()
            except SqlError as error:
                self._run_again(error)
            except RemudaError:
                raise
            except Exception:
                self._explain_by_damage()
                raise

    def _all_batches(self) -> list[RowBatch]:
        """Everything that is left, gathered before any of it is handed out: a stale plan on the way is unnoticed."""
        if self._execution is None:
            return []
        batches = list(self._rest_of_batch())
        while True:
            try:
                batch = self._execution.next_batch()
            except SqlError as error:
                self._run_again(error)
                batches.clear()
                continue
            except RemudaError:
                raise
            except Exception:
                self._explain_by_damage()
                raise
            if batch is None:
                self._handed_out = True
                return batches
            batches.append(batch)

    def _explain_by_damage(self) -> None:
        """Raise the damage that is behind an error of a library, where there is one."""
        if self._refuse_damaged is not None:
            self._refuse_damaged()

    def _run_again(self, error: SqlError) -> None:
        """Starts the query anew after an error that only says that its plan was stale; else raises the error."""
        assert self._restart is not None, "what is computed while it is read can be computed again"
        try:
            self._execution = self._restart(error, not self._handed_out)
        except SqlError:
            # A generator that has raised is at its end. The next reading makes a new one, which meets the error again.
            self._iterator = None
            raise

    def _arrow_schema(self) -> pa.Schema:
        return pa.schema([pa.field(column.name, column.type.arrow) for column in self.columns])

    def _refuse_closed(self) -> None:
        if self._closed:
            raise self._end or SqlError(ErrorCode.CANCELLED_BY_USER, "the result is closed")


def _arrow_batch(rows: Iterable[Any], schema: pa.Schema) -> pa.RecordBatch:
    """Values in stored or in Python form: Arrow takes both."""
    return _arrow_columns(list(zip(*rows, strict=True)) or [()] * len(schema), schema)


def _arrow_columns(columns: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
