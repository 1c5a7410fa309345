"""A map as a data frame: a scan of the columns that are named, whose size Spark knows.

The frame is a range of one row for each task, over which a task reads its share of the map. So Spark asks no process of
its own what there is to read, and estimates the size of the frame by the range. The data source, which PySpark asks for
no statistics, counts as 8 EiB, and a map of ten rows as too large to broadcast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.dataclass import dataclass
from remuda.errors import option_error
from remuda.spark.driver.arrow_types import spark_type
from remuda.spark.driver.connect import is_connect
from remuda.spark.driver.tasks import slot_count
from remuda.spark.frames.map_planning import plan_map
from remuda.spark.source.partition_scan import PlannedScan, scanned_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_LONG_BYTES = 8
_BINARY_BYTES = 50
"""What Spark's estimate of a frame grows by for each row of a range and each BINARY column put beside it."""
_RANGE_ROWS = 1_000_000
"""How long a range may be: Spark counts through it, a millisecond for a million rows."""
_MOST_BINARIES = 400
_ROW_BYTES = 8
"""What Spark adds to each row."""


def table(
    session: SparkSession,
    options: Mapping[str, str],
    columns: Iterable[str] | None,
    version: int | None,
    tasks: int | None,
) -> DataFrame:
    """Return a map as a frame: see `remuda.spark.table`."""
    from pyspark.sql.types import StructField, StructType

    if isinstance(columns, str):
        raise option_error("columns are a list of names")
    if tasks is not None and tasks < 1:
        raise option_error(f"tasks must be a whole number of at least 1, not {tasks}")
    planned = plan_map(session, {**options, **({} if version is None else {"version": str(version)})})
    scan = PlannedScan(planned, scanned_columns(planned.definition, columns))
    if not scan.columns:
        raise option_error("a frame has at least one column")
    shares = len(scan.shares(_tasks(session, planned.cores) if tasks is None else tasks))
    size = planned.rows * (_ROW_BYTES + sum(column.type.byte_width for column in scan.columns))
    schema = StructType([StructField(each.name, spark_type(each), each.nullable) for each in scan.columns])
    step, binaries = _estimate(size, shares)
    rows = session.range(0, step * shares, 1, shares).where(f"id % {step} = 0")
    if binaries:
        fields = ", ".join(f"b{number}: BINARY" for number in range(binaries))
        rows = rows.selectExpr("id", f"CAST(NULL AS STRUCT<{fields}>) AS width")
    return rows.mapInArrow(ScanTask(scan, shares, step), schema)


def _tasks(session: SparkSession, cores: int) -> int:
    return cores if is_connect(session) else slot_count(session)


def _estimate(size: int, shares: int) -> tuple[int, int]:
    """Return the rows of the range for each task, and how many columns beside it make Spark count `size` bytes.

    A range of n rows counts 8 bytes a row. A NULL structure of BINARY columns beside it makes rows wider in Spark's
    eyes, where so many rows would take long to count through.
    """
    binaries = min(_MOST_BINARIES, max(0, size // _RANGE_ROWS - _LONG_BYTES) // _BINARY_BYTES + 1)
    if size <= _RANGE_ROWS * _LONG_BYTES:
        binaries = 0
    rows = min(_RANGE_ROWS, size // (_LONG_BYTES + _BINARY_BYTES * binaries))
    return max(1, -(-rows // shares)), binaries


@dataclass(frozen=True, slots=True)
class ScanTask:
    """What each task does: the number of its row, in steps, is that of its share."""

    scan: PlannedScan
    tasks: int
    step: int

    @property
    def __name__(self) -> str:
        """Return what Spark's EXPLAIN and UI call the scan."""
        names = ", ".join(column.name for column in self.scan.columns)
        return f"remuda_table {self.scan.planned.definition.name} full scan ({names})"

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        shares = self.scan.shares(self.tasks)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from self.scan.read(shares[number // self.step])
