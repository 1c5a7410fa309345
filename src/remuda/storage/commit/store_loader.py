"""Loads the state of a store from its folder: a writer at its opening, a reader at each refresh."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from remuda.errors import StorageError, damage_error
from remuda.storage.commit.commit_retry import FileGoneError, RootTakenError
from remuda.storage.commit.recovery import recover
from remuda.storage.folder.execution_pin import ExecutionPin, pin_execution
from remuda.storage.folder.manifest import NAME
from remuda.storage.folder.reader_lease import ReaderLease, can_lease, leave_lease, take_lease
from remuda.storage.segment.stored_groups import StoredGroups
from remuda.storage.state.pending_writes import WriteConflictError

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.storage.commit.recovery import Recovered
    from remuda.storage.commit.store_writer import StoreWriter
    from remuda.storage.folder.store_folder import StoreFolder
    from remuda.storage.map_store import MapStore
    from remuda.storage.remote.remote_folder import RemoteFolder
    from remuda.storage.remote.remote_pins import RemotePin
    from remuda.storage.state.store_state import StoreState
    from remuda.storage.wal.log_file import DroppedTail, LogFile

_OPENING_TRIES = 10
_logger = logging.getLogger("remuda.storage")


class StoreLoader:
    """Installs what the files of a folder describe, and holds a reader's lease on them."""

    def __init__(self, state: StoreState, writer: StoreWriter, folder: StoreFolder) -> None:
        self._state = state
        self._writer = writer
        self._folder = folder
        self._lease: ReaderLease | None = None
        self.execution: str | None = None
        """For a reader that is a task of Spark: the execution whose pin each refresh reads."""
        self.pin: ExecutionPin | RemotePin | None = None
        """The pin that was read last; None where the newest state was read."""
        self.dropped_tail: DroppedTail | None = None
        """What the opening cut off of the write-ahead log."""
        self.late: list[Callable[[Callable[[], None]], None]] = []
        """What is left to be done in the background, given a pause."""

    def open_for_writing(self) -> None:
        """Load the folder, which is locked, or begin a new one, and remove what a crash has left there.

        Where another process begins a remote store, or flushes its log, in the same moment, that is loaded.
        """
        for _ in range(_OPENING_TRIES):
            try:
                self._open_for_writing()
                return
            except RootTakenError:
                assert self._folder.remote is not None
                self._folder.remote.fetch()
        message = "other processes open the store all the time: open it again"
        raise StorageError(message, self._folder.path, sqlstate="40001")

    def _open_for_writing(self) -> None:
        state, folder = self._state, self._folder
        files: list[LogFile] = []
        is_new = not folder.has_manifest()
        if is_new:
            folder.sync_own_name()
        else:
            try:
                files = self._load()
            except FileNotFoundError as error:
                raise damage_error("a file named in the manifest is missing", error.filename) from error
        if files and files[-1].dropped is not None:
            self._report_dropped(files[-1].dropped)
        wal = folder.open_wal(files[-1] if files else None)
        if wal is not None:
            for each in state.maps.values():
                each.attach(wal)
        found = folder.version or 0
        # After a clean close there is nothing to say, and so nothing to sync: that was a third of the time of opening.
        self._writer.commit_manifest(only_changes=True)
        if folder.remote is not None:
            # Records of a folder that was copied there: other writers must not flush them later, on top of new rows.
            self._writer.flush_all()
        folder.remove_orphans(state.maps, found)
        for each in state.maps.values():
            if each.availability.damaged is None:
                self._remove_orphans(each, found)

    def _remove_orphans(self, of_map: MapStore, version: int) -> None:
        """Remove the orphan files of a map, or see to it later. A mirror of a remote store is new, and has none."""
        folder, map_id = self._folder, of_map.definition.id
        if not isinstance(of_map.stored, StoredGroups):
            of_map.state.directory.remove_orphans(of_map.stored, folder.group_files(map_id), version)
        elif folder.remote is None and folder.disposal is not None:
            from remuda.storage.commit.late_orphans import late_orphans

            path, entry = folder.groups.folder(map_id), folder.entry(map_id)
            self.late.append(late_orphans(path, entry, folder.groups, folder.disposal, version))

    def _report_dropped(self, dropped: DroppedTail) -> None:
        self.dropped_tail = dropped
        _logger.warning(
            "the end of the write-ahead log had not been synced before a crash and is damaged: %d bytes with at least "
            "%d statements are cut off (%s, offset %d)",
            dropped.size,
            dropped.statements,
            dropped.path,
            dropped.offset,
        )

    def refresh(self) -> None:
        """Load the newest committed state for a reader, as often as the writer overtakes it."""
        folder = self._folder
        for attempt in range(_OPENING_TRIES):
            try:
                with self._state.structure:
                    self._refresh_once(is_last=attempt == _OPENING_TRIES - 1)
                return
            except FileNotFoundError as error:
                # The writer has committed a newer state and removed files of the one just read: read again.
                if folder.remote is None and not (folder.path / NAME).exists():
                    raise StorageError("there is no store in this folder", folder.path, sqlstate="58P01") from error
                if attempt == _OPENING_TRIES - 1:
                    raise damage_error("a file named in the manifest is missing", error.filename) from error
                time.sleep(0.01 * attempt)

    def _refresh_once(self, *, is_last: bool) -> None:
        folder = self._folder
        remote_pin = None if folder.remote is None else self._fetch(folder.remote)
        lease = take_lease(folder.path) if folder.path.exists() else None
        try:
            pin = None if folder.remote is not None else self._pin(lease)
            self._load(lease, pin, missing_is_damage=is_last)
        except BaseException:
            # A caller that keeps the error keeps this frame: without this the writer would keep files for no reader.
            if lease is not None:
                lease.release()
            raise
        if lease is not None and pin is not None:
            lease.release()  # the pin keeps the files from now on
        self._lease, self.pin = lease, remote_pin if pin is None else pin

    def _pin(self, lease: ReaderLease | None) -> ExecutionPin | None:
        """Return the pin of the execution, if there is one that this process belongs to, and the folder can be written.

        Without a lease there is no pin, and this task would read another state than those that have one.
        """
        if self.execution is None:
            return None
        if lease is not None:
            return pin_execution(self._folder.path, self.execution)
        if can_lease(self._folder.path):
            raise StorageError("the version of a query cannot be pinned: no lease could be written", self._folder.path)
        return None

    def _fetch(self, remote: RemoteFolder) -> RemotePin | None:
        """Bring the mirror to the root that the execution has pinned, else to the newest one."""
        pin = None if self.execution is None else remote.pins.pin(self.execution)
        if pin is not None:
            remote.fetch_pinned(pin)
        elif not remote.fetch():
            raise StorageError("there is no store in this folder", remote.name, sqlstate="58P01")
        return pin

    def _load(
        self,
        lease: ReaderLease | None = None,
        pin: ExecutionPin | None = None,
        *,
        missing_is_damage: bool = True,
        rebases: bool = False,
    ) -> list[LogFile]:
        """Read what the folder holds and then make all of it visible at once.

        With `rebases` also what the maps have that is not committed.
        """
        present = self._state.maps
        # Also where the folder may not be written, and so nothing tells the writer of this reader.
        has_writer = self._state.read_only and self._folder.remote is None
        recovered = recover(
            self._folder.path,
            self._folder.groups,
            self._writer.directory,
            lambda map_id: present[map_id].stored if map_id in present else (),
            missing_is_damage=missing_is_damage,
            has_writer=has_writer,
            keeps_files=lease is not None or not has_writer,
            pin=pin,
        )
        if rebases:
            self._rebase_maps(recovered)
        if lease is not None:
            lease.narrow(recovered.manifest.version)
        maps = {}
        for map_id, found in recovered.maps.items():
            found.version.hold = lease if pin is None else pin
            known = present.get(map_id)
            maps[map_id] = self._writer.new_map(found.definition) if known is None else known
        self._state.install(recovered, maps)
        self._folder.take_up(recovered)
        return recovered.files

    def rebase(self) -> None:
        """Take the store over to the newest root of a remote folder, with all that is not committed on top of it.

        Rows are looked up for that, which fetches files. They may be gone, as those that a fetch of the root misses,
        where that takes longer than the retention: the newer root is read then.
        """
        remote = self._folder.remote
        assert remote is not None, "only a remote folder has other writers"
        while True:
            try:
                self._rebase_once(remote)
                return
            except FileGoneError:
                if remote.is_newest():
                    raise

    def _rebase_once(self, remote: RemoteFolder) -> None:
        state = self._state
        with self._writer.every_lock():
            try:
                remote.fetch()
            except FileNotFoundError as error:
                raise damage_error("a file named in the newest root is missing", error.filename) from error
            flushed = [(each, each.stored) for each in state.maps.values() if each.has_uncommitted_segments]
            try:
                self._load(rebases=True)
            except WriteConflictError as error:
                self._writer.refuse_writes(error)
                raise
            for each, stored in flushed:
                each.state.directory.discard(stored, each.stored)

    def _rebase_maps(self, recovered: Recovered) -> None:
        for map_id, known in self._state.maps.items():
            found = recovered.maps.get(map_id)
            if found is not None and found.definition.columns == known.definition.columns:
                known.state.rebase(found)
            elif known.state.uncommitted():
                raise WriteConflictError(
                    f"the map {known.definition.name} was {'dropped' if found is None else 'changed'} by another "
                    "writer, so nothing that was written here since the last commit is committed: open the store again"
                )

    def keep_files(self, seconds: float, version: int | None) -> None:
        """Keep the files of the present state, or since a version, for other readers that are told of it."""
        if self._lease is not None and self._folder.version is not None:
            leave_lease(self._folder.path, self._folder.version if version is None else version, seconds)

    def release(self) -> None:
        """End the lease, and let the pin end."""
        if self._lease is not None:
            self._lease.release()
        if self.pin is not None:
            self.pin.unlock()
