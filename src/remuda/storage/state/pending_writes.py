"""Writes of one map that no root of a remote store has yet, and how they are rebased onto another writer's root."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.errors import StorageError
from remuda.storage.lookup.row_projection import row_projection
from remuda.storage.segment.stored_groups import StoredGroups
from remuda.storage.state.grouped_version import version_of
from remuda.storage.state.map_version import write_again

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from remuda.catalog import MapDefinition
    from remuda.storage.commit.recovery import RecoveredMap
    from remuda.storage.lookup.row_projection import Row
    from remuda.storage.segment.segment_directory import StoredSegment
    from remuda.storage.state.map_version import MapVersion


class WriteConflictError(StorageError):
    """Another process has changed a row that a statement here has read and changed, or the definition of its map."""

    _sqlstate = "40001"


class PendingWrites:
    """Holds what a rebase needs to know of a map.

    `flushed` has the entries that were flushed into segments which no root names yet. `committed` has the segments of
    the newest root. `checked` has the keys of statements that depend on the row they have found, or on finding none:
    INSERT, UPDATE, DELETE. A blind put does not; on top of another writer's row it simply comes later.
    """

    __slots__ = ("checked", "committed", "flushed")

    def __init__(self) -> None:
        self.flushed: list[tuple[Any, Row | None]] = []
        self.committed: Sequence[StoredSegment] = ()
        self.checked: set[Any] = set()

    def commit(self, stored: Sequence[StoredSegment], *, keeps_keys: bool) -> None:
        """Note that the newest root names these segments. Keys stay while the memtable may have entries of them."""
        self.committed = stored
        self.flushed.clear()
        if not keeps_keys:
            self.checked.clear()

    def write_again(self, found: RecoveredMap, entries: Sequence[tuple[Any, Row | None]]) -> None:
        """Write entries on top of another writer's state, unless that has changed a row that they depend on."""
        if found.damaged is not None:
            raise found.damaged.error
        if not _is_same(found.stored, self.committed):
            before = version_of(found.definition, self.committed)
            _refuse_changed(found.definition, before, found.version, {key for key, _ in entries} & self.checked)
        write_again(found.version, entries)
        found.version.commit()


def _is_same(one: Sequence[StoredSegment], other: Sequence[StoredSegment]) -> bool:
    """Tell whether two states have the same segments and deletions; of groups it is known without reading them."""
    if isinstance(one, StoredGroups) and isinstance(other, StoredGroups):
        return one.refs == other.refs
    return _names_of(one) == _names_of(other)


def _names_of(stored: Iterable[StoredSegment]) -> list[tuple[str, str | None]]:
    return [(each.segment.id, each.deletion_file) for each in stored]


def _refuse_changed(definition: MapDefinition, before: MapVersion, now: MapVersion, keys: Iterable[Any]) -> None:
    find = row_projection(tuple(range(len(definition.columns))))
    find_before, find_now = before.point_lookup(find), now.point_lookup(find)
    for key in keys:
        # As text, since NaN does not equal itself.
        if repr(find_before(key)) != repr(find_now(key)):
            raise WriteConflictError(
                f"the row of {definition.name} with the key {key!r} was changed by another writer after it was read "
                "here, so nothing that was written here since the last commit is committed: open the store again and "
                "run the statements again"
            )
