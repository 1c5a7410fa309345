"""How far a load is, seen from the files that its tasks have written: their names end with the number of their rows."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_PERIOD = 0.2
"""Seconds between two looks."""


@contextmanager
def watched(folder: Path, progress: Callable[[int], None] | None) -> Iterator[None]:
    """Tells `progress` how many rows there are, from a thread of its own, until the block ends."""
    if progress is None:
        yield
        return
    ended = Event()
    watcher = Thread(target=_watch, args=(folder, progress, ended), name="remuda-load", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def _watch(folder: Path, progress: Callable[[int], None], ended: Event) -> None:
    while not ended.wait(_PERIOD):
        progress(rows_in(folder))


def rows_in(folder: Path) -> int:
    return sum(int(path.stem.rpartition("-")[2]) for path in folder.glob("*.arrow"))
