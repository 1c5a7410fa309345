"""A result column without an alias has one name, however its expression is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import remuda


@pytest.fixture(scope="module")
def grid() -> Iterator[Any]:
    with remuda.open() as opened:
        opened.sql("CREATE TABLE t (Id BIGINT, a INTEGER, s VARCHAR, at TIMESTAMP, PRIMARY KEY (Id))")
        yield opened


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("iD", "Id"),
        ("sum( a )", "SUM(a)"),
        ("7 // 2", "7 // 2"),
        ("a//(1+1)", "a // (1 + 1)"),
        ("a ** 2", "a ^ 2"),
        ("a::bigint", "CAST(a AS BIGINT)"),
        ("CAST(a AS int)", "CAST(a AS INTEGER)"),
        ("a::float8", "CAST(a AS DOUBLE)"),
        ("a::tinyint::text", "CAST(CAST(a AS TINYINT) AS VARCHAR)"),
        ("TRY_CAST(s AS double precision)", "TRY_CAST(s AS DOUBLE)"),
        ("a::decimal(10,2)", "CAST(a AS DECIMAL(10, 2))"),
        ("s::varchar(3)", "CAST(s AS VARCHAR(3))"),
        ("now()::timestamp with time zone", "CAST(CURRENT_TIMESTAMP AS TIMESTAMP WITH TIME ZONE)"),
        ("date '2024-01-31'", "CAST('2024-01-31' AS DATE)"),
        ("at + interval '1 day 02:30:00'", "at + INTERVAL '1 day 02:30:00'"),
        ("at - interval '90' minute", "at - INTERVAL '90' MINUTE"),
        ("at - interval '1-2' year to month", "at - INTERVAL '1-2' YEAR TO MONTH"),
        ("a not in (1,2)", "a NOT IN (1, 2)"),
        ("a is not null", "a IS NOT NULL"),
        ("not a = 1", "NOT a = 1"),
        ("s not like 'x%'", "s NOT LIKE 'x%'"),
        ("a not between 1 and 2", "a NOT BETWEEN 1 AND 2"),
        ("lag(a) ignore nulls over (order by id)", "LAG(a) IGNORE NULLS OVER (ORDER BY id)"),
        (
            "sum(a) over (order by id rows 1 preceding)",
            "SUM(a) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        ),
        ("count(distinct a, s)", "COUNT(DISTINCT a, s)"),
        ("count( * )", "COUNT(*)"),
        ("substring(s from 2 for 3)", "SUBSTRING(s, 2, 3)"),
        ("json_object('a', a)", "JSON_OBJECT('a', a)"),
        ("median(a)", "MEDIAN(a)"),
        ("var_samp(a)", "VAR_SAMP(a)"),
        ("max_by(a, id)", "MAX_BY(a, id)"),
    ],
)
def test_the_name_of_an_expression(grid: Any, written: str, name: str) -> None:
    result = grid.sql(f"SELECT {written} FROM t")
    assert [column.name for column in result.columns] == [name]
    assert [column.name for column in grid.sql(f'SELECT "{name}" FROM (SELECT {written} FROM t) AS q').columns] == [
        name
    ]


def test_a_parameter_is_part_of_the_name(grid: Any) -> None:
    assert [column.name for column in grid.sql("SELECT a // ?, ?::int FROM t", 2, 3).columns] == [
        "a // ?0",
        "CAST(?1 AS INTEGER)",
    ]
