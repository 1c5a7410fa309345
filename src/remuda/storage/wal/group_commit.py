"""Group commit: many writers, one sync after the other, each for all who came before it began.

A writer that finds nobody syncing leads: it syncs at once, for whoever has come. Those who come meanwhile are the next
turn. The first of them leads it, and is called when the sync before is done; the others wait at the turnstile of their
turn, which its leader opens. So the disk is never idle while somebody waits, no thread is kept for it, and a writer
that is alone waits for nobody.

    A leads {A}         B, C, D come        A is done, calls B, goes on
    B leads {B, C, D}   A comes again       B is done, calls A, opens the turnstile: C passes, then D

Those at a turnstile pass one after the other, each letting in the next: thirty writers woken at once would only queue
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
        """How many are at the turnstile."""
        self.begun = False
        """Whether its flush has taken the records that are there: who comes later belongs to the next turn."""
        self.over = False
        self.calls_next = False
        """Whether the last who passes calls the next leader."""


class GroupCommit:
    """`durable` is the last record that a flush has made durable; `taken` the last that a flush has begun with."""

    def __init__(self, lock: Lock, durable: int, flush: Callable[[], None]) -> None:
        """`flush` makes all records durable that have been appended by then, and says so in `taken` and `durable`.

        `lock` is the one under which records are appended and `taken` is changed.
        """
        self.durable = self.taken = durable
        self._lock = lock
        self._flush = flush
        self._present: _CommitGroup | None = None
        """The turn that is led; None if nobody leads."""
        self._following: _CommitGroup | None = None

    def wait(self, sequence: int) -> None:
        """Returns when a flush that was to be waited for has ended: the caller looks whether the record is durable."""
        turn: _CommitGroup | None = None
        leads = False
        try:
            with self._lock:
                if sequence <= self.durable:
                    return
                present = self._present
                if present is None:
                    leads = True
                    turn = self._present = _CommitGroup(called=True)
                elif not present.over and (sequence <= self.taken or not present.begun):
                    turn = present
                    turn.waiting += 1
                elif self._following is None:
                    leads = True
                    turn = self._following = _CommitGroup(called=False)
                else:
                    turn = self._following
                    turn.waiting += 1
            if not leads:
                with turn.gate:
                    pass
            elif not turn.called:
                turn.call.acquire()
        finally:
            # A writer that is interrupted, here or before it comes to wait, must not leave the others behind.
            if turn is not None:
                self._leave(turn, leads)

    def begin(self, sequence: int) -> None:
        """A flush begins, with all records up to this one; the lock is held."""
        self.taken = sequence
        if self._present is not None:
            self._present.begun = True

    def _leave(self, turn: _CommitGroup, leads: bool) -> None:
        """What is left to do for a writer whose waiting is over, for whatever reason."""
        if leads:
            with self._lock:
                turn.abandoned = not turn.called
            if turn.called:
                self._lead(turn)
        elif turn.calls_next or not turn.over:
            with self._lock:
                turn.waiting -= 1
                if turn.calls_next and turn.waiting == 0:
                    self._call_next()

    def _lead(self, turn: _CommitGroup) -> None:
        slow = False
        try:
            started = time.monotonic()
            self._flush()
            slow = time.monotonic() - started > SLOW_SYNC
        finally:
            with self._lock:
                turn.over = True
                turn.calls_next = slow and turn.waiting > 0
                if not turn.calls_next:
                    self._call_next()
            turn.gate.release()

    def _call_next(self) -> None:
        """Calls the leader of the next turn, if there is one; the lock is held.

        Where that leader is not there any more, the others of its turn are let in: one of them will lead.
        """
        turn, self._following, self._present = self._following, None, None
        if turn is None:
            return
        if turn.abandoned:
            turn.over = True
            turn.gate.release()
            return
        self._present = turn
        turn.called = True
        turn.call.release()
