"""Statistics of a map from the summaries of its segments and its memtable, made anew when a version is installed."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from remuda.catalog import ColumnStatistics, MapStatistics
from remuda.storage.segment.column_summary import combine, summarise
from remuda.storage.snapshot import MapSnapshot

if TYPE_CHECKING:
    from remuda.storage.map_version import MapVersion
    from remuda.storage.segment.column_summary import ColumnSummary

LOG_GROWTH = 1.25
"""The log is summarised again when it has grown by this factor: statistics guide, they need not be exact."""


class StatisticsKeeper:
    """The columns of the version last asked for; the number of rows is always exact."""

    __slots__ = ("_columns", "_length", "_version")

    def __init__(self) -> None:
        self._version: weakref.ref[MapVersion] | None = None
        self._length = 0
        self._columns = CombinedColumns({})

    def of(self, version: MapVersion) -> MapStatistics:
        length = version.log.committed
        if self._version is None or self._version() is not version or length > self._length * LOG_GROWTH:
            self._columns = CombinedColumns(_summaries(version, length))
            # Not held: an old version keeps files that nobody else needs.
            self._version, self._length = weakref.ref(version), length
        return MapStatistics(version.live, self._columns)


class CombinedColumns(Mapping[str, ColumnStatistics]):
    """The statistics of columns, combined from summaries when a column is first asked for: few are."""

    __slots__ = ("_combined", "_summaries")

    def __init__(self, summaries: dict[str, list[ColumnSummary]]) -> None:
        self._summaries = summaries
        self._combined: dict[str, ColumnStatistics] = {}

    def __getitem__(self, name: str) -> ColumnStatistics:
        found = self._combined.get(name)
        if found is None:
            found = self._combined[name] = combine(self._summaries[name])
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._summaries)

    def __len__(self) -> int:
        return len(self._summaries)

    def __contains__(self, name: object) -> bool:
        return name in self._summaries


def _summaries(version: MapVersion, length: int) -> dict[str, list[ColumnSummary]]:
    names = [column.name for column in version.definition.columns]
    summaries = {name: [segment.summaries[name] for segment in version.segments] for name in names}
    if length:
        recent = MapSnapshot(version, length).sources[-1].read(names, 0, length)
        for column, array in zip(version.definition.columns, recent.columns, strict=True):
            summaries[column.name].append(summarise(array, column.type))
    return summaries
