"""A sub-query that stands for one value and has several rows is an error at its place in the text."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import remuda
from remuda.errors import SqlError


@pytest.fixture(params=[1, 3])
def grid(request: pytest.FixtureRequest) -> Iterator[remuda.Grid]:
    with remuda.open(members=request.param) as opened:
        opened.sql("CREATE TABLE t (id BIGINT, a INTEGER, b VARCHAR, PRIMARY KEY (id))")
        opened.sql("INSERT INTO t VALUES (1, 10, 'x'), (2, 20, 'y'), (3, 10, 'x')")
        yield opened


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id + (~SELECT a FROM t~) FROM t",
        "SELECT id, (~SELECT u.a FROM t u WHERE u.b = t.b~) FROM t",
        "SELECT id, (~SELECT u.id + t.id FROM t u WHERE u.b = t.b~) AS x FROM t",
        "SELECT id, (~SELECT u.id FROM t u WHERE u.b = t.b LIMIT 3~) FROM t",
        "SELECT id FROM t WHERE a = 10 AND id < (~SELECT u.id FROM t u WHERE u.a = t.a~)",
        "SELECT id FROM t WHERE (a, b) = (~SELECT a, b FROM t~)",
        "SELECT (SELECT MAX(a) FROM t), (~SELECT a FROM t~)",
        "SELECT x.id FROM t x JOIN t y ON x.id = y.id JOIN t z ON z.id = y.id WHERE x.a = (~SELECT a FROM t~)",
        "UPDATE t SET a = (~SELECT a FROM t~)",
    ],
)
def test_second_row_has_a_place(grid: remuda.Grid, text: str) -> None:
    before, written, _ = text.split("~")
    with pytest.raises(SqlError, match="more than one row") as failure:
        grid.sql(text.replace("~", "")).fetchall()
    span = failure.value.span
    assert span is not None
    assert (span.start, span.end) == (len(before), len(before) + len(written))


def test_dependence_on_drawn_values_has_a_place(grid: remuda.Grid) -> None:
    """Computed for all values of the outer columns at once, the sub-query would see other ones."""
    text = "SELECT (SELECT MAX(u.id) FROM t u WHERE u.a < q.r) FROM (SELECT id, random() AS r FROM t) AS q"
    with pytest.raises(SqlError, match=r"values of random\(\)") as failure:
        grid.sql(text)
    assert failure.value.span is not None
    assert failure.value.span.start == text.index("SELECT MAX")
