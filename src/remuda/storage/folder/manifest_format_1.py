"""Manifests of format 1, and deliveries of versions that wrote it: JSON, with the segments of a map in its entry."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from remuda.storage.folder.definition_entries import MapEntry, map_definition
from remuda.storage.folder.group_file import SegmentEntry
from remuda.storage.segment.summary.column_summary import ColumnSummary
from remuda.storage.segment.summary.saved_summaries import save_summaries
from remuda.types import Kind, SqlType

if TYPE_CHECKING:
    from collections.abc import Mapping

Decoded = TypeVar("Decoded")


class _SavedSummary(msgspec.Struct):
    rows: int
    nulls: int
    distinct: int
    minimum: Any
    maximum: Any
    histogram: list[Any]
    common: list[tuple[Any, int]] = []
    up_to: list[float] = []
    """The earliest manifests have neither of the last two."""


class _SavedSegment(msgspec.Struct):
    id: str
    rows: int
    indexes: tuple[str, ...]
    row_bytes: int
    row_checksum: str
    summaries: dict[str, _SavedSummary]
    deletion_file: str | None


def decode(body: bytes, form: type[Decoded]) -> Decoded:
    """Decode a manifest. What makes no sense raises one of the errors of msgspec, Decimal and Python."""
    manifest = msgspec.json.decode(body)
    manifest["maps"] = [map_entry(each) for each in manifest["maps"]]
    return msgspec.convert(manifest, form)


def map_entry(saved: Mapping[str, Any]) -> MapEntry:
    """Return the entry of a map, its segments included."""
    segments = msgspec.convert(saved["segments"], list[_SavedSegment])
    others = {name: value for name, value in saved.items() if name not in {"segments", "folded", "groups"}}
    entry = msgspec.convert({**others, "flushed": saved["folded"]}, MapEntry)
    definition = map_definition(entry)
    types = {column.name: column.type for column in definition.columns}
    found = []
    for each in segments:
        summaries = {name: _summary(types[name], summary) for name, summary in each.summaries.items()}
        raw = save_summaries(definition, summaries).raw
        found.append(
            SegmentEntry(each.id, each.rows, each.indexes, each.row_bytes, each.row_checksum, each.deletion_file, raw)
        )
    return msgspec.structs.replace(entry, segments=tuple(found))


def _summary(sql_type: SqlType, saved: _SavedSummary) -> ColumnSummary:
    return ColumnSummary(
        saved.rows,
        saved.nulls,
        saved.distinct,
        _from_text(sql_type, saved.minimum),
        _from_text(sql_type, saved.maximum),
        tuple(_from_text(sql_type, end) for end in saved.histogram),
        tuple((_from_text(sql_type, value), count) for value, count in saved.common),
        tuple(saved.up_to),
    )


def _from_text(sql_type: SqlType, value: Any) -> Any:
    """Return a value in stored form: JSON has strings for what it cannot hold, or not exactly."""
    if value is None:
        return None
    match sql_type.kind:
        case Kind.DECIMAL:
            return Decimal(value)
        case Kind.REAL | Kind.DOUBLE:
            return float.fromhex(value)
        case Kind.VARBINARY:
            return bytes.fromhex(value)
        case _:
            return value
