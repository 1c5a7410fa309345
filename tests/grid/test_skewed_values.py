"""Plans of skewed, correlated and ordered columns: what is frequent, what is rare, and what a parameter decides."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import remuda
from tests.storage.format_1 import to_format_1

ROWS = 60_000
RARE = 60
CITIES, COUNTRIES = 200, 10


def table() -> pa.Table:
    numbers = range(ROWS)
    return pa.table(
        {
            "id": numbers,
            "region": ["APAC" if n % (ROWS // RARE) == 0 else "EMEA" for n in numbers],
            "country": pa.array([n % CITIES % COUNTRIES for n in numbers], pa.int32()),
            "city": pa.array([n % CITIES for n in numbers], pa.int32()),
            "day": pa.array([20 * CITIES + n % 100 for n in numbers], pa.int32()),
        }
    )


CREATE = "CREATE TABLE m (id BIGINT, region VARCHAR, country INTEGER, city INTEGER, day INTEGER, PRIMARY KEY (id))"


@pytest.fixture(scope="module", params=["HASH", "SORTED"])
def grid(request: pytest.FixtureRequest) -> Iterator[Any]:
    with remuda.open() as opened:
        opened.sql(CREATE)
        opened.sql(f"CREATE INDEX by_region ON m (region) TYPE {request.param}")
        opened.sql("CREATE INDEX by_place ON m (country, city) TYPE SORTED")
        opened.load("m", table())
        opened.sql("CREATE TABLE days (day INTEGER, year INTEGER, weekday INTEGER, PRIMARY KEY (day))")
        days = range(20 * 200 * 5)
        calendar = {"day": days, "year": [1900 + n // 100 for n in days], "weekday": [n % 7 for n in days]}
        opened.load("days", pa.table({name: pa.array(values, pa.int32()) for name, values in calendar.items()}))
        yield opened


def rows_of(grid: Any, text: str) -> float:
    (found,) = grid.sql(f"EXPLAIN (FORMAT JSON) {text}").fetchall()
    estimated: float = json.loads(found[0])["plan"]["estimated_rows"]
    return estimated


@pytest.mark.parametrize(("region", "count", "access"), [("APAC", RARE, "index"), ("EMEA", ROWS - RARE, "direct scan")])
def test_a_parameter_decides_by_how_often_its_value_comes(grid: Any, region: str, count: int, access: str) -> None:
    text = "SELECT id, city FROM m WHERE region = ?"
    plan = grid.explain(text, region)
    assert f"access: {access}, {count} entr" in plan, plan
    found = sorted(row.id for row in grid.sql(text, region))
    assert found == [n for n in range(ROWS) if (n % (ROWS // RARE) == 0) is (region == "APAC")]


def test_a_value_that_does_not_come_and_null(grid: Any) -> None:
    for value in ("NONE", None):
        assert grid.sql("SELECT id FROM m WHERE region = ?", value).fetchall() == []


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("region = 'APAC'", RARE),
        ("region = 'EMEA'", ROWS - RARE),
        ("region <> 'EMEA'", RARE),
        ("region IN ('APAC', 'NONE')", RARE),
        ("region LIKE '%C'", RARE),
        # Every city lies in one country.
        ("country = 3 AND city = 13", ROWS / CITIES),
        ("city = 13 AND country = 3", ROWS / CITIES),
        ("country = 3 AND city IN (13, 23)", 2 * ROWS / CITIES),
        ("country = 3", ROWS / COUNTRIES),
    ],
)
def test_estimates(grid: Any, condition: str, expected: float) -> None:
    assert rows_of(grid, f"SELECT id FROM m WHERE {condition}") == pytest.approx(expected, rel=0.05)


def test_columns_that_are_independent_stay_so(grid: Any) -> None:
    grid.sql("CREATE INDEX by_day ON m (day, region) TYPE SORTED")
    try:
        estimated = rows_of(grid, "SELECT id FROM m WHERE day = 4001 AND region = 'EMEA'")
        assert estimated == pytest.approx(ROWS / 100, rel=0.05)
    finally:
        grid.sql("DROP INDEX by_day ON m")


def test_a_join_with_a_range_of_a_key(grid: Any) -> None:
    """All rows refer to the days of 1940, one of two hundred years; of its weekdays they refer to one in seven."""
    join = "SELECT m.id FROM m JOIN days ON m.day = days.day"
    assert rows_of(grid, join) == pytest.approx(ROWS, rel=0.05)
    assert rows_of(grid, f"{join} WHERE days.year = 1940") == pytest.approx(ROWS, rel=0.1)
    assert rows_of(grid, f"{join} WHERE days.year BETWEEN 1935 AND 1945") == pytest.approx(ROWS, rel=0.1)
    assert rows_of(grid, f"{join} WHERE days.year IN (1939, 1940, 1941)") == pytest.approx(ROWS, rel=0.1)
    assert rows_of(grid, f"{join} WHERE days.year = 1941") < ROWS / 10
    assert rows_of(grid, f"{join} WHERE days.weekday = 3") == pytest.approx(ROWS / 7, rel=0.1)
    found = grid.sql(f"SELECT COUNT(*) FROM ({join} WHERE days.year = 1940) AS found").fetchall()
    assert found == [(ROWS,)]


def test_a_folder_of_an_earlier_version_opens_and_has_estimates(tmp_path: Path) -> None:
    """Its manifest has no most common values: a value that fills whole ranges of the histogram is one."""
    folder = tmp_path / "shop.remuda"
    with remuda.open(folder, durability="os") as grid:
        grid.sql(CREATE)
        grid.load("m", table())

    def change(manifest: Any) -> None:
        for segment in manifest["maps"][0]["segments"]:
            for name, summary in segment["summaries"].items():
                del summary["common"], summary["up_to"]
                if name == "region":
                    summary["histogram"] = ["APAC", *["EMEA"] * 16]

    to_format_1(folder, change)
    with remuda.open(folder, durability="os") as grid:
        assert grid.sql("SELECT COUNT(*) FROM m WHERE region = 'APAC'").fetchall() == [(RARE,)]
        assert rows_of(grid, "SELECT id FROM m WHERE region = 'EMEA'") == pytest.approx(ROWS, rel=0.1)
        assert rows_of(grid, "SELECT id FROM m WHERE region = 'APAC'") < ROWS / 10
        grid.sql("INSERT INTO m SELECT id + 1000000, region, country, city, day FROM m WHERE id < 30000")
        grid.sql("CHECKPOINT")
        assert rows_of(grid, "SELECT id FROM m WHERE region = 'EMEA'") == pytest.approx(1.5 * ROWS, rel=0.1)


ASCENDING = {
    "TINYINT": ("CAST(id / 10 AS TINYINT)", True),
    "BOOLEAN": ("id > 100", True),
    "INTEGER": ("CAST(id % 100 AS INTEGER)", False),
    "REAL": ("CAST(id AS REAL)", True),
    "DOUBLE": ("CAST(-id AS DOUBLE)", False),
    "DECIMAL(10, 2)": ("CAST(id AS DECIMAL(10, 2))", True),
    "DECIMAL(38, 2)": ("CAST(id AS DECIMAL(38, 2))", True),
    "VARCHAR": ("CAST(id / 50 AS VARCHAR)", False),
    "DATE": ("DATE '2020-01-01' + CAST(id AS INTEGER)", True),
    "TIMESTAMP": ("TIMESTAMP '2020-01-01 00:00:00'", True),
    "BIGINT": ("CASE WHEN id = 177 THEN NULL ELSE id END", False),
}
"""Columns of every type by their values, and whether they ascend with the id; one with a NULL does not."""


@pytest.mark.parametrize("key", ["BIGINT", "VARCHAR", "DOUBLE", "DECIMAL(38, 2)"])
def test_relations_of_columns_of_every_type(key: str) -> None:
    with remuda.open() as grid:
        names = [f"c{number}" for number in range(len(ASCENDING))]
        columns = ", ".join(f"{name} {type_}" for name, type_ in zip(names, ASCENDING, strict=True))
        grid.sql(f"CREATE TABLE m (id {key}, {columns}, PRIMARY KEY (id))")
        values = ", ".join(expression for expression, _ in ASCENDING.values())
        grid.sql(f"INSERT INTO m SELECT CAST(id AS {key}), {values} FROM generate_series(100, 999) AS s(id)")
        for _ in range(2):
            (definition,) = grid.engine.store.catalog.maps.values()
            relations = grid.engine.store.map(definition).statistics().relations
            found = [relations.ascends(name, "id") for name in names]
            assert found == [ascends for _, ascends in ASCENDING.values()]
            pairs = {name: relations.combinations((name, "c0")) for name in names[1:]}
            assert all(count is not None and count >= 1 for count in pairs.values())
            assert pairs["c2"] == pytest.approx(900, rel=0.5) or pairs["c2"] > 900, "nearly all rows differ"
            grid.sql("CHECKPOINT")  # From the memtable to a segment, whose texts are encoded by dictionaries.
