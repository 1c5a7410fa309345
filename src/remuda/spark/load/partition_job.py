"""The first half of a load, as the driver sees it: which tasks read the rows, and what they have written where."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

from remuda.errors import RemudaError
from remuda.spark.driver.spark_session import make_importable
from remuda.spark.driver.tasks import as_sql_error, run_tasks, slot_count
from remuda.spark.load.matching import source_column
from remuda.spark.load.parquet_frame import row_groups
from remuda.spark.load.parquet_task import FileUnreadableError, ParquetWork, cut_groups, write_parquet
from remuda.spark.load.partition_task import (
    ANSWER_SCHEMA,
    CLOCKS,
    travelling_name,
    write_lots_in_arrow,
    written_rows,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructField

    from remuda.catalog import MapDefinition
    from remuda.spark.load.partition_task import WrittenRows

_ROWS_SETTING = "spark.sql.execution.arrow.maxRecordsPerBatch"
_BYTES_SETTING = "spark.sql.execution.arrow.maxBytesPerBatch"
_BATCH_ROWS = 100_000
_BATCH_ROWS_OF_ANY_SIZE = 20_000
"""Where values may have any length and bytes are not limited: a batch is as large as so many rows are."""
_NO_LIMIT = 2**31 - 1
"""With any other limit of bytes Spark adds up the sizes of all columns after every row, a quarter of the JVM's work."""
_TOO_LARGE = ("OversizedAllocationException", "OutOfMemory", "Can't grow", "NegativeArraySizeException")
"""What a batch of too many bytes fails with: a column of Arrow's, their memory, the buffer of the socket."""


def write_rows(
    between: Path,
    definition: MapDefinition,
    dataframe: DataFrame,
    fields: Mapping[str, StructField],
    *,
    keyless: bool,
    begin: Callable[[int | None], None] | None = None,
) -> list[WrittenRows]:
    """Tasks write all rows into the folder `between`. `fields` are those that fill the columns of the map, by name.

    `begin` is told how many rows there are, which only the footers of files tell beforehand.
    """
    groups = None if _reads_the_clock(definition, fields) else row_groups(dataframe, fields)
    if begin is not None:
        begin(None if groups is None else sum(group.rows for group in groups))
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


def _reads_the_clock(definition: MapDefinition, fields: Mapping[str, StructField]) -> bool:
    """Test whether moments become times of the session's zone, which files do not carry."""
    from pyspark.sql.types import TimestampType

    kinds = {name: definition.column(name).type.kind for name in fields}
    return any(kinds[name] in CLOCKS and isinstance(each.dataType, TimestampType) for name, each in fields.items())


def _through_spark(
    between: Path, definition: MapDefinition, dataframe: DataFrame, fields: Mapping[str, StructField], *, keyless: bool
) -> list[WrittenRows]:
    """Write rows that only Spark can give.

    Where batches turn out too large without a limit of bytes, all is done again with Spark's own. What the first
    attempt has written is in no answer. A limit that the session has been given is kept to.
    """
    session = dataframe.sparkSession
    make_importable(session.sparkContext)
    columns = [source_column(field).alias(travelling_name(definition, name)) for name, field in fields.items()]
    task = partial(write_lots_in_arrow, str(between), definition, keyless=keyless)

    limited: dict[str, int | None] = {_ROWS_SETTING: _BATCH_ROWS, _BYTES_SETTING: None}
    unlimited: dict[str, int | None] = {_ROWS_SETTING: batch_rows(fields.values()), _BYTES_SETTING: _NO_LIMIT}
    attempts = [limited] if _has_own_limit(session) else [unlimited, limited]
    while True:
        try:
            with borrowed_settings(session, attempts.pop(0)):
                answers = dataframe.select(*columns).mapInArrow(task, ANSWER_SCHEMA).collect()
        except RemudaError:
            raise
        except Exception as failure:
            if not attempts or not any(mark in str(failure) for mark in _TOO_LARGE):
                raise as_sql_error(failure) from failure
        else:
            return [written_rows(bytes(row.answer)) for row in answers]


def batch_rows(fields: Iterable[StructField]) -> int:
    """Return the rows of a batch where nothing but their number limits it."""
    from pyspark.sql import types

    times = (types.DateType, types.TimestampType, types.TimestampNTZType, getattr(types, "TimeType", types.DateType))
    sized = (types.NumericType, types.BooleanType, *times)  # PySpark 4.0 has no class of all times, and no TIME
    return _BATCH_ROWS if all(isinstance(each.dataType, sized) for each in fields) else _BATCH_ROWS_OF_ANY_SIZE


_lent: dict[int, tuple[int, dict[str, str]]] = {}
"""By session how many loads have settings of theirs in it, and what its settings were before the first of them."""
_lock = Lock()


@contextmanager
def borrowed_settings(session: SparkSession, settings: Mapping[str, int | None]) -> Iterator[None]:
    """Set the sizes of batches until the block ends; None stands for what the session has itself.

    Of loads that overlap the last to end restores the session's own. What was not set is not set afterwards either: a
    limit that is set counts as the user's.
    """
    with _lock:
        count, given = _lent.get(id(session), (0, session.conf.getAll))
        _lent[id(session)] = count + 1, given
        for name, value in settings.items():
            _set(session, name, given.get(name) if value is None else value)
    try:
        yield
    finally:
        with _lock:
            count, given = _lent.pop(id(session))
            if count > 1:
                _lent[id(session)] = count - 1, given
            else:
                for name in (_ROWS_SETTING, _BYTES_SETTING):
                    _set(session, name, given.get(name))


def _set(session: SparkSession, name: str, value: str | int | None) -> None:
    if value is None:
        session.conf.unset(name)
    else:
        session.conf.set(name, value)


def _has_own_limit(session: SparkSession) -> bool:
    """Tell whether the user limits the bytes of batches."""
    with _lock:
        _, given = _lent.get(id(session), (0, session.conf.getAll))
    return _BYTES_SETTING in given
