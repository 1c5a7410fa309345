"""Statements and results in coroutines: the work is done on other threads, and the event loop waits for none of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from concurrent.futures import Future

    from remuda.expr.cancellation import CancellationToken
    from remuda.grid.result import Result
    from remuda.grid.rows import Row


class AsyncStatement:
    """One statement on another thread. Cancelling the task that awaits it cancels the statement."""

    def __init__(self, token: CancellationToken, execute: Callable[[], Result]) -> None:
        self._token = token
        self._execute = execute
        self._result: Result | None = None

    def run(self) -> Result:
        """Run the statement and compute all of its rows, on a thread that may wait for them."""
        self._result = result = self._execute()
        if self._token.cancelled:
            result.close()
        return result.gather()

    async def finish(self, work: Future[Result]) -> Result:
        """Wait for the result. After a cancel, return to the caller when the statement has come to its end."""
        waiting = asyncio.wrap_future(work)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            if not work.cancel():  # it has begun
                self._cancel()
                await asyncio.wait([waiting])
                if not waiting.cancelled():
                    waiting.exception()  # seen: the cancellation is what the caller is told
            raise

    def _cancel(self) -> None:
        """Stop the work. A statement that has begun to commit is not stopped: it commits."""
        if self._token.cancel() and self._result is not None:
            self._result.close()


async def rows_async(result: Result) -> AsyncIterator[Row]:
    """Yield the rows of a result; each part of them is made on another thread."""
    try:
        while rows := await asyncio.to_thread(result.fetchmany):
            for row in rows:
                yield row
    except asyncio.CancelledError:
        result.close()
        raise
