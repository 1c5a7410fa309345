"""Dynamic lookups: a scan reads the rows of a join's keys by the map's key or an index, where they are few."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from remuda.dataclass import dataclass
from remuda.exec.scan.index_matches import find_matches
from remuda.storage import lookup_by_key
from remuda.types.arrow_arrays import stored_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import pyarrow as pa

    from remuda.exec.context import ExecContext
    from remuda.exec.scan.scan_filter import ScanFilter
    from remuda.plan.physical import DynamicLookup, MapScan
    from remuda.storage import Source


class Readable(Protocol):
    """What a scan reads pieces of: a source, or rows that were looked up."""

    def read(self, columns: Sequence[str], start: int, stop: int) -> pa.RecordBatch:
        """Return the live rows from one position up to another."""


Piece = tuple[Readable, int, int]
"""A part of what a scan reads: rows from one position up to another."""


@dataclass(frozen=True, slots=True)
class _FoundRows:
    """Rows that were looked up, read like a source of their own."""

    batch: pa.RecordBatch

    def read(self, columns: Sequence[str], start: int, stop: int) -> pa.RecordBatch:
        return self.batch.select(list(columns)).slice(start, stop - start)


@dataclass(frozen=True, slots=True)
class _RowsAt:
    """Rows of a source at positions, read like a source of their own."""

    source: Source
    positions: np.ndarray

    def read(self, columns: Sequence[str], start: int, stop: int) -> pa.RecordBatch:
        return self.source.take(columns, self.positions[start:stop])


def looked_up_pieces(
    node: MapScan, rule: DynamicLookup, rows: ScanFilter, partitions: np.ndarray | None, context: ExecContext
) -> list[Piece] | None:
    """Return the rows of the keys as pieces of a scan; None where scanning the map is cheaper."""
    keys = context.runtime_filters[rule.number].distinct(rule.key_ordinals, rule.most_keys)
    if keys is None:
        context.activity.decide("dynamic lookup: not used")
        return None
    if rule.index is None:
        return [_found_by_key(node, keys, rows, partitions, context)]
    return _found_by_index(node, rule, keys, partitions, context)


def _found_by_key(
    node: MapScan, keys: list[pa.Array], rows: ScanFilter, partitions: np.ndarray | None, context: ExecContext
) -> Piece:
    found = lookup_by_key(context.snapshot(node.map.id), keys, rows.names, partitions)
    batch = found.select(rows.names).filter(found.column(len(rows.names)))
    context.activity.index_entries += batch.num_rows
    context.activity.decide("dynamic lookup: {} keys", len(keys[0]))
    return _FoundRows(batch), 0, batch.num_rows


def _found_by_index(
    node: MapScan, rule: DynamicLookup, keys: list[pa.Array], partitions: np.ndarray | None, context: ExecContext
) -> list[Piece] | None:
    assert rule.index is not None
    assert rule.most_entries is not None
    types = [node.map.column(name).type for name in rule.columns]
    stored = list(zip(*map(stored_list, keys, types), strict=True))
    sources = context.snapshot(node.map.id).sources_of(partitions)
    found = [find_matches(source, rule.index.id, stored, partitions, context.verify) for source in sources]
    entries = sum(len(matches.positions) for matches in found)
    if len(stored) / max(1, rule.most_keys) + entries / max(1, rule.most_entries) > 1.0:
        context.activity.decide("dynamic lookup: not used for {} keys, {} entries", len(stored), entries)
        return None
    context.activity.index_entries += entries
    context.activity.decide("dynamic lookup: {} keys, {} entries", len(stored), entries)
    return [(_RowsAt(each.source, each.positions), 0, len(each.positions)) for each in found]
