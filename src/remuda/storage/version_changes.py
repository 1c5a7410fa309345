"""The changes of a map between two of its versions, found by comparing them: nothing is recorded for it.

Segments never change, so rows that two versions have in one segment are in both, unless one of them has deleted them.
What is left are the rows that are live in one version alone. Each is looked up by its key in the other version: so a
row that was only moved, by a merge of segments, is no change, and an update is known as one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.dataclass import dataclass
from remuda.errors import wrong_object
from remuda.storage.lookup.arrow_lookup import lookup_by_key
from remuda.types.arrow_arrays import arrow_of, is_dictionary, null_mask
from remuda.types.arrow_compute import pc

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from remuda.catalog import MapDefinition
    from remuda.storage.segment.deletion_vector import DeletionVector
    from remuda.storage.segment.segment import Segment
    from remuda.storage.snapshot import MapSnapshot

CHANGE_TYPE = "_change_type"
INSERT, DELETE, BEFORE_UPDATE, AFTER_UPDATE = "insert", "delete", "update_preimage", "update_postimage"
"""The words of Delta's change data feed."""
COMMIT_VERSION, COMMIT_TIMESTAMP = "_commit_version", "_commit_timestamp"
_BATCH_ROWS = 65_536


def change_fields() -> list[pa.Field]:
    """Return the columns that a change feed has beside those of its map."""
    moment = pa.timestamp("us", tz="UTC")
    return [
        pa.field(CHANGE_TYPE, pa.string(), nullable=False),
        pa.field(COMMIT_VERSION, pa.int64(), nullable=False),
        pa.field(COMMIT_TIMESTAMP, moment, nullable=False),
    ]


def refuse_change_names(definition: MapDefinition) -> None:
    """Raise for a map with a column of a name that the change feed itself has."""
    for field in change_fields():
        if definition.find_column(field.name) is not None:
            raise wrong_object(f"{definition.name} has a column {field.name}, as its change feed has")


