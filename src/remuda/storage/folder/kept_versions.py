"""Versions: roots that were in force, kept for a time with all files that they name.

    versions/<number>.root    the root of a version that is not the newest any more, a hard link to what was MANIFEST

A version is a committed state of maps and views. It has the number of the first root that had it, as roots after it may
differ in the position of the log alone. The writer keeps the root of a version when the next one takes its place, and
gives it up when its retention is over. As long as it is kept, the files that it names stay (`disposal`).

Where no table says how long, the retention is an hour, and versions make way: for newer ones beyond `MOST_VERSIONS`,
where they take more room than the maps themselves, and where the disk is nearly full. A retention that a table asks for
is kept whatever it costs, but for a disk on which the next root does not fit.
"""

from __future__ import annotations

import logging
import os
import re
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from remuda.dataclass import dataclass
from remuda.errors import StorageError
from remuda.storage.folder.manifest import MOST_BYTES, NAME, Manifest, decode_manifest, read_manifest
from remuda.storage.folder.store_files import list_files, make_folder, read_file, remove_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FOLDER = "versions"
DEFAULT_RETENTION = 3600
"""Seconds that a version stays after the next one, where none of its tables says how long."""
MOST_VERSIONS = 64
"""Versions that are kept where no table asks for a retention."""
SMALLEST_ROOM = 64 << 20
"""Bytes that versions without a stated retention may take where the maps take less."""
_LEAST_FREE = 0.02
"""The share of the disk that such versions leave free."""
_NAME = re.compile(r"[0-9]{12}\.root")
_logger = logging.getLogger("remuda.storage")


@dataclass(frozen=True, slots=True)
class KeptVersion:
    """`retention` is in seconds, `asked` says whether a table has asked for it; `committed` in microseconds."""

    number: int
    committed: int
    retention: int
    asked: bool


def version_number(manifest: Manifest) -> int:
    """Return the number of the version that a root has."""
    return manifest.data_version or manifest.version


def version_of(manifest: Manifest) -> KeptVersion:
    asked = [entry.retention for entry in manifest.maps if entry.retention is not None]
    waits = DEFAULT_RETENTION if len(asked) < len(manifest.maps) or not asked else 0
    retention = max([waits, *asked])
    return KeptVersion(version_number(manifest), manifest.committed, retention, max(asked, default=0) == retention > 0)


class KeptVersions:
    """Finds, keeps and gives up the versions of one folder."""

    __slots__ = ("_folder", "_kept", "_store")

    def __init__(self, store: Path) -> None:
        self._store = store
        self._folder = store / FOLDER
        self._kept: list[KeptVersion] | None = None
        """What the writer keeps, from the oldest on; None until it has looked."""

    def numbers(self) -> list[int]:
        """Return the numbers of the versions in the folder that are not the newest, from the oldest on."""
        return [int(name.partition(".")[0]) for name in list_files(self._folder, levels=1, form=_NAME)]

    def newest(self) -> int:
        """Return the number of the newest version."""
        return version_number(read_manifest(self._store))

    def read(self, number: int) -> Manifest:
        """Return the root of a version, which may be the newest. `FileNotFoundError` says that it is not kept."""
        newest = read_manifest(self._store)
        return newest if number == version_number(newest) else self._kept_root(number)

    def _kept_root(self, number: int) -> Manifest:
        path = self._path(number)
        return decode_manifest(read_file(path, levels=1, most=MOST_BYTES), path)

    def all(self) -> list[tuple[KeptVersion, Manifest]]:
        """Return all versions with their roots, the newest last. One that ends at this moment is left out."""
        newest = read_manifest(self._store)
        found = []
        for number in self.numbers():
            if number < version_number(newest):
                with suppress(FileNotFoundError):
                    manifest = self._kept_root(number)
                    found.append((version_of(manifest), manifest))
        return [*found, (version_of(newest), newest)]

    # The writer

    @property
    def oldest(self) -> int | None:
        """Return the number of the oldest version that is kept."""
        return next((each.number for each in self._held()), None)

    def keep(self, manifest: Manifest) -> None:
        """Keep the root in force, which has the version of this manifest: the next root has another one.

        A version that cannot be kept is not: the commit goes on.
        """
        version = version_of(manifest)
        if version.retention <= 0 or (self._held() and self._held()[-1].number >= version.number):
            return
        try:
            make_folder(self._folder)
            with suppress(FileExistsError):  # The commit that was to follow it has failed.
                os.link(self._store / NAME, self._path(version.number), follow_symlinks=False)
        except (OSError, StorageError) as error:
            _logger.warning("a version of the store cannot be kept: %s", error)
            return
        self._held().append(version)

    def expire(self, newest: Manifest, waiting_bytes: Callable[[int], int]) -> None:
        """Give up what need not be kept any more beside this newest root.

        `waiting_bytes` tells how much room the files take that wait for the end of a version.
        """
        kept = self._held()
        now = time.time_ns() // 1000
        successors = [*kept, version_of(newest)][1:]
        expired = {
            one.number
            for one, other in zip(kept, successors, strict=True)
            if now - other.committed >= one.retention * 1_000_000
        }
        self._give_up(expired)
        room = max(SMALLEST_ROOM, sum(group.row_bytes for entry in newest.maps for group in entry.groups))
        while kept and not kept[0].asked:
            if not (len(kept) > MOST_VERSIONS or waiting_bytes(kept[0].number) > room or self._is_disk_full()):
                break
            if not self._give_up({kept[0].number}):
                break  # It cannot be removed now: the next commit tries it again.

    def give_up_all(self) -> bool:
        """Give up all versions, to make room; return False if there is none."""
        return self._give_up({each.number for each in self._held()})

    def _is_disk_full(self) -> bool:
        try:
            found = os.statvfs(self._store)
        except OSError:
            return False
        return found.f_bavail < found.f_blocks * _LEAST_FREE

    def _give_up(self, numbers: set[int]) -> bool:
        """Remove the roots of versions; return False if none could be."""
        kept = self._held()
        before = len(kept)
        for each in [each for each in kept if each.number in numbers]:
            try:
                remove_file(self._path(each.number), levels=1)
            except OSError as error:
                _logger.warning("a version that is not needed any more cannot be removed: %s", error)
                continue
            kept.remove(each)
        return len(kept) < before

    def _held(self) -> list[KeptVersion]:
        if self._kept is None:
            # Whole from the moment it is there: files are removed by the oldest of them, by any thread.
            self._kept = [self._found(number) for number in self.numbers()]
        return self._kept

    def _found(self, number: int) -> KeptVersion:
        try:
            return version_of(self._kept_root(number))
        except (OSError, StorageError) as error:
            _logger.warning("a version of the store cannot be read: %s", error)
            # Counted from now on, as it is unknown since when: the version before it must not end for that.
            return KeptVersion(number, time.time_ns() // 1000, DEFAULT_RETENTION, asked=False)

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:012d}.root"
