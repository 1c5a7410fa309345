"""Statements whose time is over: whoever gave one leaves, and what it still does ends between two pieces of it."""

from __future__ import annotations

import time
from threading import Event
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from remuda.errors import ErrorCode, SqlError
from remuda.expr.going_on import go_on
from remuda.grid.load import gathered
from remuda.grid.within_time import within_time
from remuda.runtime.aside import AsideThreads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remuda.storage import Confirm


def test_a_load_whose_time_is_over_takes_no_further_batch() -> None:
    threads, taken, is_left, ended = AsideThreads(), [0], Event(), Event()
    piece = pa.record_batch({"a": [1]})

    def batches() -> Iterator[pa.RecordBatch]:
        while True:
            taken[0] += 1
            yield piece
            is_left.wait()

    def load(_: Confirm) -> None:
        try:
            list(gathered(batches(), piece.schema))
        finally:
            ended.set()

    with pytest.raises(SqlError) as error:
        within_time(threads, 0.01, time.monotonic(), load)
    assert error.value.code is ErrorCode.TIMEOUT
    is_left.set()
    assert ended.wait(30)
    threads.close()
    assert taken == [2]


def test_what_has_been_granted_is_carried_out() -> None:
    threads, end = AsideThreads(), time.monotonic() + 1.0

    def work(confirm: Confirm) -> str:
        confirm()
        while time.monotonic() < end + 0.05:
            Event().wait(0.01)
        go_on()
        return "done"

    assert within_time(threads, 1.0, end - 1.0, work) == "done"
    threads.close()
