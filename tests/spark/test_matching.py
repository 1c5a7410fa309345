"""Columns of a DataFrame against those of a map: by name and type alone, no Spark running."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from remuda.errors import ErrorCode, SqlError
from remuda.spark.load.matching import match_columns
from remuda.types import TIMESTAMP_TZ
from tests.spark.maps import orders


def schema(**fields: DataType) -> StructType:
    return StructType([StructField(name, data_type) for name, data_type in fields.items()])


def test_names_match_without_regard_to_case_and_order() -> None:
    matched = match_columns(orders(), schema(Amount=DoubleType(), ID=LongType()))
    assert {name: field.name for name, field in matched.items()} == {"amount": "Amount", "id": "ID"}


@pytest.mark.parametrize(
    ("column", "data_type"),
    [
        ("id", IntegerType()),
        ("id", DecimalType(10, 0)),
        ("quantity", LongType()),
        ("amount", DecimalType(10, 2)),
        ("created", TimestampType()),
        ("created", TimestampNTZType()),
    ],
)
def test_types_that_may_fit_are_left_to_the_values(column: str, data_type: DataType) -> None:
    given = StructType([StructField("id", LongType())]) if column != "id" else StructType()
    assert column in match_columns(orders(), given.add(column, data_type))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (schema(id=LongType(), amont=DoubleType()), 'no column amont\n  Did you mean "amount"'),
        (schema(amount=DoubleType()), "no column for orders.id"),
        (schema(id=LongType(), ID=LongType()), "two columns for orders.id"),
        (schema(id=LongType(), amount=StringType()), "orders.amount is DOUBLE, the DataFrame's amount is string"),
        (schema(id=LongType(), customer=LongType()), "orders.customer is VARCHAR, the DataFrame's customer is bigint"),
        (schema(id=LongType(), customer=ArrayType(StringType())), "array<string>, which has no SQL type"),
    ],
)
def test_what_does_not_fit_is_refused(given: StructType, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        match_columns(orders(), given)
    assert caught.value.code is ErrorCode.DATA_EXCEPTION
    assert message in str(caught.value)


@pytest.mark.parametrize("given", [TimestampNTZType(), DateType()])
def test_a_time_without_a_zone_is_no_moment(given: DataType) -> None:
    """It was taken for one of UTC, which Spark's own cast does in a session of UTC alone."""
    columns = [replace(each, type=TIMESTAMP_TZ) if each.name == "created" else each for each in orders().columns]
    definition = replace(orders(), columns=tuple(columns))
    with pytest.raises(SqlError, match=r'Cast it first: \.withColumn\("created", \.\.\. \.cast\("timestamp"\)\)'):
        match_columns(definition, schema(id=LongType(), created=given))
    assert "created" in match_columns(definition, schema(id=LongType(), created=TimestampType()))
