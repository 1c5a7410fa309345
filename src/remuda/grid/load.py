"""What `Grid.load` takes: anything that can be had as an Arrow table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from remuda.errors import SqlError, StorageError, data_error
from remuda.types import from_arrow

_READERS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".arrow": "arrow", ".feather": "feather"}


def is_spark_dataframe(data: Any) -> bool:
    """Told by the name of its package, so that pyspark is not imported to find out."""
    return any(base.__module__.startswith("pyspark.sql") for base in type(data).__mro__)


def as_table(data: Any) -> pa.Table:
    """pyarrow, polars, pandas, everything with the Arrow PyCapsule interface, or the path of a file or folder."""
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, str | Path):
        return _read_file(Path(data))
    if type(data).__module__.startswith("pandas"):
        return pa.Table.from_pandas(data, preserve_index=False)
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(data)
    raise data_error(f"a {type(data).__name__} cannot be loaded: give an Arrow table, a data frame or a path")


def _read_file(path: Path) -> pa.Table:
    import pyarrow.dataset as ds

    if not path.exists():
        raise StorageError("there is no such file", path)
    suffix = (
        path.suffix if path.is_file() else next((p.suffix for p in sorted(path.rglob("*")) if p.suffix in _READERS), "")
    )
    if suffix not in _READERS:
        raise data_error(f"{path} cannot be loaded: the kinds of files are {', '.join(_READERS)}")
    try:
        return ds.dataset(path, format=_READERS[suffix]).to_table()
    except pa.ArrowInvalid as error:
        raise data_error(f"{path} cannot be read: {str(error).splitlines()[0]}") from error


def suggest_create(name: str, table_schema: pa.Schema) -> str:
    """The statement that would create a map for data of this schema."""
    columns = [f"{field.name} {_type_name(field.type)}" for field in table_schema]
    return f"CREATE TABLE {name} ({', '.join(columns)}, PRIMARY KEY (...))"


def _type_name(arrow: pa.DataType) -> str:
    try:
        return str(from_arrow(arrow))
    except SqlError:
        return "?"
