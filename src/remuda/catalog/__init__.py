"""Schemas, maps, indexes and statistics as frozen values; search paths; versions.

The catalog says what exists and what it is called. It holds no rows, no files and no locks: storage owns the data
behind a `MapDefinition`, the grid owns the current `Catalog`. Two definitions are the same object exactly when they
are equal, which is how a plan finds out that it has become stale.
"""

from remuda.catalog.catalog import DEFAULT_SCHEMA, Catalog, SearchPath
from remuda.catalog.definitions import (
    ColumnDefinition,
    IndexDefinition,
    IndexType,
    MapDefinition,
    ViewDefinition,
    new_id,
)
from remuda.catalog.histogram import Histogram
from remuda.catalog.statistics import ColumnRelations, ColumnStatistics, MapStatistics

__all__ = [
    "DEFAULT_SCHEMA",
    "Catalog",
    "ColumnDefinition",
    "ColumnRelations",
    "ColumnStatistics",
    "Histogram",
    "IndexDefinition",
    "IndexType",
    "MapDefinition",
    "MapStatistics",
    "SearchPath",
    "ViewDefinition",
    "new_id",
]
