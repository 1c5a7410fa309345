"""Commits again on top of the newest root of a remote store, where another writer was faster."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, TypeVar

from remuda.errors import SqlError, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.storage.state.store_state import StoreState

COMMIT_TRIES = 200
"""Of n writers that commit without pause each wins every n-th time: 16 writers lose 50 in a row once in 25 commits."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 1.0
"""Seconds; a pause is a random part of a limit that doubles with each try, so that writers do not meet again."""

Answer = TypeVar("Answer")


class RootTakenError(StorageError):
    """Another writer has committed the root that this commit wanted to create: rebase and commit again."""

    _sqlstate = "40001"


class FileGoneError(StorageError):
    """A remote file is gone that the state which is read names: that state is older than the retention."""

    _sqlstate = "40001"


class CommitRetry:
    """Runs operations that end with a commit, each again after a rebase if its commit finds the root taken.

    An operation leaves the state as it was if its commit fails, and reads all that it depends on anew each time: it
    compares keys, finds the map, builds the index. So what it does on top of another writer's root is what it would
    have done if it had begun after that root.
    """

    __slots__ = ("_rebase", "_state")

    def __init__(self, state: StoreState, rebase: Callable[[], None]) -> None:
        self._state = state
        self._rebase = rebase

    def run(self, operation: Callable[[], Answer]) -> Answer:
        """Run an operation until its commit succeeds, or it fails on the newest root.

        A row or a map that it objects to may be gone there.
        """
        folder = self._state.folder
        if folder is None or folder.remote is None:
            return operation()
        for attempt in range(COMMIT_TRIES):
            try:
                return operation()
            except RootTakenError:
                time.sleep(random.uniform(0, min(_FIRST_PAUSE * 2**attempt, _LONGEST_PAUSE)))
            except (SqlError, FileGoneError):
                if folder.remote.is_newest():
                    raise
            self._rebase()
        message = f"other processes have committed first {COMMIT_TRIES} times in a row: run it again"
        raise StorageError(message, folder.remote.name, sqlstate="40001")
