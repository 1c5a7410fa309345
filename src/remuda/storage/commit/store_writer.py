"""Commits the state of a store to its folder: changes of the catalog, checkpoints, and the manifest of each map."""

from __future__ import annotations

import logging
from contextlib import ExitStack, contextmanager
from threading import Lock, Thread
from typing import TYPE_CHECKING

from msgspec.structs import replace

from remuda.errors import OutcomeUnknownError, StorageError
from remuda.storage.commit.commit_retry import CommitRetry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from remuda.catalog import Catalog, MapDefinition
    from remuda.storage.folder.definition_entries import MapEntry
    from remuda.storage.map_store import MapStore
    from remuda.storage.segment.segment_directory import SegmentDirectory
    from remuda.storage.state.store_state import StoreState

_logger = logging.getLogger("remuda.storage")


class BackgroundCheckpoint:
    """Runs a checkpoint on a thread of its own, for a write that finds its map's memtable too long.

    At most one runs at a time; what is asked for meanwhile is not queued, since the next write asks again.
    """

    def __init__(self, checkpoint: Callable[[], None]) -> None:
        self._checkpoint = checkpoint
        self._running = Lock()

    def request(self) -> None:
        """Starts one unless one is running."""
        if self._running.acquire(blocking=False):
            Thread(target=self._run, name="remuda-checkpoint", daemon=True).start()

    def _run(self) -> None:
        try:
            self._checkpoint()
        except Exception:
            # Nothing is lost: the memtable and its records stay, and the next write that finds it too long tries again.
            _logger.exception("a checkpoint in the background failed")
        finally:
            self._running.release()


