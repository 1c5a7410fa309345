"""Bulk loads into a map: whole tables become segments, which are installed at once or not at all.

Building and comparing is done beside the map's writers; they are kept out for the milliseconds of the installing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from remuda.dataclass import dataclass
from remuda.storage.load.bulk_load import build_segments
from remuda.storage.load.compaction import merge_load
from remuda.storage.load.conforming import conform
from remuda.storage.load.group_compaction import optimize_groups
from remuda.storage.load.load_runs import GatheredLoad
from remuda.storage.load.upsert_keys import one_of_each_key, shares_with_each_key_once
from remuda.storage.state.grouped_version import version_of
from remuda.types.arrow_arrays import flat, stored_list

Answer = TypeVar("Answer")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    from remuda.storage.load.group_compaction import WriteGroups
    from remuda.storage.load.load_mode import LoadMode
    from remuda.storage.map_store import MapStore
    from remuda.storage.segment.segment_directory import StoredSegment
    from remuda.storage.segment.segment_file import SegmentInfo
    from remuda.storage.state.applied_batches import BatchId

    Merge = Callable[[Sequence[StoredSegment]], tuple[Sequence[StoredSegment], Answer]]

SMALL_LOAD = 10_000
"""Fewer rows are written through the memtable: a segment of its own would only have to be merged soon.

Not on a remote store, which has no log: a load is committed when it returns.
"""

SMALL_LOAD_BYTES = 64 << 20
"""Nor are rows that are few but long."""

ADOPTION_TRIES = 3
"""How often a load makes way for writers of the same keys before it keeps them out."""

WRITER_PATIENCE = 0.05
"""Seconds that a load waits for the writer lock while it has the lock that comes behind it."""


def load_table(
    target: MapStore, table: pa.Table, mode: LoadMode, order_by: str | None = None, batch: BatchId | None = None
) -> int:
    """Adds a whole table, all or nothing; returns how many rows it had.

    `order_by` is the column that says which of several rows with one key is the newest: see `one_of_each_key`.
    """
    target.refuse_unwritable()
    arrays = conform(target.definition, table)
    if mode == "upsert":
        arrays = one_of_each_key(target.definition, arrays, order_by)
    few = table.num_rows < SMALL_LOAD and table.nbytes < SMALL_LOAD_BYTES
    if few and mode != "replace" and target.state.pending is None and batch is None:
        columns = target.definition.columns
        lists = [stored_list(flat(array), column.type) for array, column in zip(arrays, columns, strict=True)]
        rows = list(zip(*lists, strict=True))
        target.insert(rows) if mode == "append" else target.put(rows)
        return int(table.num_rows)
    cuts = target.state.worthwhile_cuts(arrays)
    fresh = target.state.directory.add_all(build_segments(target.definition, arrays, cuts))
    _adopt_load(target, fresh, mode, order_by, batch=batch)
    return int(table.num_rows)


def load_tables(
    target: MapStore,
    tables: Iterable[pa.Table],
    mode: LoadMode,
    progress: Callable[[int], None] | None,
    order_by: str | None = None,
    batch: BatchId | None = None,
) -> int:
    """Adds tables one after the other, holding no more than one; all of them or nothing.

    `progress` is told how many rows have been written so far.
    """
    target.refuse_unwritable()
    fresh: list[StoredSegment] = []
    rows = 0

    def conforming() -> Iterator[list[pa.Array | pa.ChunkedArray]]:
        nonlocal rows
        for table in tables:
            arrays = [conform(target.definition, table, rows)]
            rows += table.num_rows
            del table
            # Not held here: the next table comes before a name gets another value.
            yield arrays.pop()
            if progress is not None:
                progress(rows)

    directory = target.state.directory
    try:
        if directory.folder is None:
            for arrays in conforming():
                shares = [arrays]
                if mode == "upsert":
                    shares = shares_with_each_key_once(target.definition, arrays, order_by)
                for share in shares:
                    cuts = target.state.worthwhile_cuts(share)
                    fresh.extend(directory.add_all(build_segments(target.definition, share, cuts)))
        else:
            load = GatheredLoad(
                target.definition, directory.folder, target.state.cuts, is_upsert=mode == "upsert", order_by=order_by
            )
            fresh.extend(directory.add_all(load.segments(conforming())))
    except BaseException:
        directory.discard(fresh, target.stored, named=False)
        raise
    _adopt_load(target, fresh, mode, order_by, batch=batch)
    return rows


def take_over_segments(
    target: MapStore,
    infos: Sequence[SegmentInfo],
    mode: LoadMode,
    delivery: str | None,
    order_by: str | None = None,
    batch: BatchId | None = None,
) -> int:
    """Adds segments that others have written into the map's folder, all or none; returns how many rows they have."""
    target.refuse_unwritable()
    fresh = [target.state.directory.take_over(target.definition, info) for info in infos]
    _adopt_load(target, fresh, mode, order_by, delivery, batch)
    return sum(info.rows for info in infos)


