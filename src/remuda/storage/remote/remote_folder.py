"""Stores on a file system of `pyarrow.fs` (S3, Google Cloud Storage, HDFS, ...), used through a mirror on local disk.

A reader fetches the newest root and then every file that it names. Segments and their indexes never change, so they
come from the cache where it has them, and are compared with their checksums before they get there. From then on the
reader needs nothing of the remote store.

A writer works on its mirror. A commit uploads the files that are new and then creates the next root: that is the
commit (`roots`). There is no write-ahead log and no lock: a writer that finds its root taken has lost and rebases.
Old stores have one manifest that is replaced; the first commit makes it the first root, and then goes on from there.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from msgspec.structs import asdict, replace

from remuda.catalog import new_id
from remuda.errors import StorageError
from remuda.storage.commit.commit_retry import RootTakenError
from remuda.storage.folder.execution_pin import given_up
from remuda.storage.folder.group_file import group_name, read_group
from remuda.storage.folder.manifest import MOVED, NAME, Manifest, Root, decode_manifest
from remuda.storage.folder.partition_groups import PartitionGroups, group_files, read_by_group, segment_files
from remuda.storage.remote.range_reader import gone_error
from remuda.storage.remote.remote_files import TRANSFERS
from remuda.storage.remote.remote_pins import RemotePin, RemotePins
from remuda.storage.remote.remote_segments import RemoteSegments
from remuda.storage.remote.remote_versions import RemoteVersions
from remuda.storage.remote.retention import sweep
from remuda.storage.remote.roots import Roots
from remuda.storage.wal.log_file import log_path

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from remuda.storage.folder.definition_entries import MapEntry
    from remuda.storage.folder.group_file import GroupRef, SegmentEntry
    from remuda.storage.remote.remote_location import RemoteLocation

_COMPRESSED = frozenset({".arrow", ".keys", ".index"})
"""The files of a segment, which are read by ranges; the others are small and read as a whole."""
_LONG_PAUSE = 1.0
"""Seconds between the look at the newest root and the commit after which the commit is looked at again, at least."""


class _Moment:
    """A moment of which the age is told, the time that the machine was suspended included.

    The monotonic clock stands still while a machine is suspended, and the wall clock can be set back.
    """

    __slots__ = ("_monotonic", "_wall")

    def __init__(self) -> None:
        self._monotonic, self._wall = time.monotonic(), time.time()

    def age(self) -> float:
        """Return the seconds since then, by the clock that shows more."""
        return max(time.monotonic() - self._monotonic, time.time() - self._wall)


class RemoteFolder:
    """Keeps a mirror of the newest root of a remote store, and commits the next one.

    Group files of large maps are fetched when they are needed, `transfers` of them at the same time.
    """

    transfers = TRANSFERS

    def __init__(self, location: RemoteLocation) -> None:
        self.location = location
        self._files = location.files
        self._roots = Roots(location.files, sole_writer=location.sole_writer)
        self.versions = RemoteVersions(self._roots)
        self.pins = RemotePins(location.files, self._roots, sole_writer=location.sole_writer)
        self._cache = location.open_cache()
        self._mirror = self._cache.new_mirror()
        self.segments = RemoteSegments(location.files, self._cache, self._mirror)
        """What opens the segments of the store, each of which is fetched as far as it is read."""
        self._version = 0
        """Of the root that was fetched or committed last; 0 if there is none."""
        self._replaced: Manifest | None = None
        """The manifest of an old store, which no root has yet."""
        self._is_unmarked = False
        """Whether the manifest of an old store may still be there, which versions that know no roots would read."""
        self._seen = _Moment()
        """When that root was known to be the newest."""
        self._present: set[str] = set()
        """The files that root names; of maps whose groups are read when they are needed, as far as they were read."""
        self._in_groups: dict[str, list[str]] = {}
        """The files of segments that group files name, as far as this process has read or written these."""
        self._uploaded: dict[str, _Moment] = {}
        """When files were uploaded that no root of this process names yet."""
        self._retired: set[str] = set()
        """Files in the mirror that the root before named, and that one does not."""

    @property
    def name(self) -> str:
        """How errors call it."""
        return self._files.name

    @property
    def local(self) -> Path:
        """A folder that looks like the store as it was when it was fetched last."""
        return self._mirror.path

    def fetch(self) -> bool:
        """Bring the mirror to the newest state; return False if there is no store.

        A fetch that outlasts the retention may miss files that another writer has dropped and swept: the newer root is
        fetched then. `FileNotFoundError` says that a file is missing which the newest root names.
        """
        asked = _Moment()
        while (found := self._find_state()) is not None:
            raw, manifest = found
            try:
                self._mirror_state(raw, manifest)
            except FileNotFoundError:
                if self._roots.newest() in (None, manifest.version):
                    raise
                asked = _Moment()
                continue
            self._seen = asked
            return True
        self._seen = asked
        return False

    def fetch_pinned(self, pin: RemotePin) -> None:
        """Bring the mirror to the root that a Spark execution has pinned."""
        ended = given_up(self.name, self.location.retention)
        found = self._roots.read(pin.root)
        if found is None:
            raise ended
        try:
            self._mirror_state(*found)
        except FileNotFoundError as error:
            raise ended from error

    def _mirror_state(self, raw: bytes, manifest: Manifest) -> None:
        """Fetch the files that a root names and the mirror has not, and then put the root into the mirror."""
        for folder in ("wal", *(f"maps/{entry.id}" for entry in manifest.maps)):
            (self.local / folder).mkdir(parents=True, exist_ok=True)
        late = [entry for entry in manifest.maps if read_by_group(entry) is not None]
        whole = replace(manifest, maps=[entry for entry in manifest.maps if read_by_group(entry) is None])
        with ThreadPoolExecutor(TRANSFERS) as pool:
            groups = dict(each for entry in whole.maps for each in group_files(entry))
            list(pool.map(self._bring, groups.items()))
            files = {name for name, _ in PartitionGroups(self.local).named_files(whole)}
            deletions = [name for name in files if PurePosixPath(name).suffix == ".deleted"]
            list(pool.map(self._bring, ((name, None) for name in deletions)))
        named = {group.id for entry in manifest.maps for group in entry.groups}
        self._in_groups = {group: names for group, names in self._in_groups.items() if group in named}
        files.update(name for entry in late for name, _ in group_files(entry))
        files.update(name for names in self._in_groups.values() for name in names)
        self._fetch_logs(manifest)
        (self.local / NAME).write_bytes(raw)
        for gone in self._retired - files:
            (self.local / gone).unlink(missing_ok=True)
        # Until the store has gone over to the new state, its verification may look for files of the old one.
        self._retired = self._present - files
        self._version, self._present = manifest.version, files
        self._replaced = None if isinstance(manifest, Root) else manifest
        # A root with a log was made of the manifest of an old store, by a writer that may have ended right behind it.
        self._is_unmarked = not isinstance(manifest, Root) or manifest.has_log
        self._cache.make_room()

    def read_group(self, map_id: str, group: GroupRef) -> tuple[SegmentEntry, ...]:
        """Return what the file of a group says, fetched with the files of its deletions when they are first needed."""
        folder = self.local / "maps" / map_id
        name = f"maps/{map_id}/{group_name(group)}"
        try:
            self._bring((name, group))
            segments = read_group(folder, group)
            names = [name for name, _ in segment_files(map_id, segments)]
            for each in names:
                if PurePosixPath(each).suffix == ".deleted":
                    self._bring((each, None))
        except FileNotFoundError as error:
            raise gone_error(error.filename) from error
        self._in_groups[group.id] = names
        self._present.update(names)
        return segments

    def fetch_map(self, entry: MapEntry) -> None:
        """Bring what opening a map of a version needs into the mirror: group files, and those of deletions."""
        folder = self.local / "maps" / entry.id
        folder.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(TRANSFERS) as pool:
            list(pool.map(self._bring, group_files(entry)))
            groups = PartitionGroups(self.local)
            files = [each for _, segments in groups.segments_of(entry) for each in segment_files(entry.id, segments)]
            deletions = [(name, None) for name, _ in files if PurePosixPath(name).suffix == ".deleted"]
            list(pool.map(self._bring, deletions))

    def refuse_unsafe(self) -> None:
        """Raise where commits of two writers could overwrite each other."""
        self._roots.refuse_unsafe()

    def publish(self, manifest: Manifest, groups: PartitionGroups) -> None:
        """Commit this state as the next root. `RootTakenError` says that another writer was faster: nothing is done."""
        names = groups.known_files(manifest)
        files = {name for entry in manifest.maps for name, _ in group_files(entry)}.union(*names.values())
        self._upload_all(files - self._present, {each.id: each.compression for each in manifest.maps})
        if self._version == 0 or self._is_unmarked:
            self._begin_roots()
        self._confirm_newest()
        self._roots.create(_without_log(manifest))
        if self._seen.age() >= max(self.location.retention / 2, _LONG_PAUSE):
            self._roots.refuse_reused(manifest.version)
        self._version, self._present, self._seen = manifest.version, files, _Moment()
        self._in_groups = names
        self._uploaded = {}
        sweep(self._files, self._roots, groups, manifest, self.location.retention)

    def _begin_roots(self) -> None:
        """Prepare a store that has no roots: probe the server, and make the manifest of an old store its first root.

        From then on the old manifest is never read. What stands in its place makes versions that know no roots refuse
        the store; without it they would go on from the state before, or begin a new store.
        """
        self._roots.refuse_unconditional()
        if self._replaced is not None:
            with suppress(RootTakenError):  # Another writer has gone over: which commit is next is decided below.
                self._roots.create(Root(**asdict(self._replaced), commit=new_id(), has_log=True))
        self._files.replace(NAME, MOVED)
        self._replaced, self._is_unmarked = None, False

    def _confirm_newest(self) -> None:
        """Look whether the root that the commit builds on is still the newest, if that was known long ago.

        The number of the next root must not be one that another writer has used and, after the retention, removed.
        """
        if self._seen.age() < self.location.retention / 2:
            return
        if not self.is_newest():
            raise RootTakenError("another process has written this store meanwhile", self.name)

    def is_newest(self) -> bool:
        """Tell whether no other writer has committed since this one has fetched or committed."""
        asked = _Moment()
        if (self._roots.newest() or 0) not in (0, self._version):
            return False
        self._seen = asked
        return True

    def _upload_all(self, names: AbstractSet[str], compression: Mapping[str, str | None]) -> None:
        """Upload files, also those whose upload is so old that a sweep could soon take them for orphans.

        `compression` is what the table of each map says, by the map's id.
        """
        limit = self.location.retention / 2
        missing = sorted(name for name in names if name not in self._uploaded or self._uploaded[name].age() >= limit)
        with ThreadPoolExecutor(TRANSFERS) as pool:
            list(pool.map(lambda name: self._upload(name, compression[PurePosixPath(name).parent.name]), missing))

    def close(self) -> None:
        self.segments.let_go = None
        self._mirror.release()
        self._cache.make_room()

    def _find_state(self) -> tuple[bytes, Manifest] | None:
        """Read the newest root as it is there, and decoded; None if there is none.

        A root that is gone when it is read is not the newest any more.
        """
        while (number := self._roots.newest()) is not None:
            found = self._roots.read(number)
            if found is not None:
                return found
        return self._find_manifest()

    def _find_manifest(self) -> tuple[bytes, Manifest] | None:
        """Read the manifest of an old store.

        File systems ask for the size of a file before they read it. One that is replaced in between comes cut off, and
        otherwise the next time; damage stays as it is.
        """
        before = None
        while (raw := self._files.read(NAME)) is not None:
            if raw == MOVED:
                # Its first root is being created, or never was.
                return None if self._roots.newest() is None else self._find_state()
            try:
                return raw, decode_manifest(raw, f"{self.name}/{NAME}")
            except StorageError:
                if raw == before:
                    raise
            before = raw
        return None

    def _bring(self, named: tuple[str, GroupRef | None]) -> None:
        name, known = named
        destination = self.local / name
        if not destination.exists():
            self._cache.link(name.removeprefix("maps/"), destination, lambda path: self._files.fetch(name, path, known))

    def _fetch_logs(self, manifest: Manifest) -> None:
        """Fetch the log of a store that was copied from a local folder: its files are small, and not immutable.

        A writer flushes the log when it opens the store, so no later root needs it.
        """
        folder = self.local / "wal"
        for old in folder.iterdir():
            old.unlink()
        if isinstance(manifest, Root) and not manifest.has_log:
            return
        for name in self._files.list("wal"):
            if Path(name).stem.isdigit() and name >= log_path(folder, manifest.first_log).name:
                self._files.copy(f"wal/{name}", folder / name)

    def _upload(self, name: str, compression: str | None) -> None:
        path = self.local / name
        codec = compression or "zstd"
        self._files.upload(path, name, None if codec == "none" or path.suffix not in _COMPRESSED else codec)
        self._uploaded[name] = _Moment()
        self._cache.keep(name.removeprefix("maps/"), path)


def _without_log(manifest: Manifest) -> Root:
    """Return the root of a state that needs no log: its writer has flushed what there was."""
    return Root(**{**asdict(manifest), "safe_log": (0, 0)}, commit=new_id())
