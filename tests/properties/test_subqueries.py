"""Sub-queries in every place over random rows with NULLs: the answers are DuckDB's."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

import remuda
from remuda.errors import SqlError
from tests.properties.subquery_templates import queries

if TYPE_CHECKING:
    from collections.abc import Iterator

CONTENTS = [
    (0, 1),
    (1, 3),
    (3, 3),
    *(pytest.param((seed, members), marks=pytest.mark.slow) for seed in range(4) for members in (1, 2, 3)),
]
SIZES = [(4, 9), (0, 6), (7, 0), (12, 12)]


@pytest.fixture(params=CONTENTS, ids=str)
def databases(request: pytest.FixtureRequest) -> Iterator[tuple[Any, Any]]:
    seed, members = request.param
    random = Random(seed)
    with remuda.open(members=members) as grid, duckdb.connect() as oracle:
        for name, size in zip("rs", SIZES[seed], strict=True):
            create = f"CREATE TABLE {name} (id BIGINT, a BIGINT, b BIGINT, PRIMARY KEY (id))"
            grid.sql(create)
            oracle.execute(create)
            for number in range(size):
                row = (number, random.choice([None, 0, 1, 2, 3]), random.choice([None, 0, 1, 2, 3]))
                grid.sql(f"INSERT INTO {name} VALUES (?, ?, ?)", *row)
                oracle.execute(f"INSERT INTO {name} VALUES (?, ?, ?)", row)
        yield grid, oracle


def test_answers_are_the_oracles(databases: tuple[Any, Any]) -> None:
    grid, oracle = databases
    for query in queries():
        expected = Counter(oracle.execute(query).fetchall())
        assert Counter(map(tuple, grid.sql(query).fetchall())) == expected, query


@pytest.mark.parametrize(
    "query",
    [
        "SELECT (SELECT s.id FROM s) FROM r",
        "SELECT (SELECT s.id FROM s WHERE s.a = r.a) FROM r",
        "SELECT id FROM r WHERE b = (SELECT s.b FROM s WHERE s.a < r.b)",
        "SELECT id FROM r WHERE b > (SELECT s.id + r.id FROM s WHERE s.a = r.a)",
    ],
)
def test_two_rows_for_one_value_are_an_error(query: str) -> None:
    with remuda.open() as grid:
        for name in "rs":
            grid.sql(f"CREATE TABLE {name} (id BIGINT, a BIGINT, b BIGINT, PRIMARY KEY (id))")
        grid.sql("INSERT INTO r VALUES (1, 1, 5)")
        grid.sql("INSERT INTO s VALUES (1, 1, 5)")
        assert len(grid.sql(query).fetchall()) == 1
        grid.sql("INSERT INTO s VALUES (2, 1, 5)")
        with pytest.raises(SqlError, match="more than one row"):
            grid.sql(query).fetchall()
