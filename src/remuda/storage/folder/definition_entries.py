"""Definitions of maps and views as roots and deliveries hold them. The only place where they are written and read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remuda.catalog import ColumnDefinition, IndexDefinition, IndexType, MapDefinition, ViewDefinition
from remuda.storage.folder.group_file import GroupRef, SegmentEntry, check_groups, check_segment_names
from remuda.storage.folder.store_files import ID, check_form
from remuda.storage.segment.summary.saved_statistics import SavedStatistics  # noqa: TC001 - msgspec reads it
from remuda.types import SqlType

if TYPE_CHECKING:
    from collections.abc import Iterable


class ColumnEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    name: str
    kind: str
    precision: int = 0
    scale: int = 0
    nullable: bool = True
    hidden: bool = False
    length: int | None = None


class IndexEntry(msgspec.Struct, frozen=True):
    id: str
    name: str
    columns: tuple[str, ...]
    kind: str


class MapEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A map: its definition, the last record of the log that is in its segments, and its partition groups.

    `segments` are those that are in no group file: of a delivery, of a manifest of format 1, and of a state that is
    about to be committed.
    """

    id: str
    schema: str
    name: str
    columns: list[ColumnEntry]
    key: tuple[str, ...]
    partitioned_by: tuple[str, ...]
    partitions: int
    replicated: bool
    indexes: list[IndexEntry]
    flushed: int
    retention: int | None = None
    """Seconds that versions of the map are to be kept."""
    compression: str | None = None
    """How the files of segments are compressed on object stores."""
    groups: tuple[GroupRef, ...] = ()
    segments: tuple[SegmentEntry, ...] = ()
    cuts: tuple[int, ...] = ()
    """The partitions at which groups begin, but the first: only of a state that is about to be committed."""
    batches: tuple[tuple[str, int], ...] = ()
    """The last batch of each stream that names its batches."""
    statistics: SavedStatistics | None = None
    """Those of all segments together, where these are many."""


class ViewEntry(msgspec.Struct, frozen=True):
    id: str
    schema: str
    name: str
    text: str
    search_path: tuple[str, ...]
    columns: tuple[str, ...] = ()


def map_entry(
    definition: MapDefinition, flushed: int, segments: Iterable[SegmentEntry], cuts: Iterable[int] = ()
) -> MapEntry:
    return MapEntry(
        definition.id,
        definition.schema,
        definition.name,
        [
            ColumnEntry(
                each.name,
                each.type.name,
                each.type.precision,
                each.type.scale,
                each.nullable,
                each.hidden,
                each.length,
            )
            for each in definition.columns
        ],
        definition.key,
        definition.partitioned_by,
        definition.partitions,
        definition.replicated,
        [IndexEntry(each.id, each.name, each.columns, each.type.value) for each in definition.indexes],
        flushed,
        definition.retention,
        definition.compression,
        segments=tuple(segments),
        cuts=tuple(cuts),
    )


def map_definition(entry: MapEntry) -> MapDefinition:
    return MapDefinition(
        entry.id,
        entry.schema,
        entry.name,
        tuple(
            ColumnDefinition(
                each.name, SqlType.named(each.kind, each.precision, each.scale), each.nullable, each.hidden, each.length
            )
            for each in entry.columns
        ),
        entry.key,
        entry.partitioned_by,
        entry.partitions,
        entry.replicated,
        tuple(IndexDefinition(each.id, each.name, each.columns, IndexType[each.kind]) for each in entry.indexes),
        entry.retention,
        entry.compression,
    )


def view_entry(view: ViewDefinition) -> ViewEntry:
    return ViewEntry(view.id, view.schema, view.name, view.text, view.search_path, view.columns)


def view_definition(entry: ViewEntry) -> ViewDefinition:
    return ViewDefinition(entry.id, entry.schema, entry.name, entry.text, entry.search_path, entry.columns)


def check_map_names(entry: MapEntry) -> None:
    """Raise `ValueError` for an id of a map, index, group or segment that a store does not give, or a wrong group."""
    for each in (entry.id, *(index.id for index in entry.indexes)):
        check_form(ID, each)
    check_groups(entry.groups, entry.partitions)
    check_segment_names(entry.segments)
