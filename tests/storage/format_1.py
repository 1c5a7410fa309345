"""Writes folders in format 1: the whole manifest in JSON, as versions before group files did."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from remuda.storage.folder.definition_entries import MapEntry, map_definition
from remuda.storage.folder.group_file import SegmentEntry, segment_infos
from remuda.storage.folder.manifest import NAME, read_manifest
from remuda.storage.folder.partition_groups import PartitionGroups


def to_format_1(folder: Path, change: Callable[[Any], None] = lambda _manifest: None) -> None:
    """Write the manifest of a closed store in format 1, and remove its group files."""
    manifest, groups = read_manifest(folder), PartitionGroups(folder)
    raw = msgspec.to_builtins(manifest)
    raw["maps"] = [
        saved_map(entry, [each for _, segments in groups.segments_of(entry) for each in segments])
        for entry in manifest.maps
    ]
    change(raw)
    body = json.dumps(raw, indent=1).encode()
    (folder / NAME).write_bytes(f"REMUDA 1 {zlib.crc32(body):08x}\n".encode() + body)
    for path in folder.glob("maps/*/*.group"):
        path.unlink()


def saved_map(entry: MapEntry, segments: list[SegmentEntry]) -> dict[str, Any]:
    raw = msgspec.to_builtins(entry)
    for name in ("groups", "segments"):
        raw.pop(name, None)
    raw["folded"] = raw.pop("flushed")
    infos = segment_infos(segments, map_definition(entry))
    raw["segments"] = [
        {
            "id": info.id,
            "rows": info.rows,
            "indexes": list(info.indexes),
            "row_bytes": info.row_bytes,
            "row_checksum": info.row_checksum,
            "summaries": {name: _texts(_plain(each)) for name, each in info.summaries.items()},
            "deletion_file": segment.deletion_file,
        }
        for info, segment in zip(infos, segments, strict=True)
    ]
    return raw


def _plain(summary: Any) -> dict[str, Any]:
    return {name: getattr(summary, name) for name in summary.__dataclass_fields__}


def _texts(summary: dict[str, Any]) -> dict[str, Any]:
    """Values as JSON held them."""
    common = [(_text(value), count) for value, count in summary["common"]]
    histogram = [_text(end) for end in summary["histogram"]]
    bounds = {name: _text(summary[name]) for name in ("minimum", "maximum")}
    return {**summary, **bounds, "histogram": histogram, "common": common}


def _text(value: Any) -> Any:
    match value:
        case float():
            return value.hex()
        case Decimal():
            return str(value)
        case bytes():
            return value.hex()
        case _:
            return value
