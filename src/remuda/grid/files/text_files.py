"""CSV and JSON files, whose values have no types of their own: they are read with the types of the map's columns.

Nothing is inferred from a file's first rows. Every value of a CSV file is read as text and converted to the type of
its column (`text_values.py`). Arrow parses blocks of JSON lines with an explicit schema; a block that it refuses is
read line by line, for what Arrow has no answer to (an object in a JSON column, text for a number, a name in another
case) or for the error. A row that is longer than a block is read with larger blocks. An error names the file and
the row or line.
"""

from __future__ import annotations

import csv
import io
import json
from threading import Lock
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa

from remuda.errors import file_error, missing_column, nearest, repeated_column, shown, text_error
from remuda.grid.files.text_values import WrongValueError, typed_column
from remuda.sql import CsvOptions
from remuda.types import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from remuda.catalog import ColumnDefinition
    from remuda.errors import SqlError

CSV_BLOCK = 1 << 20
JSON_BLOCK = 4 << 20
"""Bytes that are parsed at once."""
JSON_CHUNK = 1 << 20
"""Bytes of a block that a thread parses."""
LONGEST_RECORD = 1 << 30
"""Bytes of a row or line. An Arrow array of text ends at twice that."""
_BLOCK_TOO_SMALL = ("straddl", "Empty CSV file or block")
"""What Arrow says of a row, and of a first line, that a block does not hold."""
_HEADER_BYTES = 16 << 20
_MOST_GUESSED = 1_000
"""Columns of a file whose types are guessed for a message."""


def _open(path: Path) -> pa.NativeFile:
    return pa.input_stream(str(path), compression="detect")


def _by_name(columns: Iterable[ColumnDefinition]) -> dict[str, ColumnDefinition]:
    return {column.name.casefold(): column for column in columns}


def _no_such_column(path: Path, name: str, columns: Iterable[ColumnDefinition]) -> SqlError:
    names = [column.name for column in columns if not column.hidden]
    return missing_column(f"{path}: the table has no column {shown(name)[1:-1]}", suggestion=nearest(name[:200], names))


# ------------------------------------------------------------------------------------------------------------- CSV


