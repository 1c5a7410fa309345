"""The stream of batches between two fragments in this process."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from remuda.exec.memory import bytes_held

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.exec import RowBatch

CAPACITY = 8
"""Batches that may wait for a receiver: enough to keep it busy, few enough to bound memory."""
MOST_BYTES = 16 << 20
"""Bytes of the batches that may wait for a receiver. A larger batch waits alone.

Measured, processor time of a SELECT of 3M rows (100 MB) on three members, with batches of 4 MiB and a bound of 8 / 16 /
32 MiB: 16.3 / 15.3 / 14.7 ms; without any bound 12.9.
"""


class BoundedChannel:
    """One sender, one receiver, on different threads. `deque` does what needs no lock; signals wake the other side.

    The sender alone counts the bytes sent, the receiver alone those taken: neither count needs a lock.
    """

    def __init__(
        self,
        signal_receiver: Callable[[], None] | None = None,
        capacity: int = CAPACITY,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._batches: deque[tuple[RowBatch, int]] = deque()
        """The batches that wait, with their bytes."""
        self._capacity = capacity
        self._most_bytes = most_bytes
        self._bytes_sent = self._bytes_taken = 0
        self._sent_all = False
        self._abandoned = False
        self.signal_receiver = signal_receiver
        self.signal_sender: Callable[[], None] | None = None

    @property
    def bytes_held(self) -> int:
        """The bytes of the batches that wait."""
        return 0 if self._abandoned else self._bytes_sent - self._bytes_taken

    def offer(self, batch: RowBatch) -> bool:
        if self._abandoned:
            return True
        size = bytes_held(batch)
        if self._batches and not self._has_room(size):
            return False
        self._bytes_sent += size
        self._batches.append((batch, size))
        self._wake_receiver()
        return True

    def _has_room(self, size: int) -> bool:
        return len(self._batches) < self._capacity and self.bytes_held + size <= self._most_bytes

    def finish(self) -> None:
        self._sent_all = True
        self._wake_receiver()

    def _wake_receiver(self) -> None:
        if self.signal_receiver is not None:
            self.signal_receiver()

    def poll(self) -> RowBatch | None:
        if not self._batches:
            return None
        batch, size = self._batches.popleft()
        self._bytes_taken += size
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
