"""Flushes the memtable of a map into segments, while its writers go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.expr.cancellation import cancelled_by
from remuda.storage.load.compaction import flush_memtable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.storage.segment.segment_directory import StoredSegment
    from remuda.storage.state.map_state import MapState


class MapFlush:
    """Flushes the memtable of one map.

    `is_needless` is set while a statement waits to remove all rows: a flush of them would be for nothing.
    """

    __slots__ = ("_state", "_superseded", "is_needless")

    def __init__(self, state: MapState) -> None:
        self._state = state
        self.is_needless = False
        self._superseded: list[Sequence[StoredSegment]] = []
        """Segments that the manifest in force still names, though a checkpoint has replaced them."""

    def run(self, *, needed: bool = False) -> bool:
        """Do all of a checkpoint but its commit; return False if there was nothing to do.

        One that is `needed` is not given up for a statement that waits to remove all rows.
        """
        state = self._state
        with state.structure:
            with state.latch:
                version, length, flushed = state.version, state.version.memtable.committed, state.applied
            if length == 0:
                return False
            if state.wal is not None:
                # A statement that could still be refused must not get into a segment.
                state.wal.wait(flushed)
            try:
                with cancelled_by(None if needed else self._refuse_needless):
                    stored = flush_memtable(state.directory, version, state.stored, length)
            except _NeedlessFlushError:
                return False
            with state.latch:
                self._superseded.append(state.stored)
                if state.pending is not None:
                    state.pending.flushed.extend(version.memtable.entries(0, length))
                state.replace_version(stored, version.definition, carried=(length, state.version.memtable.committed))
                state.flushed = flushed
            return True

    @property
    def is_uncommitted(self) -> bool:
        """Tell whether no manifest names the segments of a flush yet: its commit has failed."""
        return bool(self._superseded)

    def mark_committed(self) -> None:
        """Remove the segments that flushes have replaced: the manifest in force names the ones in their place."""
        state = self._state
        with state.structure:
            while self._superseded:
                state.directory.discard(self._superseded.pop(), state.stored)

    def _refuse_needless(self) -> None:
        if self.is_needless:
            raise _NeedlessFlushError


class _NeedlessFlushError(Exception):
    """The map is about to be emptied."""
