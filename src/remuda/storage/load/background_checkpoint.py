"""A checkpoint that a write asks for because its map's log has grown long, done on a thread of its own."""

from __future__ import annotations

import logging
from threading import Lock, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_logger = logging.getLogger("remuda.storage")


class BackgroundCheckpoint:
    """At most one runs at a time; what is asked for meanwhile is not queued, since the next write asks again."""

    def __init__(self, checkpoint: Callable[[], None]) -> None:
        self._checkpoint = checkpoint
        self._running = Lock()

    def request(self) -> None:
        """Starts one unless one is running."""
        if self._running.acquire(blocking=False):
            Thread(target=self._run, name="remuda-checkpoint", daemon=True).start()

    def _run(self) -> None:
        try:
            self._checkpoint()
        except Exception:
            # Nothing is lost: the log and its records stay, and the next write that finds it too long tries again.
            _logger.exception("a checkpoint in the background failed")
        finally:
            self._running.release()
