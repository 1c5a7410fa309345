"""A progress bar on a terminal."""

from __future__ import annotations

import sys
import time
from typing import TextIO

_WIDTH = 30
_PERIOD = 0.1
"""Seconds between two drawings."""


class ProgressBar:
    """Draws `label ━━━━━━╸      62 %  6,200,000 rows  3.1 s` over and over, on one line of standard error.

    Without `shown` it draws only where standard error is a terminal.
    """

    def __init__(
        self, label: str, total: int | None, stream: TextIO | None = None, *, shown: bool | None = None
    ) -> None:
        self._name = self._label = label
        self._total = total
        self._unit = "rows"
        self._stream = stream or sys.stderr
        self._started = self._drawn = time.monotonic()
        self._shown = self._stream.isatty() if shown is None else shown

    def begin(self, step: str, total: int | None, unit: str = "rows") -> None:
        """Begin the next step of the work, which has a total of its own. The seconds go on."""
        self._label, self._total, self._unit = f"{self._name}, {step}", total, unit
        self.finish()

    def advance(self, done: int) -> None:
        """Show that so many rows are done."""
        now = time.monotonic()
        if self._shown and now - self._drawn >= _PERIOD:
            self._drawn = now
            self._stream.write("\r" + self.line(done, now - self._started))
            self._stream.flush()

    def line(self, done: int, seconds: float) -> str:
        """Draw the bar; without a total, the numbers alone."""
        counted = f"{done:,} {self._unit}  {seconds:.1f} s"
        if not self._total:
            return f"{self._label}  {counted}"
        share = min(1.0, done / self._total)
        filled = int(share * _WIDTH)
        bar = "━" * filled + ("╸" if filled < _WIDTH else "") + " " * (_WIDTH - filled - 1)
        return f"{self._label} {bar} {share:4.0%}  {counted}"

    def finish(self) -> None:
        """Take the bar off the screen."""
        if self._shown:
            self._stream.write("\r\033[K")
            self._stream.flush()
