"""Changes merged with the segments of a map: which rows they replace or delete, which a condition leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.dataclass import dataclass
from remuda.expr import Parameters
from remuda.expr.evaluate.batch_evaluation import compile_predicate
from remuda.expr.walk import columns_of
from remuda.storage.load.bulk_load import common_keys
from remuda.storage.load.compaction import with_all_indexes
from remuda.storage.load.group_compaction import merge_small
from remuda.storage.load.upsert_keys import twice_in_upsert

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.catalog import MapDefinition
    from remuda.expr import Expression
    from remuda.storage.load.change_segments import ChangeMarks
    from remuda.storage.segment.segment_directory import SegmentDirectory, StoredSegment


@dataclass(frozen=True, slots=True)
class ChangeCounts:
    """How many rows changes have inserted, updated and deleted."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class _Fresh:
    """One segment of changes. `given_up` are rows that a later change of their key, or the condition, has beaten;
    `tied` those that have met a change of the same key and order."""

    stored: StoredSegment
    marks: ChangeMarks
    given_up: np.ndarray
    tied: np.ndarray


def merge_changes(
    directory: SegmentDirectory,
    definition: MapDefinition,
    held: Sequence[StoredSegment],
    fresh: Sequence[tuple[StoredSegment, ChangeMarks]],
    order_by: str | None,
    condition: Expression | None,
) -> tuple[tuple[StoredSegment, ...], ChangeCounts]:
    """Return the segments of a map after changes, and what they did. `held` has what was there.

    Depends on nothing but its arguments: where another process commits first, it is asked again with what is held then.
    """
    changes = [_Fresh(*each, *np.zeros((2, each[0].segment.rows), np.bool_)) for each in fresh]
    _settle_all(definition, changes, order_by)
    kept = list(held)
    loaded: list[StoredSegment] = []
    replaced: list[list[np.ndarray]] = [[] for _ in held]
    inserted = updated = deleted = 0
    try:
        for each in changes:
            is_new = ~each.given_up
            for number, other in enumerate(held):
                theirs, mine = common_keys(other.segment, each.stored.segment)
                meet = ~(np.isin(theirs, other.deleted) | each.given_up[mine])
                theirs, mine = theirs[meet], mine[meet]
                if not len(mine):
                    continue
                is_new[mine] = False
                if condition is not None:
                    applies = _applies(definition, condition, each.stored, mine, other, theirs)
                    each.given_up[mine[~applies]] = True
                    theirs, mine = theirs[applies], mine[applies]
                gone = int(each.marks.deletes[mine].sum())
                deleted, updated = deleted + gone, updated + len(mine) - gone
                replaced[number].append(theirs)
            inserted += int((is_new & ~each.marks.deletes).sum())
            dead = np.flatnonzero(each.given_up | each.marks.deletes)
            stored = with_all_indexes(directory, definition, each.stored)
            loaded.append(directory.with_deleted(stored, dead) if len(dead) else stored)
        for number, rows in enumerate(replaced):
            if any(map(len, rows)):
                kept[number] = directory.with_deleted(
                    kept[number], np.union1d(kept[number].deleted, np.concatenate(rows))
                )
        directory.discard_deletions([each for each in (*kept, *loaded) if not each.live], held)
        live = [each for each in (*kept, *loaded) if each.live]
        return merge_small(directory, definition, live, held), ChangeCounts(inserted, updated, deleted)
    except BaseException:
        directory.discard([*kept, *loaded], [*held, *(stored for stored, _ in fresh)], named=False)
        raise


def _settle_all(definition: MapDefinition, changes: Sequence[_Fresh], order_by: str | None) -> None:
    """Leave one change of each key; raise where no order says which one."""
    for number, one in enumerate(changes):
        for other in changes[number + 1 :]:
            _settle(definition, one, other)
    for each in changes:
        ties = np.flatnonzero(each.tied & ~each.given_up)
        if len(ties):
            raise twice_in_upsert(definition, each.stored.segment.key_at(int(ties[0])), order_by or "order")


def _settle(definition: MapDefinition, one: _Fresh, other: _Fresh) -> None:
    """Give up, of two changes of one key in two segments, the earlier one."""
    mine, theirs = common_keys(one.stored.segment, other.stored.segment)
    meet = ~(one.given_up[mine] | other.given_up[theirs])
    mine, theirs = mine[meet], theirs[meet]
    if not len(mine):
        return
    if one.marks.order is None or other.marks.order is None:
        raise twice_in_upsert(definition, one.stored.segment.key_at(int(mine[0])), None)
    first, second = one.marks.order[mine], other.marks.order[theirs]
    one.tied[mine[first == second]] = True
    other.tied[theirs[first == second]] = True
    one.given_up[mine[first < second]] = True
    other.given_up[theirs[second < first]] = True


def _applies(
    definition: MapDefinition,
    condition: Expression,
    new: StoredSegment,
    new_rows: np.ndarray,
    old: StoredSegment,
    old_rows: np.ndarray,
) -> np.ndarray:
    """Tell for pairs of rows with one key whether the condition is true: columns 0 to n are the new row's, then the
    old row's."""
    count = len(definition.columns)
    arrays: list[pa.Array] = []
    layout: dict[int, int] = {}
    for column in columns_of(condition).values():
        stored, rows = (new, new_rows) if column.id < count else (old, old_rows)
        name = definition.columns[column.id % count].name
        layout[column.id] = len(arrays)
        arrays.append(_values(stored, name, rows))
    batch = pa.RecordBatch.from_arrays(
        arrays or [pa.nulls(len(new_rows))], names=[str(n) for n in range(len(arrays) or 1)]
    )
    result = compile_predicate(condition, layout)(batch, Parameters())
    return np.asarray(result.fill_null(False)).astype(np.bool_)


def _values(stored: StoredSegment, column: str, positions: np.ndarray) -> pa.Array:
    taken = stored.segment.take([column], positions).column(0)
    return taken.dictionary_decode() if pa.types.is_dictionary(taken.type) else taken
