"""Nodes that read a map: all of its rows, those of an index, those of keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from remuda.plan.estimate import UNPRICED

if TYPE_CHECKING:
    from remuda.catalog import IndexDefinition, MapDefinition
    from remuda.expr import Column, Expression
    from remuda.plan.bounds import Bound, Points, Pruning
    from remuda.plan.estimate import Estimate
    from remuda.plan.traits import Traits


@dataclass(frozen=True, slots=True)
class MapScan:
    """Reads the partitions that pruning leaves, keeps the rows that pass `filter`."""

    map: MapDefinition
    columns: tuple[Column, ...]
    filter: Expression | None
    pruning: Pruning | None
    traits: Traits
    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)


class Direction(Enum):
    """In which order an index scan delivers; UNORDERED where nobody needs one."""

    UNORDERED = "unordered"
    ASCENDING = "ascending"
    DESCENDING = "descending"

    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class IndexScan:
    """Reads the rows within `bounds`, one for each leading index column, and keeps what passes `remainder`.

    Where no order is needed and more than `scan_above` entries lie within the bounds, known exactly once the
    parameters are, the map is scanned directly with the whole `filter` instead: that is cheaper then.
    """

    map: MapDefinition
    index: IndexDefinition
    columns: tuple[Column, ...]
    bounds: tuple[Bound, ...]
    remainder: Expression | None
    direction: Direction
    pruning: Pruning | None
    traits: Traits
    filter: Expression | None = None
    scan_above: int | None = None
    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class IndexCount:
    """How many rows lie within the bounds of an index, as one row; no row is read for it."""

    map: MapDefinition
    index: IndexDefinition
    bounds: tuple[Bound, ...]
    column: Column
    pruning: Pruning | None
    traits: Traits
    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)

    @property
    def columns(self) -> tuple[Column, ...]:
        return (self.column,)


@dataclass(frozen=True, slots=True)
class KeyLookup:
    """Finds rows by their whole key: `key` has the points of each key column, in the order of the key."""

    map: MapDefinition
    columns: tuple[Column, ...]
    key: tuple[Points, ...]
    remainder: Expression | None
    pruning: Pruning | None
    traits: Traits
    estimate: Estimate = field(default=UNPRICED, compare=False, kw_only=True)

    @property
    def is_single(self) -> bool:
        return all(points.is_single for points in self.key)


ScanNode = MapScan | IndexScan | IndexCount | KeyLookup
