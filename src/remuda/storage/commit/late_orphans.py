"""The orphan files of a map whose partition groups are read when they are needed: found after the map was opened.

Which files the map needs is said by all its group files. So opening lists the names that are there, and a thread in the
background reads the group files and removes the files that they do not name. A file that comes after the listing is
none of them, and a delivery reclaims the names that it brings (`disposal`).
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from remuda.errors import StorageError
from remuda.storage.folder.partition_groups import group_files, segment_files
from remuda.storage.folder.store_files import MAP_FILE, list_names

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from remuda.storage.folder.definition_entries import MapEntry
    from remuda.storage.folder.disposal import Disposal
    from remuda.storage.folder.partition_groups import PartitionGroups


def late_orphans(
    folder: Path, entry: MapEntry, groups: PartitionGroups, disposal: Disposal, version: int
) -> Callable[[Callable[[], None]], None]:
    """Return the function that removes files which are in the folder of a map now and which its entry does not name.

    The function is given a pause. The entry is that of the manifest of this version. Where a group file cannot be read,
    as a later commit has replaced it, nothing is removed: the next opening looks again.
    """
    present = list_names(folder, levels=2)

    def remove(pause: Callable[[], None]) -> None:
        with suppress(StorageError, FileNotFoundError):
            needed = {PurePosixPath(name).name for name, _ in group_files(entry)}
            for group in entry.groups:
                segments = groups.read_unheld(entry.id, group)
                needed.update(PurePosixPath(name).name for name, _ in segment_files(entry.id, segments))
                pause()
            orphans = [name for name in present if name not in needed and MAP_FILE.fullmatch(name)]
            disposal.retire((folder / name for name in orphans), version, are_orphans=True)

    return remove
