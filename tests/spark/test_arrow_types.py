"""What differs between versions of PySpark: Arrow types, and what older ones cannot do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import types as spark_types
from pyspark.sql.pandas import types as conversions

import remuda.spark
from remuda.errors import SqlError
from remuda.spark.driver import arrow_types
from remuda.spark.load import change_job, partition_job

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def asks_again() -> Iterator[None]:
    arrow_types._in_utc.cache_clear()
    yield
    arrow_types._in_utc.cache_clear()


def test_a_moment_is_in_utc() -> None:
    assert arrow_types.arrow_type(spark_types.TimestampType()) == pa.timestamp("us", tz="UTC")
    assert arrow_types.arrow_type(spark_types.TimestampNTZType()) == pa.timestamp("us")


def test_the_switch_of_pyspark_4_1_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def to_arrow_type(
        dt: spark_types.DataType,
        error_on_duplicated_field_names_in_struct: bool = False,
        timestamp_utc: bool = True,
        prefers_large_types: bool = False,
    ) -> pa.DataType:
        assert not error_on_duplicated_field_names_in_struct
        assert not prefers_large_types
        return pa.timestamp("us", tz="UTC" if timestamp_utc else None)

    monkeypatch.setattr(conversions, "to_arrow_type", to_arrow_type)
    assert arrow_types.arrow_type(spark_types.TimestampType()) == pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize("version", ["3.5.7", "4.0.1"])
def test_an_older_pyspark_is_refused_with_what_it_can_do(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(pyspark, "__version__", version)
    for call in (lambda: remuda.spark.register(None), lambda: remuda.spark.write(None, "shop", "t")):  # type: ignore[arg-type]
        with pytest.raises(SqlError, match=f"needs PySpark 4.1 or newer, and this is {version}"):
            call()
    with pytest.raises(SqlError, match=f'mode="apply" needs PySpark 4.1 or newer, and this is {version}'):
        change_job.load_changed_frame(None, None, None, None)  # type: ignore[arg-type]


def test_a_load_needs_no_class_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark 4.0 and 3.5 have no `DatetimeType`: no data frame could be loaded with them."""
    monkeypatch.delattr(spark_types, "DatetimeType", raising=False)
    monkeypatch.delattr(spark_types, "TimeType", raising=False)
    sized, text = (spark_types.StructField("c", each) for each in (spark_types.DateType(), spark_types.StringType()))
    assert partition_job.batch_rows([sized]) > partition_job.batch_rows([sized, text])
