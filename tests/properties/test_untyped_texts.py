"""A text as written takes the type of the values beside it, wherever it stands, or is refused with code 2000."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import remuda
from remuda.errors import ErrorCode, SqlError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remuda.grid import Grid

COLUMNS = {
    "INTEGER": "5",
    "BIGINT": "5",
    "SMALLINT": "-5",
    "DECIMAL(10, 2)": "5.25",
    "DOUBLE": "5.5",
    "REAL": "5.5",
    "DATE": "2024-01-02",
    "TIMESTAMP": "2024-01-02 03:04:05",
    "TIMESTAMP WITH TIME ZONE": "2024-01-02 03:04:05+00",
    "TIME": "10:00:00",
    "BOOLEAN": "true",
}
PLACES = (
    "SELECT {c} = {t} FROM t",
    "SELECT {t} <= {c} FROM t",
    "SELECT {c} <> ({t}) FROM t",
    "SELECT COALESCE({c}, {c}) = {t} FROM t",
    "SELECT {c} IN ({t}), {c} NOT IN ({t}, {t}), {t} IN ({c}, {c}) FROM t",
    "SELECT {c} BETWEEN {t} AND {t}, {t} BETWEEN {c} AND {c}, {c} BETWEEN {c} AND {t} FROM t",
    "SELECT CASE WHEN id > 1 THEN {t} ELSE {c} END, CASE WHEN id > 1 THEN {c} ELSE {t} END FROM t",
    "SELECT CASE {c} WHEN {t} THEN 1 END, CASE {t} WHEN {c} THEN 1 END FROM t",
    "SELECT COALESCE({c}, {t}), COALESCE(NULL, {t}, {c}) FROM t",
    "SELECT NULLIF({c}, {t}), NULLIF({t}, {c}) FROM t",
    "SELECT GREATEST({c}, {t}), LEAST({t}, {c}) FROM t",
    "SELECT {c} FROM t UNION ALL SELECT {t}",
    "SELECT {t} UNION SELECT NULL UNION SELECT {c} FROM t",
    "SELECT {c} FROM t EXCEPT SELECT {t}",
    "SELECT {t} INTERSECT SELECT {c} FROM t",
    "SELECT {c} FROM t UNION ALL VALUES ({t})",
    "SELECT x FROM t, LATERAL (VALUES ({t}), ({c})) AS v (x)",
    "SELECT {c} IS DISTINCT FROM {t}, {t} IS NOT DISTINCT FROM {c} FROM t",
    "SELECT 1 FROM t x LEFT JOIN t y ON {t} = y.{c} AND x.{c} = y.{c}",
    "SELECT ({c}, 1) = ({t}, 1), ({t}, 1) IN (({c}, 1)), ({c}, 1) IN (({t}, 1), ({t}, 2)) FROM t",
    "SELECT {t} IN (SELECT {c} FROM t), (SELECT MAX({c}) FROM t) = {t}, {t} >= ALL (SELECT {c} FROM t)",
    "SELECT IF(id = 1, {c}, {t}), IF(id = 1, {t}, {c}) FROM t",
    "SELECT LAG({c}, 1, {t}) OVER (ORDER BY id) FROM t",
    "SELECT COUNT(*) FROM t GROUP BY {c} HAVING {c} = {t}",
)


@pytest.fixture(scope="module")
def grid() -> Iterator[Grid]:
    """A map with a column of each type, called c0, c1, ..., and one row."""
    with remuda.open() as opened:
        columns = ", ".join(f"c{place} {type_}" for place, type_ in enumerate(COLUMNS))
        opened.sql(f"CREATE TABLE t (id INTEGER, {columns}, PRIMARY KEY (id))")
        values = ", ".join(f"CAST('{text}' AS {type_})" for type_, text in COLUMNS.items())
        opened.sql(f"INSERT INTO t VALUES (1, {values})")
        yield opened


def rows_of(grid: Grid, query: str) -> list[str]:
    return sorted(repr(tuple(row)) for row in grid.sql(query))


@pytest.mark.parametrize("place", PLACES)
def test_a_text_is_a_value_of_the_type_beside_it(grid: Grid, place: str) -> None:
    for number, (type_, text) in enumerate(COLUMNS.items()):
        written = place.format(c=f"c{number}", t=f"'{text}'")
        told = place.format(c=f"c{number}", t=f"CAST('{text}' AS {type_})")
        assert rows_of(grid, written) == rows_of(grid, told), written


@pytest.mark.parametrize("place", PLACES)
def test_a_text_that_is_no_such_value_is_a_data_exception(grid: Grid, place: str) -> None:
    for number in range(len(COLUMNS)):
        written = place.format(c=f"c{number}", t="'zz'")
        with pytest.raises(SqlError, match="'zz' is not a value of type") as failure:
            grid.sql(written).fetchall()
        assert failure.value.code is ErrorCode.DATA_EXCEPTION, written
        position = failure.value.position
        assert position is not None
        assert written[position.column - 1 :].startswith("'zz'"), written
