"""A few threads that advance the fragments of many queries.

A fragment runs until it is done, has used up its time slice, or has to wait. A waiting fragment holds no thread: the
signal it waits for (a batch has arrived, there is room again, the query was cancelled) puts it back into the queue.
"""

from __future__ import annotations

import os
import time
from queue import SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING

from remuda.exec import Exec, IterationResult

if TYPE_CHECKING:
    from collections.abc import Callable

TIME_SLICE = 0.005
"""Seconds that a fragment may run before the next one in the queue gets the thread."""


class FragmentTask:
    """A fragment that the scheduler advances. `signal` may be called from any thread, at any time."""

    def __init__(
        self,
        operator: Exec,
        setup: Callable[[], None],
        check: Callable[[], None],
        fail: Callable[[BaseException], None],
    ) -> None:
        self._operator = operator
        self._setup: Callable[[], None] | None = setup
        self._check = check
        self._fail = fail
        self._lock = Lock()
        self._parked = False
        self._signalled = False
        self.resubmit: Callable[[FragmentTask], None] | None = None

    def run(self) -> IterationResult:
        """Advances for one time slice. An error ends the fragment and is the query's."""
        try:
            if self._setup is not None:
                self._setup()
                self._setup = None
            end = time.monotonic() + TIME_SLICE
            while True:
                self._check()
                result = self._operator.advance()
                if result is not IterationResult.FETCHED or time.monotonic() >= end:
                    return result
        except BaseException as error:  # noqa: BLE001  (whatever it is, the reader of the result must learn of it)
            self._fail(error)
            return IterationResult.FETCHED_DONE

    def signal(self) -> None:
        with self._lock:
            if not self._parked:
                self._signalled = True
                return
            self._parked = False
        if self.resubmit is not None:
            self.resubmit(self)

    def park(self) -> bool:
        """Gives up the thread until a signal; False where one has come in the meantime."""
        with self._lock:
            if self._signalled:
                self._signalled = False
                return False
            self._parked = True
            return True


class Scheduler:
    """Threads are started with the first fragment and end with `close`."""

    def __init__(self, parallelism: int | None = None) -> None:
        self._parallelism = parallelism or os.cpu_count() or 1
        self._queue: SimpleQueue[FragmentTask | None] = SimpleQueue()
        self._threads: list[Thread] = []
        self._lock = Lock()
        self._closed = False

    def submit(self, task: FragmentTask) -> None:
        task.resubmit = self._queue.put
        with self._lock:
            if self._closed:
                raise RuntimeError("the scheduler is closed")
            while len(self._threads) < self._parallelism:
                thread = Thread(target=_work, args=(self._queue,), name=f"remuda-{len(self._threads)}", daemon=True)
                self._threads.append(thread)
                thread.start()
        self._queue.put(task)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            threads, self._threads = self._threads, []
        for _ in threads:
            self._queue.put(None)
        for thread in threads:
            thread.join()


def _work(queue: SimpleQueue[FragmentTask | None]) -> None:
    while True:
        task = queue.get()
        if task is None:
            return
        result = task.run()
        # A fragment that waits but has been signalled meanwhile goes on, like one whose time slice is over.
        if result is IterationResult.FETCHED or (result is IterationResult.WAIT and not task.park()):
            queue.put(task)
