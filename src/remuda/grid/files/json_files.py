"""JSON files with an object a line.

Arrow parses blocks of lines with an explicit schema. A block that it refuses is read line by line, for what Arrow has
no answer to (an object in a JSON column, text for a number, a name in another case) or for the error.
"""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa

from remuda.errors import file_error, repeated_column, shown, text_error
from remuda.grid.files.python_rows import guess_schema
from remuda.grid.files.text_files import LONGEST_RECORD, by_name, no_such_column, open_text
from remuda.grid.files.text_values import WrongValueError, typed_column
from remuda.types import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from remuda.catalog import ColumnDefinition

JSON_BLOCK = 4 << 20
"""Bytes that are parsed at once."""
JSON_CHUNK = 1 << 20
"""Bytes of a block that a thread parses."""
_LINES_GUESSED = 10_000
"""Lines of a JSON file from which types are guessed."""

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
    with io.BufferedReader(open_text(path)) as stream:
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
        self._columns = by_name(columns)
        spelled = {name.casefold(): name for name in _names_in(first_line)}
        self._names = {
            spelled.get(name, column.name): column
            for name, column in self._columns.items()
            if not column.hidden or name in spelled
        }
        self._schema = pa.schema([(name, _json_type(column)) for name, column in self._names.items()])

    def rows(self, block: bytes, line: int) -> Iterator[pa.RecordBatch]:
        """Read the rows of a block; `line` is the number of its first line."""
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
        """Parse a block by Arrow; None where Arrow refuses a line, or reads a line as none or several rows.

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
        """Parse line by line: the number of each line that is not empty, and the values of all columns as text."""
        lines: list[int] = []
        texts: dict[str, list[str | None]] = {name: [] for name in self._names}
        for line, written in enumerate(block.split(b"\n"), first):
            if not written.strip():
                continue
            found: dict[str, str | None] = {}
            for name, value in self._members(written, line).items():
                column = self._columns.get(name.casefold())
                if column is None or (column.hidden and column not in self._names.values()):
                    raise no_such_column(self._path, name, self._names.values())
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
        """Return the text of a member; that of an object or an array only where the column is JSON."""
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
    """Guess the columns of a JSON file from its first lines. An object or an array within a line is JSON."""
    lines = next(_blocks_of_lines(path), b"").removeprefix(b"\xef\xbb\xbf").split(b"\n")[:_LINES_GUESSED]
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                rows.append(msgspec.json.decode(line, type=dict[str, Any]))
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                raise file_error(f"{path}, line {number} is not a JSON object: {str(error)[:200]}") from error
    return guess_schema(rows)


def _least_members(written: bytes, members: Mapping[str, Any]) -> int:
    """Count the members of the object, where a name may be there twice: the decoder keeps the last of each name."""
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
    """Return the members of an object with NaN or Infinity, which are not JSON but often written, or None."""
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
    """Return a number's text, or the value as JSON again."""
    return str(value) if isinstance(value, _Written) else json.dumps(value, ensure_ascii=False).encode()
