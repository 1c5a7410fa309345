"""Group commit: many writers, one sync after the other, each for all who came before it began.

A writer that finds no other one syncing leads: it syncs at once, for all that have come. Those that come meanwhile are
the next commit group. The first of them leads it, and is called when the sync before is done; the others wait at the
gate of their group, which its leader opens. So the disk is never idle while a writer waits, no thread is kept for it,
and a writer that is alone waits for no other.

    A leads {A}         B, C, D come        A is done, calls B, goes on
    B leads {B, C, D}   A comes again       B is done, calls A, opens the gate: C passes, then D

Those at a gate pass one after the other, each letting in the next: thirty writers woken at once would only queue
for the interpreter's lock, which takes longer than what they have to do. After a slow sync it is the last of them who
calls the next leader: most have come again by then, and a slow disk is asked half as often.

To have passed means only that it is time to look whether the record is durable; who finds that it is not waits again.
"""

from __future__ import annotations

import time
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


SLOW_SYNC = 0.001
"""Seconds: more than some dozens of writers need to come again."""


class _CommitGroup:
    """The writers that one sync is for."""

    __slots__ = ("abandoned", "begun", "call", "called", "calls_next", "gate", "over", "waiting")

    def __init__(self, *, called: bool) -> None:
        self.call = Lock()
        self.call.acquire()
        """What its leader waits for, unless it is called from the beginning."""
        self.called = called
        self.abandoned = False
        """Whether its leader was interrupted before it was called, and is not there any more."""
        self.gate = Lock()
        self.gate.acquire()
        self.waiting = 0
        """How many are at the gate."""
        self.begun = False
        """Whether its flush has taken the records that are there: who comes later belongs to the next group."""
        self.over = False
        self.calls_next = False
        """Whether the last who passes calls the next leader."""


class GroupCommit:
    """Makes records durable, those of many writers by one sync.

    `durable` is the last record that a flush has made durable; `taken` the last that a flush has begun with.
    """

    def __init__(self, lock: Lock, durable: int, flush: Callable[[], None]) -> None:
        """`flush` makes all records durable that have been appended by then, and says so in `taken` and `durable`.

        `lock` is the one under which records are appended and `taken` is changed.
        """
        self.durable = self.taken = durable
        self._lock = lock
        self._flush = flush
        self._present: _CommitGroup | None = None
        """The group that is led; None if no writer leads."""
        self._following: _CommitGroup | None = None

    def wait(self, sequence: int) -> None:
        """Returns when a flush that was to be waited for has ended: the caller looks whether the record is durable."""
        group: _CommitGroup | None = None
        leads = False
        try:
            with self._lock:
                if sequence <= self.durable:
                    return
                present = self._present
                if present is None:
                    leads = True
                    group = self._present = _CommitGroup(called=True)
                elif not present.over and (sequence <= self.taken or not present.begun):
                    group = present
                    group.waiting += 1
                elif self._following is None:
                    leads = True
                    group = self._following = _CommitGroup(called=False)
                else:
                    group = self._following
                    group.waiting += 1
            if not leads:
                with group.gate:
                    pass
            elif not group.called:
                group.call.acquire()
        finally:
            # A writer that is interrupted, here or before it comes to wait, must not leave the others behind.
            if group is not None:
                self._leave(group, leads)

    def begin(self, sequence: int) -> None:
        """Begin a flush of all records up to this one; the lock is held."""
        self.taken = sequence
        if self._present is not None:
            self._present.begun = True

    def _leave(self, group: _CommitGroup, leads: bool) -> None:
        """Do what is left for a writer whose wait is over, for whatever reason."""
        if leads:
            with self._lock:
                group.abandoned = not group.called
            if group.called:
                self._lead(group)
        elif group.calls_next or not group.over:
            with self._lock:
                group.waiting -= 1
                if group.calls_next and group.waiting == 0:
                    self._call_next()

    def _lead(self, group: _CommitGroup) -> None:
        slow = False
        try:
            started = time.monotonic()
            self._flush()
            slow = time.monotonic() - started > SLOW_SYNC
        finally:
            with self._lock:
                group.over = True
                group.calls_next = slow and group.waiting > 0
                if not group.calls_next:
                    self._call_next()
            group.gate.release()

    def _call_next(self) -> None:
        """Calls the leader of the next group, if there is one; the lock is held.

        Where that leader is not there any more, the others of its group are let in: one of them will lead.
        """
        group, self._following, self._present = self._following, None, None
        if group is None:
            return
        if group.abandoned:
            group.over = True
            group.gate.release()
            return
        self._present = group
        group.called = True
        group.call.release()
