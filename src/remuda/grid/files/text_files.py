"""What CSV and JSON files have in common: their values have no types, and are read by those of the map's columns.

Nothing is inferred from a file's first rows where there is a map. An error names the file and the row or line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from remuda.errors import SqlError, missing_column, nearest, shown

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from remuda.catalog import ColumnDefinition
    from remuda.errors import SqlError

LONGEST_RECORD = 1 << 30
"""Bytes of a row or line. An Arrow array of text ends at twice that."""


def open_text(path: Path) -> pa.NativeFile:
    """Open a file, and decompress it where its name says so."""
    return pa.input_stream(str(path), compression="detect")


def by_name(columns: Iterable[ColumnDefinition]) -> dict[str, ColumnDefinition]:
    """Return columns by their names, which are compared without regard to case."""
    return {column.name.casefold(): column for column in columns}


def no_such_column(path: Path, name: str, columns: Iterable[ColumnDefinition]) -> SqlError:
    """Make the error for a name that no column of the map has."""
    names = [column.name for column in columns if not column.hidden]
    return missing_column(f"{path}: the table has no column {shown(name)[1:-1]}", suggestion=nearest(name[:200], names))