@dataclass(frozen=True, slots=True)
class VersionChanges:
    """Compares two versions of a map. Without `before` every row was inserted.

    The later one has the number `version` and was committed at `committed`, in microseconds since 1970 in UTC.
    """

    before: MapSnapshot | None
    after: MapSnapshot
    version: int
    committed: int

    @property
    def most_rows(self) -> int:
        """Return the number of rows that are compared: those that are live in one version alone, and more."""
        known = _segments(self.before)
        kept = _segments(self.after)
        rows = sum(each.rows for name, (each, _) in kept.items() if name not in known)
        for name, (segment, deletions) in known.items():
            other = kept.get(name)
            rows += segment.rows - deletions.deleted if other is None else other[1].deleted - deletions.deleted
        return rows

    def read(self, columns: Sequence[str], partitions: np.ndarray | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the changed rows of some partitions (None: all), and for each a word in the column `_change_type`.

        An update is two rows, the one before and the one after it.
        """
        definition = self.after.definition
        names = [*columns, *definition.key]
        for rows in _rows_of_one(self.after, self.before, names, partitions):
            yield from self._added(rows, columns)
        if self.before is not None:
            for rows in _rows_of_one(self.before, self.after, names, partitions):
                yield from self._removed(rows, columns)

    def read_feed(self, schema: pa.Schema, partitions: np.ndarray | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the changed rows with all of `change_fields`, which end the schema."""
        names = schema.names[: -len(change_fields())]
        for batch in self.read(names, partitions):
            arrays = [
                *batch.columns,
                pa.repeat(pa.scalar(self.version, pa.int64()), batch.num_rows),
                pa.repeat(pa.scalar(self.committed, schema.types[-1]), batch.num_rows),
            ]
            yield pa.RecordBatch.from_arrays(
                [each.cast(field.type) for each, field in zip(arrays, schema, strict=True)], schema=schema
            )

    def _added(self, rows: pa.RecordBatch, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield what became of rows that only the later version has."""
        ours = _first(rows, columns)
        if self.before is None:
            yield _told(ours, INSERT)
            return
        found = lookup_by_key(self.before, _keys(rows, self.before.definition), columns)
        known = found.column(len(columns)).to_numpy(zero_copy_only=False)
        theirs = _first(found, columns)
        yield from _some(ours, INSERT, ~known)
        changed = known & distinct_rows(ours, theirs)
        yield from _some(theirs, BEFORE_UPDATE, changed)
        yield from _some(ours, AFTER_UPDATE, changed)

    def _removed(self, rows: pa.RecordBatch, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield those of the rows that only the earlier version has whose keys the later one has not."""
        found = lookup_by_key(self.after, _keys(rows, self.after.definition), ())
        yield from _some(_first(rows, columns), DELETE, ~found.column(0).to_numpy(zero_copy_only=False))


def distinct_rows(left: pa.RecordBatch, right: pa.RecordBatch) -> np.ndarray:
    """Tell for each row whether it differs from the other: NULL is like NULL, NaN like NaN, and -0.0 is not 0.0."""
    distinct = np.zeros(left.num_rows, np.bool_)
    for one, other in zip(left.columns, right.columns, strict=True):
        distinct |= _distinct(one, other)
    return distinct


def _distinct(left: pa.Array, right: pa.Array) -> np.ndarray:
    count = len(left)
    left_null, right_null = null_mask(left), null_mask(right)
    neither = np.zeros(count, np.bool_)
    left_null = neither if left_null is None else left_null
    right_null = neither if right_null is None else right_null
    equal = pc.fill_null(pc.equal(left, right), fill_value=False).to_numpy(zero_copy_only=False)
    if pa.types.is_floating(left.type):
        bits = np.int32 if left.type == pa.float32() else np.int64
        ours, theirs = (pc.fill_null(each, 0.0).to_numpy(zero_copy_only=False) for each in (left, right))
        equal = (ours.view(bits) == theirs.view(bits)) | (np.isnan(ours) & np.isnan(theirs))
    same: np.ndarray = np.where(left_null | right_null, left_null & right_null, equal)
    return ~same


def _segments(snapshot: MapSnapshot | None) -> dict[str, tuple[Segment, DeletionVector]]:
    if snapshot is None:
        return {}
    version = snapshot.version
    assert not snapshot.length, "what is only in the log belongs to no version"
    return {
        info.id: (segment, deletions)
        for info, segment, deletions in zip(version.infos, version.segments, version.deletions, strict=True)
    }


def _rows_of_one(
    snapshot: MapSnapshot, other: MapSnapshot | None, columns: Sequence[str], partitions: np.ndarray | None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that are live in one version, where the other has not the same rows live in the same segment."""
    names = list(dict.fromkeys(columns))
    known = _segments(other)
    for source, (name, (_, deletions)) in zip(snapshot.sources, _segments(snapshot).items(), strict=True):
        shared = known.get(name)
        if shared is not None and shared[1].deleted == deletions.deleted == 0:
            continue
        for start, stop in source.ranges(partitions):
            for low in range(start, stop, _BATCH_ROWS):
                high = min(low + _BATCH_ROWS, stop)
                if shared is None:
                    batch = source.read(names, low, high)
                else:
                    live, other_live = (_live(each, low, high) for each in (deletions, shared[1]))
                    positions = np.flatnonzero(live & ~other_live) + low
                    if not len(positions):
                        continue
                    batch = source.take(names, positions)
                if batch.num_rows:
                    yield _plain(batch)


def _live(deletions: DeletionVector, low: int, high: int) -> np.ndarray:
    if deletions.deleted_at is None:
        return np.ones(high - low, np.bool_)
    live: np.ndarray = deletions.deleted_at[low:high] > 0
    return live


def _keys(rows: pa.RecordBatch, definition: MapDefinition) -> list[pa.Array]:
    return [rows.column(name) for name in definition.key]


def _first(rows: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
    return rows.select(list(columns))


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    arrays = [each.dictionary_decode() if is_dictionary(each) else each for each in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _some(rows: pa.RecordBatch, word: str, chosen: np.ndarray) -> Iterator[pa.RecordBatch]:
    if chosen.any():
        yield _told(rows.filter(arrow_of(chosen)), word)


def _told(rows: pa.RecordBatch, word: str) -> pa.RecordBatch:
    words = pa.repeat(pa.scalar(word), rows.num_rows)
    return pa.RecordBatch.from_arrays([*rows.columns, words], names=[*rows.schema.names, CHANGE_TYPE])
