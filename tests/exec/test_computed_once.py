"""Attributes that are computed when they are first asked for."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from remuda.exec.selection import computed_once

HANGS = 60
"""Seconds after which nobody will come any more."""


class Meeting:
    """Whoever computes waits until another thread computes for another object."""

    both = threading.Barrier(2)

    @computed_once
    def number(self) -> int:
        return self.both.wait(HANGS)


def test_threads_compute_for_different_objects_at_once() -> None:
    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(lambda each: each.number, [Meeting(), Meeting()])) == [0, 1]


def test_it_is_computed_once() -> None:
    class Counted:
        calls = 0

        @computed_once
        def value(self) -> object:
            self.calls += 1
            return object()

    one, other = Counted(), Counted()
    assert one.value is one.value
    assert one.value is not other.value
    assert one.calls == other.calls == 1
