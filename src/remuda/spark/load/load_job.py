"""Bulk loading of a DataFrame: tasks cut its rows by partitions, tasks make segments of them, the driver commits.

All segments are committed in one manifest or none of them is; files that are not committed are removed.
"""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from remuda.catalog import new_id
from remuda.errors import OutcomeUnknownError, StorageError, state_error
from remuda.spark.driver.job_marks import JobMarks
from remuda.spark.driver.tasks import refuse_stopped, run_tasks, slot_count
from remuda.spark.load.matching import match_columns, source_column
from remuda.spark.load.partition_job import write_rows
from remuda.spark.load.partition_task import arrow_zone, as_rows_of, with_zones
from remuda.spark.load.segment_task import (
    MOST_OF_KEYLESS,
    SegmentLoad,
    build_part,
    cut_parts,
    part_count,
    segment_infos,
)
from remuda.storage.folder.delivery import own_folder, remove_uncommitted, remove_while_written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructField

    from remuda.catalog import MapDefinition
    from remuda.spark.load.partition_task import WrittenRows
    from remuda.storage import LoadMode, MapStore, SegmentInfo
    from remuda.storage.state.applied_batches import BatchId

    TakeKeys = Callable[[int], range]
    """Gives so many keys that were never given before, for a map without PRIMARY KEY."""

_logger = logging.getLogger("remuda.spark")

# How far a load is, seen from the files that its tasks have written: what is read has names that end with the number of
# rows, and a segment has a file of rows.


_PERIOD = 0.2
"""Seconds between two looks."""


class LoadProgress(Protocol):
    """What is told how far a load is."""

    def begin(self, step: str, total: int | None, unit: str = "rows") -> None:
        """Begin a job of so many rows or segments, where that is known."""

    def advance(self, done: int) -> None:
        """Show how many of them are done."""


