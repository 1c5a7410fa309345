"""Threads that work against each other until the time is over."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

from remuda.errors import ErrorCode, SqlError


class Trouble:
    """Threads that work until the time is over; the first thing that goes wrong stops all of them.

    On a busy machine it goes on for those that have not done at least once what they do, or as often as is said.
    """

    def __init__(self, seconds: float, **least: int) -> None:
        self._seconds = seconds
        self._least = least
        self._end = 0.0
        self._threads: list[threading.Thread] = []
        self.errors: list[BaseException] = []
        self.rounds: dict[str, int] = {}
        self.topology_changes = 0

    def go(self, name: str, work: Callable[[random.Random], None]) -> None:
        self.rounds[name] = 0
        self._threads.append(threading.Thread(target=self._repeat, args=(name, work), name=name))

    def _repeat(self, name: str, work: Callable[[random.Random], None]) -> None:
        chance = random.Random(name)
        least = self._least.get(name, 1)
        while (time.monotonic() < self._end or self.rounds[name] < least) and not self.errors:
            try:
                work(chance)
                self.rounds[name] += 1
            except SqlError as error:
                if error.code is not ErrorCode.TOPOLOGY_CHANGE:
                    self.errors.append(error)
                self.topology_changes += 1
            except BaseException as error:  # noqa: BLE001  (a failed assertion is what the test is about)
                self.errors.append(error)

    def insist(self, work: Callable[[], None]) -> None:
        """What must be done, however often members change meanwhile."""
        while True:
            try:
                return work()
            except SqlError as error:
                if error.code is not ErrorCode.TOPOLOGY_CHANGE:
                    raise
                self.topology_changes += 1

    def run(self) -> None:
        self._end = time.monotonic() + self._seconds
        for thread in self._threads:
            thread.start()
        for thread in self._threads:
            thread.join()
        if self.errors:
            raise self.errors[0]
