"""Turns errors of the operating system into `StorageError`, where a call of the storage ends.

Code that knows more, such as whether a commit has happened, raises its own error before one gets here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from errno import EAGAIN, EDQUOT, EINTR, EIO, EMFILE, ENFILE, ENOMEM, ENOSPC, ESTALE, ETIMEDOUT
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from remuda.errors import StorageError

if TYPE_CHECKING:
    from pathlib import Path

Item = TypeVar("Item")
Method = TypeVar("Method", bound=Callable[..., Any])


_MAY_PASS = {EAGAIN, EDQUOT, EINTR, EIO, EMFILE, ENFILE, ENOMEM, ENOSPC, ESTALE, ETIMEDOUT}


def may_pass(error: StorageError) -> bool:
    """Tell whether the system could not read a file just now, which says nothing of the file's bytes."""
    return isinstance(error.__cause__, OSError) and error.__cause__.errno in _MAY_PASS


@contextmanager
def disk_errors(message: str, path: Path | None) -> Iterator[None]:
    """Raises `StorageError` with this message, the reason and the file where the system reports an error."""
    try:
        yield
    except OSError as error:
        raise storage_error(message, error, path) from error


def storage_error(message: str, error: OSError, path: Path | str | None) -> StorageError:
    """Make the error for one of the operating system.

    The file that the error names goes before `path`.
    """
    reason = error.strerror or (os.strerror(error.errno) if error.errno else str(error))
    return StorageError(f"{message}: {reason}", error.filename or path)


class _SourceError(Exception):
    """Carries an error of the caller's own files past the handlers for files of the store."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


def from_source(items: Iterable[Item]) -> Iterator[Item]:
    """Yield what the caller gives: an error that it meets there reaches the caller as it is."""
    given = iter(items)
    while True:
        try:
            item = next(given)
        except StopIteration:
            return
        except OSError as error:
            raise _SourceError(error) from error
        yield item
        del item  # which may be large, and is not needed while the next one is made


def reports_disk_errors(method: Method) -> Method:
    """Turn errors of the operating system in a method into `StorageError`.

    For methods of whatever has a `path`.
    """

    @wraps(method)
    def guarded(self: Any, *given: Any, **named: Any) -> Any:
        try:
            return method(self, *given, **named)
        except _SourceError as error:
            raise error.error from None
        except OSError as error:
            raise storage_error("a file of the store cannot be used", error, self.path) from error

    return cast("Method", guarded)
