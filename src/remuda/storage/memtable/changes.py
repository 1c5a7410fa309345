"""What statements do to a version of a map: each appends all its entries, and commits none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.errors import ConstraintError
from remuda.storage.segment.segment_builder import duplicate_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from remuda.storage.lookup.row_projection import Row
    from remuda.storage.map_version import MapVersion


def insert_row(version: MapVersion, key: Any, row: Row) -> None:
    """Append a row; raise if the key is there. The caller rolls the version back then."""
    if version.write(key, row):
        raise duplicate_key(version.definition, key)


def insert_rows(version: MapVersion, keys: Sequence[Any], rows: Sequence[Row]) -> int:
    try:
        for key, row in zip(keys, rows, strict=True):
            insert_row(version, key, row)
    except ConstraintError as error:
        # The row that met another one has been appended like those before it.
        error.row = len(version.memtable.keys) - version.memtable.committed - 1
        raise
    return len(keys)


def put_rows(version: MapVersion, keys: Sequence[Any], rows: Sequence[Row]) -> None:
    for key, row in zip(keys, rows, strict=True):
        version.write(key, row)


def erase_keys(version: MapVersion, keys: Sequence[Any]) -> int:
    """Append tombstones, and return how many of the keys were there."""
    return sum([version.erase(key) for key in keys])


def write_again(version: MapVersion, entries: Iterable[tuple[Any, Row | None]]) -> None:
    """Append entries of another memtable: rows, and None for what was erased."""
    for key, row in entries:
        if row is None:
            version.erase(key)
        else:
            version.write(key, row)
