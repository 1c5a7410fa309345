"""The first half of a load whose rows lie in Parquet files: a task reads some of their row groups."""

from __future__ import annotations

import itertools
import pickle
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from remuda.dataclass import dataclass
from remuda.errors import RemudaError
from remuda.spark.load.partition_task import write_lots

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from remuda.catalog import MapDefinition
    from remuda.spark.load.parquet_frame import RowGroup

TASK_ROWS = 4_000_000
"""What one task reads at most, if row groups are not larger: what fails is read again as a whole."""
_BATCH_ROWS = 250_000


class FileUnreadableError(RemudaError):
    """A file that has changed or is damaged: Spark is asked then, which has settings for that."""

    _sqlstate = "22P04"


@dataclass(frozen=True, slots=True)
class ParquetWork:
    folder: str
    definition: MapDefinition
    names: dict[str, str]
    """From the file's columns to the map's."""
    groups: tuple[RowGroup, ...]
    keyless: bool


def write_parquet(work: ParquetWork) -> Iterator[bytes]:
    """Called in the task by name. Yields what `written_rows` reads back."""
    for written in write_lots(work.folder, work.definition, work.names, _batches(work), keyless=work.keyless):
        yield pickle.dumps(written)


def cut_groups(groups: Sequence[RowGroup], slots: int) -> list[tuple[RowGroup, ...]]:
    """Neighbouring row groups for each task: about equally many rows, and as many tasks for one slot as for another."""
    total = sum(group.rows for group in groups)
    count = min(len(groups), slots * -(-total // (TASK_ROWS * slots)))
    ends = itertools.accumulate(group.rows for group in groups)
    shares: dict[int, list[RowGroup]] = {}
    for group, end in zip(groups, ends, strict=True):
        middle = end - group.rows / 2
        shares.setdefault(int(middle * count / total), []).append(group)
    return [tuple(share) for share in shares.values()]


def _batches(work: ParquetWork) -> Iterator[pa.RecordBatch]:
    """Strings as the codes that the file has for them."""
    texts = [
        name for name, column in work.names.items() if pa.types.is_string(work.definition.column(column).type.arrow)
    ]
    for path, found in itertools.groupby(work.groups, key=lambda group: group.path):
        groups = list(found)
        missing = sum(group.rows for group in groups)
        try:
            with pq.ParquetFile(path, memory_map=True, read_dictionary=texts) as file:
                for batch in file.iter_batches(
                    _BATCH_ROWS, [group.number for group in groups], list(work.names), use_threads=False
                ):
                    missing -= batch.num_rows
                    yield batch
        except (OSError, pa.ArrowException, IndexError) as error:
            raise FileUnreadableError(f"{path}: {error}") from error
        if missing:
            raise FileUnreadableError(f"{path}: it has not the rows that it had when it was looked into")
