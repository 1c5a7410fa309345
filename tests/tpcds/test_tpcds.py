"""The 99 queries of TPC-DS have DuckDB's answers, on one member and on three, each within its timeout."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import remuda
from tests.harness.benchmark_answers import is_part_of, ordered_values, same_bags, same_rows, without_limit
from tests.harness.databases import DuckDatabase
from tests.tpcds.tpcds import NotInstalledError, load, prepare, queries, text_of

pytestmark = pytest.mark.slow

SCALES = {1: 0.05, 3: 0.01}
"""By the number of members. At 0.05 the largest table has 145,000 rows, and 80 queries an answer that is not empty; at
0.01 it has 29,000 rows, and 72 have."""
SECONDS = 10


@pytest.fixture(scope="module", params=SCALES, ids=["one member", "three members"])
def members(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


@pytest.fixture(scope="module")
def folder(members: int) -> Path:
    try:
        return prepare(SCALES[members])
    except NotInstalledError as error:
        pytest.skip(f"TPC-DS: {error}")


@pytest.fixture(scope="module")
def oracle(folder: Path) -> Iterator[DuckDatabase]:
    database = DuckDatabase()
    for file in folder.glob("*.parquet"):
        database.execute(f"CREATE VIEW {file.stem} AS SELECT * FROM '{file}'", ())
    database.execute("SET integer_division = false", ())
    yield database
    database.close()


@pytest.fixture(scope="module")
def grid(members: int, folder: Path) -> Iterator[Any]:
    with remuda.open(members=members) as opened:
        load(opened, folder)
        opened.sql(f"SET timeout = {SECONDS}")
        yield opened


@pytest.mark.parametrize("number", queries())
def test_every_operator_has_a_card(number: int, grid: Any, folder: Path) -> None:
    explained = grid.explain(text_of(folder, number))
    drawing = ET.fromstring(explained.to_svg())
    cards = [each for each in drawing.iter("{http://www.w3.org/2000/svg}rect") if each.get("class") == "card"]
    assert len(cards) == str(explained).count("cost≈")


@pytest.mark.parametrize("number", queries())
def test_answer(number: int, grid: Any, oracle: DuckDatabase, folder: Path) -> None:
    sql = text_of(folder, number)
    result = grid.sql(sql)
    names = [column.name for column in result.columns]
    found, expected = [tuple(row) for row in result], oracle.query(sql, ())
    if same_rows(found, expected):
        return
    assert same_rows(ordered_values(sql, names, found), ordered_values(sql, names, expected))
    unlimited = without_limit(sql)
    if unlimited is None:
        assert same_bags(found, expected)
        return
    every = [tuple(row) for row in grid.sql(unlimited)]
    assert same_bags(every, oracle.query(unlimited, ()))
    assert len(found) == len(expected)
    assert is_part_of(found, every)
