"""What a store has on disk beside its segments: the lock, the manifest, the write-ahead files, and what goes away.

MANIFEST                        what the folder holds: the root (`manifest`)
LOCK                            held by the one process that writes
readers/<id>.lease              which state a reader uses (`reader_lease`)
pins/<name>/                    which state the tasks of a Spark execution read (`execution_pin`)
versions/<number>.root          a version that is kept (`kept_versions`)
wal/<number>.log                statements since the last checkpoint (`write_ahead_log`)
maps/<map id>/<group id>.group  what a map has in a group of partitions (`group_file`)
maps/<map id>/<segment id>.*    segments (`segment_file`)
inbox/<id>.*                    segments that other processes hand over (`inbox`)

It knows nothing of the maps but their entries in the manifest. Its user keeps others out while it is changed.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from remuda.errors import OutcomeUnknownError, StorageError, damage_error
from remuda.storage.folder.definition_entries import view_entry
from remuda.storage.folder.disk_errors import disk_errors, storage_error
from remuda.storage.folder.disposal import Disposal
from remuda.storage.folder.folder_lock import FolderLock
from remuda.storage.folder.kept_versions import KeptVersions, version_number
from remuda.storage.folder.manifest import (
    NAME,
    Manifest,
    UnsyncedManifestError,
    replace_manifest,
    write_manifest,
)
from remuda.storage.folder.partition_groups import PartitionGroups, group_files
from remuda.storage.folder.store_files import (
    ID,
    MAP_FILE,
    list_files,
    make_folder,
    open_file,
    refuse_link,
    remove_file,
)
from remuda.storage.segment.segment_file import LEVELS as SEGMENT_LEVELS
from remuda.storage.wal.durability import Durability
from remuda.storage.wal.log import NO_SPACE, WriteAheadLog
from remuda.storage.wal.log_file import (
    LEVELS,
    LogFile,
    holds_nothing,
    log_numbers,
    log_path,
    settle_tail,
    sync_folder,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from remuda.catalog import Catalog
    from remuda.storage.commit.recovery import Recovered
    from remuda.storage.folder.definition_entries import MapEntry
    from remuda.storage.remote.remote_folder import RemoteFolder

Answer = TypeVar("Answer")

LOCK = "LOCK"
FOLDERS = ("wal", "maps")


class StoreFolder:
    """Reads and writes what a store has on disk beside its segments.

    `wal` is there once it is opened, `disposal` for a writer.
    """

    def __init__(
        self, path: Path, durability: Durability, *, read_only: bool, remote: RemoteFolder | None = None
    ) -> None:
        self.path = path
        self.remote = remote
        self.wal: WriteAheadLog | None = None
        self.versions = KeptVersions(path)
        self.disposal = None if read_only else Disposal(path, self.versions)
        self.groups = (
            PartitionGroups(path) if remote is None else PartitionGroups(path, remote.read_group, remote.transfers)
        )
        self._durability = durability
        self._lock: FolderLock | None = None
        self._log_files = [(1, 1)]
        """Numbers of the write-ahead files with the sequence number each begins with."""
        self._sequence = 0
        self._safe_log = (0, 0)
        self._manifest: Manifest | None = None
        """The one that was read or written last."""
        self._deliveries: frozenset[str] = frozenset()
        self._uncertain = False
        """Whether it is unknown which manifest a crash would leave."""
        self._failure: StorageError | None = None
        """Why nothing can be committed to a remote store any more."""

    @property
    def version(self) -> int | None:
        """Return the version of the manifest that was read or written last."""
        return None if self._manifest is None else self._manifest.version

    # Opening

    def lock(self) -> None:
        """Makes the folder, if it is absent, and keeps other writers out."""
        try:
            if self.remote is not None:
                self.remote.refuse_unsafe()
                self.remote.fetch()
        except FileNotFoundError as error:
            raise damage_error("a file named in the manifest is missing", error.filename) from error
        with disk_errors("the folder cannot be written", self.path):
            _make_folders(self.path)
            for name in FOLDERS:
                make_folder(self.path / name)
            refuse_link(self.path / "inbox")
            refuse_link(self.path / "readers")
            refuse_link(self.path / "pins")
            refuse_link(self.path / "versions")
            self._lock = FolderLock(self.path / LOCK)

    def unlock(self) -> None:
        if self._lock is not None:
            self._lock.release()

    def has_manifest(self) -> bool:
        """Tell whether there is anything to recover.

        A folder without a manifest is new, or the first opening of it did not come to an end: then it holds at most
        a log file without a record, as nothing is written before there is a manifest. Anything else is a store whose
        manifest was lost.
        """
        if (self.path / NAME).exists():
            return True
        logs = self.path / "wal"
        if self._map_folders() or any(
            number > 1 or not holds_nothing(log_path(logs, number)) for number in log_numbers(logs)
        ):
            raise damage_error("the manifest is missing", self.path / NAME)
        return False

    def sync_own_name(self) -> None:
        """Makes the names of a new store's folders durable, before the manifest is, and its own in the folder around
        it."""
        sync_folder(self.path)
        try:
            sync_folder(self.path.parent)
        except PermissionError:
            # It can be used but not read, and so not be synced by this process: the store was made in a folder
            # of another user.
            return
        except OSError as error:
            raise storage_error("the name of the folder could not be made durable", error, self.path.parent) from error

    def take_up(self, recovered: Recovered) -> None:
        """Resume from the state that was recovered."""
        manifest, files = recovered.manifest, recovered.files
        self._manifest = manifest
        self.groups.keep_only(manifest.maps)
        self._sequence = recovered.sequence
        self._safe_log = manifest.safe_log
        self._deliveries = frozenset(manifest.deliveries)
        self._log_files = [(file.number, file.first_sequence) for file in files] or [
            (manifest.first_log, self._sequence + 1)
        ]
        if self.disposal is not None:
            self.disposal.version = manifest.version

    def open_wal(self, last: LogFile | None) -> WriteAheadLog | None:
        """Open the WAL for appending.

        Goes on behind the last whole record; a file that was cut off inside its header makes room for its like.
        """
        if self._durability is Durability.NONE:
            return None
        folder = self.path / "wal"
        number = self._log_files[-1][0] if last is None else last.number
        for other in log_numbers(folder):
            if other > number or (last is None and other == number):
                with suppress(OSError):  # It holds nothing, and is overwritten when its number comes.
                    remove_file(log_path(folder, other), levels=LEVELS)
        if last is None:
            self.wal = WriteAheadLog(folder, number, self._sequence, self._durability)
        elif last.salt is None or last.syncs is not (self._durability is Durability.FSYNC):
            self.wal = self._begin_behind(last)
        else:
            safe = self._safe_log == (number, last.length)
            self.wal = WriteAheadLog(folder, number, self._sequence, self._durability, last, safe=safe)
        return self.wal

    def _begin_behind(self, last: LogFile) -> WriteAheadLog:
        """Begin a new WAL file: the last one has format 1, or was written with another durability, which it says."""
        folder = self.path / "wal"
        path = log_path(folder, last.number)
        with disk_errors("the write-ahead log cannot be written", path):
            descriptor = open_file(path, os.O_WRONLY, levels=LEVELS)
            try:
                settle_tail(descriptor, last)
            finally:
                os.close(descriptor)
        wal = WriteAheadLog(folder, last.number + 1, self._sequence, self._durability, previous_length=last.length)
        self._log_files.append((wal.number, wal.sequence + 1))
        return wal

    def remove_orphans(self, maps: Container[str], version: int) -> None:
        """Remove orphan files: those that the manifest of this version does not name.

        A process that was killed has left them, or they were kept for readers. The segment directory of each map that
        the manifest names removes those of its own folder.
        """
        if self.disposal is None:
            return
        first, logs = self._log_files[0][0], self.path / "wal"
        old_logs = [log_path(logs, number) for number in log_numbers(logs) if number < first]
        self.disposal.retire(old_logs, version, of_versions=False)
        with suppress(OSError):
            for folder in self._map_folders():
                if folder.name not in maps:
                    files = list_files(folder, levels=SEGMENT_LEVELS, form=MAP_FILE)
                    self.disposal.retire((folder / name for name in files), version, are_orphans=True)
                    with suppress(OSError):  # Not empty: a reader uses it, or a person has put something there.
                        folder.rmdir()

    def _map_folders(self) -> list[Path]:
        """List the folders that are named like those of maps. What a system or a person has put there is left alone."""
        with os.scandir(self.path / "maps") as entries:
            return [
                self.path / "maps" / entry.name
                for entry in entries
                if ID.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
            ]

    # Committing

    def commit(
        self,
        partitions: int,
        catalog: Catalog,
        maps: list[MapEntry],
        *,
        only_changes: bool = False,
        delivery: str | None = None,
    ) -> None:
        """Makes this the state of the folder, by a new manifest; with `only_changes` not if it is so already.

        `delivery` is the one whose rows the state is the first to have. Where it raises, the commit was made if
        `Disposal.version` has grown: a thread can be interrupted anywhere, also behind the commit.
        """
        if self.disposal is None:
            return
        deliveries = self._deliveries if delivery is None else self._deliveries | {delivery}
        sequence = self._sequence if self.wal is None else self.wal.sequence
        if self.wal is not None:
            self._safe_log = self.wal.synced
        before = self._entries()
        maps = [self.groups.unchanged(entry, before.get(entry.id)) for entry in maps]
        views = [view_entry(view) for view in catalog.views.values()]
        first_log = self._log_files[0][0]
        version = self.disposal.version
        manifest = Manifest(
            version,
            partitions,
            catalog.version,
            first_log,
            self._safe_log,
            sequence,
            maps,
            views,
            tuple(sorted(deliveries)),
            *(() if self._manifest is None else (self._manifest.data_version, self._manifest.committed)),
        )
        was_moved = self._lock is not None and not self._lock.is_at(self.path / LOCK)
        if only_changes and (manifest == self._manifest or self._uncertain or was_moved):
            return
        self.refuse_after_failure()
        if was_moved:
            raise StorageError(
                "the folder was moved or removed while it was open: open it where it is now",
                self.path,
                sqlstate="58P01",
            )
        if self.wal is not None:
            # What came before the change must be as durable as the change will be.
            self.wal.make_safe()
            self._safe_log = self.wal.synced
        manifest = replace(manifest, version=version + 1, safe_log=self._safe_log)
        before_it = self._manifest
        if before_it is None or (manifest.maps, manifest.views) != (before_it.maps, before_it.views):
            manifest = replace(manifest, data_version=manifest.version, committed=time.time_ns() // 1000)
            if before_it is not None and self.remote is None:
                self.versions.keep(before_it)
        elif not manifest.data_version:
            manifest = replace(manifest, data_version=version_number(before_it))
        self._retire_groups(before, self._publish(manifest, deliveries, before))
        self._sweep_versions()

    def _sweep_versions(self) -> None:
        """Give up versions whose time is over, and remove the files that waited for them."""
        assert self.disposal is not None, "only a writer commits"
        if self.remote is None and self._manifest is not None:
            self.versions.expire(self._manifest, self.disposal.waiting_bytes)
        self.disposal.sweep()

    def _entries(self) -> dict[str, MapEntry]:
        """Return the entries of the maps in the root that was read or written last."""
        return {} if self._manifest is None else {entry.id: entry for entry in self._manifest.maps}

    def entry(self, map_id: str) -> MapEntry:
        """Return the entry of a map in the root that was read or written last."""
        return self._entries()[map_id]

    def group_files(self, map_id: str) -> set[str]:
        """Return the names of a map's group files."""
        entry = self._entries().get(map_id)
        return set() if entry is None else {PurePosixPath(name).name for name, _ in group_files(entry)}

    def group_damages(self, map_id: str) -> Iterator[StorageError]:
        """Read the group files of a map again and yield what is damaged."""
        entry = self._entries().get(map_id)
        if entry is not None:
            yield from self.groups.damages(entry)

    def _publish(self, manifest: Manifest, deliveries: frozenset[str], before: Mapping[str, MapEntry]) -> Manifest:
        """Write the group files that the state needs, and then its root. Return the root as it was written."""
        assert self.disposal is not None, "only a writer commits"
        written: list[MapEntry] = []
        try:
            for entry in manifest.maps:
                write = partial(self.groups.write, entry, before.get(entry.id))
                written.append(self._making_room(write))
            manifest = replace(manifest, maps=written)
            if self.remote is None:
                self._sync_names(manifest.maps, before)
                self._write(manifest, deliveries)
            else:
                self.remote.publish(manifest, self.groups)
                self._take_over(manifest, deliveries)
        except OutcomeUnknownError:
            raise  # The root may be there, and needs them.
        except BaseException:
            if not self._uncertain and self.disposal.version != manifest.version:
                for entry in written:
                    self.groups.remove(entry, before.get(entry.id))
            raise
        return manifest

    def _take_over(self, manifest: Manifest, deliveries: frozenset[str]) -> None:
        """Go on from a root that is in force."""
        assert self.disposal is not None, "only a writer commits"
        self._manifest, self._deliveries = manifest, deliveries
        self.disposal.version = manifest.version

    def _retire_groups(self, before: Mapping[str, MapEntry], manifest: Manifest) -> None:
        """Let go of the group files that the state before named, and this one does not."""
        assert self.disposal is not None, "only a writer commits"
        self.groups.keep_only(manifest.maps)
        kept = {name for entry in manifest.maps for name, _ in group_files(entry)}
        gone = [name for entry in before.values() for name, _ in group_files(entry) if name not in kept]
        if gone:
            self.disposal.retire(self.path / name for name in gone)

    def _write(self, manifest: Manifest, deliveries: frozenset[str]) -> None:
        """Write the manifest.

        Where the manifest is in its place but not durable, the one before is put back, as the change is undone.

        A crash may leave either of them: the files of both stay, and nothing is written any more, since a record of a
        map would be lost with the manifest that has the map. Not so where the thread was interrupted: then the one
        before can be made durable again, and the store goes on from there.
        """
        assert self.disposal is not None, "only a writer commits"
        before, deliveries_before = self._manifest, self._deliveries
        try:
            self._making_room(lambda: write_manifest(self.path, manifest))
            self._take_over(manifest, deliveries)
        except UnsyncedManifestError as error:
            self._begin_uncertainty(error)
            if before is not None:
                with suppress(StorageError):
                    replace_manifest(self.path, before)
            raise
        except StorageError:
            raise  # It is not in its place.
        except BaseException:
            if self.disposal.version != manifest.version:
                self._manifest, self._deliveries = before, deliveries_before
                self._put_back()
            raise

    def _begin_uncertainty(self, error: StorageError) -> None:
        """Keep all files and refuse all writes: a crash may leave the manifest in force, or another one."""
        assert self.disposal is not None, "only a writer commits"
        self._uncertain = True
        self.disposal.stop()
        if self.wal is not None:
            self.wal.fail(error)

    def _put_back(self) -> None:
        """Make the manifest in force durable once more, in the place of one that may be there."""
        assert self.disposal is not None, "only a writer commits"
        self._uncertain = True
        self.disposal.stop()
        if self._manifest is None:  # It is the first one of a store, whose opening ends here.
            return
        try:
            write_manifest(self.path, self._manifest)
        except StorageError as error:
            self._begin_uncertainty(error)
        else:
            self._uncertain = False
            self.disposal.go_on()

    def _making_room(self, write: Callable[[], Answer]) -> Answer:
        """Write a root or a group file, if need be without the room kept for the WAL.

        On a full disk the log's room makes way: the change may be one that frees space.
        """
        try:
            return write()
        except UnsyncedManifestError:
            raise
        except StorageError as error:
            cause = error.__cause__
            full = isinstance(cause, OSError) and cause.errno in NO_SPACE
            if not full or not self._release_room():
                raise
            return write()

    def _release_room(self) -> bool:
        """Give up what is kept on the disk but for the state; return False if there is nothing."""
        gave_up = self.versions.give_up_all()
        if gave_up and self.disposal is not None:
            self.disposal.sweep()
        return (self.wal is not None and self.wal.release_room()) or gave_up

    def refuse_after_failure(self) -> None:
        """Refuses writes where it is unknown which manifest a crash would leave, or a remote store has failed."""
        if self._failure is not None:
            raise StorageError(self._failure.reason, self.path if self.remote is None else self.remote.name)
        if self._uncertain:
            raise StorageError("a manifest could not be made durable: the folder must be opened anew", self.path)

    def fail(self, error: StorageError) -> None:
        """Refuse all commits from now on, for this reason."""
        self._failure = error

    def _sync_names(self, maps: Sequence[MapEntry], before: Mapping[str, MapEntry]) -> None:
        """Sync the folders of new files.

        The names of files must be durable before the manifest that needs them: syncing a file need not do that.
        """
        folder = self.path / "maps"
        known = {map_id: entry.groups for map_id, entry in before.items() if entry.groups}
        changed = [entry.id for entry in maps if entry.groups and entry.groups != known.get(entry.id)]
        with disk_errors("the folder cannot be written", folder):
            for map_id in changed:
                sync_folder(folder / map_id)
            if any(map_id not in known for map_id in changed):
                sync_folder(folder)

    def sweep(self) -> None:
        """Retry the removal of files that could not be removed before."""
        if self.disposal is not None:
            self._sweep_versions()

    def is_applied(self, delivery: str) -> bool:
        """Tell whether the committed state has the rows of a delivery that may not be answered yet."""
        return delivery in self._deliveries

    def forget_deliveries(self, answered: Callable[[str], bool]) -> None:
        """Leave deliveries out of the next manifest.

        The next manifest names only the others. For the thread of the inbox: no other adds any.
        """
        self._deliveries = frozenset(each for each in self._deliveries if not answered(each))

    def begin_log_file(self) -> None:
        """Records from now on go to a new write-ahead file, so that those before can be dropped."""
        if self.wal is not None:
            self.wal.rotate()
            self._log_files.append((self.wal.number, self.wal.sequence + 1))

    def drop_old_logs(self, waiting: Iterable[int], commit: Callable[[], None]) -> None:
        """Lets go of the files before the first record that is waited for, when a manifest no longer names them."""
        if self.wal is None or self.disposal is None:
            return
        needed = min(waiting, default=self.wal.sequence + 1)
        kept = list(self._log_files)
        while len(kept) > 1 and kept[1][1] <= needed:
            kept.pop(0)
        dropped = self._log_files[: len(self._log_files) - len(kept)]
        if dropped:
            before, self._log_files = self._log_files, kept
            try:
                commit()
            except BaseException:
                self._log_files = before
                raise
            self.disposal.retire((log_path(self.path / "wal", number) for number, _ in dropped), of_versions=False)


def _make_folders(path: Path) -> None:
    """Makes a folder and those above it that are missing, each with a durable name, or none of them."""
    made: list[Path] = []
    try:
        for folder in reversed([path, *path.parents]):
            if not folder.exists():
                folder.mkdir(exist_ok=True)
                made.append(folder)
                if folder != path:
                    sync_folder(folder.parent)
    except OSError:
        for folder in reversed(made):
            with suppress(OSError):
                folder.rmdir()
        raise
