"""CSV files: every value is read as text and converted to the type of its column (`text_values.py`).

A row that is longer than a block is read with larger blocks.
"""

from __future__ import annotations

import csv
import io
from threading import Lock
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from remuda.errors import SqlError, file_error, shown, text_error
from remuda.grid.files.text_files import LONGEST_RECORD, by_name, no_such_column, open_text
from remuda.grid.files.text_values import WrongValueError, typed_column
from remuda.sql import CsvOptions
from remuda.types.arrow_compute import pc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from remuda.catalog import ColumnDefinition
    from remuda.errors import SqlError

CSV_BLOCK = 1 << 20
"""Bytes that are parsed at once."""
_BLOCK_TOO_SMALL = ("straddl", "Empty CSV file or block")
"""What Arrow says of a row, and of a first line, that a block does not hold."""
_HEADER_BYTES = 16 << 20
_MOST_GUESSED = 1_000
"""Columns of a file whose types are guessed."""
_LEADING_ZERO = r"^[+-]?0[0-9]"
"""Digits that are a name and no number: as a number they would lose their zeros."""


def read_csv(path: Path, options: CsvOptions | None, columns: Sequence[ColumnDefinition]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a CSV file. Without a header the columns are those of the map, in their order.

    An empty value is NULL unless it is quoted; where the options name another text for NULL, that text is.
    """
    options = options or CsvOptions()
    names = csv_names(path, options) if options.header else [column.name for column in columns if not column.hidden]
    wanted = by_name(columns)
    for name in names:
        if name.casefold() not in wanted:
            raise no_such_column(path, name, columns)
    targets = [wanted[name.casefold()] for name in names]
    rows = 0
    for batch in _csv_rows(path, options, names):
        try:
            arrays = [typed_column(column, array) for column, array in zip(targets, batch.columns, strict=True)]
        except WrongValueError as error:
            raise text_error(f"{path}, row {rows + error.row + 1}: {error.message}") from error
        yield pa.RecordBatch.from_arrays(arrays, names=names)
        rows += batch.num_rows


def csv_names(path: Path, options: CsvOptions) -> list[str]:
    """Read the names in the first line of a CSV file, before anything is made for each of its columns."""
    with open_text(path) as stream:
        head = stream.read(_HEADER_BYTES)
    if not head.strip():
        raise file_error(f"{path} cannot be read: it is empty, and has no line with the names of columns")
    try:
        text = head.decode("utf-8-sig", "strict" if len(head) < _HEADER_BYTES else "ignore")
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=options.delimiter)
        return next(line for line in lines if line)
    except (UnicodeDecodeError, csv.Error) as error:
        # What comes after the names may be damaged; the names alone are asked for here.
        first = head.splitlines()[0].decode("utf-8-sig", "replace")
        if "�" in first or isinstance(error, csv.Error):
            raise file_error(f"{path} cannot be read: its first line has no names of columns: {error}") from error
        return next(csv.reader([first], delimiter=options.delimiter))


def guess_csv(path: Path, options: CsvOptions | None) -> pa.Schema:
    """Guess the columns of a CSV file from its first rows. Digits that begin with a zero stay text."""
    from pyarrow import csv as arrow_csv

    options = options or CsvOptions()
    names = csv_names(path, options)
    texts = pa.schema([(name, pa.string()) for name in names])
    if len(names) > _MOST_GUESSED:
        return texts
    parsing = arrow_csv.ParseOptions(delimiter=options.delimiter, newlines_in_values=True)
    try:
        guessed = arrow_csv.open_csv(path, parse_options=parsing).schema
        first = next(_csv_rows(path, options, names), None)
    except pa.ArrowException:
        return texts
    if first is None or guessed.names != names:
        return texts
    return pa.schema(
        [
            texts.field(ordinal) if _is_code(field.type, first.column(ordinal)) else field
            for ordinal, field in enumerate(guessed)
        ]
    )


def _is_code(guessed: pa.DataType, texts: pa.Array) -> bool:
    """Return whether texts that Arrow takes for numbers, or for times of day, are better left as text."""
    if pa.types.is_time(guessed):
        return True  # Arrow has seconds there, and later rows may have fractions of them
    is_number = pa.types.is_integer(guessed) or pa.types.is_floating(guessed)
    return bool(is_number and pc.any(pc.match_substring_regex(texts, _LEADING_ZERO)).as_py())


def _csv_rows(path: Path, options: CsvOptions, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield all rows as text. A row that no block holds is read again with larger ones, from the first row on."""
    done, block = 0, CSV_BLOCK
    while True:
        try:
            for batch in _after(done, _csv_stream(path, options, names, block)):
                yield batch
                done += batch.num_rows
            return
        except pa.ArrowInvalid as error:
            if not any(reason in str(error) for reason in _BLOCK_TOO_SMALL):
                raise _csv_error(path, options, names, block, error) from error
            if block >= LONGEST_RECORD:
                raise file_error(f"{path}, row {done + 1} or one after it has more than {block:,} bytes") from error
            block = min(block * 4, LONGEST_RECORD)


def _after(rows: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Leave out the first rows."""
    for batch in batches:
        if rows < batch.num_rows:
            yield batch.slice(rows)
        rows = max(0, rows - batch.num_rows)


class _WithLastRow(io.RawIOBase):
    """A file and, after its end, a row of NULLs.

    Arrow takes the end of the file for the end of a quoted value. Where a quote is never closed, the last row is
    swallowed, and missed.

    Arrow reads ahead in a thread of its own, still after an error. The lock keeps that thread from reading through a
    descriptor that is closed and opened again for another file.
    """

    def __init__(self, path: Path, row: bytes) -> None:
        self._lock = Lock()
        self._stream: pa.NativeFile | None = open_text(path)
        self._row: bytes | None = row
        self._last = b"\n"
        self._rest = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Read as many bytes as are asked for, if there are: Arrow needs the first line in its first block."""
        with self._lock:
            return b"" if self._stream is None else self._next(self._stream, size)

    def close(self) -> None:
        with self._lock:
            if self._stream is not None:
                self._stream.close()
                self._stream = None
        super().close()

    def _next(self, stream: pa.NativeFile, size: int) -> bytes:
        data = b""
        if self._row is not None:
            data = stream.read(size if size >= 0 else None)
            self._last = data[-1:] or self._last
            if size < 0 or len(data) < size:
                self._rest = self._row if self._last in b"\r\n" else b"\n" + self._row
                self._row = None
        room = len(self._rest) if size < 0 else size - len(data)
        data, self._rest = data + self._rest[:room], self._rest[room:]
        return data


def _csv_stream(
    path: Path, options: CsvOptions, names: Sequence[str], block: int, invalid: list[Any] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows as text; where `invalid` is given, rows with another number of values are put there."""
    from pyarrow import csv as arrow_csv

    null = options.null or ""
    empty = "" if any(sign in null for sign in (options.delimiter, '"', "\r", "\n")) else null

    def refuse(row: Any) -> str:
        if invalid is not None:
            invalid.append(row)
        return "error"

    with _WithLastRow(path, options.delimiter.join([empty] * len(names)).encode() + b"\n") as stream:
        reader = arrow_csv.open_csv(
            stream,
            read_options=arrow_csv.ReadOptions(
                column_names=None if options.header else names, block_size=block, use_threads=invalid is None
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=options.delimiter,
                newlines_in_values=True,
                # In a file of one column an empty line is a row with a NULL.
                ignore_empty_lines=len(names) > 1,
                invalid_row_handler=refuse,
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[null],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                check_utf8=False,  # text is checked where it is stored, with its row
            ),
        )
        if reader.schema.names != list(names):
            raise file_error(f"{path} cannot be read: its first line has no names of columns")
        yield from _without_last_row(path, reader)


def _without_last_row(path: Path, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    held: pa.RecordBatch | None = None
    for batch in batches:
        if batch.num_rows:
            if held is not None:
                yield held
            held = batch
    if held is None or any(array[-1].as_buffer() is not None and len(array[-1].as_buffer()) for array in held.columns):
        raise file_error(f"{path} cannot be read: a quoted value is not closed before the end of the file")
    yield held.slice(0, held.num_rows - 1)


def _csv_error(path: Path, options: CsvOptions, names: Sequence[str], block: int, error: Exception) -> SqlError:
    """Read the file again, in one thread, which knows the number of a row."""
    invalid: list[Any] = []
    try:
        for _ in _csv_stream(path, options, names, block, invalid):
            pass
    except pa.ArrowInvalid:
        pass
    if not invalid:
        return file_error(f"{path} cannot be read: {str(error).splitlines()[0][:200]}")
    row = invalid[0]
    place = "" if row.number is None else f", row {row.number - options.header}"
    counted = f"{row.actual_columns} values where there are {row.expected_columns} columns"
    return file_error(f"{path}{place} has {counted}: {shown(row.text)}")