def read_csv(path: Path, options: CsvOptions | None, columns: Sequence[ColumnDefinition]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a CSV file. Without a header the columns are those of the map, in their order.

    An empty value is NULL unless it is quoted; where the options name another text for NULL, that text is.
    """
    options = options or CsvOptions()
    names = csv_names(path, options) if options.header else [column.name for column in columns if not column.hidden]
    wanted = _by_name(columns)
    for name in names:
        if name.casefold() not in wanted:
            raise _no_such_column(path, name, columns)
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
    with _open(path) as stream:
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
    """Guess the columns of a CSV file from its first rows, for a message."""
    from pyarrow import csv as arrow_csv

    options = options or CsvOptions()
    names = csv_names(path, options)
    texts = pa.schema([(name, pa.string()) for name in names])
    if len(names) > _MOST_GUESSED:
        return texts
    parsing = arrow_csv.ParseOptions(delimiter=options.delimiter, newlines_in_values=True)
    try:
        return arrow_csv.open_csv(path, parse_options=parsing).schema
    except pa.ArrowException:
        return texts


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
        self._stream: pa.NativeFile | None = _open(path)
        self._row: bytes | None = row
        self._last = b"\n"
        self._rest = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """As many bytes as are asked for, unless there are no more: Arrow wants the first line in its first block."""
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


# ------------------------------------------------------------------------------------------------------------ JSON

_LINE_BREAK, _BRACE = b"\n{"

_JSON_TYPES = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.TINYINT: pa.int8(),
    Kind.SMALLINT: pa.int16(),
    Kind.INTEGER: pa.int32(),
    Kind.BIGINT: pa.int64(),
    Kind.REAL: pa.float64(),
    Kind.DOUBLE: pa.float64(),
}
"""What Arrow reads from JSON's own forms; a DECIMAL too, by its digits. All others are text in a JSON file."""


def read_json(path: Path, columns: Sequence[ColumnDefinition]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file with an object a line. A member that is missing is NULL.

    In a JSON column a string is the text of the document, and any other value the document itself.
    """
    reader: _JsonReader | None = None
    line = 1
    for block in _blocks_of_lines(path):
        if reader is None:
            reader = _JsonReader(path, columns, block[: block.find(b"\n") + 1] or block)
        yield from reader.rows(block, line)
        line += block.count(b"\n")


def _blocks_of_lines(path: Path) -> Iterator[bytes]:
    """Yield blocks of whole lines. JSON has no line break within a value."""
    with io.BufferedReader(_open(path)) as stream:
        while block := stream.read(JSON_BLOCK):
            if not block.endswith(b"\n"):
                block += stream.readline(LONGEST_RECORD + 1)
                if len(block) > LONGEST_RECORD:
                    raise file_error(f"{path} has a line of more than {LONGEST_RECORD:,} bytes")
            yield block


class _JsonReader:
    """Reads blocks of lines as the columns of a map."""

    def __init__(self, path: Path, columns: Sequence[ColumnDefinition], first_line: bytes) -> None:
        self._path = path
        self._columns = _by_name(columns)
        spelled = {name.casefold(): name for name in _names_in(first_line)}
        self._names = {
            spelled.get(name, column.name): column
            for name, column in self._columns.items()
            if not column.hidden or name in spelled
        }
        self._schema = pa.schema([(name, _json_type(column)) for name, column in self._names.items()])

    def rows(self, block: bytes, line: int) -> Iterator[pa.RecordBatch]:
        """`line` is the number of the block's first line."""
        block = block.removeprefix(b"\xef\xbb\xbf") if line == 1 else block
        table = self._parsed_by_arrow(block)
        lines: Sequence[int] = ()
        try:
            if table is None:
                lines, texts = self._parsed_by_line(block, line)
                yield self._typed(texts)
                return
            lines = range(line, line + table.num_rows)
            for batch in table.to_batches():
                yield self._typed(batch)
                lines = lines[batch.num_rows :]
        except WrongValueError as error:
            raise text_error(f"{self._path}, line {lines[error.row]}: {error.message}") from error

    def _typed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [
            typed_column(column, array) if pa.types.is_string(array.type) else array
            for column, array in zip(self._names.values(), batch.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in self._names.values()])

    def _parsed_by_arrow(self, block: bytes) -> pa.Table | None:
        """None where Arrow refuses a line, or reads a line as none or several rows.

        Every line must begin an object: Arrow makes a row of NULLs of `null`, or dies of it.
        """
        characters = np.frombuffer(block, np.uint8)
        begins = np.append(0, np.flatnonzero(characters == _LINE_BREAK) + 1)
        begins = begins[: len(begins) - block.endswith(b"\n")]
        if not (characters[begins] == _BRACE).all():
            return None
        table = self._read(block, JSON_CHUNK)
        return table if table is not None and table.num_rows == len(begins) else None

    def _read(self, block: bytes, chunk: int) -> pa.Table | None:
        from pyarrow import json as arrow_json

        try:
            return arrow_json.read_json(
                pa.BufferReader(block),
                read_options=arrow_json.ReadOptions(block_size=chunk),
                parse_options=arrow_json.ParseOptions(
                    explicit_schema=self._schema, newlines_in_values=False, unexpected_field_behavior="error"
                ),
            )
        except pa.ArrowException as error:
            if chunk <= len(block) and "straddl" in str(error):
                return self._read(block, len(block) + 1)
            return None

    def _parsed_by_line(self, block: bytes, first: int) -> tuple[list[int], pa.RecordBatch]:
        """The number of each line that is not empty, and the values of all columns as text."""
        lines: list[int] = []
        texts: dict[str, list[str | None]] = {name: [] for name in self._names}
        for line, written in enumerate(block.split(b"\n"), first):
            if not written.strip():
                continue
            found: dict[str, str | None] = {}
            for name, value in self._members(written, line).items():
                column = self._columns.get(name.casefold())
                if column is None or (column.hidden and column not in self._names.values()):
                    raise _no_such_column(self._path, name, self._names.values())
                if column.name in found:
                    raise repeated_column(f"{self._path}, line {line}: the column {column.name} is given twice")
                found[column.name] = self._text(column, value, line)
            for name, column in self._names.items():
                texts[name].append(found.get(column.name))
            lines.append(line)
        arrays = [pa.array(values, pa.string()) for values in texts.values()]
        return lines, pa.RecordBatch.from_arrays(arrays, names=list(texts))

    def _members(self, written: bytes, line: int) -> Mapping[str, Any]:
        members: Mapping[str, Any]
        try:
            members = _MEMBERS.decode(written)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            lenient = _members_with_constants(written)
            if lenient is None:
                reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]
                raise file_error(f"{self._path}, line {line} is not a JSON object: {reason}") from error
            members = lenient
        if len(members) < _least_members(written, members):
            raise repeated_column(f"{self._path}, line {line}: a member is given twice")
        return members

    def _text(self, column: ColumnDefinition, value: Any, line: int) -> str | None:
        """The text of a member; that of an object or an array only where the column is JSON."""
        if isinstance(value, str):
            return value
        raw = bytes(value)
        if raw == b"null":
            return None
        if raw.startswith(b'"'):
            return _string(raw, self._path, line)
        if raw[:1] in b"{[" and not column.type.json:
            held = f"the column {column.name} ({column.type}) cannot hold {shown(raw.decode(errors='replace'))}"
            raise file_error(f"{self._path}, line {line}: {held}")
        return raw.decode()


_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_STRING = msgspec.json.Decoder(str)


def _string(raw: bytes, path: Path, line: int) -> str:
    try:
        return _STRING.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise file_error(f"{path}, line {line} is not a JSON object: {error}") from error


def _json_type(column: ColumnDefinition) -> pa.DataType:
    if column.type.kind is Kind.DECIMAL:
        return column.type.arrow
    return _JSON_TYPES.get(column.type.kind, pa.string())


def _names_in(line: bytes) -> Iterable[str]:
    try:
        return _MEMBERS.decode(line.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ()


def guess_json(path: Path) -> pa.Schema:
    """Guess the columns of a JSON file from its first line, for a message."""
    first = next(_blocks_of_lines(path), b"").split(b"\n")[0]
    try:
        members = msgspec.json.decode(first.removeprefix(b"\xef\xbb\xbf"), type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise file_error(f"{path}, line 1 is not a JSON object: {str(error)[:200]}") from error
    guessed = {bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
    return pa.schema([(name, guessed.get(type(value), pa.string())) for name, value in members.items()])


def _least_members(written: bytes, members: Mapping[str, Any]) -> int:
    """How many members the object has, where a name may be there twice: the decoder keeps the last of each name."""
    if all(written.count(b'"' + name.encode() + b'"') <= 1 for name in members):
        return len(members)
    pairs: list[int] = []

    def count(each: list[tuple[str, Any]]) -> None:
        pairs.append(len(each))

    try:
        json.loads(written, object_pairs_hook=count, parse_int=str)
    except (ValueError, RecursionError):
        return len(members)
    return pairs[-1]  # the outermost object is complete last


class _Written(str):
    """A number as it is written."""

    __slots__ = ()


def _members_with_constants(written: bytes) -> dict[str, Any] | None:
    """The members of an object with NaN or Infinity, which are not JSON but often written; None where it is none."""
    if b"NaN" not in written and b"Infinity" not in written:
        return None
    try:
        members = json.loads(written, parse_int=_Written, parse_float=_Written, parse_constant=_Written)
    except (ValueError, RecursionError):
        return None
    if not isinstance(members, dict):
        return None
    return {name: _as_written(value) for name, value in members.items()}


def _as_written(value: Any) -> Any:
    """A number's text, or the value as JSON again."""
    return str(value) if isinstance(value, _Written) else json.dumps(value, ensure_ascii=False).encode()
