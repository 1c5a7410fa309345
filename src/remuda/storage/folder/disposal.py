"""The removal of files that the committed state no longer names: at once, or when the last reader has left them."""

from __future__ import annotations

import logging
from collections import deque
from contextlib import nullcontext, suppress
from threading import RLock
from typing import TYPE_CHECKING

from remuda.dataclass import dataclass
from remuda.storage.folder.execution_pin import oldest_version_pinned
from remuda.storage.folder.reader_lease import oldest_version_read
from remuda.storage.folder.store_files import remove_file

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from remuda.storage.folder.kept_versions import KeptVersions

_logger = logging.getLogger("remuda.storage")


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A file, since which version no manifest names it, and whether versions that are kept need it until then.

    An orphan was named by none, and may still be: it may be of a delivery that is taken over again.
    """

    since: int
    path: Path
    of_versions: bool
    is_orphan: bool


class Disposal:
    """Removes the obsolete files of one folder. `version` is that of the manifest committed last."""

    __slots__ = ("_reclaimed", "_removing", "_stopped", "_store", "_versions", "_waiting", "version")

    def __init__(self, store: Path, versions: KeptVersions) -> None:
        self._store = store
        self._versions = versions
        self._waiting: deque[_Waiting] = deque()
        self._reclaimed: set[Path] = set()
        self._removing = RLock()
        """Held while an orphan is removed, or reclaimed: also by a finaliser of the thread that has it."""
        self.version = 0
        self._stopped = False

    def stop(self) -> None:
        """Stop removing files.

        The writer that opens the folder next finds what no manifest names.
        """
        self._stopped = True

    def go_on(self) -> None:
        """Remove files again."""
        self._stopped = False

    def retire(
        self,
        paths: Iterable[Path],
        version: int | None = None,
        *,
        of_versions: bool = True,
        are_orphans: bool = False,
    ) -> None:
        """Removes files that no manifest from this version on (default: the last one) names, or sees to it later.

        Versions that are kept need them until then, but for those of the log (`of_versions` is false), which are for
        readers alone. Orphans (`are_orphans`) stay where they are reclaimed meanwhile. A finaliser may call this in any
        thread at any moment, so there is no lock here: the queue needs none.
        """
        since = self.version if version is None else version
        with suppress(OSError):  # A folder that cannot be listed: its files are found at the next opening.
            self._waiting.extend(_Waiting(since, path, of_versions, are_orphans) for path in paths)
        self.sweep()

    def reclaim(self, paths: Iterable[Path]) -> None:
        """Keep files that may be waiting as orphans: a delivery that is taken over brings them under these names."""
        with self._removing:
            self._reclaimed.update(paths)

    def waiting_bytes(self, version: int) -> int:
        """Return how much room the files take that were needed by this version, and are not by the newest."""
        total = 0
        for each in list(self._waiting):
            if each.of_versions and each.since > version:
                with suppress(OSError):
                    total += each.path.lstat().st_size
        return total

    def sweep(self) -> None:
        """Removes what was waiting for readers that are gone. What cannot be removed is tried again the next time.

        It never fails: a statement is not undone because a file that it does not need is still there.
        """
        if not self._waiting or self._stopped:
            return
        try:
            # Leases first: a task gives up its lease when its pin is there, so that one of the two is found.
            readers = (oldest_version_read(self._store), oldest_version_pinned(self._store))
            oldest_read, oldest = _least(readers), _least((*readers, self._versions.oldest))
        except OSError as error:
            _logger.warning("the leases of readers cannot be read: %s", error)
            return
        for _ in range(len(self._waiting)):
            try:
                each = self._waiting.popleft()
            except IndexError:  # Another thread sweeps too.
                return
            needed = oldest if each.of_versions else oldest_read
            if not ((needed is None or needed >= each.since) and self._remove(each)):
                self._waiting.append(each)

    def _remove(self, waiting: _Waiting) -> bool:
        """Remove a file, unless it is an orphan that was reclaimed; return False where that has to be tried again."""
        path = waiting.path
        try:
            with self._removing if waiting.is_orphan else nullcontext():
                if not (waiting.is_orphan and path in self._reclaimed):
                    remove_file(path, levels=len(path.relative_to(self._store).parts) - 1)
        except OSError as error:
            _logger.warning("a file that is not needed any more cannot be removed: %s", error)
            return False
        return True


def _least(versions: Iterable[int | None]) -> int | None:
    return min((version for version in versions if version is not None), default=None)
