"""Bulk loading of a DataFrame: Spark hashes, moves and sorts the rows, its tasks write segments, the driver commits.

All segments are committed in one manifest or none of them is; files that are not committed are removed.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from remuda.catalog import new_id
from remuda.errors import RemudaError, StorageError
from remuda.spark.failures import as_sql_error
from remuda.spark.matching import hashed_column, match_columns, source_column
from remuda.spark.segment_task import ANSWER_SCHEMA, PARTITION_COLUMN, answer_of, travelling_name, write_segments
from remuda.spark.session import make_importable
from remuda.spark.tasks import slot_count
from remuda.storage.bulk_load import MOST_PARTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructField

    from remuda.catalog import MapDefinition
    from remuda.storage import LoadMode, MapStore, SegmentInfo

_BATCH_SETTING = "spark.sql.execution.arrow.maxRecordsPerBatch"
_BATCH_ROWS = "100000"


def load_dataframe(store_map: MapStore, dataframe: DataFrame, mode: LoadMode) -> int:
    """Loads every row of the DataFrame or none, and returns how many. Columns are matched by name.

    A map that lives in the memory of this process has no folder for tasks to write to: its rows come here.
    """
    definition = store_map.definition
    fields = match_columns(definition, dataframe.schema)
    folder = _folder_of(store_map)
    if folder is None:
        renamed = [source_column(field).alias(name) for name, field in fields.items()]
        return store_map.load(dataframe.select(*renamed).toArrow(), mode)
    load_id = f"load{new_id()}"
    committed: list[SegmentInfo] = []
    try:
        infos = _write_in_tasks(folder, load_id, definition, dataframe, fields)
        loaded = store_map.commit_segments(infos, mode)
        committed = infos
        return loaded
    finally:
        _remove_uncommitted(folder, load_id, committed)


def _folder_of(store_map: MapStore) -> Path | None:
    """Where the map's segments are, for processes with another working directory; None if in this one's memory."""
    try:
        return Path(store_map.snapshot().describe().folder).absolute()
    except StorageError:
        return None


def _write_in_tasks(
    folder: Path, load_id: str, definition: MapDefinition, dataframe: DataFrame, fields: Mapping[str, StructField]
) -> list[SegmentInfo]:
    session = dataframe.sparkSession
    make_importable(session.sparkContext)
    tasks = min(slot_count(session), MOST_PARTS, definition.partitions)
    task = partial(write_segments, str(folder), load_id, definition, MOST_PARTS // tasks)
    moved = _in_partition_order(definition, dataframe, fields, tasks)
    with _setting(session, _BATCH_SETTING, _BATCH_ROWS):
        try:
            answers = moved.mapInArrow(task, ANSWER_SCHEMA).collect()
        except RemudaError:
            raise
        except Exception as failure:
            raise as_sql_error(failure) from failure
    return [answer_of(bytes(row.answer)) for row in answers]


def _in_partition_order(
    definition: MapDefinition, dataframe: DataFrame, fields: Mapping[str, StructField], tasks: int
) -> DataFrame:
    """The rows with their partition ids, in `tasks` contiguous ranges of these and in their order within each range.

    Spark sorts because it spills to disk where the rows are too many for memory.
    """
    from pyspark.sql import functions

    hashed = [hashed_column(fields[name], definition.column(name).type) for name in definition.partitioned_by]
    partition = functions.pmod(functions.xxhash64(*hashed), functions.lit(definition.partitions)).cast("int")
    columns = [source_column(field).alias(travelling_name(definition, name)) for name, field in fields.items()]
    numbered = dataframe.select(*columns, partition.alias(PARTITION_COLUMN))
    number = functions.col(PARTITION_COLUMN)
    place = functions.floor(number * functions.lit(tasks) / functions.lit(definition.partitions)).cast("int")
    return numbered.repartitionById(tasks, place).sortWithinPartitions(number)


@contextmanager
def _setting(session: SparkSession, name: str, value: str) -> Iterator[None]:
    before = session.conf.get(name)
    session.conf.set(name, value)
    try:
        yield
    finally:
        if before is None:
            session.conf.unset(name)
        else:
            session.conf.set(name, before)


def _remove_uncommitted(folder: Path, load_id: str, committed: list[SegmentInfo]) -> None:
    """Also after success: a task that Spark started twice has left a second set of files."""
    kept = {info.id for info in committed}
    for path in folder.glob(f"{load_id}-*"):
        if path.name.partition(".")[0] not in kept:
            path.unlink(missing_ok=True)
