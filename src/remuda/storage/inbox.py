"""The inbox: segments that other processes have written, taken over by whoever has the folder open for writing.

    inbox/<id>/            the files of the segments
    inbox/<id>.request     which map, which mode, which of the files: a delivery, whole from the moment it has this name
    inbox/<id>.claimed     the same, while it is being taken over
    inbox/<id>.answer      what became of it

A delivery is applied once or not at all, whatever process dies on the way: a claimed one that is found later has been
applied if the map holds its segments.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from shutil import rmtree
from threading import Event, Thread
from typing import TYPE_CHECKING, cast

import msgspec

from remuda.errors import RemudaError, StorageError
from remuda.storage.manifest import MapEntry, map_definition, segment_info
from remuda.storage.segment_file import segment_paths

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from remuda.storage.load_merge import LoadMode
    from remuda.storage.map_store import MapStore
    from remuda.storage.segment_file import SegmentInfo

FOLDER = "inbox"
REQUEST, CLAIMED, ANSWER = ".request", ".claimed", ".answer"

_POLL_SECONDS = 0.05
_ABANDONED_SECONDS = 24 * 3600.0
"""Age at which files that were never delivered belong to a job that is dead."""
_logger = logging.getLogger("remuda.storage")


class Delivery(msgspec.Struct, frozen=True):
    """`map` is the definition that the segments were written for, with the segments as those of the map."""

    mode: str
    map: MapEntry


class Answer(msgspec.Struct, frozen=True):
    """`code` and `error` are there where the delivery was refused."""

    rows: int = 0
    code: int = 0
    error: str | None = None


class Inbox:
    """The writer's side. `find_map` gives the map with an id, or raises."""

    def __init__(self, store: Path, find_map: Callable[[str], MapStore]) -> None:
        self._folder = store / FOLDER
        self._find_map = find_map
        self._stopped = Event()
        self._thread: Thread | None = None

    def start(self) -> None:
        """Takes over what waits already, then whatever comes."""
        self._remove_abandoned()
        self.take_all()
        self._thread = Thread(target=self._watch, name="remuda-inbox", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def take_all(self) -> None:
        if not self._folder.is_dir():
            return
        for path in sorted(self._folder.iterdir()):
            if path.suffix in {REQUEST, CLAIMED}:
                self._take(path)

    def _watch(self) -> None:
        while not self._stopped.wait(_POLL_SECONDS):
            try:
                self.take_all()
            except OSError as error:
                _logger.warning("the inbox cannot be read: %s", error)

    def _take(self, path: Path) -> None:
        claimed = path.with_suffix(CLAIMED)
        path.replace(claimed)
        try:
            answer = Answer(rows=self._apply(claimed))
        except RemudaError as error:
            answer = Answer(code=int(getattr(error, "code", -1)), error=getattr(error, "message", str(error)))
        fresh = path.with_suffix(".new")
        fresh.write_bytes(msgspec.json.encode(answer))
        fresh.replace(path.with_suffix(ANSWER))
        claimed.unlink(missing_ok=True)

    def _apply(self, claimed: Path) -> int:
        try:
            delivery = msgspec.json.decode(claimed.read_bytes(), type=Delivery)
        except msgspec.DecodeError as error:
            raise StorageError(f"the delivery cannot be read: {error}", claimed) from error
        definition = map_definition(delivery.map)
        infos = [segment_info(entry, definition) for entry in delivery.map.segments]
        target = self._find_map(definition.id)
        held = {each.segment.id for each in target.shelved}
        if any(info.id in held for info in infos):
            return sum(info.rows for info in infos)
        try:
            for info in infos:
                _link(claimed.with_suffix(""), target, info)
        except OSError as error:
            raise StorageError(f"a delivered file cannot be taken over: {error.strerror}", error.filename) from error
        return target.commit_segments(infos, cast("LoadMode", delivery.mode))

    def _remove_abandoned(self) -> None:
        if not self._folder.is_dir():
            return
        limit = time.time() - _ABANDONED_SECONDS
        for path in self._folder.iterdir():
            with suppress(OSError):
                if path.suffix not in {REQUEST, CLAIMED} and path.stat().st_mtime < limit:
                    rmtree(path) if path.is_dir() else path.unlink()


def _link(source: Path, target: MapStore, info: SegmentInfo) -> None:
    """The files under a second name in the map's folder: the first stays until the delivery is answered."""
    folder = target.folder
    assert folder is not None, "an inbox belongs to a folder"
    folder.mkdir(parents=True, exist_ok=True)
    for path in segment_paths(source, info):
        (folder / path.name).unlink(missing_ok=True)
        (folder / path.name).hardlink_to(path)
