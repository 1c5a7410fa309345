"""Bulk loads into a map: whole tables become segments, which are installed at once or not at all.

Building and comparing is done beside the map's writers; they are kept out for the milliseconds of the installing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.storage.load.bulk_load import build_segments
from remuda.storage.load.compaction import merge_load
from remuda.storage.load.conforming import conform
from remuda.storage.load.upsert_keys import one_of_each_key
from remuda.storage.state.map_version import version_of
from remuda.types.arrow_arrays import flat, stored_list

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow as pa

    from remuda.storage.load.compaction import LoadMode
    from remuda.storage.map_store import MapStore
    from remuda.storage.segment.segment_directory import StoredSegment
    from remuda.storage.segment.segment_file import SegmentInfo

SMALL_LOAD = 10_000
"""Fewer rows are written through the memtable: a segment of its own would only have to be merged soon.

Not on a remote store, which has no log: a load is committed when it returns.
"""

ADOPTION_TRIES = 3
"""How often a load makes way for writers of the same keys before it keeps them out."""


def load_table(target: MapStore, table: pa.Table, mode: LoadMode, order_by: str | None = None) -> int:
    """Adds a whole table, all or nothing; returns how many rows it had.

    `order_by` is the column that says which of several rows with one key is the newest: see `one_of_each_key`.
    """
    target.refuse_unwritable()
    arrays = conform(target.definition, table)
    if mode == "upsert":
        arrays = one_of_each_key(target.definition, arrays, order_by)
    if table.num_rows < SMALL_LOAD and mode != "replace" and target.state.pending is None:
        columns = target.definition.columns
        lists = [stored_list(flat(array), column.type) for array, column in zip(arrays, columns, strict=True)]
        rows = list(zip(*lists, strict=True))
        target.insert(rows) if mode == "append" else target.put(rows)
        return int(table.num_rows)
    _adopt(target, target.state.directory.add_all(build_segments(target.definition, arrays)), mode, order_by)
    return int(table.num_rows)


def load_tables(
    target: MapStore,
    tables: Iterable[pa.Table],
    mode: LoadMode,
    progress: Callable[[int], None] | None,
    order_by: str | None = None,
) -> int:
    """Adds tables one after the other, holding no more than one; all of them or nothing.

    `progress` is told how many rows have been written so far.
    """
    target.refuse_unwritable()
    fresh: list[StoredSegment] = []
    rows = 0
    try:
        for table in tables:
            arrays = conform(target.definition, table, rows)
            if mode == "upsert":
                arrays = one_of_each_key(target.definition, arrays, order_by)
            fresh.extend(target.state.directory.add_all(build_segments(target.definition, arrays)))
            rows += table.num_rows
            if progress is not None:
                progress(rows)
    except BaseException:
        target.state.directory.discard(fresh, target.stored)
        raise
    _adopt(target, fresh, mode, order_by)
    return rows


def take_over_segments(
    target: MapStore, infos: Sequence[SegmentInfo], mode: LoadMode, delivery: str | None, order_by: str | None = None
) -> int:
    """Adds segments that others have written into the map's folder, all or none; returns how many rows they have."""
    target.refuse_unwritable()
    _adopt(
        target, [target.state.directory.take_over(target.definition, info) for info in infos], mode, order_by, delivery
    )
    return sum(info.rows for info in infos)


def _adopt(
    target: MapStore,
    fresh: Sequence[StoredSegment],
    mode: LoadMode,
    order_by: str | None = None,
    delivery: str | None = None,
) -> None:
    """Installs new segments. Writers are kept out only while that is done, not while it is prepared."""

    def adopt() -> None:
        with target.state.structure:
            target.refuse_unreadable()
            if not any(_try_to_adopt(target, fresh, mode, order_by, delivery) for _ in range(ADOPTION_TRIES)):
                with target.writing():
                    _try_to_adopt(target, fresh, mode, order_by, delivery)

    try:
        target.retry.run(adopt)
    except BaseException:
        target.state.directory.discard(fresh, target.stored)
        raise


def _try_to_adopt(
    target: MapStore, fresh: Sequence[StoredSegment], mode: LoadMode, order_by: str | None, delivery: str | None
) -> bool:
    """Compare and install new segments beside the writers of the map.

    False if a key of the load was written meanwhile.

    What was written since the checkpoint stays in the memtable, and so on top of the load. Statements on other keys do
    not mind which came first; one on a loaded key must be in a segment before the load is compared with it.
    """
    if mode != "replace":
        target.checkpoint()
    stored = merge_load(target.state.directory, target.definition, target.stored, fresh, mode, order_by)
    with target.writing():
        memtable = target.state.version.memtable
        if mode == "replace":
            target.state.install(
                stored, target.state.applied, (memtable.committed, memtable.committed), fresh, delivery
            )
            return True
        loaded = version_of(target.definition, fresh)
        if any(loaded.locate(key) is not None for key in memtable.keys):
            target.state.directory.discard(stored, [*target.stored, *fresh])
            return False
        target.state.install(stored, target.state.flushed, (0, memtable.committed), fresh, delivery)
        return True
