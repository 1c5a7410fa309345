"""Removes old roots and the files that no root names any more.

A root is kept for the retention after the next one took its place, with all files that it names: readers and Spark
tasks that planned on it find them. It is kept longer where one of its own tables asks for that, also when that table is
dropped later. Ages are differences between dates that the server gave, so the clocks of writers do not matter.
"""

from __future__ import annotations

from contextlib import suppress
from errno import ENOENT
from itertools import accumulate, takewhile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from remuda.errors import StorageError
from remuda.storage.folder.group_file import decode_group, group_name
from remuda.storage.folder.partition_groups import PartitionGroups, group_files, segment_files
from remuda.storage.folder.store_files import MAP_FILE
from remuda.storage.remote.remote_pins import ended_pins
from remuda.storage.remote.roots import root_name

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from remuda.storage.folder.group_file import GroupRef, SegmentEntry
    from remuda.storage.folder.manifest import Manifest, Root
    from remuda.storage.remote.remote_files import RemoteFiles
    from remuda.storage.remote.roots import Roots

RETENTION_SECONDS = 3600.0
SWEEP_COMMITS = 16
"""Commits between two sweeps of old roots: each lists all roots."""
ORPHAN_COMMITS = 256
"""Commits between two sweeps of orphan files: each lists all files of the store."""
MOST_ROOTS = 256
"""Roots that one sweep removes, so that the commit which sweeps does not wait for long."""


def sweep(files: RemoteFiles, roots: Roots, groups: PartitionGroups, newest: Manifest, retention: float) -> None:
    """Remove what no reader needs any more, after the commit of this root, if it is its turn.

    `groups` knows those of the new root. What cannot be read or removed now is left to a later sweep: the commit has
    succeeded.
    """
    if newest.version % SWEEP_COMMITS:
        return
    with suppress(StorageError, FileNotFoundError):
        dates = roots.dates()
        expired = _expired(roots, dates, retention)
        kept = dates.keys() - expired.keys()
        found = roots.read(min(kept)) if kept else None
        if found is None:
            return
        oldest = found[1]
        old_groups = PartitionGroups(Path(), _GroupObjects(files, groups, newest))
        needed = {name for name, _ in groups.named_files(newest)} | _names(old_groups, oldest)
        for number, root in expired.items():
            _remove_root(files, old_groups, number, root, needed)
        if newest.version % ORPHAN_COMMITS == 0:
            # Not by the newest root alone: the roots between it and the oldest one name files too.
            limit = min(dates[max(dates)] - 2 * retention, dates[min(kept)] - retention)
            files.remove(_orphans(files, needed, limit))
            files.remove(ended_pins(files, dates[max(dates)]))


def _expired(roots: Roots, dates: Mapping[int, float], retention: float) -> dict[int, Root | None]:
    """Read the roots that are to be removed, from the oldest on: up to the first that one of its tables keeps."""
    expired: dict[int, Root | None] = {}
    for number in expired_roots(dates, retention)[:MOST_ROOTS]:
        found = roots.read(number)
        asked = 0 if found is None else max([each.retention or 0 for each in found[1].maps], default=0)
        if asked > retention and number not in expired_roots(dates, asked):
            break
        expired[number] = None if found is None else found[1]
    return expired


class _GroupObjects:
    """Reads group files of old roots from the store, but for those that the newest root names, which are known."""

    def __init__(self, files: RemoteFiles, known: PartitionGroups, newest: Manifest) -> None:
        self._files = files
        self._known = known
        self._newest = {group.id for entry in newest.maps for group in entry.groups}

    def __call__(self, map_id: str, group: GroupRef) -> tuple[SegmentEntry, ...]:
        if group.id in self._newest:
            return self._known.segments_in(map_id, group)
        name = f"maps/{map_id}/{group_name(group)}"
        raw = self._files.read(name)
        if raw is None:
            raise FileNotFoundError(ENOENT, "missing", f"{self._files.name}/{name}")
        return decode_group(raw, group, f"{self._files.name}/{name}")


def _remove_root(files: RemoteFiles, groups: PartitionGroups, number: int, root: Root | None, needed: set[str]) -> None:
    """Remove an expired root after the files that only it names: the segments, then the group files that name them.

    Nothing that is in a needed group file can go, so those are not read. A group file that is gone already was removed
    behind its segments, by a sweep that did not come to its end.
    """
    if root is not None:
        for entry in root.maps:
            gone = [(name, group) for name, group in group_files(entry) if name not in needed]
            names = {name for name, _ in segment_files(entry.id, entry.segments)}
            for _, group in gone:
                with suppress(FileNotFoundError):
                    names.update(name for name, _ in segment_files(entry.id, groups.segments_in(entry.id, group)))
            files.remove(sorted(names - needed))
            files.remove(name for name, _ in gone)
    files.remove([root_name(number)])


def expired_roots(dates: Mapping[int, float], retention: float) -> list[int]:
    """List the roots, from the oldest on, whose successors are older than the retention.

    >>> expired_roots({1: 100.0, 2: 200.0, 3: 300.0, 4: 390.0}, retention=100)
    [1]

    A root was created before those that follow it, whatever the clock of the server said then.

    >>> expired_roots({1: 100.0, 2: 9e9, 3: 300.0, 4: 390.0}, retention=90)
    [1, 2]
    """
    numbers = sorted(dates)
    created = list(accumulate((dates[number] for number in reversed(numbers)), min))[::-1]
    followed = takewhile(
        lambda pair: dates[numbers[-1]] - pair[1] >= retention, zip(numbers, created[1:], strict=False)
    )
    return [number for number, _ in followed]


def _orphans(files: RemoteFiles, needed: AbstractSet[str], limit: float) -> list[str]:
    """List the files of segments that writers which were killed, or lost a race, have left before this date.

    A writer names a file within half of the retention after its upload. So a file that was uploaded a retention before
    the oldest root that stays was first named, if ever, before that one took its place.
    """
    return sorted(
        name
        for name, date in files.dates("maps").items()
        if date < limit and name not in needed and MAP_FILE.fullmatch(PurePosixPath(name).name)
    )


def _names(groups: PartitionGroups, manifest: Manifest) -> set[str]:
    """Return the names of all files that a root names.

    Names of files are never given twice, so a file that a root drops is never named again. A file of an expired root
    that the oldest root which stays does not name is therefore named by none of the others.
    """
    return {name for name, _ in groups.named_files(manifest)}
