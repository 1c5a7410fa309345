"""A line that says how long a statement has run and how many rows have come, while the statement runs."""

from __future__ import annotations

import sys
import time
from itertools import cycle
from threading import Event, Thread
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

_BEGIN = 0.5
"""Seconds after which it appears: most statements are done before."""
_PERIOD = 0.1


class Progress:
    """Draws on standard error from a thread of its own, and takes the line away at the end.

    The statement runs on the main thread, where Ctrl-C reaches it.
    """

    def __init__(self, *, shown: bool) -> None:
        self.rows = 0
        self._ended = Event()
        self._started = time.monotonic()
        self._thread = Thread(target=self._draw, name="shell-progress", daemon=True) if shown else None

    def __enter__(self) -> Self:
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _draw(self) -> None:
        if self._ended.wait(_BEGIN):
            return
        for sign in cycle("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"):
            rows = f"  {self.rows:,} rows" if self.rows else ""
            sys.stderr.write(f"\r{sign} {time.monotonic() - self._started:.1f} s{rows}  Ctrl-C cancels\033[K")
            sys.stderr.flush()
            if self._ended.wait(_PERIOD):
                break
        sys.stderr.write("\r\033[K")
        sys.stderr.flush()
