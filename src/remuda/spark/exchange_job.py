"""The first half of a load, as the driver sees it: which tasks read the rows, and what they have written where."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from remuda.errors import RemudaError
from remuda.spark.exchange_task import ANSWER_SCHEMA, travelling_name, write_lots_in_arrow, written_rows
from remuda.spark.failures import as_sql_error
from remuda.spark.matching import source_column
from remuda.spark.parquet_frame import row_groups
from remuda.spark.parquet_task import FileUnreadableError, ParquetWork, cut_groups, write_parquet
from remuda.spark.session import make_importable
from remuda.spark.tasks import run_tasks, slot_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructField

    from remuda.catalog import MapDefinition
    from remuda.spark.exchange_task import WrittenRows

_BATCH_SETTING = "spark.sql.execution.arrow.maxRecordsPerBatch"
_BATCH_ROWS = "100000"


def write_rows(
    between: Path, definition: MapDefinition, dataframe: DataFrame, fields: Mapping[str, StructField], *, keyless: bool
) -> list[WrittenRows]:
    """Tasks write all rows into the folder `between`. `fields` are those that fill the columns of the map, by name."""
    groups = row_groups(dataframe, fields)
    if groups is None:
        return _through_spark(between, definition, dataframe, fields, keyless=keyless)
    names = {field.name: name for name, field in fields.items()}
    shares = cut_groups(groups, slot_count(dataframe.sparkSession))
    works = [ParquetWork(str(between), definition, names, share, keyless) for share in shares]
    try:
        answers = run_tasks(dataframe.sparkSession, write_parquet, dict(enumerate(works)))
    except FileUnreadableError:
        return _through_spark(between, definition, dataframe, fields, keyless=keyless)
    return [written_rows(answer) for answer in answers]


def _through_spark(
    between: Path, definition: MapDefinition, dataframe: DataFrame, fields: Mapping[str, StructField], *, keyless: bool
) -> list[WrittenRows]:
    session = dataframe.sparkSession
    make_importable(session.sparkContext)
    columns = [source_column(field).alias(travelling_name(definition, name)) for name, field in fields.items()]
    task = partial(write_lots_in_arrow, str(between), definition, keyless=keyless)
    with _setting(session, _BATCH_SETTING, _BATCH_ROWS):
        try:
            answers = dataframe.select(*columns).mapInArrow(task, ANSWER_SCHEMA).collect()
        except RemudaError:
            raise
        except Exception as failure:
            raise as_sql_error(failure) from failure
    return [written_rows(bytes(row.answer)) for row in answers]


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
