"""Aggregates over outer joins give DuckDB's answers, whichever side of the join they are computed below."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pytest

import remuda
from remuda.errors import SqlError
from tests.harness.databases import DuckDatabase
from tests.harness.plan_trace import explain_with_trace

if TYPE_CHECKING:
    from collections.abc import Iterator

RULE = "aggregate_below_join"
TABLES = {
    "o": "id BIGINT, cust INTEGER, grp INTEGER, ok INTEGER, share DOUBLE",
    "r": "id BIGINT, grp INTEGER, amount INTEGER, zero INTEGER, label VARCHAR, share DOUBLE",
}
"""Customers 7, 8 and 9 have only groups without a match; `zero` and `label` spoil rows of r that have no match."""
ROWS = {
    "o": """SELECT i AS id, i % 10 AS cust,
        CASE WHEN i % 10 >= 7 THEN 1000000 + i % 90 ELSE i % ({groups} + 10) END AS grp, 1 AS ok,
        CASE WHEN i % 2 = 0 THEN 0.0 ELSE 1.5 END AS share FROM range({rows}) t(i)""",
    "r": """SELECT i AS id, CASE WHEN i % 9 = 0 THEN 2000000 + i % 7 ELSE i % {groups} END AS grp,
        CASE WHEN i % 11 > 0 THEN i % 97 END AS amount, CASE WHEN i % 9 = 0 THEN 0 ELSE 1 + i % 5 END AS zero,
        CASE WHEN i % 9 = 0 THEN 'none' ELSE CAST(i % 50 AS VARCHAR) END AS label,
        CASE WHEN i % 2 = 0 THEN 0.0 ELSE 2.5 END AS share FROM range({rows}) t(i)""",
}

NOT_NULL_WITHOUT_MATCH = [
    "SUM(CASE WHEN r.id IS NULL THEN 1 ELSE 0 END)",
    "SUM(COALESCE(r.amount, 0))",
    "MAX(COALESCE(r.amount, -1))",
    "MAX(1)",
    "COUNT(1)",
    "SUM(1)",
    "COUNT(COALESCE(r.amount, 0))",
    "COUNT(*) FILTER (WHERE r.id IS NULL)",
    "BOOL_OR(r.id IS NULL)",
    "AVG(COALESCE(r.amount, 0))",
    "COUNT(*) FILTER (WHERE r.amount IS DISTINCT FROM 5)",
    "SUM(2) FILTER (WHERE COALESCE(r.amount, 0) = 0)",
    "BOOL_AND(r.amount IS NOT NULL)",
    "MIN(CASE WHEN r.amount > 50 THEN 1 ELSE 2 END)",
    "MIN(CONCAT(r.label, '!'))",
    "COUNT(GREATEST(r.amount, 3))",
    "COUNT(NULLIF(1, r.amount))",
    "BIT_OR(COALESCE(r.amount, 128))",
    "COUNT(*)",
    "COUNT(*) FILTER (WHERE (r.amount > 5) IS NOT TRUE)",
    "COUNT(DISTINCT COALESCE(r.amount, -1))",
    "COUNT(r.id IS NULL)",
]
"""Not NULL where the join finds no row of r: only the rows above the join tell what they are."""
NULL_WITHOUT_MATCH = [
    "SUM(r.amount)",
    "COUNT(r.amount)",
    "MIN(r.amount)",
    "AVG(r.amount)",
    "BOOL_OR(r.amount > 95)",
    "COUNT(*) FILTER (WHERE r.amount > 50)",
    "SUM(r.amount) FILTER (WHERE r.amount > 50)",
    "SUM(CASE WHEN r.amount > 50 THEN 1 END)",
    "COUNT(r.amount = 5 OR NULL)",
    "MAX(upper(r.label))",
]
"""NULL where the join finds no row of r, and so left out: these may be computed below it."""
JOINS = {
    "left": "o LEFT JOIN r ON r.grp = o.grp",
    "right": "r RIGHT JOIN o ON r.grp = o.grp",
    "full": "o FULL JOIN r ON r.grp = o.grp",
}


class Databases:
    def __init__(self, rows: int, members: int) -> None:
        self.rows = rows
        self.grid = remuda.open(members=members)
        self.oracle = DuckDatabase()
        for name, columns in TABLES.items():
            statement = f"CREATE TABLE {name} ({columns}, PRIMARY KEY (id))"
            self.grid.sql(statement)
            self.oracle.execute(statement, [])
            query = ROWS[name].format(rows=rows, groups=max(60, rows // 40))
            self.oracle.load(name, query)
            columns_of = ", ".join(part.split()[0] for part in columns.split(", "))
            self.grid.load(name, duckdb.sql(f"SELECT {columns_of} FROM ({query})").to_arrow_table())

    def check(self, query: str) -> None:
        expected = comparable(self.oracle.query(query, []))
        assert comparable(tuple(row) for row in self.grid.sql(query)) == expected, query

    def close(self) -> None:
        self.grid.close()
        self.oracle.close()


def comparable(rows: Any) -> list[tuple[Any, ...]]:
    """Numbers of one type, rounded as far as the order of additions can matter."""
    plain = [
        tuple(value if value is None or isinstance(value, str) else round(float(value), 6) for value in row)
        for row in rows
    ]
    return sorted(plain, key=repr)


@pytest.fixture(scope="module", params=[(300, 1), (20_000, 1), (20_000, 3)], ids=["300", "20000", "20000 on three"])
def databases(request: pytest.FixtureRequest) -> Iterator[Databases]:
    opened = Databases(*request.param)
    yield opened
    opened.close()


@pytest.mark.parametrize("join", JOINS.values(), ids=JOINS)
@pytest.mark.parametrize("call", [*NOT_NULL_WITHOUT_MATCH, *NULL_WITHOUT_MATCH])
def test_groups_without_a_match(databases: Databases, call: str, join: str) -> None:
    databases.check(f"SELECT o.cust, {call} AS n FROM {join} GROUP BY o.cust")
    if databases.rows > 300:
        return
    databases.check(f"SELECT o.cust, {call} AS n, COUNT(r.id) AS c FROM {join} GROUP BY o.cust HAVING COUNT(*) > 1")
    databases.check(f"SELECT o.grp, {call} AS n FROM {join} WHERE o.id < 40 GROUP BY ROLLUP (o.grp)")
    databases.check(f"SELECT o.id, {call} AS n FROM {join} WHERE o.id % 50 < 10 GROUP BY o.id")


@pytest.mark.parametrize("call", NULL_WITHOUT_MATCH)
def test_what_is_null_without_a_match_moves_below_the_join(databases: Databases, call: str) -> None:
    assert RULE in rules(databases, f"SELECT o.cust, {call} AS n FROM {JOINS['left']} GROUP BY o.cust")


def test_rows_are_counted_below_the_side_that_is_kept(databases: Databases) -> None:
    query = f"SELECT o.cust, COUNT(1) AS n, SUM(1) AS m, COUNT(*) AS c FROM {JOINS['left']} GROUP BY o.cust"
    assert databases.rows == 300 or RULE in rules(databases, query)
    databases.check(query)


@pytest.mark.parametrize(
    "call",
    [
        "SUM(60 / r.zero)",
        "COUNT(CAST(r.label AS INTEGER))",
        "SUM(CASE WHEN 60 / r.zero > 20 THEN 1 ELSE 0 END)",
        "COUNT(*) FILTER (WHERE CAST(r.label AS INTEGER) > 20)",
        "MAX(o.cust + 60 / r.zero)",
    ],
)
@pytest.mark.parametrize("join", ["o JOIN r ON r.grp = o.grp", JOINS["left"], JOINS["right"]])
def test_an_argument_is_not_computed_for_rows_that_the_join_drops(databases: Databases, call: str, join: str) -> None:
    """The rows of r that have no match would be an error."""
    databases.check(f"SELECT o.cust, {call} AS n FROM {join} GROUP BY o.cust")


def test_a_second_match_of_a_scalar_sub_query_stays_an_error(databases: Databases) -> None:
    for grouped in ("o.cust", "o.grp", "o.id"):
        value = "(SELECT r.amount FROM r WHERE r.grp = o.grp)"
        with pytest.raises(SqlError, match="more than one row"):
            databases.grid.sql(f"SELECT {grouped}, SUM({value}) FROM o GROUP BY {grouped}").fetchall()


def test_zeros_of_both_signs_are_one_group_and_two_texts(databases: Databases) -> None:
    """DuckDB asks the filter below the window, and finds half of the rows there."""
    zero = "CASE WHEN id % 2 = 0 THEN CAST('-0.0' AS DOUBLE) ELSE CAST('0.0' AS DOUBLE) END AS zero"
    source = f"(SELECT *, {zero} FROM o) o"
    databases.check(
        f"SELECT CAST(o.zero AS VARCHAR) LIKE '-%', COUNT(o.cust) FROM {source} JOIN r USING (grp) GROUP BY 1"
    )
    negative = "CAST(o.zero AS VARCHAR) LIKE '-%'"
    databases.check(f"SELECT r.grp, COUNT(o.cust) FROM {source} JOIN r ON r.grp = o.grp AND {negative} GROUP BY r.grp")
    counted = f"(SELECT zero, COUNT(*) OVER (PARTITION BY zero) AS n FROM {source}) o"
    assert databases.grid.sql(f"SELECT DISTINCT n FROM {counted} WHERE {negative}").fetchall() == [(databases.rows,)]


def rules(databases: Databases, query: str) -> set[str]:
    return set(explain_with_trace(databases.grid, query)[1])
