"""Data frames that are nothing but Parquet files: tasks read those themselves, and no row goes through the JVM.

Spark takes files apart into rows and puts these together again for Python, which is two thirds of what a load costs.
Whether a data frame is its files and nothing else is asked of Spark itself: it must mean the same as reading them. A
filter, an expression, a partition column in a path or an option of the reader, and it does not. Whatever could make
two readers see different values, an old calendar, types that Spark widens, is left to Spark too.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from remuda.dataclass import dataclass
from remuda.spark.driver.arrow_types import arrow_type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField

MOST_FILES = 1_000
"""More of them would be looked into too long before the first row is read."""
_PATTERN = frozenset("*?[]{}\\")
"""What Spark takes for a pattern in a path."""
_LEGACY = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_REBASE = "spark.sql.parquet.datetimeRebaseModeInRead"


@dataclass(frozen=True, slots=True)
class RowGroup:
    path: str
    number: int
    rows: int


def row_groups(dataframe: DataFrame, fields: Mapping[str, StructField]) -> list[RowGroup] | None:
    """Return the row groups of the data frame's files; None where Spark has to read it."""
    paths = _local_files(dataframe)
    if paths is None or any(field.metadata for field in fields.values()) or _is_cached(dataframe):
        return None
    found: list[RowGroup] = []
    for path in paths:
        try:
            file = pq.ParquetFile(path)
        except (OSError, pa.ArrowException):
            return None
        with file:
            if not all(_reads_alike(dataframe, file, field) for field in fields.values()):
                return None
            sizes = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
        found.extend(RowGroup(path, number, rows) for number, rows in enumerate(sizes) if rows)
    return found if _means_no_more(dataframe, paths) else None


def _is_cached(dataframe: DataFrame) -> bool:
    """Then it is what the files were, and near at hand."""
    level = dataframe.storageLevel
    return level.useMemory or level.useDisk


def _local_files(dataframe: DataFrame) -> list[str] | None:
    addresses = [urlsplit(each) for each in dataframe.inputFiles()]
    if not 0 < len(addresses) <= MOST_FILES or any(each.scheme != "file" or each.netloc for each in addresses):
        return None
    paths = [unquote(each.path) for each in addresses]
    return None if any(_PATTERN & set(path) for path in paths) else paths


def _means_no_more(dataframe: DataFrame, paths: list[str]) -> bool:
    """Test whether the data frame reads the files, or some of their columns, and does nothing else.

    Its reader may have been told the files or their folders.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    folders = sorted({str(Path(path).parent) for path in paths})
    try:
        return any(_is_whole(dataframe, paths) for paths in (folders, paths)) or any(
            _is_choice(dataframe, paths) for paths in (folders, paths)
        )
    except (PySparkException, Py4JError):
        return False


def _is_whole(dataframe: DataFrame, paths: list[str]) -> bool:
    return dataframe.sameSemantics(dataframe.sparkSession.read.schema(dataframe.schema).parquet(*paths))


def _is_choice(dataframe: DataFrame, paths: list[str]) -> bool:
    """Test whether a frame is some columns of the files, for which Spark has to read the schema of one."""
    whole = dataframe.sparkSession.read.parquet(*paths)
    names = ["`" + name.replace("`", "``") + "`" for name in dataframe.columns]
    return set(dataframe.columns) <= set(whole.columns) and dataframe.sameSemantics(whole.select(*names))


def _reads_alike(dataframe: DataFrame, file: pq.ParquetFile, field: StructField) -> bool:
    """Test whether the column of this name has the very type in the file that the data frame has."""

    schema = file.schema_arrow
    # A dot in a name is a path to Arrow, so that `a` might be taken for `a.b` as well.
    if len(schema.get_all_field_indices(field.name)) != 1 or any("." in name for name in schema.names):
        return False
    wanted = arrow_type(field.dataType)
    held = schema.field(field.name).type
    if pa.types.is_dictionary(held):
        held = held.value_type
    if pa.types.is_temporal(wanted) and not _has_new_calendar(dataframe, file):
        return False
    return bool(held == wanted or (pa.types.is_string(wanted) and pa.types.is_large_string(held)))


def _has_new_calendar(dataframe: DataFrame, file: pq.ParquetFile) -> bool:
    """Dates before 1582 were once written by the old calendar, which Spark recognises by marks in the file."""
    marks: dict[bytes, Any] = file.metadata.metadata or {}
    version = marks.get(b"org.apache.spark.version", b"4").decode()
    if any(mark in marks for mark in _LEGACY) or not version.split(".")[0].isdigit() or int(version.split(".")[0]) < 3:
        return False
    return dataframe.sparkSession.conf.get(_REBASE) == "CORRECTED"
