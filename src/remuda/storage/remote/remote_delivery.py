"""Handing segments to a remote store, from any process. The process that delivers also commits: there is no way to
tell whether another one has the store open and would take them over.

    inbox/<id>/<file>       the files of segments, from the moment a task has written them until they are committed

Any number of jobs may deliver at the same time: a commit that finds its root taken compares keys again and commits on
top of the newest one.
"""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from remuda.dataclass import dataclass
from remuda.storage.folder.inbox import ABANDONED_SECONDS, FOLDER
from remuda.storage.load.change_load import ChangeRules
from remuda.storage.load.change_segments import marks_path
from remuda.storage.remote.remote_files import TRANSFERS
from remuda.storage.remote.remote_folder import RemoteFolder
from remuda.storage.segment.segment_file import save_segment, segment_paths
from remuda.storage.store import Store
from remuda.storage.wal.durability import Durability

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from remuda.catalog import MapDefinition
    from remuda.storage.load.change_segments import ChangeMarks
    from remuda.storage.load.load_mode import LoadMode
    from remuda.storage.map_store import MapStore
    from remuda.storage.remote.remote_location import RemoteLocation
    from remuda.storage.segment.segment import Segment
    from remuda.storage.segment.segment_file import SegmentInfo


@dataclass(frozen=True, slots=True)
class RemoteInbox:
    """Plain data that pickles, with the face of `delivery.FolderInbox`."""

    location: RemoteLocation

    def expect(self, delivery_id: str) -> None:
        """Make no folder: object stores have none.

        Objects that come after `forget` are removed when they are a day old.
        """

    def save(self, delivery_id: str, segments: Iterable[Segment]) -> list[SegmentInfo]:
        """Runs in a task. One segment at a time is on its disk."""
        infos: list[SegmentInfo] = []
        for segment in segments:
            with tempfile.TemporaryDirectory(prefix="remuda-") as folder:
                info = save_segment(Path(folder), segment)
                for path in segment_paths(Path(folder), info):
                    self.location.files.upload(path, f"{FOLDER}/{delivery_id}/{path.name}")
            infos.append(info)
        return infos

    def save_changes(self, delivery_id: str, segments: Iterable[tuple[Segment, ChangeMarks]]) -> list[SegmentInfo]:
        """Upload segments of changes and their marks; see `save`."""
        infos: list[SegmentInfo] = []
        for segment, marks in segments:
            with tempfile.TemporaryDirectory(prefix="remuda-") as folder:
                marks.save(Path(folder), segment.id)
                path = marks_path(Path(folder), segment.id)
                self.location.files.upload(path, f"{FOLDER}/{delivery_id}/{path.name}")
            infos.extend(self.save(delivery_id, [segment]))
        return infos

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
        """Commits the segments, all or none, and returns how many rows they had."""

        def take(target: MapStore) -> None:
            assert target.folder is not None, "a remote store has a mirror"
            self._fetch(delivery_id, infos, target.folder)
            if mode != "apply":
                batch = None if rules is None else rules.batch
                target.commit_segments(infos, mode, order_by=order_by, batch=batch)
                return
            with tempfile.TemporaryDirectory(prefix="remuda-") as marks:
                for info in infos:
                    path = marks_path(Path(marks), info.id)
                    self.location.files.fetch(f"{FOLDER}/{delivery_id}/{path.name}", path, None)
                target.commit_changes(infos, Path(marks), rules or ChangeRules())

        try:
            store = Store.open(durability=Durability.NONE, remote=RemoteFolder(self.location))
            try:
                if creates:
                    store.create_map(definition, take)
                else:
                    take(store.map(definition))
            finally:
                store.close()
            return sum(info.rows for info in infos)
        finally:
            self.forget(delivery_id)

    def forget(self, delivery_id: str) -> None:
        """Removes what was delivered, or never will be, and what jobs that died have left."""
        self.location.files.remove_folder(f"{FOLDER}/{delivery_id}")
        self.location.files.remove_older(FOLDER, ABANDONED_SECONDS)

    def _fetch(self, delivery_id: str, infos: Sequence[SegmentInfo], folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        wanted = [(path, info) for info in infos for path in segment_paths(folder, info)]

        def fetch(each: tuple[Path, SegmentInfo]) -> None:
            path, info = each
            rows = info if path.suffix == ".arrow" else None
            self.location.files.fetch(f"{FOLDER}/{delivery_id}/{path.name}", path, rows)

        with ThreadPoolExecutor(TRANSFERS) as pool:
            list(pool.map(fetch, wanted))
