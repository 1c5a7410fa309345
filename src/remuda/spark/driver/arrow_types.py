"""Arrow types of Spark's types, whatever the version of PySpark calls the argument that says UTC."""

from __future__ import annotations

from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType


def arrow_type(spark_type: DataType) -> pa.DataType:
    """Return the Arrow type in which Spark hands a column to Python; a TIMESTAMP is a moment in UTC.

    Raises a `PySparkException` for a type that Spark does not hand over.
    """
    from pyspark.sql.pandas.types import to_arrow_type

    return to_arrow_type(spark_type, **_in_utc())


@cache
def _in_utc() -> dict[str, Any]:
    """Return the arguments for moments in UTC: PySpark 4.2 wants the name of the zone, the ones before take UTC."""
    from pyspark.sql.pandas.types import to_arrow_type

    return {"timezone": "UTC"} if "timezone" in signature(to_arrow_type).parameters else {}
