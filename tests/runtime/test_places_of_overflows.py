"""A sum that overflows is known only when rows are added up; its error still shows where it is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import remuda
from remuda.errors import ErrorCode, SqlError

GREAT = 9 * 10**37

STATEMENTS = {
    "only group": ("SELECT COUNT(*), {} FROM m", "SUM(d)"),
    "groups": ("SELECT k, {} FROM m GROUP BY k", "AVG(d)"),
    "distinct": ("SELECT {} FROM m", "SUM(DISTINCT d + id)"),
    "grouping sets": ("SELECT k, id, {} FROM m GROUP BY CUBE (k, id)", "SUM(d)"),
    "in two logical steps": ("SELECT {} FROM m a JOIN m b ON a.k = b.k", "SUM(a.d)"),
    "sub-query": ("SELECT (SELECT {} FROM m b WHERE b.k = a.k) FROM m a", "SUM(d)"),
    "window": ("SELECT {} OVER () FROM m", "SUM(d)"),
    "growing frame": ("SELECT id, {} OVER (ORDER BY id) FROM m", "AVG(d)"),
    "having": ("SELECT k FROM m GROUP BY k HAVING {} > 5", "SUM(d)"),
    "second of two": ("SELECT SUM(k), {} FROM m", "SUM(d)"),
}


@pytest.fixture(scope="module", params=[1, 3], ids=["1 member", "3 members"])
def grid(request: pytest.FixtureRequest) -> Iterator[Any]:
    with remuda.open(members=request.param) as opened:
        opened.sql("CREATE TABLE m (id BIGINT, d DECIMAL(38, 0), k INTEGER, PRIMARY KEY (id))")
        for id_ in range(4):
            opened.sql("INSERT INTO m VALUES (?, ?, ?)", id_, GREAT, id_ % 2)
        yield opened


@pytest.mark.parametrize("shape", STATEMENTS)
def test_overflowing_sum_shows_its_place(grid: Any, shape: str) -> None:
    pattern, call = STATEMENTS[shape]
    sql = pattern.format(call)
    with pytest.raises(SqlError, match=r"the sum overflows DECIMAL\(38, 0\)") as caught:
        grid.sql(sql).fetchall()
    error = caught.value
    assert error.code is ErrorCode.DATA_EXCEPTION
    assert error.span is not None
    # A place begins with the call's name and ends with its last argument.
    assert sql[error.span.start : error.span.end] == call.removesuffix(")")
    assert "^" * (len(call) - 1) in str(error)
