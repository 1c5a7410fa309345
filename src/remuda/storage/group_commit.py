"""Group commit: many writers, one sync after the other, each for all who came before it began.

A writer that finds nobody syncing leads: it syncs at once, for whoever has come. Those who come meanwhile wait for the
next sync, and when the leader is done it first names one of them to lead that. So the disk is never idle while somebody
waits, no thread is kept for it, and a writer that is alone waits for nobody.

    A leads {A}         B, C, D come        A is done, names B, goes on
    B leads {B, C, D}   A comes again       B is done, names A, wakes C, who wakes D

Those who are woken wake one another: thirty writers woken at once would only queue for the interpreter's lock, which
takes longer than what they have to do. After a slow sync it is the last of them who calls the next leader: most have
come again by then, and a slow disk is asked half as often.
"""

from __future__ import annotations

import time
from collections import deque
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


SLOW_SYNC = 0.001
"""Seconds: more than some dozens of writers need to come again."""


class _Waiter:
    """A writer behind its closed gate. Once `called`, it leads the next sync or wakes the next of its group."""

    __slots__ = ("called", "gate", "gone", "group")

    def __init__(self) -> None:
        self.gate = Lock()
        self.gate.acquire()
        self.called = False
        self.gone = False
        """Whether it was interrupted before it was called, and is not there any more."""
        self.group: _Group | None = None
        """Whom to wake next; None for one that leads."""


_Group = deque[_Waiter | None]
"""Who is called one after the other; None stands for the next leader."""


class GroupCommit:
    """`durable` is the last record that a flush has made durable; `taken` the last that a flush has begun with."""

    def __init__(self, lock: Lock, durable: int, flush: Callable[[], None]) -> None:
        """`flush` makes all records durable that have been appended by then, and says so in `taken` and `durable`.

        `lock` is the one under which records are appended and `taken` is changed.
        """
        self.durable = self.taken = durable
        self._lock = lock
        self._flush = flush
        self._led = False
        self._present: _Group = deque()
        self._following: _Group = deque()

    def wait(self, sequence: int) -> None:
        """Returns when the record is durable, or a flush has failed: the caller looks which."""
        waiter = None
        with self._lock:
            if sequence <= self.durable:
                return
            if self._led:
                waiter = _Waiter()
                (self._present if sequence <= self.taken else self._following).append(waiter)
            self._led = True
        if waiter is None:
            self._lead()
            return
        try:
            waiter.gate.acquire()
        finally:
            # A writer that is interrupted while it waits must not leave the others behind.
            self._go_on(waiter)

    def begin(self, sequence: int) -> None:
        """A flush begins, with all records up to this one; the lock is held."""
        self.taken = sequence
        self._present += self._following
        self._following = deque()

    def _lead(self) -> None:
        started = time.monotonic()
        try:
            self._flush()
        finally:
            slow = time.monotonic() - started > SLOW_SYNC
            with self._lock:
                group, self._present = self._present, deque()
                if slow and group:
                    group.append(None)
                else:
                    self._call_leader()
            self._wake(group)

    def _go_on(self, waiter: _Waiter) -> None:
        if not waiter.called:
            with self._lock:
                waiter.gone = not waiter.called
        if waiter.gone:
            return
        if waiter.group is None:
            self._lead()
        else:
            self._wake(waiter.group)

    def _wake(self, group: _Group) -> None:
        """Wakes the next of a group that is still there."""
        if group:
            with self._lock:
                while group and not self._call(group.popleft(), group):
                    pass

    def _call_leader(self) -> None:
        """One of those who wait. If others than leaders flush too, they are not all among the following any more."""
        self._led = False
        for waiting in (self._following, self._present):
            while waiting and not self._led:
                self._led = self._call(waiting.popleft(), None)

    def _call(self, waiter: _Waiter | None, group: _Group | None) -> bool:
        """Opens the gate of one who waits; False if nobody is there any more. The lock is held."""
        if waiter is None:
            self._call_leader()
            return True
        if waiter.gone:
            return False
        waiter.group = group
        waiter.called = True
        waiter.gate.release()
        return True
