"""The files that COPY TO writes, batch by batch: a class for each way of writing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from remuda.dataclass import dataclass
from remuda.errors import repeated_column
from remuda.grid.results.json_text import json_object
from remuda.sql import CsvOptions

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How files are written; no compression is that which the format has by itself."""

    csv: CsvOptions = CsvOptions()
    compression: str | None = None


class FileWriter(Protocol):
    """An open file. It is complete when it is closed."""

    def write(self, batch: pa.RecordBatch) -> None: ...

    def close(self) -> None: ...


class ParquetFile:
    """A Parquet file."""

    def __init__(self, path: Path, schema: pa.Schema, options: WriteOptions) -> None:
        import pyarrow.parquet as pq

        self._writer = pq.ParquetWriter(path, schema, compression=options.compression or "snappy")
        self.write, self.close = self._writer.write_batch, self._writer.close


class ArrowFile:
    """An Arrow file, which is also Feather's second version."""

    def __init__(self, path: Path, schema: pa.Schema, options: WriteOptions) -> None:
        compression = None if options.compression == "none" else options.compression
        self._file = pa.OSFile(str(path), "wb")
        self._writer = pa.ipc.new_file(self._file, schema, options=pa.ipc.IpcWriteOptions(compression=compression))
        self.write = self._writer.write_batch

    def close(self) -> None:
        self._writer.close()
        self._file.close()


class CsvFile:
    """A CSV file. Text is quoted, NULL is empty; bytes are written as hexadecimal digits, as in JSON."""

    def __init__(self, path: Path, schema: pa.Schema, options: WriteOptions) -> None:
        from pyarrow import csv

        self._binary = [ordinal for ordinal, field in enumerate(schema) if pa.types.is_binary(field.type)]
        for ordinal in self._binary:
            schema = schema.set(ordinal, pa.field(schema.names[ordinal], pa.string()))
        # Numbers and moments stand without quotes, unless the delimiter can be in them.
        delimiter = options.csv.delimiter
        quoted = "all_valid" if delimiter.isalnum() or delimiter in " .+-:" else "needed"
        written = csv.WriteOptions(include_header=options.csv.header, delimiter=delimiter, quoting_style=quoted)
        self._names = schema.names
        self._stream = _output(path, options)
        self._writer = csv.CSVWriter(self._stream, schema, write_options=written)

    def write(self, batch: pa.RecordBatch) -> None:
        for ordinal in self._binary:
            digits = [None if value is None else value.hex() for value in batch[ordinal].to_pylist()]
            batch = batch.set_column(ordinal, self._names[ordinal], pa.array(digits, pa.string()))
        self._writer.write_batch(batch)

    def close(self) -> None:
        self._writer.close()
        self._stream.close()


class JsonFile:
    """A file with one object a line, as `grid.load` reads it."""

    def __init__(self, path: Path, schema: pa.Schema, options: WriteOptions) -> None:
        twice = next((name for name in schema.names if schema.names.count(name) > 1), None)
        if twice is not None:
            raise repeated_column(f"an object of JSON has no two members {twice}: name the columns apart")
        self._stream = _output(path, options)

    def write(self, batch: pa.RecordBatch) -> None:
        self._stream.write("".join(json_object(row) + "\n" for row in batch.to_pylist()).encode())

    def close(self) -> None:
        self._stream.close()


def _output(path: Path, options: WriteOptions) -> Any:
    compression = None if options.compression == "none" else options.compression
    return pa.output_stream(str(path), compression=compression)
