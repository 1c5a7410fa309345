"""Where the tasks of other processes write what they have of a statement's rows: plain data that pickles."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from remuda.dataclass import dataclass
from remuda.storage.load.bulk_load import build_segments
from remuda.storage.load.upsert_keys import LAST, one_of_each_key
from remuda.storage.row_check import RowCheck
from remuda.storage.segment.segment_file import save_segment

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from remuda.catalog import MapDefinition
    from remuda.storage.segment.segment_file import SegmentInfo


@dataclass(frozen=True, slots=True)
class TaskTarget:
    """The name of every file begins with `load_id`: whatever becomes of a task, its files can be found and removed."""

    folder: str
    load_id: str
    definition: MapDefinition
    is_upsert: bool

    def save(self, columns: Sequence[pa.Array | pa.ChunkedArray]) -> list[SegmentInfo]:
        """Make segments of columns in declared order and write them; the commit is another process's."""
        definition = self.definition
        RowCheck(definition).check_columns(columns)
        if self.is_upsert:
            columns = one_of_each_key(definition, columns, LAST)
        saved = []
        for segment in build_segments(definition, columns):
            segment.id = f"{self.load_id}-{segment.id}"
            saved.append(save_segment(Path(self.folder), segment))
        return saved
