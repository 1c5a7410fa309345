"""The one table SQL ↔ Arrow ↔ Spark, and the types that two types share."""

from __future__ import annotations

import pyarrow as pa
import pytest

from remuda import types
from remuda.errors import ErrorCode, SqlError
from remuda.types import SqlType, common_type, decimal, from_arrow

TABLE = [
    (types.BOOLEAN, "BOOLEAN", pa.bool_(), "boolean"),
    (types.TINYINT, "TINYINT", pa.int8(), "tinyint"),
    (types.SMALLINT, "SMALLINT", pa.int16(), "smallint"),
    (types.INTEGER, "INTEGER", pa.int32(), "int"),
    (types.BIGINT, "BIGINT", pa.int64(), "bigint"),
    (decimal(10, 2), "DECIMAL(10, 2)", pa.decimal128(10, 2), "decimal(10,2)"),
    (types.REAL, "REAL", pa.float32(), "float"),
    (types.DOUBLE, "DOUBLE", pa.float64(), "double"),
    (types.VARCHAR, "VARCHAR", pa.string(), "string"),
    (types.VARBINARY, "VARBINARY", pa.binary(), "binary"),
    (types.DATE, "DATE", pa.date32(), "date"),
    (types.TIME, "TIME", pa.time64("us"), "time(6)"),
    (types.TIMESTAMP, "TIMESTAMP", pa.timestamp("us"), "timestamp_ntz"),
    (types.TIMESTAMP_TZ, "TIMESTAMP WITH TIME ZONE", pa.timestamp("us", tz="UTC"), "timestamp"),
    (types.INTERVAL_TIME, "INTERVAL DAY TO SECOND", pa.duration("us"), "interval day to second"),
]


@pytest.mark.parametrize(("type_", "name", "arrow", "spark"), TABLE, ids=[row[1] for row in TABLE])
def test_each_type_has_one_name_in_sql_arrow_and_spark(
    type_: SqlType, name: str, arrow: pa.DataType, spark: str
) -> None:
    assert (str(type_), type_.arrow, type_.spark) == (name, arrow, spark)
    assert from_arrow(arrow) == type_
    assert SqlType.named(type_.name, type_.precision, type_.scale) == type_


def test_types_that_arrow_has_no_own_type_for() -> None:
    assert (str(types.JSON), types.JSON.arrow, types.JSON.spark) == ("JSON", pa.string(), "string")
    assert SqlType.named("JSON") == types.JSON != types.VARCHAR
    assert types.INTERVAL_MONTHS.arrow == pa.int64()
    assert from_arrow(pa.int64()) == types.BIGINT


OTHER_ARROW = [
    (pa.large_string(), types.VARCHAR),
    (pa.dictionary(pa.int32(), pa.string()), types.VARCHAR),
    (pa.uint32(), types.BIGINT),
    (pa.timestamp("ns"), types.TIMESTAMP),
    (pa.timestamp("s", tz="Europe/Paris"), types.TIMESTAMP_TZ),
    (pa.time32("s"), types.TIME),
    (pa.duration("ms"), types.INTERVAL_TIME),
    (pa.decimal256(20, 3), decimal(20, 3)),
]


@pytest.mark.parametrize(("arrow", "type_"), OTHER_ARROW, ids=[str(row[0]) for row in OTHER_ARROW])
def test_other_arrow_types(arrow: pa.DataType, type_: SqlType) -> None:
    assert from_arrow(arrow) == type_


@pytest.mark.parametrize(
    "arrow", [pa.uint64(), pa.decimal256(60, 2), pa.list_(pa.int64()), pa.month_day_nano_interval()]
)
def test_arrow_types_without_a_sql_type(arrow: pa.DataType) -> None:
    with pytest.raises(SqlError, match="has no SQL type"):
        from_arrow(arrow)


SHARED = [
    (types.TINYINT, types.BIGINT, types.BIGINT),
    (types.BIGINT, types.REAL, types.DOUBLE),
    (types.REAL, types.REAL, types.REAL),
    (types.REAL, types.DOUBLE, types.DOUBLE),
    (decimal(10, 2), types.DOUBLE, types.DOUBLE),
    (decimal(10, 2), types.INTEGER, decimal(12, 2)),
    (decimal(10, 2), decimal(6, 4), decimal(12, 4)),
    (decimal(38, 0), decimal(38, 10), decimal(38, 10)),
    (types.DATE, types.TIMESTAMP, types.TIMESTAMP),
    (types.DATE, types.TIMESTAMP_TZ, types.TIMESTAMP_TZ),
    (types.TIMESTAMP, types.TIMESTAMP_TZ, types.TIMESTAMP_TZ),
    (types.JSON, types.VARCHAR, types.VARCHAR),
    (types.NULL, types.TIME, types.TIME),
    (types.VARCHAR, types.INTEGER, None),
    (types.BOOLEAN, types.INTEGER, None),
    (types.DATE, types.TIME, None),
    (types.VARCHAR, types.VARBINARY, None),
    (types.INTERVAL_MONTHS, types.INTERVAL_TIME, None),
]


@pytest.mark.parametrize(("left", "right", "shared"), SHARED)
def test_shared_types(left: SqlType, right: SqlType, shared: SqlType | None) -> None:
    assert common_type(left, right) == common_type(right, left) == shared


@pytest.mark.parametrize(("precision", "scale"), [(0, 0), (39, 0), (5, 6), (10, -1)])
def test_decimals_that_are_no_types(precision: int, scale: int) -> None:
    with pytest.raises(SqlError) as failure:
        decimal(precision, scale)
    assert failure.value.code is ErrorCode.PARSING
