"""Statistics of a map from the summaries of its segments and its memtable, made anew when a version is installed."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.catalog import ColumnRelations, ColumnStatistics, MapStatistics
from remuda.errors import StorageError
from remuda.storage.segment.segment_source import SegmentSource
from remuda.storage.segment.summary.column_summary import combine, domain_of, summarise
from remuda.storage.snapshot import MapSnapshot
from remuda.types.arrow_compute import pc

if TYPE_CHECKING:
    from remuda.storage.segment.summary.column_summary import ColumnSummary
    from remuda.storage.state.map_version import MapVersion

MEMTABLE_GROWTH = 1.25
"""The memtable is summarised again when it has grown by this factor: statistics guide, they need not be exact."""

SAMPLED_ROWS = 4_096
"""Rows by which relations between columns are judged."""
FEWEST_SAMPLED = 32
DEPENDENT_SHARE = 0.95
"""Columns whose combinations are nearly as many when one of them comes from other rows are independent."""


class StatisticsKeeper:
    """The columns of the version last asked for; the number of rows is always exact."""

    __slots__ = ("_columns", "_length", "_relations", "_version")

    def __init__(self) -> None:
        self._version: weakref.ref[MapVersion] | None = None
        self._length = 0
        self._columns = CombinedColumns((), ())
        self._relations = ColumnRelations()

    def of(self, version: MapVersion) -> MapStatistics:
        length = version.memtable.committed
        if self._version is None or self._version() is not version or length > self._length * MEMTABLE_GROWTH:
            self._columns = _combined(version, length)
            # Not held: an old version keeps files that nothing else needs.
            self._version, self._length = weakref.ref(version), length
            self._relations = SampledRelations(self._version, length)
        return MapStatistics(version.live, self._columns, self._relations)


class SampledRelations(ColumnRelations):
    """Tells from a sample of rows what columns have to do with each other, when it is first asked."""

    __slots__ = ("_ascending", "_counts", "_dependent", "_length", "_version")

    def __init__(self, version: weakref.ref[MapVersion], length: int) -> None:
        self._version = version
        self._length = length
        self._counts: dict[tuple[str, ...], float | None] = {}
        self._dependent: dict[tuple[tuple[str, ...], tuple[str, ...]], float | None] = {}
        self._ascending: dict[tuple[str, str], bool] = {}

    def __reduce__(self) -> tuple[type[ColumnRelations], tuple[()]]:
        """Pickle as relations of which nothing is known: Spark's tasks have no rows to sample."""
        return ColumnRelations, ()

    def combinations(self, columns: tuple[str, ...]) -> float | None:
        if columns not in self._counts:
            self._counts[columns] = self._count(columns)
        return self._counts[columns]

    def _count(self, columns: tuple[str, ...]) -> float | None:
        sample = self._sample(columns)
        if sample is None or sample.num_rows == 0:
            return None
        return domain_of(_distinct_rows(sample), sample.num_rows)

    def dependent(self, columns: tuple[str, ...], by: tuple[str, ...]) -> float | None:
        """Compare the sample with one whose rows have the values of `by` of other rows.

        A few customers who buy most make pairs of customers and days come often, and as often with any other days.
        """
        key = (columns, by)
        if key not in self._dependent:
            self._dependent[key] = self._count_dependent(columns, by)
        return self._dependent[key]

    def _count_dependent(self, columns: tuple[str, ...], by: tuple[str, ...]) -> float | None:
        sample = self._sample((*columns, *by))
        if sample is None or sample.num_rows < FEWEST_SAMPLED:
            return None
        shown = _distinct_rows(sample)
        if shown == sample.num_rows:
            return None
        others = sample.take(np.random.default_rng(0).permutation(sample.num_rows))
        arrays = [*sample.columns[: len(columns)], *others.columns[len(columns) :]]
        if shown > DEPENDENT_SHARE * _distinct_rows(pa.RecordBatch.from_arrays(arrays, names=sample.schema.names)):
            return None
        return domain_of(shown, sample.num_rows)

    def ascends(self, column: str, key: str) -> bool:
        if (column, key) not in self._ascending:
            self._ascending[column, key] = self._is_ascending(column, key)
        return self._ascending[column, key]

    def _is_ascending(self, column: str, key: str) -> bool:
        sample = self._sample((key, column))
        if sample is None or sample.num_rows < FEWEST_SAMPLED or sample.column(1).null_count:
            return False
        keys, values = (_plain(each) for each in sample.columns)
        ordered = values.take(pc.sort_indices(keys))
        return not pc.any(pc.less(ordered[1:], ordered[:-1])).as_py()

    def _sample(self, columns: tuple[str, ...]) -> pa.RecordBatch | None:
        """Return evenly spread rows of the largest source."""
        version = self._version()
        if version is None:
            return None
        source = MapSnapshot(version, self._length).sampled_source
        if source is None or source.rows == 0:
            return None
        if isinstance(source, SegmentSource) and not source.segment.is_whole:
            return None  # Planning fetches no rows.
        positions = np.linspace(0, source.rows - 1, min(source.rows, SAMPLED_ROWS)).astype(np.int64)
        try:
            return source.take(columns, positions)
        except StorageError:  # The query that reads the damaged rows reports them.
            return None


def _distinct_rows(batch: pa.RecordBatch) -> int:
    return int(pa.Table.from_batches([batch]).group_by(batch.schema.names).aggregate([]).num_rows)


def _plain(array: pa.Array) -> pa.Array:
    """Return an array whose values Arrow can sort and compare."""
    if pa.types.is_dictionary(array.type):
        return array.dictionary_decode()
    return array.cast(pa.int8()) if pa.types.is_boolean(array.type) else array


class CombinedColumns(Mapping[str, ColumnStatistics]):
    """The statistics of columns, combined from those of the sources when a column is first asked for: few are."""

    __slots__ = ("_combined", "_names", "_sources")

    def __init__(self, names: Iterable[str], sources: Sequence[Mapping[str, ColumnSummary]]) -> None:
        self._names = dict.fromkeys(names)
        self._sources = sources
        self._combined: dict[str, ColumnStatistics] = {}

    def __getitem__(self, name: str) -> ColumnStatistics:
        found = self._combined.get(name)
        if found is None:
            if name not in self._names:
                raise KeyError(name)
            found = self._combined[name] = combine([each[name] for each in self._sources])
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __bool__(self) -> bool:
        return bool(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names


def _combined(version: MapVersion, length: int) -> CombinedColumns:
    columns = version.definition.columns
    names = [column.name for column in columns]
    sources = list(version.summaries)
    recent = MapSnapshot(version, length).memtable_source
    if recent is not None:
        arrays = zip(columns, recent.read(names, 0, length).columns, strict=True)
        sources.append({column.name: summarise(array, column.type) for column, array in arrays})
    return CombinedColumns(names, sources)
