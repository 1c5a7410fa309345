"""Handing segments to the writer of a folder, from any process: see `inbox`."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING

import msgspec

from remuda.dataclass import dataclass
from remuda.errors import ErrorCode, FolderInUseError, SqlError, StorageError
from remuda.expr.expression_json import to_json
from remuda.storage.folder.definition_entries import map_entry
from remuda.storage.folder.group_file import segment_entry
from remuda.storage.folder.inbox import ANSWER, FOLDER, GONE, LEVELS, OWN, REQUEST, Answer, Delivery
from remuda.storage.folder.store_files import create_file, make_folder, read_file
from remuda.storage.segment.segment_file import save_segment
from remuda.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from remuda.catalog import MapDefinition
    from remuda.storage.load.change_load import ChangeRules
    from remuda.storage.load.change_segments import ChangeMarks
    from remuda.storage.load.load_mode import LoadMode
    from remuda.storage.segment.segment import Segment
    from remuda.storage.segment.segment_file import SegmentInfo

_POLL_SECONDS = 0.02


def delivery_folder(store: Path, delivery_id: str) -> Path:
    """Return where the segments of a delivery are written."""
    return store / FOLDER / delivery_id


@dataclass(frozen=True, slots=True)
class FolderInbox:
    """The inbox of a store in a folder, for those who deliver. Plain data that pickles."""

    store: str

    def expect(self, delivery_id: str) -> None:
        """Makes room for a delivery, before anyone saves segments for it."""
        folder = delivery_folder(Path(self.store), delivery_id)
        try:
            make_folder(folder)
        except OSError as error:
            raise StorageError(f"nothing can be delivered: {error.strerror}", folder) from error

    def save(self, delivery_id: str, segments: Iterable[Segment]) -> list[SegmentInfo]:
        """Writes segments for a delivery; the one who delivers is another process.

        There is no room for a delivery that has been forgotten: a task that goes on after its job has failed gets an
        error and leaves nothing.
        """
        folder = delivery_folder(Path(self.store), delivery_id)
        return [save_segment(folder, segment, make_folder=False) for segment in segments]

    def deliver(
        self,
        delivery_id: str,
        definition: MapDefinition,
        infos: Sequence[SegmentInfo],
        mode: LoadMode,
        order_by: str | None = None,
        *,
        creates: bool = False,
        rules: ChangeRules | None = None,
    ) -> int:
        return deliver(Path(self.store), delivery_id, definition, infos, mode, order_by, creates=creates, rules=rules)

    def save_changes(self, delivery_id: str, segments: Iterable[tuple[Segment, ChangeMarks]]) -> list[SegmentInfo]:
        """Write segments of changes and their marks; see `save`."""
        folder = delivery_folder(Path(self.store), delivery_id)
        infos = []
        for segment, marks in segments:
            infos.append(save_segment(folder, segment, make_folder=False))
            marks.save(folder, segment.id)
        return infos

    def forget(self, delivery_id: str) -> None:
        forget(Path(self.store), delivery_id)


def own_folder(store: Path, name: str) -> Path:
    """Return where the tasks of the process that has the store open for writing write what is for that process alone.

    A delivery may be waited for by another process; this is of no use to anyone when its process has ended, however it
    ended, and is removed when the store is opened for writing again.
    """
    return store / FOLDER / f"{OWN}{name}"


def deliver(
    store: Path,
    delivery_id: str,
    definition: MapDefinition,
    infos: Sequence[SegmentInfo],
    mode: LoadMode,
    order_by: str | None = None,
    *,
    creates: bool = False,
    rules: ChangeRules | None = None,
) -> int:
    """Hand in the segments of a delivery's folder, all or none, and return how many rows they had.

    With `creates` the map is created with these rows, in the same commit. `rules` are those of changes; of any load
    they may have the id of its batch.

    If a process has the store open for writing, that one does it; else this one opens it for that. Either way opening
    takes over what waits in the inbox, so there is always someone who will.
    """
    answer = store / FOLDER / f"{delivery_id}{ANSWER}"
    try:
        hand_in(store, delivery_id, definition, infos, mode, order_by, creates=creates, rules=rules)
        while not answer.exists():
            try:
                Store.open(store).close()
            except FolderInUseError:
                time.sleep(_POLL_SECONDS)
        outcome = msgspec.json.decode(read_file(answer, levels=LEVELS), type=Answer)
    finally:
        forget(store, delivery_id)
    if outcome.error is not None:
        raise SqlError(ErrorCode(outcome.code), outcome.error, sqlstate=outcome.sqlstate)
    return outcome.rows


def hand_in(
    store: Path,
    delivery_id: str,
    definition: MapDefinition,
    infos: Sequence[SegmentInfo],
    mode: LoadMode,
    order_by: str | None = None,
    *,
    creates: bool = False,
    rules: ChangeRules | None = None,
) -> None:
    """Ask for the segments to be taken over. From now on they will be, though this process may end."""
    folder = store / FOLDER
    make_folder(folder)
    request = folder / f"{delivery_id}{REQUEST}"
    fresh = request.with_suffix(".new")
    with create_file(fresh, levels=LEVELS) as file:
        entry = map_entry(definition, 0, [segment_entry(info, definition) for info in infos])
        condition = None if rules is None or rules.condition is None else to_json(rules.condition)
        batch = None if rules is None or rules.batch is None else (rules.batch.stream, rules.batch.number)
        file.write(msgspec.msgpack.encode(Delivery(mode, entry, order_by, creates, condition, batch)))
    fresh.replace(request)


def forget(store: Path, delivery_id: str) -> None:
    """Removes everything of a delivery that has been answered, or will never be asked for: then it is withdrawn."""
    for suffix in (REQUEST, ANSWER):
        (store / FOLDER / f"{delivery_id}{suffix}").unlink(missing_ok=True)
    remove_while_written(delivery_folder(store, delivery_id))


def remove_while_written(folder: Path) -> None:
    """Removes a folder into which others may still be writing: under another name nothing is added to it."""
    gone = folder.with_name(f"{folder.name}{GONE}")
    with suppress(OSError):
        folder.rename(gone)
        rmtree(gone)


def remove_uncommitted(folder: Path, load_id: str, committed: Iterable[str]) -> None:
    """Remove the files of a load's segments but those of the committed ones, from the folder of a map."""
    kept = set(committed)
    for path in folder.glob(f"{load_id}-*"):
        if path.name.partition(".")[0] not in kept:
            path.unlink(missing_ok=True)
