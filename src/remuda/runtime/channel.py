"""The stream of batches between two fragments in this process."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.exec import RowBatch

CAPACITY = 8
"""Batches that may wait for a receiver: enough to keep it busy, few enough to bound memory."""


class BoundedChannel:
    """One sender, one receiver, on different threads. `deque` does what needs no lock; signals wake the other side."""

    def __init__(self, signal_receiver: Callable[[], None] | None = None, capacity: int = CAPACITY) -> None:
        self._batches: deque[RowBatch] = deque()
        self._capacity = capacity
        self._sent_all = False
        self._abandoned = False
        self.signal_receiver = signal_receiver
        self.signal_sender: Callable[[], None] | None = None

    def offer(self, batch: RowBatch) -> bool:
        if self._abandoned:
            return True
        if len(self._batches) >= self._capacity:
            return False
        self._batches.append(batch)
        self._wake_receiver()
        return True

    def finish(self) -> None:
        self._sent_all = True
        self._wake_receiver()

    def _wake_receiver(self) -> None:
        if self.signal_receiver is not None:
            self.signal_receiver()

    def poll(self) -> RowBatch | None:
        if not self._batches:
            return None
        batch = self._batches.popleft()
        if self.signal_sender is not None:
            self.signal_sender()
        return batch

    def abandon(self) -> None:
        self._abandoned = True
        self._batches.clear()
        if self.signal_sender is not None:
            self.signal_sender()

    @property
    def is_finished(self) -> bool:
        # In this order: a batch sent just before the end must not be missed.
        return self._sent_all and not self._batches
