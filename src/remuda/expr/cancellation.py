"""Whether the work that this thread does shall go on: asked between the pieces of what takes long.

A kernel knows nothing of the query that it works for, and a query that was cancelled has nobody left to tell it. So
whoever advances a query's operators on a thread says what is to be asked there; whatever takes long asks. Without it
thousands of calls of a function, one for each row, would be made for a reader who has left.
"""

from __future__ import annotations

from contextlib import contextmanager
from threading import local
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class CancelledError(Exception):
    """Raised in the middle of a kernel, which must not take it for an error of its own: TRY_CAST would make it NULL."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(str(reason))
        self.reason = reason


class _Asked(local):
    check: Callable[[], None] | None = None


_asked = _Asked()


@contextmanager
def asking(check: Callable[[], None] | None) -> Iterator[None]:
    """Within it `check_cancelled` on this thread asks `check`, which raises to end the work; None asks nothing.

    What it raised is what comes out.
    """
    before, _asked.check = _asked.check, check
    try:
        yield
    except CancelledError as left:
        raise left.reason from None
    finally:
        _asked.check = before


def check_cancelled() -> None:
    """Leaves what this thread works for, where it shall not go on."""
    if _asked.check is not None:
        try:
            _asked.check()
        except Exception as error:
            raise CancelledError(error) from error
