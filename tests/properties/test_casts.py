"""CAST and TRY_CAST between all types: one answer for a constant, one row and a column, and DuckDB's where it has one.

A value is converted, or CAST is a `SqlError` of code 2000 and TRY_CAST is NULL: never anything else.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

import remuda
from remuda.errors import ErrorCode, SqlError
from tests.harness.casts import EDGES, constant, pairs
from tests.harness.databases import DuckDatabase

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remuda.grid import Grid

REFUSED, UNSUPPORTED = "refused", "unsupported"
_REASONS = {ErrorCode.DATA_EXCEPTION: REFUSED, ErrorCode.PARSING: UNSUPPORTED}
NUMERIC = frozenset(type_ for type_ in EDGES if type_.startswith(("TINY", "SMALL", "INT", "BIG", "DEC", "REAL", "DOU")))
MOMENTS = frozenset({"DATE", "TIME", "TIMESTAMP"})


@contextmanager
def grid_of_edges(members: int) -> Iterator[Grid]:
    """A grid with a map for each type, called s0, s1, ..., whose rows are numbered as the texts are."""
    with remuda.open(members=members) as grid:
        for number, (type_, texts) in enumerate(EDGES.items()):
            grid.sql(f"CREATE TABLE s{number} (k INTEGER, v {type_}, PRIMARY KEY (k))")
            rows = [f"({place}, {constant(type_, text)})" for place, text in enumerate(texts)]
            grid.sql(f"INSERT INTO s{number} VALUES {', '.join([*rows, '(-1, NULL)'])}")
        yield grid


def answer(grid: Grid, query: str) -> Any:
    """The only value, or why there is none; NaN is equal to itself."""
    try:
        ((value,),) = grid.sql(query).fetchall()
    except SqlError as error:
        return _REASONS[error.code]
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def check(grid: Grid, oracle: DuckDatabase, source: str, target: str, places: list[int]) -> int:
    """The number of statements that were compared."""
    map_name = f"s{list(EDGES).index(source)}"
    try:
        rows = grid.sql(f"SELECT k, TRY_CAST(v AS {target}) FROM {map_name}").fetchall()
    except SqlError as error:
        if _REASONS[error.code] is UNSUPPORTED:
            return 1
        raise
    column = {row[0]: "NaN" if row[1] != row[1] else row[1] for row in rows}
    assert column[-1] is None
    for place in places:
        value = constant(source, EDGES[source][place])
        cast = answer(grid, f"SELECT CAST({value} AS {target})")
        tried = None if cast is REFUSED else cast
        assert cast is not UNSUPPORTED
        by_key, by_scan = f"FROM {map_name} WHERE k = {place}", f"FROM {map_name} WHERE k + 0 = {place}"
        assert answer(grid, f"SELECT CAST(v AS {target}) {by_key}") == cast, (value, target)
        assert answer(grid, f"SELECT CAST(v AS {target}) {by_scan}") == cast, (value, target)
        assert answer(grid, f"SELECT TRY_CAST({value} AS {target})") == tried, (value, target)
        assert answer(grid, f"SELECT TRY_CAST(v AS {target}) {by_key}") == tried, (value, target)
        assert column[place] == tried, (value, target)
        if has_oracle(source, target):
            assert as_duckdb_has_it(oracle, value, target) == tried, (value, target)
    return 1 + 5 * len(places)


def has_oracle(source: str, target: str) -> bool:
    """DuckDB reads and writes other texts than PostgreSQL does, and takes 0.05 of type REAL for 0.0500000007."""
    if source in {"REAL", "DOUBLE"} and target.startswith("DECIMAL"):
        return False
    return (source in NUMERIC and target in NUMERIC) or (source in MOMENTS and target in MOMENTS)


def as_duckdb_has_it(oracle: DuckDatabase, value: str, target: str) -> Any:
    ((found,),) = oracle.query(f"SELECT TRY_CAST({value} AS {target})", [])
    return "NaN" if found != found else found


def compare(seed: int, members: int, share: float) -> int:
    """Compares a share of all pairs of types, and of each the same share of the values."""
    random = Random(seed)
    oracle = DuckDatabase()
    compared = 0
    with grid_of_edges(members) as grid:
        for source, target in pairs():
            if random.random() < share:
                places = [place for place in range(len(EDGES[source])) if random.random() < share]
                compared += check(grid, oracle, source, target, places)
    oracle.close()
    return compared


@pytest.mark.parametrize("members", [1, 3])
def test_casts(members: int) -> None:
    assert compare(members, members, 0.2) > 100


@pytest.mark.parametrize("target", ["DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"])
def test_texts_of_years_that_there_are_not(target: str) -> None:
    with remuda.open() as grid:
        texts = "(VALUES ('0000-01-01'), ('2024-01-01'), ('0000-12-31 23:59:59')) AS t (s)"
        assert [row[0] is None for row in grid.sql(f"SELECT TRY_CAST(s AS {target}) FROM {texts}")] == [
            True,
            False,
            True,
        ]
        with pytest.raises(SqlError, match="'0000-01-01' is not a value of type"):
            grid.sql(f"SELECT CAST(s AS {target}) FROM {texts}").fetchall()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_many_casts(seed: int) -> None:
    assert compare(100 + seed, 1 + seed % 3, 0.5) > 1000
