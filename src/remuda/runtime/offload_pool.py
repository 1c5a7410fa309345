"""Threads that do what a reader, or the giver of a statement, must be able to leave."""

from __future__ import annotations

import os
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from remuda.errors import closed_error
from remuda.expr.cancellation import cancelled_by
from remuda.runtime.scheduler import GRID_CLOSED

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future, ThreadPoolExecutor

    from remuda.expr.cancellation import CancellationToken

Answer = TypeVar("Answer")

FEWEST_THREADS = 8
"""More than there are cores: a step that its reader has given up keeps its thread until it is done."""


class OffloadPool:
    """Few threads, however many queries there are: a step of a fragment never waits, so others soon have its thread.

    The threads are started as they are needed. They end with `close`, with the last reference to this object, or
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
            raise closed_error(GRID_CLOSED) from error

    def run(self, token: CancellationToken, work: Callable[[], Answer]) -> Answer:
        """Return what a statement that writes gives: done before its deadline, or not done at all.

        Without a deadline it runs in this thread. With one it runs on another, which this thread leaves at the
        deadline; the statement finds that out between its pieces, at the latest when it begins to commit.
        """
        if token.remaining is None:
            return work()

        def run_cancellable() -> Answer:
            with cancelled_by(token.check):
                return work()

        step = self.start(run_cancellable)
        try:
            return step.result(token.remaining)
        except BaseException as error:
            if step.done() or not token.cancel():
                return step.result()
            if isinstance(error, TimeoutError):
                raise token.timeout_error() from None
            raise

    def _make_pool(self) -> ThreadPoolExecutor:
        from concurrent.futures import ThreadPoolExecutor

        with self._lock:
            if self._closed:
                raise closed_error(GRID_CLOSED)
            if self._pool is None:
                threads = max(FEWEST_THREADS, 2 * (os.cpu_count() or 1))
                self._pool = ThreadPoolExecutor(threads, "remuda-offload")
            return self._pool

    def close(self) -> None:
        """Return when no step is going on any more; those that have not begun never will."""
        with self._lock:
            self._closed = True
            pool = self._pool
        if pool is not None:
            pool.shutdown(cancel_futures=True)
