"""Removes old roots and the files that no root names any more.

A root is kept for the retention after the next one took its place, with all files that it names: readers and Spark
tasks that planned on it find them. Ages are differences between dates that the server gave, so the clocks of writers
do not matter.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise, takewhile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from remuda.errors import StorageError
from remuda.storage.folder.manifest import named_files
from remuda.storage.folder.store_files import SEGMENT_FILE
from remuda.storage.remote.roots import root_name

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from remuda.storage.folder.manifest import Manifest
    from remuda.storage.remote.remote_files import RemoteFiles
    from remuda.storage.remote.roots import Roots

RETENTION_SECONDS = 3600.0
SWEEP_COMMITS = 16
"""Commits between two sweeps of old roots: each lists all roots."""
ORPHAN_COMMITS = 256
"""Commits between two sweeps of orphan files: each lists all files of the store."""
MOST_ROOTS = 256
"""Roots that one sweep removes, so that the commit which sweeps does not wait for long."""


def sweep(files: RemoteFiles, roots: Roots, number: int, retention: float) -> None:
    """Remove what no reader needs any more, after the commit of this root, if it is its turn.

    What cannot be read or removed now is left to a later sweep: the commit has succeeded.
    """
    if number % SWEEP_COMMITS:
        return
    with suppress(StorageError):
        dates = roots.dates()
        expired = expired_roots(dates, retention)
        needed = _needed(roots, dates.keys() - set(expired))
        if needed is None:
            return
        for each in expired[:MOST_ROOTS]:
            files.remove(sorted((_named(roots, each) or set()) - needed))
            files.remove([root_name(each)])
        if number % ORPHAN_COMMITS == 0:
            files.remove(_orphans(files, needed, dates[max(dates)] - 2 * retention))


def expired_roots(dates: Mapping[int, float], retention: float) -> list[int]:
    """List the roots, from the oldest on, whose successors are older than the retention.

    >>> expired_roots({1: 100.0, 2: 200.0, 3: 300.0, 4: 390.0}, retention=100)
    [1]
    """
    numbers = sorted(dates)
    pairs = takewhile(lambda pair: dates[numbers[-1]] - dates[pair[1]] >= retention, pairwise(numbers))
    return [number for number, _ in pairs]


def _needed(roots: Roots, kept: AbstractSet[int]) -> set[str] | None:
    """Return the files that the roots which stay name; None if that is not known.

    Names of files are never given twice, so a file that a root drops is never named again. A file of an expired root
    that the oldest root which stays does not name is therefore named by none of the others.
    """
    if not kept:
        return None
    oldest, newest = _named(roots, min(kept)), _named(roots, max(kept))
    return None if oldest is None or newest is None else oldest | newest


def _orphans(files: RemoteFiles, needed: AbstractSet[str], limit: float) -> list[str]:
    """List the files of segments that writers which were killed, or lost a race, have left before this date.

    A writer names a file within half of the retention after its upload. So a file that is older than twice the
    retention was first named, if ever, before the oldest root that stays took its place.
    """
    return sorted(
        name
        for name, date in files.dates("maps").items()
        if date < limit and name not in needed and SEGMENT_FILE.fullmatch(PurePosixPath(name).name)
    )


def _named(roots: Roots, number: int) -> set[str] | None:
    found = roots.read(number)
    return None if found is None else file_names(found[1])


def file_names(manifest: Manifest) -> set[str]:
    """Return the names of all files of segments that a manifest names."""
    return {name for name, _ in named_files(manifest)}