def optimize_map(target: MapStore, write: WriteGroups | None = None) -> None:
    """Merge the segments of each partition group into one, and fold the runs; `write` as in `optimize_groups`."""
    target.refuse_unwritable()

    def merge(held: Sequence[StoredSegment]) -> tuple[Sequence[StoredSegment], None]:
        return optimize_groups(target.state.directory, target.definition, held, write), None

    adopt(target, (), merge)


def _adopt_load(
    target: MapStore,
    fresh: Sequence[StoredSegment],
    mode: LoadMode,
    order_by: str | None,
    delivery: str | None = None,
    batch: BatchId | None = None,
) -> None:
    def merge(held: Sequence[StoredSegment]) -> tuple[Sequence[StoredSegment], None]:
        return merge_load(target.state.directory, target.definition, held, fresh, mode, order_by), None

    adopt(target, fresh, merge, replaces=mode == "replace", delivery=delivery, batch=batch)


def adopt(
    target: MapStore,
    fresh: Sequence[StoredSegment],
    merge: Merge[Answer],
    *,
    replaces: bool = False,
    delivery: str | None = None,
    batch: BatchId | None = None,
) -> Answer | None:
    """Install new segments, merged with those that are held, and return what merging them says of it.

    None, and nothing is changed, where the batch was applied before. Writers are kept out only while segments are
    installed, not while that is prepared. On a remote store all of it is done again where another process commits
    first: `merge` gets what is held then, and the batches that are known then are asked.
    """

    merging = _Merging(target, fresh, merge, replaces, delivery, batch)

    def install() -> Answer | None:
        with target.state.structure:
            target.refuse_unreadable()
            if merging.is_applied():
                return None
            done = _adopt_beside_writers(merging)
            if done is not None:
                return done[0]
        with target.writing(), target.state.structure:
            target.refuse_unreadable()
            if merging.is_applied():
                return None
            stored, answer = _prepared(merging)
            installed = _installed(merging, stored)
            assert installed, "the memtable is empty while its writers are kept out"
            return answer

    try:
        return target.retry.run(install)
    except BaseException:
        target.state.directory.discard(fresh, target.stored, named=False)
        raise


@dataclass(frozen=True, slots=True)
class _Merging(Generic[Answer]):
    """New segments of a map on their way into it, and how they are merged with those that are held."""

    target: MapStore
    fresh: Sequence[StoredSegment]
    merge: Merge[Answer]
    replaces: bool
    delivery: str | None
    batch: BatchId | None

    def is_applied(self) -> bool:
        """Tell whether the map has the batch, and let go of its segments then; `structure` is held."""
        if self.batch is None or not self.target.state.batches.has(self.batch):
            return False
        self.target.state.directory.discard(self.fresh, self.target.stored, named=False)
        return True


def _adopt_beside_writers(merging: _Merging[Answer]) -> tuple[Answer] | None:
    """Compare new segments beside the writers of the map, and install them.

    None if a statement keeps the map for too long, or if keys of the load are written all the time. A statement that
    has the writer lock may itself wait for `structure`, which is held here: so the lock is only tried.
    """
    target = merging.target
    writer = target.state.writer
    for _ in range(ADOPTION_TRIES):
        stored, answer = _prepared(merging)
        if not writer.acquire(timeout=WRITER_PATIENCE):
            target.state.directory.discard(stored, [*target.stored, *merging.fresh], named=False)
            return None
        try:
            if _installed(merging, stored):
                return (answer,)
        finally:
            writer.release()
    return None


def _prepared(merging: _Merging[Answer]) -> tuple[Sequence[StoredSegment], Answer]:
    """Return the segments of the map with new ones among them; `structure` is held.

    What was written since the checkpoint stays in the memtable, and so on top of the load. Statements on other keys do
    not mind which came first; one on a loaded key must be in a segment before the load is compared with it.
    """
    if not merging.replaces:
        merging.target.checkpoint(needed=True)
    return merging.merge(merging.target.stored)


def _installed(merging: _Merging[Any], stored: Sequence[StoredSegment]) -> bool:
    """Install prepared segments; False if a key of the load was written meanwhile. Both locks are held."""
    target, fresh = merging.target, merging.fresh
    memtable = target.state.version.memtable
    if merging.replaces:
        end = memtable.committed
        target.state.install(stored, target.state.applied, (end, end), fresh, merging.delivery, merging.batch)
        return True
    loaded = version_of(target.definition, fresh)
    if any(loaded.locate(key) is not None for key in memtable.keys):
        target.state.directory.discard(stored, [*target.stored, *fresh], named=False)
        return False
    target.state.install(stored, target.state.flushed, (0, memtable.committed), fresh, merging.delivery, merging.batch)
    return True
