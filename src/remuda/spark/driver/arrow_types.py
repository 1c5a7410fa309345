"""Arrow types of Spark's types, whatever the version of PySpark calls the argument that says UTC, and the way back."""

from __future__ import annotations

from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Any

from remuda.errors import not_supported
from remuda.types import Kind

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType

    from remuda.catalog import ColumnDefinition
    from remuda.expr import Column
    from remuda.plan.result_column import ResultColumn


def arrow_type(of_spark: DataType) -> pa.DataType:
    """Return the Arrow type in which Spark hands a column to Python; a TIMESTAMP is a moment in UTC.

    Raises a `PySparkException` for a type that Spark does not hand over.
    """
    from pyspark.sql.pandas.types import to_arrow_type

    return to_arrow_type(of_spark, **_in_utc())


@cache
def _in_utc() -> dict[str, Any]:
    """Return the arguments for moments in UTC: PySpark 4.2 wants the name of the zone, the ones before take UTC."""
    from pyspark.sql.pandas.types import to_arrow_type

    return {"timezone": "UTC"} if "timezone" in signature(to_arrow_type).parameters else {}


def spark_type(column: Column | ColumnDefinition | ResultColumn) -> DataType:
    """Return the type of a column in a frame.

    By way of Arrow, and not of the type's name in SQL, which only a process with a Java can parse.
    """
    from pyspark.sql.pandas.types import from_arrow_type

    if column.type.kind is Kind.INTERVAL_MONTHS:
        raise not_supported(f"{column.name} is {column.type}, which PySpark cannot take: leave it out of columns")
    return from_arrow_type(column.type.arrow, prefer_timestamp_ntz=True)
