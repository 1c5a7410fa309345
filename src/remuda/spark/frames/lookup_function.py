"""The table function `remuda_lookup` of Spark SQL: a lookup over the rows of its table argument.

    SELECT * FROM remuda_lookup(TABLE(events), 'shop.remuda', 'orders', 'orderid', columns => 'status, amount')

Spark asks `analyze` for the columns of the result, in a process of its own beside the driver, and hands what it returns
to an instance of the class in each task. Rows come one by one as Python values, and are looked up by some thousands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.functions import udtf
from pyspark.sql.types import StructType, TimestampType
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult

from remuda.errors import option_error
from remuda.spark.driver.arrow_types import arrow_type
from remuda.spark.frames.lookup_frame import plan_lookup
from remuda.spark.source.planned_map import PlannedMap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Row, SparkSession

    from remuda.spark.frames.lookup_task import LookupTask

NAME = "remuda_lookup"
_ROWS = 10_000
"""How many rows are looked up at once."""


@dataclass
class PlannedFunction(AnalyzeResult):
    """What `analyze` found out, for the tasks. Spark copies it as a standard data class."""

    task: LookupTask | None = None
    key_types: tuple[Any, ...] = ()


class RemudaLookup:
    """The class that Spark registers. The parameters of `analyze` are those of the SQL function."""

    @staticmethod
    def analyze(
        table: AnalyzeArgument,
        path: AnalyzeArgument,
        map: AnalyzeArgument,
        on: AnalyzeArgument,
        columns: AnalyzeArgument | None = None,
        how: AnalyzeArgument | None = None,
        index: AnalyzeArgument | None = None,
    ) -> PlannedFunction:
        if not table.isTable or not isinstance(table.dataType, StructType):
            raise option_error(f"the first argument of {NAME} is a table: {NAME}(TABLE(t), ...)")
        asked = plan_lookup(
            PlannedMap({"path": _constant(path, "path"), "map": _constant(map, "map")}),
            table.dataType,
            _names(_constant(on, "on")),
            None if columns is None else _names(_constant(columns, "columns")),
            "left" if how is None else _constant(how, "how"),
            None if index is None else _constant(index, "index"),
        )
        types = tuple(table.dataType[position].dataType for position in asked.task.keys)
        return PlannedFunction(asked.schema, task=asked.task, key_types=types)

    def __init__(self, planned: PlannedFunction) -> None:
        assert planned.task is not None, "analyze plans the task"
        self._task = planned.task
        self._key_types = planned.key_types
        self._rows: list[Row] = []

    def eval(self, table: Row, *_constants: Any, **_named: Any) -> Iterator[tuple[Any, ...]]:
        """Take a row of the table; the other arguments are those that `analyze` had."""
        self._rows.append(table)
        if len(self._rows) >= _ROWS:
            yield from self.terminate()

    def terminate(self) -> Iterator[tuple[Any, ...]]:
        """Look up the rows that have come."""
        rows, self._rows = self._rows, []
        if not rows:
            return
        keys = [
            _key_array([row[position] for row in rows], spark_type)
            for position, spark_type in zip(self._task.keys, self._key_types, strict=True)
        ]
        for positions, found in self._task.find(keys):
            ours = rows if positions is None else [rows[position] for position in positions.tolist()]
            theirs = zip(*(column.to_pylist() for column in found), strict=True) if found else ((),) * len(ours)
            for row, values in zip(ours, theirs, strict=True):
                yield (*row, *values)


def _constant(argument: AnalyzeArgument, name: str) -> Any:
    if argument.isTable or not argument.isConstantExpression or argument.value is None:
        raise option_error(f"{name} of {NAME} is a constant")
    return argument.value


def _names(value: Any) -> Any:
    """Return a list for names in one text; an ARRAY of names is a list, a MAP from names to names a dictionary."""
    return [name.strip() for name in value.split(",")] if isinstance(value, str) else value


def _key_array(values: list[Any], spark_type: Any) -> pa.Array:
    """Convert the keys; a TIMESTAMP comes as a moment on the clock of the worker, without its zone."""
    if isinstance(spark_type, TimestampType):
        values = [None if value is None else value.astimezone() for value in values]
    return pa.array(values, arrow_type(spark_type))


def register_lookup(spark: SparkSession) -> None:
    """Make the function known to a session."""
    spark.udtf.register(NAME, udtf(RemudaLookup, useArrow=False))  # type: ignore[arg-type]  # the stub lets `udtf` be a decorator
