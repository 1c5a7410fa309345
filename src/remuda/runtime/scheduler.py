"""A few threads that advance the fragments of many queries.

A fragment runs until it is done, has used up its time slice, or has to wait. A waiting fragment holds no thread: the
signal it waits for (a batch has arrived, there is room again, the query was cancelled) puts it back into the queue.
"""

from __future__ import annotations

import os
import time
import weakref
from queue import SimpleQueue
from threading import Lock, RLock, Thread
from typing import TYPE_CHECKING

from remuda.errors import closed_error
from remuda.exec import Exec, IterationResult
from remuda.expr.cancellation import cancelled_by
from remuda.expr.evaluate.text_sizes import memory_limited

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.runtime.execution import QueryState

GRID_CLOSED = "the grid is closed"

TIME_SLICE = 0.005
"""Seconds that a fragment may run before the next one in the queue gets the thread."""


class FragmentTask:
    """A fragment that the scheduler advances. `signal` may be called from any thread, at any time."""

    def __init__(self, operator: Exec, state: QueryState, setup: Callable[[], None] | None = None) -> None:
        """Prepare a task; `setup` is called on the thread that advances the fragment first."""
        self._operator = operator
        self._state = state
        self._setup = setup
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
            check = self._state.check
            with cancelled_by(check), memory_limited(self._state.memory_limit):
                while True:
                    check()
                    result = self._operator.advance()
                    if result is not IterationResult.FETCHED or time.monotonic() >= end:
                        return result
        except BaseException as error:  # noqa: BLE001  (whatever it is, the reader of the result must learn of it)
            self._state.fail(error)
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

    def abandon(self) -> None:
        """Fail the fragment, which no thread advances any more: the reader of the query must not wait for it."""
        self._state.fail(closed_error(GRID_CLOSED))


class Scheduler:
    """Threads start with the first fragment and end with `close`, or with the last reference to the scheduler."""

    def __init__(self, parallelism: int | None = None) -> None:
        self.parallelism = parallelism or os.cpu_count() or 1
        self._queue = _ReadyQueue()
        self._threads: list[Thread] = []
        self._lock = Lock()
        weakref.finalize(self, self._queue.close)

    def submit(self, task: FragmentTask) -> None:
        queue = self._queue
        task.resubmit = queue.put
        with self._lock:
            if queue.closed:
                raise closed_error(GRID_CLOSED)
            while len(self._threads) < self.parallelism:
                name = f"remuda-{len(self._threads)}"
                thread = Thread(target=_work, args=(queue,), name=name, daemon=True)
                self._threads.append(thread)
                thread.start()
        queue.put(task)

    def close(self) -> None:
        """Ends the threads. Fragments that are not done fail, and so do their queries."""
        with self._lock:
            self._queue.close()
            threads, self._threads = self._threads, []
        for thread in threads:
            thread.join()


class _ReadyQueue:
    """The fragments that can go on. Threads and fragments know it, not the scheduler, so as to keep none alive."""

    def __init__(self) -> None:
        self._tasks: SimpleQueue[FragmentTask | None] = SimpleQueue()
        # The garbage collector may close the queue at any moment, in the middle of `put` as well.
        self._lock = RLock()
        self.closed = False

    def put(self, task: FragmentTask) -> None:
        with self._lock:
            if not self.closed:
                self._tasks.put(task)
                return
        task.abandon()

    def get(self) -> FragmentTask | None:
        """Return the next fragment; None once the queue is closed and empty."""
        task = self._tasks.get()
        if task is None:
            self._tasks.put(None)  # for the next thread
        return task

    def close(self) -> None:
        with self._lock:
            if not self.closed:
                self.closed = True
                self._tasks.put(None)


def _work(queue: _ReadyQueue) -> None:
    while _run_next(queue):
        pass


def _run_next(queue: _ReadyQueue) -> bool:
    """False at the end. A function of its own, so that an idle thread keeps no fragment, and so no grid, alive."""
    task = queue.get()
    if task is None:
        return False
    result = task.run()
    # A fragment that waits but has been signalled meanwhile goes on, like one whose time slice is over.
    if result is IterationResult.FETCHED or (result is IterationResult.WAIT and not task.park()):
        queue.put(task)
    return True
