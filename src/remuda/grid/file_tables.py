"""Tables that are made of data files, without a key of their own: the shell opens files so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.errors import SqlError, data_error
from remuda.types import VARCHAR, Kind, from_arrow

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa

    from remuda.grid.grid import Grid


def load_files(grid: Grid, name: str, paths: Sequence[Path]) -> int:
    """Create a table with the columns and types of the first file, load all files, and return the number of rows.

    The key is a hidden one. The types of CSV and JSON are guessed from the beginning of the first file; a value
    further on that does not fit is an error with its file and row.
    """
    from remuda.grid.files.inputs import open_source  # with all that reads files, which a lookup does not need

    columns = ", ".join(f"{_quoted(field.name)} {_type_name(field)}" for field in open_source(paths[0]).schema)
    grid.sql(f"CREATE TABLE {_quoted(name)} ({columns})")
    return sum(grid.load(name, path) for path in paths)


def _type_name(field: pa.Field) -> str:
    try:
        found = from_arrow(field.type)
    except SqlError as error:
        raise data_error(f"the column {field.name}: {error.message}") from error
    return str(VARCHAR if found.kind is Kind.NULL else found)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
