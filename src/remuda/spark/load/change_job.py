"""Changes of a DataFrame into a map: the rows of a key come to one task, tasks write segments, the driver commits."""

from __future__ import annotations

import pickle
import time
from functools import partial
from typing import TYPE_CHECKING

from remuda.catalog import new_id
from remuda.errors import OutcomeUnknownError, RemudaError
from remuda.spark.driver.pyspark_version import refuse_old_pyspark
from remuda.spark.driver.spark_session import make_importable
from remuda.spark.driver.tasks import as_sql_error, refuse_stopped, slot_count
from remuda.spark.load.change_task import ChangeWork, SparkChanges, write_changes
from remuda.spark.load.load_job import (
    collected,
    load_step,
    log_load,
    map_folder,
    refuse_unseen,
    segments_in,
    store_of,
    watched,
)
from remuda.spark.load.matching import frame_schema, match_columns
from remuda.spark.load.partition_task import ANSWER_SCHEMA
from remuda.storage.folder.delivery import own_folder, remove_uncommitted, remove_while_written
from remuda.storage.segment.group_ranges import ranges_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from remuda.catalog import MapDefinition
    from remuda.spark.load.load_job import LoadProgress
    from remuda.storage import MapStore, SegmentInfo
    from remuda.storage.load.change_format import ChangeFormat
    from remuda.storage.load.change_load import ChangeRules
    from remuda.storage.load.merge_changes import ChangeCounts


def load_changed_frame(
    target: MapStore,
    dataframe: DataFrame,
    form: ChangeFormat,
    rules: ChangeRules,
    progress: LoadProgress | None = None,
) -> ChangeCounts:
    """Apply all changes of the DataFrame or none. A map in the memory of this process gets them as one table."""
    refuse_old_pyspark('mode="apply"')  # `repartitionById` came with 4.1
    session = dataframe.sparkSession
    refuse_stopped(session)
    definition = target.definition
    match_columns(definition, row_fields(form, definition, dataframe.schema))
    folder = map_folder(target)
    if folder is None:
        return target.load_changes([collected(dataframe)], SparkChanges.of(form), rules)
    refuse_unseen(target, dataframe)
    make_importable(session.sparkContext)
    load_id = f"load{new_id()}"
    between = own_folder(store_of(folder), load_id)
    infos: list[SegmentInfo] = []
    committed: list[SegmentInfo] = []
    try:
        between.mkdir(parents=True)
        work = ChangeWork(str(folder), str(between), load_id, definition, form)
        brought = by_partition(dataframe, form, definition, slot_count(session), target.state.cuts)
        began = time.monotonic()
        if progress is not None:
            progress.begin("applying changes", None, "segments")
        with load_step(session, definition, "apply changes"), watched(partial(segments_in, folder, load_id), progress):
            infos = _answers(brought, work)
        counts = target.commit_changes(infos, between, rules)
        committed = infos
        log_load(definition, infos, time.monotonic() - began)
        return counts
    except (OutcomeUnknownError, KeyboardInterrupt):
        committed = infos  # A manifest may name them. Where none does, the next opening removes them.
        raise
    finally:
        remove_while_written(between)
        remove_uncommitted(folder, load_id, [info.id for info in committed])


def _answers(dataframe: DataFrame, work: ChangeWork) -> list[SegmentInfo]:
    try:
        rows = dataframe.mapInArrow(partial(write_changes, work), ANSWER_SCHEMA).collect()
    except RemudaError:
        raise
    except Exception as failure:
        raise as_sql_error(failure) from failure
    answers = [pickle.loads(bytes(row.answer)) for row in rows]
    for answer in answers:
        if isinstance(answer, RemudaError):
            raise answer
    return answers


def row_fields(form: ChangeFormat | None, definition: MapDefinition | None, schema: StructType) -> StructType:
    """Return the fields of a DataFrame that go into a map."""
    from pyspark.sql import types

    if form is None:
        return schema
    names = form.row_schema(definition, frame_schema(schema)).names
    if form.preset != "debezium":
        return types.StructType([field for field in schema.fields if field.name in set(names)])
    after = next(field.dataType for field in schema.fields if field.name.casefold() == "after")
    assert isinstance(after, types.StructType), "row_schema has seen that"
    return after


def key_columns(form: ChangeFormat | None, definition: MapDefinition, schema: StructType) -> list[Column] | None:
    """Return the columns that decide the partition of a change; None where the data has them not."""
    from pyspark.sql import functions as f

    def quoted(name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    fields = {field.name.casefold(): field.name for field in row_fields(form, definition, schema).fields}
    names = [fields.get(name.casefold()) for name in definition.partitioned_by]
    if None in names:
        return None
    found: list[Column] = []
    for name, held in zip(names, definition.partitioned_by, strict=True):
        assert name is not None
        column = f.col(quoted(name))
        if form is not None and form.preset == "debezium":
            before = next(field for field in schema.fields if field.name.casefold() == "before")
            images = ["after"]
            if name in getattr(before.dataType, "names", ()):
                images.append("before")
            column = f.coalesce(*(f.col(f"{image}.{quoted(name)}") for image in images))
        found.append(column.cast(definition.column(held).type.spark))
    return found


def by_partition(
    dataframe: DataFrame,
    form: ChangeFormat | None,
    definition: MapDefinition,
    tasks: int,
    cuts: Sequence[int] = (),
) -> DataFrame:
    """Return the rows with those of a range of partitions, and so those of a key, in one task each.

    `cuts` are where the groups of the map are cut: a task has whole groups, or a part of one. The order of the ranges
    does not matter, nor does a key that Spark hashes otherwise than the map does: the segments then only have less
    disjoint ranges.
    """
    from pyspark.sql import functions as f

    columns = key_columns(form, definition, dataframe.schema)
    if columns is None:
        return dataframe
    starts = task_starts(definition.partitions, tasks, cuts)
    partition = f.pmod(f.xxhash64(*columns), f.lit(definition.partitions))
    if cuts:
        number = _last_start(partition, starts, 0, len(starts))
    else:
        number = f.floor(partition * len(starts) / definition.partitions).cast("int")
    return dataframe.repartitionById(len(starts), number)


def _last_start(partition: Column, starts: Sequence[int], low: int, high: int) -> Column:
    """Return which of some ascending numbers is the last that is not above a partition, by halving."""
    from pyspark.sql import functions as f

    if high - low == 1:
        return f.lit(low)
    middle = (low + high) // 2
    below, above = _last_start(partition, starts, low, middle), _last_start(partition, starts, middle, high)
    return f.when(partition < starts[middle], below).otherwise(above)


def task_starts(partitions: int, tasks: int, cuts: Sequence[int]) -> list[int]:
    """Return the first partition of each task, at most so many: at cuts of groups, and between them if they are few.

    >>> task_starts(100, 4, []), task_starts(100, 2, [10, 40, 70]), task_starts(100, 4, [30])
    ([0, 25, 50, 75], [0, 40], [0, 15, 30, 65])
    """
    count = min(tasks, partitions)
    groups = ranges_of(cuts, partitions)
    if len(groups) >= count:
        return [groups[number * len(groups) // count][0] for number in range(count)]
    starts: set[int] = set()
    for number, (first, end) in enumerate(groups):
        share = count * (number + 1) // len(groups) - count * number // len(groups)
        starts.update(first + piece * (end - first) // share for piece in range(share))
    return sorted(starts)
