"""The versions of a remote store: the roots that its retention keeps.

Each commit is a root of its own there, so nothing is kept for versions alone.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from errno import ENOENT
from typing import TYPE_CHECKING

from remuda.storage.folder.kept_versions import KeptVersion, version_number, version_of
from remuda.storage.remote.remote_files import TRANSFERS
from remuda.storage.remote.roots import root_name

if TYPE_CHECKING:
    from remuda.storage.folder.manifest import Manifest
    from remuda.storage.remote.roots import Roots


class RemoteVersions:
    """Finds and reads the versions of one remote store."""

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._read: dict[int, Manifest] = {}
        """Roots that were listed: they never change."""

    def all(self) -> list[tuple[KeptVersion, Manifest]]:
        """Return all versions with their roots, the newest last. One that ends at this moment is left out."""
        numbers = sorted(self._roots.dates())
        self._read = {number: self._read[number] for number in numbers if number in self._read}
        with ThreadPoolExecutor(TRANSFERS) as pool:
            roots = [each for each in pool.map(self._root, numbers) if each is not None]
        first: dict[int, Manifest] = {}
        for root in roots:
            first.setdefault(version_number(root), root)
        return [(version_of(root), root) for root in first.values()]

    def newest(self) -> int:
        """Return the number of the newest version."""
        found = self._roots.newest()
        root = None if found is None else self._root(found)
        if root is None:
            raise FileNotFoundError(ENOENT, "missing", root_name(found or 1))
        return version_number(root)

    def read(self, number: int) -> Manifest:
        """Return the root of a version. `FileNotFoundError` says that it is not kept."""
        found = self._roots.read(number)
        if found is not None and version_number(found[1]) == number:
            return found[1]
        for version, manifest in self.all():  # A later root can have the state of one that is gone.
            if version.number == number:
                return manifest
        raise FileNotFoundError(ENOENT, "missing", root_name(number))

    def _root(self, number: int) -> Manifest | None:
        known = self._read.get(number)
        if known is None:
            found = self._roots.read(number)
            if found is None:
                return None
            known = self._read[number] = found[1]
        return known
