"""Filters as Spark hands them over, and the expressions that they become."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from remuda.expr import Column, render
from remuda.spark.source.source_read import as_expression
from remuda.types import BIGINT, DATE, VARCHAR, decimal

COLUMNS = {
    "id": Column(0, "id", BIGINT),
    "name": Column(1, "name", VARCHAR),
    "day": Column(2, "day", DATE),
    "price": Column(3, "price", decimal(10, 2)),
}


@pytest.mark.parametrize(
    ("pushed", "expected"),
    [
        (EqualTo(("id",), 7), "id = 7"),
        (GreaterThan(("id",), 7), "id > 7"),
        (GreaterThanOrEqual(("id",), 7), "id >= 7"),
        (LessThan(("id",), 7), "id < 7"),
        (LessThanOrEqual(("id",), 7), "id <= 7"),
        (In(("id",), (1, 2)), "id IN (1, 2)"),
        (IsNull(("name",)), "name IS NULL"),
        (IsNotNull(("name",)), "name IS NOT NULL"),
        (EqualTo(("name",), "it's"), "name = 'it''s'"),
        (EqualTo(("day",), date(2024, 2, 29)), "day = DATE '2024-02-29'"),
    ],
)
def test_what_is_taken_over(pushed: Any, expected: str) -> None:
    found = as_expression(pushed, COLUMNS)
    assert found is not None
    assert render(found) == expected


@pytest.mark.parametrize(
    "pushed",
    [
        EqualTo(("other",), 7),
        EqualTo(("id", "part"), 7),
        EqualTo(("id",), 7.5),
        EqualTo(("id",), None),
        EqualTo(("id",), 2**80),
        In(("id",), (1, None)),
        In(("id",), ()),
        EqualNullSafe(("id",), None),
        StringStartsWith(("name",), "a"),
        Not(EqualTo(("id",), 7)),
    ],
)
def test_what_stays_with_spark(pushed: Any) -> None:
    assert as_expression(pushed, COLUMNS) is None
