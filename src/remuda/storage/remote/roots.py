"""Numbered roots: the committed states of a remote store, each an object that is created only if it is absent.

    roots/999999999987.root    the root with the number 12: a manifest, and the id of the commit that made it

A commit on top of root n creates root n + 1. Of several writers that try, one succeeds; the others rebase. Names count
down, so that a listing, which is in the order of names, begins with the newest root.
"""

from __future__ import annotations

import random
import re
import time
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from remuda.catalog import new_id
from remuda.errors import OutcomeUnknownError, StorageError
from remuda.storage.commit.commit_retry import RootTakenError
from remuda.storage.folder.manifest import Root, decode_manifest, encode_manifest
from remuda.storage.remote.object_store import can_create, first_page, open_object_store

if TYPE_CHECKING:
    from collections.abc import Iterable

    from obstore.store import ObjectStore

    from remuda.storage.remote.remote_files import RemoteFiles

FOLDER = "roots"
_LAST = 10**12 - 1
_NAME = re.compile(r"(\d{12})\.root")
_PUT_TRIES = 6
_PAUSE = 0.1
"""Seconds before the second try of a put whose outcome is unknown; it doubles."""


def root_name(number: int) -> str:
    """Return the name of a root within the store.

    >>> root_name(12)
    'roots/999999999987.root'
    """
    return f"{FOLDER}/{_LAST - number:012d}.root"


def root_number(name: str) -> int | None:
    """Return the number of a root by the name of its file; None if that is no root.

    >>> root_number("999999999987.root")
    12
    """
    found = _NAME.fullmatch(name)
    return None if found is None else _LAST - int(found[1])


def _numbered(names: Iterable[str]) -> dict[int, str]:
    """Return those of the names within a store that are roots, by their numbers."""
    found = ((root_number(PurePosixPath(name).name), name) for name in names)
    return {number: name for number, name in found if number is not None}


class Roots:
    """Finds, reads and creates the roots of one store."""

    def __init__(self, files: RemoteFiles, *, sole_writer: bool) -> None:
        self._files = files
        self._sole_writer = sole_writer
        self._opened: ObjectStore | None = None

    def newest(self) -> int | None:
        """Return the number of the newest root; None if there is none.

        An object store lists names in their order, a thousand to a page, of which a writer asks for the first alone.
        """
        page = None if self._opened is None else first_page(self._opened, FOLDER, self._files.name)
        return max(_numbered(self._files.dates(FOLDER) if page is None else page), default=None)

    def dates(self) -> dict[int, float]:
        """Return when each root was created, by its number, in seconds by the clock of the server."""
        dates = self._files.dates(FOLDER)
        return {number: dates[name] for number, name in _numbered(dates).items()}

    def read(self, number: int) -> tuple[bytes, Root] | None:
        """Return a root as it is stored, and decoded; None if there is none."""
        name = root_name(number)
        raw = self._files.read(name)
        if raw is None:
            return None
        return raw, decode_manifest(raw, f"{self._files.name}/{name}", Root)

    def refuse_unsafe(self) -> None:
        """Raise where commits of two writers could overwrite each other."""
        if self._sole_writer:
            return
        if not can_create(self._files.filesystem):
            raise StorageError(
                "this file system cannot create a file only if it is absent, so commits of two writers could overwrite "
                "each other: open the store with read_only=True, or with sole_writer=True if you make sure that no "
                "other process writes it",
                self._files.name,
                sqlstate="0A000",
            )
        self._store()

    def create(self, root: Root) -> None:
        """Commit a root: create it with its number. `RootTakenError` says that another writer was faster.

        A put whose outcome is unknown, such as one without an answer, is tried again until the number is taken, and
        what is there tells whose it is. It could still be applied later, so giving up is no way to know. A server that
        denies the first put has not applied it; after a put of unknown outcome a denial says nothing of that one.
        """
        raw = encode_manifest(root)
        if self._sole_writer:
            self._create_alone(root, raw)
            return
        from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError, UnauthenticatedError

        store, name, failure = self._store(), root_name(root.version), "no answer"
        for attempt in range(_PUT_TRIES):
            try:
                store.put(name, raw, mode="create", use_multipart=False)
            except AlreadyExistsError:
                if self._is_settled(root):
                    return
            except (BaseError, OSError) as error:
                if attempt == 0 and isinstance(error, PermissionDeniedError | UnauthenticatedError):
                    raise self._failed(error) from error
                failure = str(error).splitlines()[0]
            else:
                return
            time.sleep(random.uniform(0.5, 1) * _PAUSE * 2**attempt)
        raise self._outcome_unknown(failure)

    def refuse_reused(self, number: int) -> None:
        """Raise if a root that this process has created may have a number that was used and swept before.

        Roots are swept from the oldest on, and never the newest. So the number was free all the time if the root before
        is still there, or if this root is the newest. Otherwise other writers have either gone on from this root, or
        from an older one with its number.
        """
        try:
            if self.newest() == number or (number > 1 and self.read(number - 1) is not None):
                return
        except StorageError as error:
            raise self._outcome_unknown(str(error).splitlines()[0]) from error
        raise self._outcome_unknown("the process was suspended while other processes have written")

    def _outcome_unknown(self, reason: str) -> OutcomeUnknownError:
        return OutcomeUnknownError(
            f"it is unknown whether the statement is committed: {reason}; the maps can be read, and written again "
            "once the store is opened anew",
            self._files.name,
        )

    def _is_settled(self, root: Root) -> bool:
        """Tell whether the root with this number is this one; raise if it is another. False: nothing can be read."""
        try:
            found = self.read(root.version)
        except StorageError:
            return False
        if found is not None and found[1].commit != root.commit:
            raise RootTakenError("another process has written this store meanwhile", self._files.name)
        return found is not None

    def _create_alone(self, root: Root, raw: bytes) -> None:
        """Create a root where there is no conditional put. A second writer is noticed only if it has committed."""
        if (self.newest() or 0) >= root.version:
            raise RootTakenError("another process has written this store meanwhile", self._files.name)
        self._files.replace(root_name(root.version), raw)

    def refuse_unconditional(self) -> None:
        """Raise if the server ignores that an object shall be created only if it is absent, as some old ones do."""
        if self._sole_writer:
            return
        from obstore.exceptions import AlreadyExistsError, BaseError

        store, name = self._store(), f"{FOLDER}/{new_id()}.probe"
        try:
            store.put(name, b"", mode="create", use_multipart=False)
            store.put(name, b"", mode="create", use_multipart=False)
        except AlreadyExistsError:
            return
        except (BaseError, OSError) as error:
            raise self._failed(error) from error
        finally:
            self._files.remove([name])
        raise StorageError(
            "the server replaces objects that were to be created only if absent, so commits could be lost: "
            "open the store with sole_writer=True if you make sure that no other process writes it",
            self._files.name,
            sqlstate="0A000",
        )

    def _store(self) -> ObjectStore:
        if self._opened is None:
            self._opened = open_object_store(self._files.filesystem, self._files.path, self._files.name)
        return self._opened

    def _failed(self, error: Exception) -> StorageError:
        return StorageError(f"the store cannot be written: {str(error).splitlines()[0]}", self._files.name)
