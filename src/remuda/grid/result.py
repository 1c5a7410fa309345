"""`Result`: what a statement gives back."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from remuda.errors import ErrorCode, SqlError, option_error, state_error
from remuda.exec.batch import conformed, slice_batch
from remuda.grid.results.arrow_batches import arrow_batch, arrow_columns
from remuda.grid.results.extras import require_extra
from remuda.grid.results.garbage import full_collections_put_off
from remuda.grid.results.json_text import json_object
from remuda.grid.results.preview import PREVIEW_ROWS, html_of, preview, summary, text_of
from remuda.grid.rows import RowShape, refuse_duplicates
from remuda.presentation.text_table import counted
from remuda.storage import ColumnRows

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator
    from types import TracebackType

    from remuda.exec import RowBatch
    from remuda.grid.results.batch_reader import BatchReader
    from remuda.grid.rows import Row
    from remuda.plan.result_column import ResultColumn
    from remuda.runtime import Execution

CURSOR_BUFFER_SIZE = 4_096
"""Rows that are turned into Python objects at a time, where they are handed out one by one."""
ROWS_AT_ONCE = 8_192
"""The same where all are wanted: few enough that a cancel need not wait for them."""

NO_UPDATE = -1
NO_COLUMNS = RowShape(())


class Result:
    """The result of one statement: rows that are computed as they are read, or the number of rows that it changed.

    Each row is read once, by whichever methods: `fetchmany(10)` and then `df()` gives the rows after the tenth. When
    all rows were read, by `for`, `fetchall`, `df` or another method that takes all, every further one of them raises an
    error that says "was read already"; `fetchone` gives None and `fetchmany` an empty list. Looking at a result
    (`peek`, `show`, its `repr`, a notebook) takes no row away and computes no more rows than it shows.

    >>> import remuda
    >>> grid = remuda.open()
    >>> grid.load("orders", [{"id": 1, "amount": 9.5}, {"id": 2, "amount": 3.25}], key="id")
    2
    >>> grid.sql("SELECT id, amount FROM orders ORDER BY id")
     id  amount
    ───  ──────
      1     9.5
      2    3.25
    (2 rows)
    >>> for row in grid.sql("SELECT id, amount FROM orders ORDER BY id"):
    ...     print(row.id, row["amount"], row[1])
    1 9.5 9.5
    2 3.25 3.25
    """

    update_count: int = NO_UPDATE
    """How many rows the statement changed; -1 for a query."""
    _did: str | None = "changed"
    """What the statement did to so many rows; None where it did something else."""

    # Defaults of the class: a result of one row is made in less time than its attributes would take to be set.
    _reader: BatchReader | None = None
    """Where batches come from; None where all rows were there at once."""
    _iterator: Iterator[Row] | None = None
    _part: Iterator[Row] | None = None
    """What is left of the part of a batch that rows are handed out of."""
    _over = False
    """Whether there is nothing to read any more: the end was reached, or the result is closed."""
    _closed = False
    _end: SqlError | None = None

    def __init__(
        self,
        shape: RowShape,
        tuples: Iterable[tuple[Any, ...]] | None = None,
        made: Iterable[Row] | None = None,
    ) -> None:
        """Of `tuples` in stored form, or of rows that are `made` as they are handed out; of neither for a running
        query."""
        self._shape = shape
        self._tuples = tuples
        self._made = made

    @classmethod
    def of_execution(cls, shape: RowShape, reader: BatchReader) -> Result:
        """Return the result of a query that runs."""
        result = cls(shape)
        result._reader = reader
        return result

    @classmethod
    def of_update(cls, count: int) -> Result:
        """Return the result of a statement that gives no rows."""
        result = cls(NO_COLUMNS, ())
        result.update_count = count
        return result

    @classmethod
    def of_statement(cls, count: int | None, did: str) -> Result:
        """Return the result of a statement that is no query: what it did to how many rows, or to none in particular."""
        result = cls.of_update(count or 0)
        result._did = None if count is None else did
        return result

    @property
    def outcome(self) -> str:
        """What a statement without rows did, in words; nothing of a query.

        >>> import remuda
        >>> grid = remuda.open()
        >>> grid.sql("CREATE TABLE t (PRIMARY KEY (n)) AS SELECT n FROM range(2) AS r(n)").outcome
        '2 rows written'
        >>> grid.sql("DELETE FROM t WHERE n = 1").outcome, grid.sql("DROP TABLE t").outcome
        ('1 row changed', 'done')
        """
        if self.columns:
            return ""
        return "done" if self._did is None else f"{counted(max(self.update_count, 0), 'row')} {self._did}"

    @property
    def columns(self) -> tuple[ResultColumn, ...]:
        """Name, type and nullability of each column.

        >>> import remuda
        >>> [(column.name, str(column.type)) for column in remuda.open().sql("SELECT 1 AS id, 'x' AS name").columns]
        [('id', 'INTEGER'), ('name', 'VARCHAR')]
        """
        return self._shape.columns

    @property
    def was_read(self) -> bool:
        """Whether a method that takes all rows has taken them."""
        return self._over and not self._closed

    @property
    def closed(self) -> bool:
        """Whether the result was closed, by itself or with its session or grid."""
        return self._closed

    def __iter__(self) -> Iterator[Row]:
        self._refuse_over()
        return self

    def __next__(self) -> Row:
        if self._over:
            self._refuse_closed()
            raise StopIteration
        iterator = self._iterator
        if iterator is None:
            iterator = self._iterator = self._rows()
        try:
            return next(iterator)
        except StopIteration:
            self._over = True
            raise

    def __aiter__(self) -> AsyncIterator[Row]:
        """Iterate in a coroutine: rows are computed on another thread, and the event loop goes on meanwhile."""
        from remuda.grid.results.async_reading import rows_async  # brings asyncio

        self._refuse_over()
        return rows_async(self)

    def fetchone(self) -> Row | None:
        """Return the next row; None when there is none.

        >>> import remuda
        >>> remuda.open().sql("SELECT 1 AS id").fetchone()
        Row(id=1)
        """
        return next(self._left(), None)

    def fetchmany(self, size: int = CURSOR_BUFFER_SIZE) -> list[Row]:
        """Return the next rows, `size` of them where there are so many; an empty list at the end."""
        try:
            rows = islice(self._left(), size)
        except ValueError:
            raise option_error(f"fetchmany takes a number of rows, not {size!r}") from None
        return list(rows)

    def fetchall(self) -> list[Row]:
        """Return all rows that are left.

        >>> import remuda
        >>> remuda.open().sql("SELECT n FROM generate_series(1, 3) AS n ORDER BY n").fetchall()
        [Row(n=1), Row(n=2), Row(n=3)]
        """
        if self._over:
            self._refuse_over()
        rows: list[Row] = []
        if self._iterator is not None or self._part is not None:
            rows = list(self)
        elif self._made is not None:
            rows = list(self._made)
        elif self._tuples is not None:
            rows = list(self._shape.rows(self._tuples))
        else:
            batches = self._all_batches()
            with full_collections_put_off:
                for batch in batches:
                    for part in self._parts(batch, ROWS_AT_ONCE):
                        rows.extend(self._shape.rows_of(part))
        self._over = True
        return rows

    def dicts(self) -> list[dict[str, Any]]:
        """Return all rows that are left as dictionaries; refuse two columns of one name.

        >>> import remuda
        >>> remuda.open().sql("SELECT 1 AS id, 'new' AS status").dicts()
        [{'id': 1, 'status': 'new'}]
        """
        names = self._names()
        refuse_duplicates(names, "a dictionary")
        return [dict(zip(names, row, strict=True)) for row in self.fetchall()]

    def json(self) -> str:
        """Return all rows that are left as an array of JSON objects.

        DECIMAL, DATE, TIME, TIMESTAMP and INTERVAL become text, VARBINARY its hexadecimal digits, NaN and infinite
        numbers their names: the forms of `COPY ... TO 'file.json'`.

        >>> import remuda
        >>> remuda.open().sql("SELECT 1 AS id, DATE '2024-02-29' AS day, 2.50 AS price").json()
        '[{"id": 1, "day": "2024-02-29", "price": "2.50"}]'
        """
        return f"[{', '.join(map(json_object, self.dicts()))}]"

    def peek(self, size: int = PREVIEW_ROWS) -> list[Row]:
        """Return the next rows and leave them to be read; no more batches are computed than they need.

        >>> import remuda
        >>> result = remuda.open().sql("SELECT n FROM generate_series(1, 3) AS n ORDER BY n")
        >>> result.peek(1), len(result.fetchall())
        ([Row(n=1)], 3)
        """
        self._refuse_over()
        if self._reader is None:
            left = self._left()
            rows = list(islice(left, size))
            self._iterator = chain(rows, left)
            return rows
        rows = []
        if self._part is not None:
            rows = list(self._part)
            self._part = iter(rows)
        self._iterator = None
        rows = rows[:size]
        for batch in self._reader.look_ahead(size - len(rows)):
            rows.extend(self._shape.rows_of(slice_batch(batch, 0, min(batch.row_count, size - len(rows)))))
        return rows

    def show(self, rows: int = 20) -> None:
        """Print the next rows as a table and leave them to be read.

        >>> import remuda
        >>> remuda.open().sql("SELECT 1 AS id, 'new' AS status").show()
         id  status
        ───  ──────
          1  new
        (1 row)
        """
        print(preview(self, rows).text() if self.columns else summary(self))  # noqa: T201  (what it is for)

    def to_arrow(self) -> pa.Table:
        """Return all rows that are left as a `pyarrow.Table`.

        >>> import remuda
        >>> remuda.open().sql("SELECT 1 AS id, 'new' AS status").to_arrow().to_pydict()
        {'id': [1], 'status': ['new']}
        """
        self._refuse_over()
        schema = self._arrow_schema()
        if self._iterator is None and self._part is None and self._tuples is None and self._made is None:
            parts = (part for batch in self._all_batches() for part in self._parts(batch, batch.row_count))
            table = pa.Table.from_batches([conformed(part.arrow(), schema) for part in parts], schema)
            self._over = True
            return table
        return pa.Table.from_batches(self._arrow_batches(schema), schema)

    def to_pandas(self) -> Any:
        """Return all rows that are left as a pandas data frame.

        Integers are `int64`, with NULLs pandas' `Int64`. `SUM` of integers, exact to 38 digits, is `int64` where its
        values fit and an Arrow decimal where they do not. DATE is `datetime64`; DECIMAL and TIME keep Arrow's types.

        >>> import remuda
        >>> frame = remuda.open().sql("SELECT 1 AS id, DATE '2024-02-29' AS day, 2.50 AS price").to_pandas()
        >>> list(map(str, frame.dtypes))
        ['int32', 'datetime64[ms]', 'decimal128(3, 2)[pyarrow]']
        """
        from remuda.grid.results.frames import pandas_frame

        require_extra("pandas", "pandas")
        return pandas_frame(self.to_arrow())

    def to_polars(self) -> Any:
        """Return all rows that are left as a Polars data frame; refuse two columns of one name."""
        from remuda.grid.results.frames import polars_frame

        require_extra("polars", "polars")
        refuse_duplicates(self._names(), "a Polars data frame")
        return polars_frame(self.to_arrow())

    # The short names that users of DuckDB know.
    arrow = to_arrow
    df = to_pandas
    pl = to_polars

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand over batches as they are computed, by the Arrow PyCapsule interface."""
        self._refuse_over()
        schema = self._arrow_schema()
        reader = pa.RecordBatchReader.from_batches(schema, self._arrow_batches(schema))
        return reader.__arrow_c_stream__(requested_schema)

    def record_batches(self) -> Iterator[pa.RecordBatch]:
        """Iterate over all rows that are left as Arrow batches, as they are computed."""
        self._refuse_over()
        return self._arrow_batches(self._arrow_schema())

    def gather(self) -> Result:
        """Compute all rows that are left now, and keep them: reading them waits for nothing any more."""
        if self._reader is not None:
            self._reader.gather()
        return self

    def close(self) -> None:
        """Stop the query if it still runs, and let go of the rows that were not read."""
        self._closed = self._over = True
        if self._reader is not None:
            self._reader.end()

    def leave(self, error: SqlError) -> None:
        """Refuse reads with this error and leave the query alone: it runs in the process that this was forked from."""
        self._end = error
        self._closed = self._over = True
        self._reader = None

    def end(self, error: SqlError) -> None:
        """Stop the query, and refuse reads with this error."""
        self._end = error
        self._closed = self._over = True
        if self._reader is not None:
            self._reader.end(error)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return text_of(self)

    def _repr_html_(self) -> str:
        return html_of(self)

    def _left(self) -> Iterator[Row]:
        """Iterate over the rows that are left, of which there may be none."""
        if self._over:
            self._refuse_closed()
            return iter(())
        if self._iterator is None:
            self._iterator = self._rows()
        return self._iterator

    def _arrow_batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield all rows that are left in batches as they come; after a partial reading, first the rows of a part."""
        if self._part is not None:
            part, self._part, self._iterator = self._part, None, None
            if rows := list(part):
                yield arrow_batch(rows, schema)
        if self._iterator is not None:
            while rows := list(islice(self._iterator, CURSOR_BUFFER_SIZE)):
                yield arrow_batch(rows, schema)
        elif self._made is not None:
            made, self._made = self._made, ()
            yield arrow_columns(made.columns, schema) if isinstance(made, ColumnRows) else arrow_batch(made, schema)
        elif self._tuples is not None:
            tuples, self._tuples = self._tuples, ()
            yield arrow_batch(tuples, schema)
        else:
            for batch in self._batches():
                yield conformed(batch.arrow(), schema)
        self._over = True

    def _rows(self) -> Iterator[Row]:
        if self._made is not None:
            return iter(self._made)
        if self._tuples is not None:
            return iter(self._shape.rows(self._tuples))
        return self._rows_of_batches()

    def _rows_of_batches(self) -> Iterator[Row]:
        """Yield rows. What was not handed out is in `_part` and in the reader, so that another way of reading can go on
        from there."""
        try:
            if self._part is not None:
                yield from self._part
            for batch in self._batches(CURSOR_BUFFER_SIZE):
                self._check()
                self._part = rows = iter(self._shape.rows_of(batch))
                yield from rows
            self._part = None
        except Exception:
            # A generator that has raised is at its end. The next reading makes a new one, which meets the error again.
            self._iterator = None
            raise

    def _parts(self, batch: RowBatch, size: int) -> Iterator[RowBatch]:
        """Yield a batch in parts of so many rows; before each of them the reader may be told that there is no more."""
        for start in range(0, batch.row_count, size):
            self._check()
            yield slice_batch(batch, start, min(size, batch.row_count - start))

    def _check(self) -> None:
        """Raise where the result was closed by another thread, or the statement's time is over."""
        self._refuse_closed()
        if self._reader is not None:
            self._reader.check_time()

    def _batches(self, size: int | None = None) -> Iterable[RowBatch]:
        return () if self._reader is None else self._reader.batches(size)

    def _all_batches(self) -> list[RowBatch]:
        return [] if self._reader is None else self._reader.all_batches()

    @property
    def _execution(self) -> Execution | None:
        return None if self._reader is None else self._reader.execution

    def _arrow_schema(self) -> pa.Schema:
        return pa.schema([pa.field(column.name, column.type.arrow) for column in self.columns])

    def _names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def _refuse_closed(self) -> None:
        if self._closed:
            raise self._end or SqlError(ErrorCode.CANCELLED_BY_USER, "the result is closed")

    def _refuse_over(self) -> None:
        """Raise where nothing can be read any more. A statement that gives no rows can be asked for them for ever."""
        self._refuse_closed()
        if self._over and self.columns:
            raise state_error(
                "the result was read already: its rows are handed out once",
                suggestion="Run the statement again, or keep what fetchall() or arrow() gives.",
            )
