"""A column in Python form is its values in Python form."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda import types
from remuda.types import SqlType, python_column_converter, to_python, to_stored

VALUES: dict[SqlType, st.SearchStrategy[Any]] = {
    types.DATE: st.dates(),
    types.TIME: st.times(),
    types.TIMESTAMP: st.datetimes(),
    types.TIMESTAMP_TZ: st.datetimes(timezones=st.just(dt.UTC)),
    types.INTERVAL_TIME: st.timedeltas(),
}


@pytest.mark.parametrize("sql_type", VALUES, ids=str)
def test_columns_are_converted_as_values_are(sql_type: SqlType) -> None:
    convert = python_column_converter(sql_type)
    assert convert is not None

    @given(st.lists(st.none() | VALUES[sql_type]))
    def check(values: list[Any]) -> None:
        stored = [None if value is None else to_stored(sql_type, value) for value in values]
        found = convert(tuple(stored))
        assert found == values
        assert [type(value) for value in found] == [type(to_python(sql_type, value)) for value in stored]

    check()


def test_beyond_the_years_of_python_a_column_is_the_error_that_a_value_is() -> None:
    for sql_type, stored in ((types.TIMESTAMP, 10**18), (types.DATE, 10**8)):
        convert = python_column_converter(sql_type)
        assert convert is not None
        with pytest.raises((OverflowError, ValueError)) as single:
            to_python(sql_type, stored)
        with pytest.raises(single.type):
            convert([0, stored, None])


def test_what_is_stored_as_it_is_needs_no_conversion() -> None:
    for sql_type in (types.BIGINT, types.DOUBLE, types.VARCHAR, types.decimal(9, 2), types.BOOLEAN):
        assert python_column_converter(sql_type) is None
