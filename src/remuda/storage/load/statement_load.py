"""Statements of many rows: what they write becomes segments, and what they delete becomes bits of deletion vectors.

Such a statement holds the writer lock of its map from the snapshot that it reads to its commit. The segments are built
as the rows come, and installed in one commit of the manifest: all of them, or none where the statement fails, is
cancelled or is killed before. A committed statement is as durable as a load, whatever the store's durability.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.storage.folder.disk_errors import reports_disk_errors
from remuda.storage.load.bulk_load import build_segments
from remuda.storage.load.compaction import merge_load
from remuda.storage.load.group_compaction import merge_small
from remuda.storage.load.upsert_keys import LAST, one_of_each_key
from remuda.storage.lookup.arrow_lookup import find_positions
from remuda.storage.segment.deletion_vector import marked
from remuda.types.arrow_arrays import is_dictionary

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from remuda.storage.load.load_mode import LoadMode
    from remuda.storage.load.upsert_keys import OrderBy
    from remuda.storage.map_store import MapStore
    from remuda.storage.segment.segment_directory import StoredSegment
    from remuda.storage.segment.segment_file import SegmentInfo


class StatementLoad:
    """The segments that a statement has made of its rows so far.

    An `append` refuses a key that is there or comes twice. An `upsert` takes the place of rows with its keys; of two of
    its own rows the later one counts, or neither is allowed (`order_by` is None).
    """

    def __init__(self, target: MapStore, mode: LoadMode, order_by: OrderBy = LAST) -> None:
        self._target = target
        self._mode: LoadMode = mode
        self._order_by = order_by
        self._lock = Lock()
        self._fresh: list[StoredSegment] = []
        self._is_over = False

    @property
    def path(self) -> Path | None:
        """Return the folder of the segments, for errors."""
        return self._target.path

    @reports_disk_errors
    def add(self, columns: Sequence[pa.Array | pa.ChunkedArray]) -> int:
        """Make segments of columns in declared order and return their bytes; several threads may do so."""
        target = self._target
        target.refuse_unwritable()
        target.check_columns(columns)
        if self._mode == "upsert":
            columns = one_of_each_key(target.definition, columns, self._order_by)
        cuts = target.state.worthwhile_cuts(columns)
        added = target.state.directory.add_all(build_segments(target.definition, columns, cuts))
        with self._lock:
            is_over = self._is_over
            if not is_over:
                self._fresh.extend(added)
        if is_over:  # The statement has failed on another thread.
            target.state.directory.discard(added, (), named=False)
        return sum(each.segment.batch.nbytes for each in added)

    @reports_disk_errors
    def take_over(self, infos: Sequence[SegmentInfo]) -> None:
        """Take over segments that other processes have written into the map's folder."""
        directory, definition = self._target.state.directory, self._target.definition
        for info in infos:
            self._fresh.append(directory.take_over(definition, info))

    @reports_disk_errors
    def commit(self) -> None:
        """Install all segments; the caller holds the writer lock."""
        state = self._target.state
        fresh = tuple(self._fresh)

        def merged(held: Sequence[StoredSegment]) -> tuple[StoredSegment, ...]:
            return merge_load(state.directory, self._target.definition, held, fresh, self._mode, self._order_by)

        _install(self._target, fresh, merged)
        self._fresh.clear()

    def discard(self) -> None:
        """Remove the segments of a statement that has failed; there are none after a commit."""
        with self._lock:
            self._is_over = True
            fresh, self._fresh = self._fresh, []
        self._target.state.directory.discard(fresh, self._target.stored, named=False)


@reports_disk_errors
def delete_rows(target: MapStore, keys: Sequence[pa.Array]) -> int:
    """Delete the rows of these keys, if they are there, and return how many were; the writer lock is held."""
    directory = target.state.directory
    target.refuse_unwritable()
    count = 0

    def without_rows(held: Sequence[StoredSegment]) -> tuple[StoredSegment, ...]:
        nonlocal count
        found = find_positions(target.snapshot(), keys)
        count = sum(map(len, found))
        kept: list[StoredSegment] = []
        try:
            for each, positions in zip(held, found, strict=True):
                deleted = np.flatnonzero(marked(each.segment.rows, each.deleted, positions))
                if len(deleted) < each.segment.rows:
                    kept.append(directory.with_deleted(each, deleted))
            return merge_small(directory, target.definition, kept, held)
        except BaseException:
            directory.discard(kept, held, named=False)
            raise

    _install(target, (), without_rows)
    return count


def _install(
    target: MapStore,
    fresh: Sequence[StoredSegment],
    change: Callable[[Sequence[StoredSegment]], tuple[StoredSegment, ...]],
) -> None:
    """Install what `change` makes of the segments in force, for a statement that holds the writer lock.

    The memtable is flushed first: the segments then have all rows of the map, and nothing is written beside them.
    """
    state = target.state
    with state.structure:
        target.refuse_unreadable()
        target.checkpoint(needed=True)
        held = state.stored
        stored = change(held)
        try:
            target.begin_commit()
        except BaseException:
            state.directory.discard(stored, [*held, *fresh], named=False)
            raise
        state.install(stored, state.flushed, (0, 0), fresh)


def column_of(chunks: Sequence[pa.Array]) -> pa.ChunkedArray:
    """Return chunks as one column. Dictionaries stay where all chunks share one, as those of one segment do."""
    if all(is_dictionary(chunk) for chunk in chunks):
        dictionaries = {tuple(b.address for b in chunk.dictionary.buffers() if b is not None) for chunk in chunks}
        if len(dictionaries) == 1:
            codes = pa.chunked_array([chunk.indices for chunk in chunks]).combine_chunks()
            return pa.chunked_array([pa.DictionaryArray.from_arrays(codes, chunks[0].dictionary)])
    return pa.chunked_array([chunk.dictionary_decode() if is_dictionary(chunk) else chunk for chunk in chunks])
