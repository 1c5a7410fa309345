"""Reading every byte that was opened, in the background, so that damage is found whether or not a query meets it.

Opening maps files without reading them: ten million rows are there in milliseconds. A thread then compares all files
with their checksums, at a pace that leaves nine tenths of a core to others, and ends. A map with a damaged file refuses
everything from then on, with an error that names file and offset. Segments of a large map that nobody has read yet are
not open, and wait until they are.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from threading import Lock, Thread
from typing import TYPE_CHECKING

from remuda.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from remuda.storage.map_store import MapStore
    from remuda.storage.segment.segment_directory import StoredSegment

PAUSE = 0.002
"""Seconds after each piece of a file."""
_logger = logging.getLogger("remuda.storage")


class _StoppedError(Exception):
    """The store was closed."""


class Verification:
    """`start` after every opening of segments; a run that is going on takes them up too."""

    def __init__(self, maps: Callable[[], Iterable[MapStore]]) -> None:
        self._maps = maps
        self._lock = Lock()
        self._thread: Thread | None = None
        self._again = False
        self._stopped = False
        self._first: deque[Callable[[Callable[[], None]], None]] = deque()

    def start(self, first: Iterable[Callable[[Callable[[], None]], None]] = ()) -> None:
        """Read what was opened; `first` is other work of an opening for this thread, which is given a pause."""
        with self._lock:
            self._first.extend(first)
            self._again = True
            if self._thread is None and not self._stopped and any(each.stored for each in self._maps()):
                self._thread = Thread(target=self._run, name="remuda-verification", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Returns when no file is being read any more: at most one piece of one."""
        self._stopped = True
        self.wait()

    def wait(self) -> None:
        """Returns when everything that was opened so far has been read."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._again or self._stopped:
                    self._thread = None
                    return
                self._again = False
            try:
                self._verify_all()
            except _StoppedError:
                continue

    def _verify_all(self) -> None:
        while self._first:
            self._first.popleft()(self._pause)
        for each in list(self._maps()):
            try:
                each.verify(self._pause, again=False)
            except (StorageError, OSError) as error:
                _logger.error("a file is damaged: %s", error)  # noqa: TRY400 - a user needs the file, not the stack

    def _pause(self) -> None:
        if self._stopped:
            raise _StoppedError
        time.sleep(PAUSE)


def verify_segments(target: MapStore, pause: Callable[[], None], *, again: bool) -> None:
    """Raises where a byte of a map's present files is not as it was written; those that are not open may wait."""
    from remuda.storage.segment.segment_directory import is_verified
    from remuda.storage.segment.stored_groups import read_segments

    for stored in target.stored if again else read_segments(target.stored):
        if again or (not is_verified(stored) and stored.segment.is_open and stored.segment.is_whole):
            _verify_segment(target, stored, pause)


def _verify_segment(target: MapStore, stored: StoredSegment, pause: Callable[[], None]) -> None:
    from remuda.storage.segment.stored_groups import read_segments

    try:
        target.state.directory.verify(stored, pause)
    except StorageError:
        present = next((each for each in read_segments(target.stored) if each.segment.id == stored.segment.id), None)
        if target.availability.destroyed:
            return
        if present is stored:
            raise
        if present is not None:
            # Its indexes or deletions were changed meanwhile, and their files with them.
            _verify_segment(target, present, pause)
