"""The inbox: segments that other processes have written, taken over by the writer of the folder.

    inbox/<id>/            the files of the segments
    inbox/own-<id>/        what the writer itself lets others put there, for as long as it lives
    inbox/<folder>.gone/   one of these while it is being removed
    inbox/<id>.request     which map, which mode, which of the files: a delivery, whole from the moment it has this name
    inbox/<id>.claimed     the same, while it is being taken over
    inbox/<id>.answer      what became of it

A delivery is applied once or not at all, whatever process dies on the way: the manifest that is the first to name what
came of its segments names the delivery too, until the answer is there. The segments alone would not tell: they may have
been merged with others at once.
"""

from __future__ import annotations

import logging
import os
import re
import time
import weakref
from contextlib import suppress
from shutil import rmtree
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Protocol, cast

import msgspec

from remuda.errors import ErrorCode, OutcomeUnknownError, RemudaError, StorageError, damage_error
from remuda.expr.expression_json import from_json
from remuda.storage.folder import manifest_format_1
from remuda.storage.folder.definition_entries import MapEntry, check_map_names, map_definition
from remuda.storage.folder.group_file import segment_infos
from remuda.storage.folder.store_files import DELIVERY_ID, create_file, list_files, make_folder, open_file, read_file
from remuda.storage.load.change_load import ChangeRules
from remuda.storage.segment.segment_file import LEVELS as SEGMENT_LEVELS
from remuda.storage.segment.segment_file import segment_paths
from remuda.storage.segment.stored_groups import read_segments
from remuda.storage.state.applied_batches import BatchId
from remuda.storage.wal.log_file import sync_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from remuda.catalog import MapDefinition
    from remuda.storage.folder.store_folder import StoreFolder
    from remuda.storage.load.load_mode import LoadMode
    from remuda.storage.map_store import MapStore
    from remuda.storage.segment.segment_file import SegmentInfo

FOLDER = "inbox"
REQUEST, CLAIMED, ANSWER = ".request", ".claimed", ".answer"
OWN = "own-"
GONE = ".gone"

LEVELS = 1
_TO_TAKE = re.compile(rf"{DELIVERY_ID.pattern}(\.request|\.claimed)")
_OWN_NAME = re.compile(
    rf"{DELIVERY_ID.pattern}(\.request|\.claimed|\.answer|\.new|\.gone)?|own-[0-9A-Za-z_-]+(\.gone)?"
)
_POLL_SECONDS = 0.05
ABANDONED_SECONDS = 24 * 3600.0
"""Age at which a file in a remote inbox, where there are no folders, belongs to a job that is dead."""
QUIET_SECONDS = 4 * 3600.0
"""Time without a new file after which a delivery that was not handed in belongs to a job that is dead.

A job that is alive all the same, as one task of it takes longer to make a segment, fails and leaves nothing."""
SWEEP_SECONDS = 600.0
"""Time between two searches for such deliveries while the store is open."""
_logger = logging.getLogger("remuda.storage")


class Delivery(msgspec.Struct, frozen=True):
    """`map` is the definition that the segments were written for, with the segments as those of the map."""

    mode: str
    map: MapEntry
    order_by: str | None = None
    creates: bool = False
    """Whether the map is created with these rows."""
    condition: list[Any] | None = None
    """Under which changes meet rows that are there, as `expression_json` has it."""
    batch: tuple[str, int] | None = None


class Answer(msgspec.Struct, frozen=True):
    """Tells a deliverer what became of its delivery.

    `code` and `error` are there where the delivery was refused.
    """

    rows: int = 0
    code: int = 0
    error: str | None = None
    sqlstate: str | None = None


class CreateMap(Protocol):
    """Adds a map with its rows to the catalog, in one commit that names the delivery."""

    def __call__(self, definition: MapDefinition, fill: Callable[[MapStore], None], *, delivery: str) -> None: ...


