"""From Arrow arrays of keys to Arrow rows at one snapshot, without a Python loop over the keys.

Keys are hashed by the column, every source is probed by all keys that no source before it had, and rows are taken by
position. Of all rows with one key at most one is live at a snapshot, so the order of the sources does not matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from remuda.catalog import IndexType
from remuda.dataclass import dataclass
from remuda.storage.index.index_condition import Lookup
from remuda.storage.index.key_index import build_table, table_bits
from remuda.storage.memtable.memtable_source import MemtableSource
from remuda.storage.segment.block_guard import guarded
from remuda.storage.segment.deletion_vector import marked
from remuda.types import Kind
from remuda.types.arrow_arrays import (
    arrow_of,
    fixed_values,
    is_dictionary,
    is_fixed_width,
    null_mask,
    stored_list,
    unpacked_bits,
)
from remuda.types.arrow_compute import pc
from remuda.types.column_hash import hash_columns
from remuda.types.normalized_key import float_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from remuda.catalog import IndexDefinition, MapDefinition
    from remuda.storage.segment.block_guard import Array
    from remuda.storage.segment.segment import Segment
    from remuda.storage.snapshot import MapSnapshot
    from remuda.types import SqlType

FOUND = "found"
POSITION = "position"


@dataclass(frozen=True, slots=True)
class KeyedRows:
    """The rows of one source: a key table over them, and how they are read by position.

    `table` gives the key table, `numbers` a column without NULLs as numbers, None where it is none; `live` tells which
    positions are live.
    """

    definition: MapDefinition
    table: Callable[[], Array]
    entries: int
    numbers: Callable[[int], Array | None]
    take: Callable[[Sequence[str], np.ndarray], pa.RecordBatch]
    live: Callable[[np.ndarray], np.ndarray]
    partitions: tuple[int, int] | None = None

    def find(self, keys: Sequence[pa.Array], hashes: np.ndarray) -> np.ndarray:
        """Return the live position of each key, -1 where there is none."""
        if not self.entries:
            return np.full(len(hashes), -1, np.intp)
        positions = _probe(self.table(), self.entries, hashes, self.same(self.definition.key, keys))
        at = np.flatnonzero(positions >= 0)
        dead = at[~self.live(positions[at])]
        positions[dead] = -1
        return positions

    def same(self, names: Sequence[str], keys: Sequence[pa.Array]) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """Return the function that compares rows at positions with keys of ordinals."""
        parts = [self._same_in(name, array) for name, array in zip(names, keys, strict=True)]
        if len(parts) == 1:
            return parts[0]
        return lambda positions, rows: np.logical_and.reduce([part(positions, rows) for part in parts])

    def _same_in(self, name: str, keys: pa.Array) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        ordinal = self.definition.position(name)
        sql_type = self.definition.columns[ordinal].type
        held = self.numbers(ordinal) if is_fixed_width(sql_type) and sql_type.kind is not Kind.BOOLEAN else None
        if held is None:
            return lambda positions, rows: _equal(
                _plain(self.take([name], positions).column(0)), keys.take(arrow_of(rows))
            )
        values = fixed_values(keys, sql_type)
        if not sql_type.is_floating:
            return lambda positions, rows: held[positions] == values[rows]
        normalized = float_keys(values)
        return lambda positions, rows: float_keys(held[positions]) == normalized[rows]


def lookup_by_key(
    snapshot: MapSnapshot, keys: Sequence[pa.Array], columns: Sequence[str], within: np.ndarray | None = None
) -> pa.RecordBatch:
    """Return one row for each key in its order, NULLs where there is none, and whether there is one.

    Keys of partitions that are not `within` those are not looked for.
    """
    definition = snapshot.definition
    count, types = len(keys[0]), [definition.column(name).type for name in definition.key]
    rows = _present(keys)
    keys = [_plain(array) for array in keys]
    if len(rows) < count:
        keys = [array.take(arrow_of(rows)) for array in keys]
    signed = hash_columns(keys, types)
    partitions = _partitions(definition, keys, signed)
    hashes, missing = signed.view(np.uint64), np.arange(len(rows))
    if within is not None:
        owned = np.zeros(definition.partitions, np.bool_)
        owned[within] = True
        missing = np.flatnonzero(owned[partitions])
    order, parts, taken = np.full(count, -1, np.int64), [], 0
    for source in _sources(snapshot, np.unique(partitions[missing])):
        asked = missing if source.partitions is None else missing[_within(partitions[missing], source.partitions)]
        if not len(asked):
            continue
        whole = len(asked) == len(hashes)
        some = list(keys) if whole else [array.take(arrow_of(asked)) for array in keys]
        positions = source.find(some, hashes if whole else hashes[asked])
        hit = np.flatnonzero(positions >= 0)
        if not len(hit):
            continue
        parts.append(_conformed(definition, source.take(list(columns), positions[hit]), columns))
        order[rows[asked[hit]]] = np.arange(taken, taken + len(hit))
        taken += len(hit)
        missing = missing[order[rows[missing]] < 0]
        if not len(missing):
            break
    return _arranged(definition, columns, parts, order)


def find_positions(snapshot: MapSnapshot, keys: Sequence[pa.Array]) -> list[np.ndarray]:
    """Return, for each segment, the live positions of the rows of keys without NULLs, ascending and each once.

    The rows of the memtable are not looked for.
    """
    definition = snapshot.definition
    hashes = hash_columns(keys, [definition.column(name).type for name in definition.key])
    partitions = _partitions(definition, keys, hashes)
    found = {}
    for segment, source in _segments(snapshot):
        asked = np.flatnonzero(_within(partitions, (segment.first_partition, segment.last_partition)))
        if not len(asked):
            continue
        some = [array.take(pa.array(asked)) for array in keys]
        positions = source.find(some, hashes.view(np.uint64)[asked])
        found[segment.id] = np.flatnonzero(marked(segment.rows, positions[positions >= 0]))
    return [found.get(each.id, np.empty(0, np.intp)) for each in snapshot.version.segments]


def lookup_by_index(
    snapshot: MapSnapshot, index: IndexDefinition, keys: Sequence[pa.Array], columns: Sequence[str]
) -> pa.RecordBatch:
    """Return the rows that an index has for each key, in the order of the keys, with the position of its key."""
    definition = snapshot.definition
    types = [definition.column(name).type for name in index.columns]
    rows = _present(keys)
    keys = [array.take(arrow_of(rows)) for array in keys]
    parts, found = [], []
    sources = list(_segments(snapshot))
    for segment, source in sources:
        of_keys, positions = _matches(segment, source, index, keys, types)
        live = source.live(positions)
        found.append(of_keys[live])
        parts.append(_conformed(definition, source.take(list(columns), positions[live]), columns))
    if snapshot.length:
        recent = MemtableSource(definition, snapshot.version.columns, snapshot.length)
        of_keys, positions = _each(keys, types, lambda lookup: np.array(recent.entries(index.id, lookup), np.int64))
        found.append(of_keys)
        parts.append(_conformed(definition, recent.take(list(columns), positions), columns))
    ordinals = np.concatenate([np.empty(0, np.int64), *found])
    order = np.argsort(ordinals, kind="stable")
    batch = _arranged(definition, columns, parts, order)
    names, arrays = batch.schema.names[:-1], batch.columns[:-1]
    position = arrow_of(rows[ordinals[order]])
    return pa.RecordBatch.from_arrays([position, *arrays, batch.column(len(arrays))], names=[POSITION, *names, FOUND])


def _matches(
    segment: Segment, source: KeyedRows, index: IndexDefinition, keys: Sequence[pa.Array], types: Sequence[SqlType]
) -> tuple[np.ndarray, np.ndarray]:
    """Return ordinals of keys, and the positions that match them, live or not.

    A HASH index is probed by all keys at once. A SORTED one finds each key by itself.
    """
    arrays = segment.index_arrays.get(index.id)
    if index.type is not IndexType.HASH or arrays is None:
        opened = segment.index(index)

        def positions_of(lookup: Lookup) -> np.ndarray:
            low, high = opened.span(lookup)
            return np.asarray(opened.positions[low:high]).astype(np.int64)

        return _each(keys, types, positions_of)
    starts, order = guarded(arrays["starts"], segment.hold), guarded(arrays["positions"], segment.hold)
    hashes = hash_columns(keys, types, null_is_value=True).view(np.uint64)
    same = source.same(index.columns, keys)

    def same_group(groups: np.ndarray, ordinals: np.ndarray) -> np.ndarray:
        return same(order[starts[groups].astype(np.intp)].astype(np.intp), ordinals)

    groups = _probe(guarded(arrays["table"], segment.hold), len(arrays["starts"]) - 1, hashes, same_group)
    hit = np.flatnonzero(groups >= 0)
    low, high = starts[groups[hit]].astype(np.int64), starts[groups[hit] + 1].astype(np.int64)
    counts = high - low
    ends = np.cumsum(counts)
    within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts, counts)
    return np.repeat(hit, counts), order[np.repeat(low, counts) + within].astype(np.int64)


def _each(
    keys: Sequence[pa.Array], types: Sequence[SqlType], find: Callable[[Lookup], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    values = zip(*(stored_list(array, each) for array, each in zip(keys, types, strict=True)), strict=True)
    found = [find(Lookup(prefix)) for prefix in values]
    counts = np.array([len(each) for each in found], np.int64)
    return np.repeat(np.arange(len(found)), counts), np.concatenate([np.empty(0, np.int64), *found]).astype(np.int64)


def _sources(snapshot: MapSnapshot, partitions: np.ndarray) -> Iterator[KeyedRows]:
    """Yield the memtable, if it has entries, then the segments that can have rows of partitions, newest first."""
    if snapshot.length:
        if snapshot.keyed_memtable is None:
            snapshot.keyed_memtable = _memtable_rows(snapshot)
        yield snapshot.keyed_memtable
    for _, source in reversed(list(_segments(snapshot, partitions))):
        yield source


def _segments(snapshot: MapSnapshot, partitions: np.ndarray | None = None) -> Iterator[tuple[Segment, KeyedRows]]:
    """Yield the segments, all or those that can have rows of partitions."""
    version, length = snapshot.version, snapshot.length
    parts = (
        zip(version.segments, version.deletions, strict=True) if partitions is None else version.parts_of(partitions)
    )
    for segment, deletions in parts:
        if not segment.rows:
            continue

        def live(positions: np.ndarray, deletions: Any = deletions) -> np.ndarray:
            deleted_at = deletions.deleted_at
            return np.ones(len(positions), np.bool_) if deleted_at is None else deleted_at[positions] > length

        def table(segment: Segment = segment) -> Array:
            return segment.key_array

        def numbers(ordinal: int, segment: Segment = segment) -> Array | None:
            return segment.reader(ordinal).number_array

        span = (segment.first_partition, segment.last_partition)
        yield (
            segment,
            KeyedRows(snapshot.definition, table, segment.rows, numbers, segment.take, live, span),
        )


def _memtable_rows(snapshot: MapSnapshot) -> KeyedRows:
    """Build a key table over the live entries of the memtable; kept with the snapshot."""
    definition, length = snapshot.definition, snapshot.length
    entries = np.flatnonzero(snapshot.version.memtable.live(length))
    batch = snapshot.version.columns.batch(length).take(arrow_of(entries))
    types = [definition.column(name).type for name in definition.key]
    hashes = hash_columns([batch.column(name) for name in definition.key], types).view(np.uint64)
    order = np.argsort(hashes, kind="stable")
    table = build_table(hashes[order], (order + 1).astype(np.uint32))

    def numbers(ordinal: int) -> Array | None:
        column = batch.column(ordinal)
        return None if column.null_count else fixed_values(column, definition.columns[ordinal].type)

    def take(names: Sequence[str], positions: np.ndarray) -> pa.RecordBatch:
        return batch.select(list(names)).take(arrow_of(positions))

    return KeyedRows(
        definition, lambda: table, len(entries), numbers, take, lambda positions: np.ones(len(positions), np.bool_)
    )


def _probe(
    table: Array, entries: int, hashes: np.ndarray, same: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    """Return what the key table has for each hash, -1 where no slot before the first empty one is the same."""
    slots = (hashes >> np.uint64(64 - table_bits(entries))).astype(np.intp)
    positions = table[slots].astype(np.intp) - 1
    open_ = np.flatnonzero(positions >= 0)
    while len(open_):
        open_ = open_[~same(positions[open_], open_)]
        slots[open_] += 1
        positions[open_] = table[slots[open_]].astype(np.intp) - 1
        open_ = open_[positions[open_] >= 0]
    return positions


def _present(keys: Sequence[pa.Array]) -> np.ndarray:
    """Return the ordinals of keys without NULL."""
    absent = np.zeros(len(keys[0]), np.bool_)
    for array in keys:
        nulls = null_mask(array)
        if nulls is not None:
            absent |= nulls
    return np.flatnonzero(~absent)


def _partitions(definition: MapDefinition, keys: Sequence[pa.Array], signed: np.ndarray) -> np.ndarray:
    if definition.partitioned_by != definition.key:
        chosen = [definition.key.index(name) for name in definition.partitioned_by]
        types = [definition.column(name).type for name in definition.partitioned_by]
        signed = hash_columns([keys[number] for number in chosen], types)
    partitions: np.ndarray = signed % definition.partitions
    return partitions


def _within(partitions: np.ndarray, span: tuple[int, int]) -> np.ndarray:
    inside: np.ndarray = (partitions >= span[0]) & (partitions <= span[1])
    return inside


def _arranged(
    definition: MapDefinition, columns: Sequence[str], parts: Sequence[pa.RecordBatch], order: np.ndarray
) -> pa.RecordBatch:
    """Put rows into an order, in which -1 is a row of NULLs, and tell which are no such rows."""
    found, arrays = order >= 0, []
    indices = arrow_of(order, None if bool(found.all()) else ~found)
    for number, name in enumerate(columns):
        pieces = [part.column(number) for part in parts] or [pa.nulls(0, definition.column(name).type.arrow)]
        arrays.append(pa.concat_arrays(pieces).take(indices))
    return pa.RecordBatch.from_arrays([*arrays, arrow_of(found)], names=[*columns, FOUND])


def _conformed(definition: MapDefinition, batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
    arrays = [_plain(batch.column(name)).cast(definition.column(name).type.arrow) for name in columns]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _plain(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if is_dictionary(array) else array


def _equal(left: pa.Array, right: pa.Array) -> np.ndarray:
    """Compare values one with the other; NaN is equal to itself, as in SQL."""
    equal = pc.equal(left, right)
    if pa.types.is_floating(left.type):
        equal = pc.or_(equal, pc.and_(pc.is_nan(left), pc.is_nan(right)))
    nulls = null_mask(equal)
    same: np.ndarray = unpacked_bits(equal.buffers()[1], equal)
    return same if nulls is None else same & ~nulls
