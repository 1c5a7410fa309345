"""The threads on which heavy root fragments are advanced, while their readers wait for more than the next batch; and
others, on which statements run whose time may be over before they have written.
"""

from __future__ import annotations

import os
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from remuda.runtime.scheduler import closed_error

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future, ThreadPoolExecutor

Answer = TypeVar("Answer")

FEWEST_THREADS = 8
"""More than there are cores: a step that its reader has given up keeps its thread until it is done."""


class OffloadPool:
    """Few, however many queries there are: a step of a fragment never waits, so others soon have its thread.

    The threads are started as they are needed. They end with `close`, when nobody knows this object any more, or
    before the interpreter ends: a thread that it left behind inside a kernel would bring it down.
    """

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._closed = False
        self._lock = Lock()

    def start(self, step: Callable[[], Answer]) -> Future[Answer]:
        pool = self._pool or self._make_pool()
        try:
            return pool.submit(step)
        except RuntimeError as error:
            raise closed_error() from error

    def _make_pool(self) -> ThreadPoolExecutor:
        from concurrent.futures import ThreadPoolExecutor

        with self._lock:
            if self._closed:
                raise closed_error()
            if self._pool is None:
                threads = max(FEWEST_THREADS, 2 * (os.cpu_count() or 1))
                self._pool = ThreadPoolExecutor(threads, "remuda-aside")
            return self._pool

    def close(self) -> None:
        """Returns when no step is going on any more; those that have not begun never will."""
        with self._lock:
            self._closed = True
            pool = self._pool
        if pool is not None:
            pool.shutdown(cancel_futures=True)