class Inbox:
    """Takes deliveries over, on the writer's side. `find_map` gives the map with an id, or raises."""

    def __init__(self, store: StoreFolder, find_map: Callable[[str], MapStore], create_map: CreateMap) -> None:
        self._store = store
        self._folder = store.path / FOLDER
        self._find_map = find_map
        self._create_map = create_map
        self._stopped = Event()
        self._thread: Thread | None = None

    def start(self) -> None:
        """Takes over what waits already, then whatever comes."""
        self.remove_abandoned(is_opening=True)
        self.take_all()
        self._store.forget_deliveries(lambda each: not (self._folder / (each + CLAIMED)).exists())
        self._thread = Thread(target=_watch, args=(weakref.ref(self), self._stopped), name="remuda-inbox", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Returns when nothing is being taken over any more: at most one delivery."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def take_all(self) -> None:
        """Take over every delivery that waits.

        One that cannot be taken over now, for want of space perhaps, is tried again.
        """
        try:
            found = list_files(self._folder, levels=LEVELS, form=_TO_TAKE)
        except OSError as error:
            _logger.warning("the inbox cannot be read: %s", error)
            return
        for name in found:
            if not self._stopped.is_set():
                try:
                    self._take(self._folder / name)
                except OSError as error:
                    _logger.warning("a delivery cannot be taken over: %s", error)

    def _take(self, path: Path) -> None:
        claimed = path.with_suffix(CLAIMED)
        try:
            path.replace(claimed)
        except FileNotFoundError:
            return  # It was withdrawn.
        answer = self._outcome(claimed)
        fresh = path.with_suffix(".new")
        with create_file(fresh, levels=LEVELS) as file:
            file.write(msgspec.json.encode(answer))
        fresh.replace(path.with_suffix(ANSWER))
        claimed.unlink(missing_ok=True)
        # It must not be found again after a power failure when no manifest says any more that it is applied.
        sync_folder(self._folder)
        self._store.forget_deliveries(lambda each: each == claimed.stem)

    def _outcome(self, claimed: Path) -> Answer:
        try:
            return Answer(rows=self._apply(claimed))
        except RemudaError as error:
            return Answer(code=int(error.code), error=getattr(error, "message", str(error)), sqlstate=error.sqlstate)
        except Exception as error:
            # Whatever others have put there must not keep the store from being opened, nor later deliveries waiting.
            _logger.exception("a delivery cannot be taken over")
            return Answer(code=int(ErrorCode.GENERIC), error=f"the delivery cannot be taken over: {error}")

    def _apply(self, claimed: Path) -> int:
        try:
            delivery = _decoded(read_file(claimed, levels=LEVELS))
            check_map_names(delivery.map)
            definition = map_definition(delivery.map)
        except (msgspec.DecodeError, ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise damage_error(f"the delivery cannot be read: {error}", claimed) from error
        infos = segment_infos(delivery.map.segments, definition, claimed)
        if self._store.is_applied(claimed.stem):
            return sum(info.rows for info in infos)
        if delivery.creates:
            self._create_map(
                definition,
                lambda created: self._take_segments(created, claimed, infos, delivery),
                delivery=claimed.stem,
            )
        else:
            self._take_segments(self._find_map(definition.id), claimed, infos, delivery)
        return sum(info.rows for info in infos)

    def _take_segments(self, target: MapStore, claimed: Path, infos: Sequence[SegmentInfo], delivery: Delivery) -> None:
        folder = target.folder
        assert folder is not None, "an inbox belongs to a folder"
        files = [path for info in infos for path in segment_paths(claimed.with_suffix(""), info)]
        batch = None if delivery.batch is None else BatchId(*delivery.batch)
        try:
            if target.state.directory.disposal is not None:
                target.state.directory.disposal.reclaim(folder / path.name for path in files)
            _link(files, folder)
            if delivery.mode == "apply":
                condition = None if delivery.condition is None else from_json(delivery.condition)
                rules = ChangeRules(delivery.order_by, condition, batch)
                target.commit_changes(infos, claimed.with_suffix(""), rules, claimed.stem)
            else:
                mode = cast("LoadMode", delivery.mode)
                target.commit_segments(infos, mode, claimed.stem, delivery.order_by, batch)
        except OutcomeUnknownError:
            raise  # A crash may leave the manifest that names the files.
        except BaseException:
            committed = {stored.segment.id for stored in read_segments(target.stored)}
            for path in files:
                if path.name.partition(".")[0] not in committed:
                    with suppress(OSError):
                        (folder / path.name).unlink(missing_ok=True)
            raise

    def remove_abandoned(self, *, is_opening: bool = False) -> None:
        """Remove what an earlier writer, or a process that died, has left.

        Files of an earlier writer are of no use to the next one: they go when the store is opened.
        """
        if not self._folder.is_dir():
            return
        limit = time.time() - QUIET_SECONDS
        found = [path for path in self._folder.iterdir() if _OWN_NAME.fullmatch(path.name)]
        waiting = {path.stem for path in found if path.suffix in {REQUEST, CLAIMED}}
        for path in found:
            with suppress(OSError):
                is_ours = path.name.startswith(OWN) or path.suffix == GONE
                is_left = is_opening if is_ours else path.lstat().st_mtime < limit
                if path.stem not in waiting and is_left:
                    rmtree(path) if path.is_dir() else path.unlink()


def _decoded(raw: bytes) -> Delivery:
    """Decode a delivery; one in JSON was handed in by an earlier version."""
    if not raw.startswith(b"{"):
        return msgspec.msgpack.decode(raw, type=Delivery)
    saved = msgspec.json.decode(raw)
    saved["map"] = manifest_format_1.map_entry(saved["map"])
    return msgspec.convert(saved, Delivery)


def _watch(found: weakref.ref[Inbox], stopped: Event) -> None:
    """Poll the inbox. The wait holds nothing: a store that was dropped without being closed can go."""
    swept = time.monotonic()
    while not stopped.wait(_POLL_SECONDS):
        inbox = found()
        if inbox is None:
            return
        inbox.take_all()
        if time.monotonic() - swept >= SWEEP_SECONDS:
            inbox.remove_abandoned()
            swept = time.monotonic()
        del inbox


def _link(files: Sequence[Path], folder: Path) -> None:
    """Link the files into the map's folder: their first names stay until the delivery is answered."""
    try:
        make_folder(folder)
        for path in files:
            os.close(open_file(path, os.O_RDONLY, levels=SEGMENT_LEVELS))  # no link, nor through one
            (folder / path.name).unlink(missing_ok=True)
            (folder / path.name).hardlink_to(path)
    except OSError as error:
        raise StorageError(f"a delivered file cannot be taken over: {error.strerror}", error.filename) from error
