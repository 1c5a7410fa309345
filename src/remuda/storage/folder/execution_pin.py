"""Pins: how the tasks of one Spark execution agree on the state of the folder that they read.

    pins/<name>/MANIFEST    the manifest of that state, a hard link to the one that was in force
    pins/<name>/state       its version and the last record of the write-ahead log; locked by processes that use it
    pins/<id>.fresh/        a pin while it is being made
    pins/<name>.ended       an empty folder in the place of a pin that was given up

The name stands for one execution of one application. The first task that finds no pin of that name makes one, by
renaming a folder, which fails where another task was faster; all tasks then read the state that the pin describes.

A pin keeps the files of its version. It ends when no task has it locked *and* none has used it for `KEPT_SECONDS`. The
lock tells, without a clock, that a task is reading, however long it takes and however it ends; but between two stages
of an execution there may be no task, and no process but Spark's driver knows whether there will be more. A pin that has
ended leaves an empty folder, so that a task which comes later fails rather than reads another state than the tasks
before it.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import time
import weakref
from contextlib import suppress
from errno import EACCES, EEXIST, ENOSYS, ENOTEMPTY, ENOTSUP, EOPNOTSUPP, EPERM, EROFS
from shutil import rmtree
from typing import TYPE_CHECKING

from remuda.catalog import new_id
from remuda.errors import StorageError
from remuda.storage.folder.manifest import NAME as MANIFEST
from remuda.storage.folder.manifest import decode_manifest
from remuda.storage.folder.reader_lease import UNREADABLE_SECONDS
from remuda.storage.folder.store_files import create_file, make_folder, open_file, open_folder, read_file
from remuda.storage.wal.log_file import read_log

if TYPE_CHECKING:
    from pathlib import Path

    from remuda.storage.folder.manifest import Manifest

FOLDER = "pins"
LEVELS = 2
KEPT_SECONDS = 3600.0
"""How long a pin stays after its last use, though no process has it locked."""
ENDED_SECONDS = 7 * 24 * 3600.0
"""How long it is remembered that a pin has ended: longer than an execution waits for its next task."""
_OVERTAKEN_TRIES = 100
"""How often a manifest is linked that the writer has replaced before the log was read."""
_NEVER_WRITABLE = frozenset({EACCES, EPERM, EROFS, ENOSYS, ENOTSUP, EOPNOTSUPP})
"""What every task meets in a folder that may not be written, or on a file system without hard links."""
_STATE = "state"
_ENDED, _FRESH = ".ended", ".fresh"
_PIN = re.compile(r"[0-9a-f]{32}")
_LEFT = re.compile(r"[0-9a-f]{32}\.ended|[0-9a-f]{16}\.fresh")
_logger = logging.getLogger("remuda.storage")


class ExecutionPin:
    """A state of the folder: `manifest`, and `last`, the last record of the log. Locked until it is unlocked."""

    __slots__ = ("__weakref__", "_descriptor", "_store", "last", "manifest", "name")

    def __init__(self, store: Path, name: str, descriptor: int, manifest: Manifest, last: int) -> None:
        self.name = name
        self.manifest = manifest
        self.last = last
        self._store = store
        self._descriptor = descriptor
        weakref.finalize(self, os.close, descriptor).atexit = False

    def lock(self) -> None:
        """Keep the files for another task of the execution. Raises where the pin has ended since it was unlocked."""
        _lock(self._descriptor)
        try:
            present = (self._store / FOLDER / self.name / _STATE).lstat()
        except FileNotFoundError:
            present = None
        if present is None or present.st_ino != os.fstat(self._descriptor).st_ino:
            raise _ended(self._store)

    def unlock(self) -> None:
        """Let the pin end by its age: the task that has read the state is over."""
        with suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)


def pin_execution(store: Path, name: str) -> ExecutionPin | None:
    """Return the pin of an execution, made now if this is its first task; None where no task can write the folder.

    The caller holds a lease on everything, so that the state which is pinned cannot go before its pin is there.
    """
    assert _PIN.fullmatch(name), "a pin has the name of an execution"
    try:
        found = _find(store, name)
        if found is None:
            _publish(store, name)
            found = _find(store, name)
    except OSError as error:
        # An error that the next task may not meet: it would read another state than this one.
        if error.errno not in _NEVER_WRITABLE:
            raise
        return None
    return found


def _find(store: Path, name: str) -> ExecutionPin | None:
    path = store / FOLDER / name
    try:
        descriptor = open_file(path / _STATE, os.O_RDWR, levels=LEVELS)
    except FileNotFoundError:
        if path.with_suffix(_ENDED).exists():
            raise _ended(store) from None
        return None
    try:
        _lock(descriptor)
        _, last = _numbers(os.pread(descriptor, 64, 0))
        manifest: Manifest = decode_manifest(read_file(path / MANIFEST, levels=LEVELS), path / MANIFEST)
    except FileNotFoundError:  # it ended before it was locked
        os.close(descriptor)
        return _find(store, name)
    except BaseException:
        os.close(descriptor)
        raise
    return ExecutionPin(store, name, descriptor, manifest, last)


def _lock(descriptor: int) -> None:
    with suppress(OSError):  # a file system without locks: then the pin is kept by its age alone
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    os.utime(descriptor)


def _ended(store: Path) -> StorageError:
    return given_up(store, KEPT_SECONDS, "without a task that reads it")


def given_up(store: Path | str, seconds: float, since: str = "that other commits followed") -> StorageError:
    """Report a task that comes later than the version of its execution was kept."""
    return StorageError(
        f"the version that this query began to read was given up after {seconds / 60:.0f} minutes {since}: run the "
        "query again",
        store,
        sqlstate="40001",
    )


def _publish(store: Path, name: str) -> None:
    """Make a pin of the present state. Nothing happens where there is one meanwhile."""
    fresh = store / FOLDER / (new_id() + _FRESH)
    make_folder(fresh)
    try:
        manifest, last = _link_state(store, fresh / MANIFEST)
        with create_file(fresh / _STATE, levels=LEVELS) as file:
            file.write(f"{manifest.version} {last}".encode())
        try:
            fresh.rename(fresh.with_name(name))
        except OSError as error:  # another task was faster: a folder that has files is not replaced
            if error.errno not in (ENOTEMPTY, EEXIST):
                raise
    finally:
        rmtree(fresh, ignore_errors=True)


def _link_state(store: Path, link: Path) -> tuple[Manifest, int]:
    """Link the manifest in force, and return it and the last record that the log has while it is in force.

    The log is read behind the manifest. If the writer replaced that meanwhile, by a load, the log may have a statement
    behind the load, and the manifest not the load.
    """
    for _ in range(_OVERTAKEN_TRIES):
        link.unlink(missing_ok=True)
        os.link(store / MANIFEST, link, follow_symlinks=False)
        manifest: Manifest = decode_manifest(read_file(link, levels=LEVELS), store / MANIFEST)
        files = read_log(store / "wal", manifest.first_log, manifest.safe_log)
        last = max([manifest.sequence, *(file.last_sequence for file in files)])
        if (store / MANIFEST).lstat().st_ino == link.lstat().st_ino:
            return manifest, last
    raise StorageError(
        "another process commits too often for this one to read the store: try again", store, sqlstate="40001"
    )


def oldest_version_pinned(store: Path) -> int | None:
    """Return the least version that a pin keeps, None where there is no pin. Ends pins that are out of use."""
    versions: list[int] = []
    for name in _folders(store / FOLDER):
        path = store / FOLDER / name
        with suppress(FileNotFoundError):
            if _PIN.fullmatch(name):
                versions += _version_kept(path)
            elif _LEFT.fullmatch(name) and _age(path) > ENDED_SECONDS:
                rmtree(path, ignore_errors=True)
    return min(versions, default=None)


def _folders(folder: Path) -> list[str]:
    try:
        with open_folder(folder, 1) as descriptor, os.scandir(descriptor) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except (FileNotFoundError, StorageError):
        return []


def _version_kept(path: Path) -> list[int]:
    """Return the version of a pin, or None for one that has ended.

    A pin that the writer cannot read counts until it is a day old.
    """
    try:
        descriptor = open_file(path / _STATE, os.O_RDONLY, levels=LEVELS)
    except FileNotFoundError:
        return []
    except (OSError, StorageError) as error:
        _logger.warning("the pin of a Spark execution cannot be read: %s", error)
        return [0] if _age(path) < UNREADABLE_SECONDS else []
    try:
        version, _ = _numbers(os.pread(descriptor, 64, 0))
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if isinstance(error, BlockingIOError):
                return [version]
        if time.time() - os.fstat(descriptor).st_mtime < KEPT_SECONDS:
            return [version]
        _end(path)
        return []
    finally:
        os.close(descriptor)


def _end(path: Path) -> None:
    """End a pin: its folder stays, without its files and under a name that says so."""
    ended = path.with_suffix(_ENDED)
    try:
        path.rename(ended)
        for name in (_STATE, MANIFEST):
            (ended / name).unlink(missing_ok=True)
    except OSError as error:
        _logger.warning("the pin of a Spark execution cannot be removed: %s", error)


def _numbers(content: bytes) -> tuple[int, int]:
    """Version and last record; the version 0, which keeps everything, where it is not written as it should be."""
    try:
        version, last = content.split()
        return int(version), int(last)
    except ValueError:
        return 0, 0


def _age(path: Path) -> float:
    return time.time() - path.lstat().st_mtime