@contextmanager
def watched(count: Callable[[], int], progress: LoadProgress | None) -> Iterator[None]:
    """Tell `progress` what `count` gives, from a thread of its own, until the block ends."""
    if progress is None:
        yield
        return
    ended = Event()
    watcher = Thread(target=_watch, args=(count, progress, ended), name="remuda-load", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def _watch(count: Callable[[], int], progress: LoadProgress, ended: Event) -> None:
    while not ended.wait(_PERIOD):
        progress.advance(count())


def rows_in(folder: Path) -> int:
    return sum(int(path.stem.rpartition("-")[2]) for path in folder.glob("*.arrow"))


def segments_in(folder: Path, load_id: str) -> int:
    """Return how many segments the tasks of a load have begun to write into the folder of a map."""
    return sum(1 for _ in folder.glob(f"{load_id}-*.arrow"))


def load_dataframe(
    store_map: MapStore,
    dataframe: DataFrame,
    mode: LoadMode,
    take_keys: TakeKeys | None = None,
    progress: LoadProgress | None = None,
    order_by: str | None = None,
    batch: BatchId | None = None,
) -> int:
    """Loads every row of the DataFrame or none, and returns how many. Columns are matched by name.

    `progress` is told now and then how far each of the two jobs is. A map that lives in the memory of this process has
    no folder for tasks to write to: its rows come here.
    """
    session = dataframe.sparkSession
    refuse_stopped(session)
    definition = store_map.definition
    fields = match_columns(definition, dataframe.schema, generates_keys=take_keys is not None)
    if all(column.name in fields for column in definition.columns if column.hidden):
        take_keys = None
    folder = map_folder(store_map)
    if folder is None:
        return store_map.load(_rows(definition, dataframe, fields, take_keys), mode, order_by, batch)
    refuse_unseen(store_map, dataframe)
    load_id = f"load{new_id()}"
    between = own_folder(store_of(folder), load_id)
    infos: list[SegmentInfo] = []
    committed: list[SegmentInfo] = []
    try:
        between.mkdir(parents=True)
        began = time.monotonic()
        with load_step(session, definition, "read rows"), watched(partial(rows_in, between), progress):
            begin = None if progress is None else partial(progress.begin, "reading rows")
            written = write_rows(between, definition, dataframe, fields, keyless=take_keys is not None, begin=begin)
        runs = tuple(each.file for each in written)
        load = SegmentLoad(str(folder), load_id, definition, runs, order_by=order_by, is_upsert=mode == "upsert")
        load, parts = _cut_load(load, written, store_map.state.cuts, take_keys, slot_count(session))
        if progress is not None:
            progress.begin("building segments", len(parts), "segments")
        with (
            load_step(session, definition, "build segments"),
            watched(partial(segments_in, folder, load_id), progress),
        ):
            infos = segment_infos(run_tasks(session, build_part, dict(enumerate(parts)), shared=(load,)))
        loaded = store_map.commit_segments(infos, mode, order_by=order_by, batch=batch)
        committed = infos
        log_load(definition, infos, time.monotonic() - began)
        return loaded
    except (OutcomeUnknownError, KeyboardInterrupt):
        committed = infos  # A manifest may name them. Where none does, the next opening removes them.
        raise
    finally:
        remove_while_written(between)
        # Also after success: a task that Spark started twice has left a second set of files.
        remove_uncommitted(folder, load_id, [info.id for info in committed])


@contextmanager
def load_step(session: SparkSession, definition: MapDefinition, step: str) -> Iterator[None]:
    """Describe the jobs of a step in Spark's UI, where the user's thread has not described them."""
    context = session.sparkContext
    with JobMarks.of_thread(context, f"load {definition.name}: {step}").on_this_thread(context):
        yield


def log_load(definition: MapDefinition, infos: Sequence[SegmentInfo], seconds: float) -> None:
    """Tell the logger what the tasks of a load have made."""
    rows, size = sum(info.rows for info in infos), sum(info.row_bytes for info in infos)
    _logger.info("load %s: %d rows, %d segments, %d bytes, %.3f s", definition.name, rows, len(infos), size, seconds)


def map_folder(store_map: MapStore) -> Path | None:
    """Return the folder of the map's segments, as an absolute path; None for a map in memory."""
    try:
        return Path(store_map.snapshot().describe().folder).absolute()
    except StorageError:
        return None


def refuse_unseen(store_map: MapStore, dataframe: DataFrame) -> None:
    """Refuse executors on other machines for a remote store, whose mirror is on this one."""
    master = str(dataframe.sparkSession.sparkContext.master)
    remote = store_map.state.directory.remote
    if remote is not None and not master.startswith("local"):
        raise state_error(
            f"the executors of {master} do not see the mirror of the remote store {remote.files.name}",
            suggestion='Write it with df.write.format("remuda"), whose tasks upload what they have made.',
        )


def store_of(folder: Path) -> Path:
    """Return the store that `maps/<id>` is in."""
    return folder.parents[1]


def collected(dataframe: DataFrame) -> pa.Table:
    """Return the rows of a data frame as tasks get them: `toArrow` says UTC of moments, and not the session's zone."""
    zone = arrow_zone(str(dataframe.sparkSession.conf.get("spark.sql.session.timeZone")))
    return with_zones(dataframe.toArrow(), lambda _: zone)


def _rows(
    definition: MapDefinition, dataframe: DataFrame, fields: Mapping[str, StructField], take_keys: TakeKeys | None
) -> pa.Table:
    renamed = [source_column(field).alias(name) for name, field in fields.items()]
    table = as_rows_of(definition, collected(dataframe.select(*renamed)))
    if take_keys is None:
        return table
    (hidden,) = (column for column in definition.columns if column.hidden)
    keys = take_keys(table.num_rows)
    return table.append_column(hidden.name, pa.array(np.arange(keys.start, keys.stop)))


def _cut_load(
    load: SegmentLoad,
    written: Sequence[WrittenRows],
    cuts: Sequence[int],
    take_keys: TakeKeys | None,
    slots: int,
) -> tuple[SegmentLoad, list[tuple[int, int]]]:
    """Return what the tasks of the second half share, and the partitions of each: `segment_task`."""
    if take_keys is None:
        return load, cut_parts(load.definition, written, slots, cuts)
    # All rows, each run with keys of its own: only now is it known how many are needed.
    load = replace(load, first_keys=tuple(take_keys(each.rows).start for each in written))
    return load, _parts_of_all(load.definition, written, slots)


def _parts_of_all(definition: MapDefinition, written: Sequence[WrittenRows], slots: int) -> list[tuple[int, int]]:
    """Ranges of equally many partitions, of rows that have none yet."""
    parts = part_count(sum(each.rows for each in written), sum(int(each.sizes.sum()) for each in written), slots)
    ends = np.linspace(0, definition.partitions, min(parts, MOST_OF_KEYLESS, definition.partitions) + 1)
    return list(pairwise(ends.astype(int).tolist())) if written else []
