"""Parquet and Arrow files, whose columns have types of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def read_parquet(file: Path) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Parquet file."""
    import pyarrow.dataset as ds

    yield from ds.dataset(file, format="parquet").to_batches()


def parquet_schema(file: Path) -> pa.Schema:
    """Return the columns of a Parquet file."""
    import pyarrow.parquet as pq

    return pq.read_schema(file)


def count_parquet(file: Path) -> int:
    """Return the number of rows, which the end of a Parquet file tells."""
    import pyarrow.parquet as pq

    return int(pq.read_metadata(file).num_rows)


def read_arrow(file: Path) -> Iterator[pa.RecordBatch]:
    """Yield the rows of an Arrow file, in memory of their own; no offset in it is used before it is checked."""
    with pa.OSFile(str(file)) as opened, pa.ipc.open_file(opened) as reader:
        for number in range(reader.num_record_batches):
            batch = reader.get_batch(number)
            batch.validate(full=True)
            yield batch


def arrow_schema(file: Path) -> pa.Schema:
    """Return the columns of an Arrow file."""
    with pa.OSFile(str(file)) as opened, pa.ipc.open_file(opened) as reader:
        return reader.schema


def count_arrow(file: Path) -> int:
    """Return the number of rows of an Arrow file, without reading them."""
    import pyarrow.dataset as ds

    return int(ds.dataset(file, format="ipc").count_rows())
