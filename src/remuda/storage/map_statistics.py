"""Statistics of a map from the summaries of its segments, refreshed when a version is installed."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from remuda.catalog import ColumnStatistics, MapStatistics
from remuda.storage.segment.column_summary import combine, summarise
from remuda.storage.snapshot import MapSnapshot

if TYPE_CHECKING:
    from remuda.storage.map_version import MapVersion

MEMTABLE_GROWTH = 1.25
"""The memtable is summarised again when it has grown by this factor: statistics guide, they need not be exact."""


class StatisticsKeeper:
    """Keeps the statistics of the version last asked for; the number of rows is always exact."""

    __slots__ = ("_columns", "_length", "_version")

    def __init__(self) -> None:
        self._version: weakref.ref[MapVersion] | None = None
        self._length = 0
        self._columns: dict[str, ColumnStatistics] = {}

    def of(self, version: MapVersion) -> MapStatistics:
        length = version.memtable.committed
        if self._version is None or self._version() is not version or length > self._length * MEMTABLE_GROWTH:
            self._columns = _combined(version, length)
            # Not held: an old version keeps files that no reader needs.
            self._version, self._length = weakref.ref(version), length
        return MapStatistics(version.live, self._columns)


def _combined(version: MapVersion, length: int) -> dict[str, ColumnStatistics]:
    names = [column.name for column in version.definition.columns]
    summaries = {name: [segment.summaries[name] for segment in version.segments] for name in names}
    if length:
        recent = MapSnapshot(version, length).sources[-1].read(names, 0, length)
        for column, array in zip(version.definition.columns, recent.columns, strict=True):
            summaries[column.name].append(summarise(array, column.type))
    return {name: combine(parts) for name, parts in summaries.items()}
