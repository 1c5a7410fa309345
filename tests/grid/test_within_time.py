"""Statements whose time is over: whoever gave one leaves, and what it still does ends between two pieces of it."""

from __future__ import annotations

import time
from threading import Event
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pytest

from remuda.errors import ErrorCode, SqlError
from remuda.expr.cancellation import CancellationToken, check_cancelled
from remuda.grid.files.load_source import gathered
from remuda.runtime.offload_pool import OffloadPool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

Answer = TypeVar("Answer")

PATIENCE = 60.0
"""Seconds after which a test that hangs fails."""


class ThreadsThatBegin(OffloadPool):
    """Whoever starts work comes back when it has begun, as it says itself: the time that they have may be over then."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = Event()

    def start(self, step: Callable[[], Answer]) -> Future[Answer]:
        future = super().start(step)
        assert self.begun.wait(PATIENCE)
        return future


@pytest.fixture
def threads() -> Iterator[ThreadsThatBegin]:
    made = ThreadsThatBegin()
    yield made
    made.close()


def test_a_load_whose_time_is_over_takes_no_further_batch(threads: ThreadsThatBegin) -> None:
    taken, is_left, ended = [0], Event(), Event()
    piece = pa.record_batch({"a": [1]})

    def batches() -> Iterator[pa.RecordBatch]:
        while True:
            taken[0] += 1
            threads.begun.set()
            is_left.wait()
            yield piece

    def load() -> None:
        try:
            list(gathered(batches(), piece.schema))
        finally:
            ended.set()

    with pytest.raises(SqlError) as error:
        threads.run(CancellationToken(0.01), load)
    assert error.value.code is ErrorCode.TIMEOUT
    is_left.set()
    assert ended.wait(PATIENCE)
    assert taken == [1]


def test_what_has_been_granted_is_carried_out(threads: ThreadsThatBegin, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is put forward as soon as it is."""
    clock = time.monotonic
    token = CancellationToken(PATIENCE)

    def work() -> str:
        token.begin_commit()
        monkeypatch.setattr(time, "monotonic", lambda: clock() + 2 * PATIENCE)
        threads.begun.set()
        Event().wait(0.05)
        check_cancelled()
        return "done"

    assert threads.run(token, work) == "done"


def test_nothing_is_granted_when_the_time_is_over(threads: ThreadsThatBegin) -> None:
    """Though whoever waits has not noticed yet: they come to wait when the statement has come to its end."""
    committed: list[bool] = []
    token = CancellationToken(0.01, started=time.monotonic() - 1.0)

    def work() -> None:
        try:
            token.begin_commit()
            committed.append(True)
        finally:
            threads.begun.set()

    with pytest.raises(SqlError, match=r"longer than its timeout of 0\.01 s") as error:
        threads.run(token, work)
    assert error.value.code is ErrorCode.TIMEOUT
    assert committed == []
