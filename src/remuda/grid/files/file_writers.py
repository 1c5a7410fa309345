"""The files that COPY TO writes, batch by batch: one function for each of the formats of `load.FORMATS`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from remuda.errors import data_error
from remuda.grid.results.json_text import json_object

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from remuda.sql import CsvOptions

Batches = Iterable[pa.RecordBatch]


def _write_parquet(path: Path, batches: Batches, schema: pa.Schema, _csv: CsvOptions) -> int:
    import pyarrow.parquet as pq

    with pq.ParquetWriter(path, schema) as writer:
        return _each_batch(batches, writer.write_batch)


def _write_csv(path: Path, batches: Batches, schema: pa.Schema, options: CsvOptions) -> int:
    """Text is quoted, NULL is empty; of bytes their digits, as in JSON."""
    from pyarrow import csv

    # Numbers and moments stand without quotes, unless the delimiter can be in them.
    quoted = "all_valid" if options.delimiter.isalnum() or options.delimiter in " .+-:" else "needed"
    written = csv.WriteOptions(include_header=options.header, delimiter=options.delimiter, quoting_style=quoted)
    places = [place for place, field in enumerate(schema) if pa.types.is_binary(field.type)]
    for place in places:
        schema = schema.set(place, pa.field(schema.names[place], pa.string()))
    with csv.CSVWriter(path, schema, write_options=written) as writer:

        def write(batch: pa.RecordBatch) -> None:
            for place in places:
                digits = [None if value is None else value.hex() for value in batch[place].to_pylist()]
                batch = batch.set_column(place, schema.names[place], pa.array(digits, pa.string()))
            writer.write_batch(batch)

        return _each_batch(batches, write)


def _write_arrow(path: Path, batches: Batches, schema: pa.Schema, _csv: CsvOptions) -> int:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        return _each_batch(batches, writer.write_batch)


def _write_json(path: Path, batches: Batches, schema: pa.Schema, _csv: CsvOptions) -> int:
    """Write one object a line, as `grid.load` reads it."""
    twice = next((name for name in schema.names if schema.names.count(name) > 1), None)
    if twice is not None:
        raise data_error(f"an object of JSON has no two members {twice}: name the columns apart")
    with path.open("w", encoding="utf-8") as file:

        def write(batch: pa.RecordBatch) -> None:
            file.writelines(json_object(row) + "\n" for row in batch.to_pylist())

        return _each_batch(batches, write)


def _each_batch(batches: Batches, write: Callable[[pa.RecordBatch], object]) -> int:
    rows = 0
    for batch in batches:
        write(batch)
        rows += batch.num_rows
    return rows


WRITERS: dict[str, Callable[[Path, Batches, pa.Schema, CsvOptions], int]] = {
    "parquet": _write_parquet,
    "csv": _write_csv,
    "json": _write_json,
    "arrow": _write_arrow,
    "feather": _write_arrow,
}
"""By the format: each writes all of the batches and returns how many rows they had."""
