"""The interpreter's search for cyclic garbage, while a great many rows are made.

It looks through young objects often and through all of them whenever those have grown by a quarter. A row is a tuple
with a class of its own, which it cannot forget as it does plain tuples of plain values: a result of a million rows is
walked through again and again while it grows, half a second at a time, and all threads wait. Rows hold no cycles. So
while they are made only the young objects are looked through, and all of them when it is done.
"""

from __future__ import annotations

import gc
import os
from threading import Lock
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

NEVER = 2**31 - 1
"""How many times the middle generation is to be collected before the whole is."""


class FullCollectionsPutOff:
    """Within it there are no full collections, in any thread. Several may be inside; the last to leave restores.

    A program that has switched the collector off finds it off. One that gives it other thresholds meanwhile keeps
    those: they are restored only if they are still the ones that were set here.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._before = self._during = (0, 0, 0)

    def __enter__(self) -> Self:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._before = gc.get_threshold()
                self._during = (*self._before[:2], NEVER)
                gc.set_threshold(*self._during)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._inside = max(self._inside - 1, 0)
            if not self._inside and gc.get_threshold() == self._during:
                gc.set_threshold(*self._before)

    def restore_in_child(self) -> None:
        """Restore the state in a forked child, in which no other thread holds the lock."""
        self._lock = Lock()
        if self._inside and gc.get_threshold() == self._during:
            gc.set_threshold(*self._before)
        self._inside = 0


full_collections_put_off = FullCollectionsPutOff()
"""The one of the process, as the collector is."""

os.register_at_fork(after_in_child=full_collections_put_off.restore_in_child)
