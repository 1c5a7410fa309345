"""Changes into a map: inserts, updates and deletions by key, and upserts under a condition, all in one commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.dataclass import dataclass
from remuda.storage.load.change_segments import ChangeMarks, build_change_segments
from remuda.storage.load.map_load import adopt
from remuda.storage.load.merge_changes import ChangeCounts, merge_changes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    import pyarrow as pa

    from remuda.expr import Expression
    from remuda.storage.load.change_format import ChangeFormat
    from remuda.storage.map_store import MapStore
    from remuda.storage.segment.segment_directory import StoredSegment
    from remuda.storage.segment.segment_file import SegmentInfo
    from remuda.storage.state.applied_batches import BatchId

    Marked = tuple[StoredSegment, ChangeMarks]


@dataclass(frozen=True, slots=True)
class ChangeRules:
    """How changes meet the rows that are there.

    `condition` is over the columns of the map twice: numbers 0 to n are the new row's, then the old row's. A change
    that meets a row with its key is applied where it is true. `order_by` is the column of the order, for errors.
    """

    order_by: str | None = None
    condition: Expression | None = None
    batch: BatchId | None = None


def load_changes(
    target: MapStore,
    tables: Iterable[pa.Table],
    form: ChangeFormat,
    rules: ChangeRules,
    progress: Callable[[int], None] | None = None,
) -> ChangeCounts:
    """Apply changes of all tables at once, or none, and tell how many rows they inserted, updated and deleted."""
    target.refuse_unwritable()
    directory, definition = target.state.directory, target.definition
    fresh: list[Marked] = []
    rows = 0
    try:
        for table in tables:
            changes = form.read(definition, table)
            for segment, marks in build_change_segments(definition, changes, rows):
                fresh.append((directory.add(segment), marks))
            rows += table.num_rows
            if progress is not None:
                progress(rows)
    except BaseException:
        directory.discard([stored for stored, _ in fresh], target.stored, named=False)
        raise
    return _adopt_changes(target, fresh, rules, None)


def take_over_changes(
    target: MapStore, infos: Sequence[SegmentInfo], marks: Path, rules: ChangeRules, delivery: str | None
) -> ChangeCounts:
    """Apply changes that others have written as segments into the map's folder, with their marks in another one."""
    target.refuse_unwritable()
    fresh = [
        (target.state.directory.take_over(target.definition, info), ChangeMarks.open(marks, info.id)) for info in infos
    ]
    return _adopt_changes(target, fresh, rules, delivery)


def _adopt_changes(target: MapStore, fresh: Sequence[Marked], rules: ChangeRules, delivery: str | None) -> ChangeCounts:
    def merge(held: Sequence[StoredSegment]) -> tuple[Sequence[StoredSegment], ChangeCounts]:
        return merge_changes(target.state.directory, target.definition, held, fresh, rules.order_by, rules.condition)

    counts = adopt(target, [stored for stored, _ in fresh], merge, delivery=delivery, batch=rules.batch)
    return counts or ChangeCounts()
