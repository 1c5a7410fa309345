"""Values: what each type takes, what it refuses, and that nothing is lost on the way."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda import types
from remuda.errors import ErrorCode, SqlError
from remuda.types import (
    SqlType,
    decimal,
    interval_text,
    parse_interval,
    stored_converter,
    to_python,
    to_stored,
    type_of_value,
)

EAST = dt.timezone(dt.timedelta(hours=5, minutes=30))

STORED = [
    (types.BOOLEAN, True, True),
    (types.SMALLINT, 5.0, 5),
    (types.BIGINT, Decimal(7), 7),
    (decimal(5, 2), 1.005, Decimal("1.01")),
    (decimal(5, 2), 7, Decimal("7.00")),
    (types.REAL, 0.1, 0.10000000149011612),
    (types.DOUBLE, Decimal("0.1"), 0.1),
    (types.VARCHAR, "é", "é"),
    (types.VARBINARY, bytearray(b"a"), b"a"),
    (types.DATE, "1970-01-02", 1),
    (types.DATE, dt.datetime(1970, 1, 2), 1),
    (types.TIME, dt.time(0, 0, 1, 5), 1_000_005),
    (types.TIME, "00:01", 60_000_000),
    (types.TIMESTAMP, dt.date(1970, 1, 2), 86_400_000_000),
    (types.TIMESTAMP, "1970-01-01T00:00:00.000001", 1),
    (types.TIMESTAMP, dt.datetime(1970, 1, 1, 5, 30, tzinfo=EAST), 0),
    (types.TIMESTAMP_TZ, dt.datetime(1970, 1, 1, 5, 30, tzinfo=EAST), 0),
    (types.TIMESTAMP_TZ, "1970-01-01 05:30:00+05:30", 0),
    (types.TIMESTAMP_TZ, dt.datetime(1970, 1, 1), 0),
    (types.JSON, '{"a": [1, null]}', '{"a": [1, null]}'),
    (types.JSON, {"a": [1, None]}, '{"a":[1,null]}'),
    (types.INTERVAL_TIME, dt.timedelta(days=-1), -86_400_000_000),
    (types.INTERVAL_MONTHS, "1 year 1 month", 13),
]


@pytest.mark.parametrize(("type_", "value", "stored"), STORED)
def test_values_have_one_stored_form(type_: SqlType, value: Any, stored: Any) -> None:
    found = to_stored(type_, value)
    assert (type(found), found) == (type(stored), stored)
    assert stored_converter(type_)(value) == stored


REFUSED = [
    (types.BOOLEAN, 1),
    (types.SMALLINT, 100_000),
    (types.INTEGER, 1.5),
    (types.INTEGER, True),
    (types.INTEGER, "1"),
    (types.INTEGER, math.inf),
    (decimal(5, 2), 1000),
    (decimal(5, 2), "1"),
    (decimal(5, 2), Decimal("NaN")),
    (types.REAL, 1e300),
    (types.VARCHAR, 5),
    (types.VARCHAR, "half a pair: \ud800"),
    (types.VARBINARY, "text"),
    (types.DATE, "2023-02-29"),
    (types.DATE, dt.datetime(2024, 1, 1, 10)),
    (types.TIME, dt.time(10, tzinfo=EAST)),
    (types.TIME, "25:00"),
    (types.TIMESTAMP, 5),
    (types.JSON, "{"),
    (types.JSON, "NaN"),
    (types.JSON, object()),
    (types.JSON, '"\ud800"'),
    (types.INTERVAL_TIME, "1 month"),
    (types.INTERVAL_MONTHS, dt.timedelta(1)),
]


@pytest.mark.parametrize(("type_", "value"), REFUSED)
def test_values_that_a_type_cannot_hold_are_refused(type_: SqlType, value: Any) -> None:
    for convert in (lambda given: to_stored(type_, given), stored_converter(type_)):
        with pytest.raises(SqlError) as failure:
            convert(value)
        assert failure.value.code is ErrorCode.DATA_EXCEPTION
        str(failure.value).encode("utf-8", "backslashreplace")


_MOMENTS = {
    types.DATE: st.dates(),
    types.TIME: st.times(),
    types.TIMESTAMP: st.datetimes(),
    types.TIMESTAMP_TZ: st.datetimes(
        dt.datetime(1, 1, 3), dt.datetime(9999, 12, 29), timezones=st.sampled_from([dt.UTC, EAST])
    ),
    types.INTERVAL_TIME: st.timedeltas(),
}


@given(st.sampled_from(sorted(_MOMENTS, key=str)).flatmap(lambda type_: st.tuples(st.just(type_), _MOMENTS[type_])))
def test_moments_come_back(pair: tuple[SqlType, Any]) -> None:
    type_, value = pair
    stored = to_stored(type_, value)
    assert type(stored) is int
    assert to_python(type_, stored) == value
    assert type_of_value(value) == type_


@given(st.integers(-(2**63), 2**63 - 1))
def test_intervals_come_back_from_their_text(stored: int) -> None:
    for type_ in (types.INTERVAL_MONTHS, types.INTERVAL_TIME):
        text = interval_text(type_, stored).split("'")[1]
        assert parse_interval(text) == (type_, stored)


INTERVALS = [
    ("1 day", 86_400_000_000),
    ("2 weeks", 14 * 86_400_000_000),
    ("1.5 hours", 5_400_000_000),
    ("-00:00:01", -1_000_000),
    ("1 day -1 hour", 23 * 3_600_000_000),
    ("1 h 1 min 1 s 1 ms 1 us", 3_661_001_001),
    ("1 02:03:04.5", 93_784_500_000),
    ("1 decade 1 quarter", 123),
    ("-1-6", -18),
]


@pytest.mark.parametrize(("text", "stored"), INTERVALS)
def test_intervals_are_read_from_text(text: str, stored: int) -> None:
    assert parse_interval(text)[1] == stored


@pytest.mark.parametrize("text", ["", "day", "1", "1 fortnight", "1 month 1 day", "0.5 months", "1 day and a half"])
def test_what_is_no_interval(text: str) -> None:
    with pytest.raises(SqlError):
        parse_interval(text)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (True, "BOOLEAN"),
        (1, "BIGINT"),
        (2**63, "DECIMAL(19, 0)"),
        (Decimal("1.50"), "DECIMAL(3, 2)"),
        (Decimal("1E+3"), "DECIMAL(4, 0)"),
        (1.0, "DOUBLE"),
        ("", "VARCHAR"),
        (b"", "VARBINARY"),
        (dt.timedelta(1), "INTERVAL DAY TO SECOND"),
        (None, "NULL"),
    ],
)
def test_types_of_values(value: Any, name: str) -> None:
    assert str(type_of_value(value)) == name


@pytest.mark.parametrize("value", [object(), Decimal("Infinity"), 10**38, [1]])
def test_values_without_a_type(value: Any) -> None:
    with pytest.raises(SqlError):
        type_of_value(value)