class StoreWriter:
    """Changes the maps and the catalog of a store and commits each change, all of it or nothing.

    `checkpoint` is the store's own, for the thread that runs it in the background. `rebase` takes the store over to
    the newest root of a remote folder, with all that is not committed.
    """

    def __init__(self, state: StoreState, checkpoint: Callable[[], None], rebase: Callable[[], None]) -> None:
        self._state = state
        self.retry = CommitRetry(state, rebase)
        self._checkpoints = BackgroundCheckpoint(checkpoint)

    def new_map(self, definition: MapDefinition, directory: SegmentDirectory | None = None) -> MapStore:
        """Make a map without rows, which is in no catalog yet."""
        from remuda.storage.map_store import MapStore

        state = self._state
        created = MapStore(
            definition,
            directory or self.directory(definition),
            state.structure,
            lambda delivery: self.commit_manifest(delivery, changed=definition.id),
            self._checkpoints.request,
            self.retry,
            state.wal,
        )
        if state.read_only:
            created.availability.refusal = "the folder is open for reading only"
        return created

    def directory(self, definition: MapDefinition) -> SegmentDirectory:
        from remuda.storage.segment.segment_directory import SegmentDirectory

        folder = self._state.folder
        if folder is None:
            return SegmentDirectory(None)
        fetched = None if folder.remote is None else folder.remote.segments
        path = folder.path / "maps" / definition.id
        return SegmentDirectory(path, folder.disposal, self._state.remote, fetched, self._state.when_opened)

    @contextmanager
    def every_lock(self) -> Iterator[None]:
        """Keep all writers and all changes of structure out, for a state that another process has committed."""
        state = self._state
        with ExitStack() as locks:
            while True:
                maps = dict(state.maps)
                for _, each in sorted(maps.items()):
                    locks.enter_context(each.writing())
                locks.enter_context(state.structure)
                if maps.keys() == state.maps.keys():
                    break
                locks.close()  # a map was created or dropped meanwhile
            yield

    # Changes of the catalog

    def begin_change(self) -> None:
        """Prepare for a change of the catalog: refuse where nothing may be written.

        Without a write-ahead log, what was written before is committed first: the change must not be found without it.
        """
        self._state.refuse_unwritable()
        if self._state.folder is not None and self._state.wal is None:
            self.flush_all()

    def change_indexes(self, found: MapStore, change: Callable[[MapStore], MapDefinition]) -> MapDefinition:
        definition, stored = found.definition, found.stored
        changed = change(found)
        self.change_catalog(
            self._state.catalog.with_map(changed), lambda: found.state.change_definition(definition, stored)
        )
        return changed

    def change_catalog(self, catalog: Catalog, undo: Callable[[], object], delivery: str | None = None) -> None:
        state = self._state
        before, committed = state.catalog, self.committed_version
        state.catalog = catalog
        try:
            self.commit_manifest(delivery)
        except BaseException:
            if self.committed_version == committed:
                state.catalog = before
                undo()
            raise

    @property
    def committed_version(self) -> int | None:
        """Return the version of the manifest that was committed last; None where there is none.

        Where a commit raises it tells whether it was made: a thread can be interrupted behind it.
        """
        return None if self._state.folder is None else self._state.folder.version

    # Commits

    def checkpoint(self) -> None:
        """Flush every memtable into segments and remove the WAL files that are not needed any more."""
        state, folder = self._state, self._state.folder
        with state.structure:
            if state.closed or state.read_only:
                return
            if folder is not None:
                folder.refuse_after_failure()
                if any(each.memtable_length for each in state.maps.values()):
                    folder.begin_log_file()
            if state.wal is None:
                self.flush_all()
            else:
                for each in state.maps.values():
                    each.checkpoint()
            if folder is not None:
                folder.sweep()
                # Records of a map that cannot be opened stay too.
                maps = [
                    each
                    for each in state.maps.values()
                    if each.memtable_length or each.availability.damaged is not None
                ]
                waiting = [each.state.flushed + 1 for each in maps]
                folder.drop_old_logs(waiting, self.commit_manifest)

    def flush_all(self) -> None:
        """Flush every memtable and commit once.

        Without a write-ahead log nothing would make up for the maps that a crash between two commits leaves behind.
        """
        flushed = [each.flush() for each in self._state.maps.values()]
        if any(flushed) or any(each.has_uncommitted_segments for each in self._state.maps.values()):
            self.commit_manifest()

    def commit_manifest(
        self, delivery: str | None = None, *, only_changes: bool = False, changed: str | None = None
    ) -> None:
        """Write the manifest of the present state.

        `changed` is the id of the map that has changed its segments, where it was only one.
        """
        state = self._state
        if state.folder is None:
            self._mark_committed()
            return
        with state.structure:
            if state.closed:  # a load that was under way: the folder may have another writer, and the maps hold nothing
                raise StorageError("the store is closed", state.path, sqlstate="08003")
            if state.wal is None and changed is not None:
                for each in state.maps.values():
                    if each.definition.id != changed:
                        each.flush()
            entries = [_entry_of(each) for each in state.maps.values()]
            before = self.committed_version
            try:
                state.folder.commit(
                    state.partitions, state.catalog, entries, only_changes=only_changes, delivery=delivery
                )
            except OutcomeUnknownError as error:
                if state.remote is not None:
                    self.refuse_writes(error)
                raise
            finally:
                if self.committed_version != before:
                    self._mark_committed()

    def _mark_committed(self) -> None:
        for each in self._state.maps.values():
            each.mark_committed()

    def refuse_writes(self, error: StorageError) -> None:
        """Refuse all writes from now on, for this reason: only opening the store again shows its state."""
        state = self._state
        if state.folder is not None:
            state.folder.fail(error)
        for each in state.maps.values():
            each.availability.refusal = error.reason


def _entry_of(each: MapStore) -> MapEntry:
    from remuda.storage.folder.definition_entries import map_entry
    from remuda.storage.folder.group_file import segment_entry
    from remuda.storage.segment.group_ranges import cuts_of
    from remuda.storage.segment.stored_groups import StoredGroups

    if each.availability.damaged is not None:
        return each.availability.damaged.entry
    stored, batches = each.stored, each.state.batches.pairs()
    if isinstance(stored, StoredGroups):  # as they were committed
        entry = map_entry(each.definition, each.state.flushed, ())
        return replace(entry, groups=stored.refs, statistics=stored.statistics, batches=batches)
    segments = [
        segment_entry(held.info, each.definition, held.deletion_file, len(held.deleted))
        for held in stored
        if held.info is not None
    ]
    cuts = cuts_of(stored, each.definition.partitions)
    return replace(map_entry(each.definition, each.state.flushed, segments, cuts), batches=batches)
