"""A row that its map does not allow is shown where it was written, as far as it was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import remuda
from remuda.errors import ConstraintError, SqlError


@pytest.fixture
def grid() -> Iterator[Any]:
    with remuda.open() as opened:
        opened.sql("CREATE TABLE m (id BIGINT, part VARCHAR, n BIGINT NOT NULL, PRIMARY KEY (id, part))")
        opened.sql("INSERT INTO m VALUES (1, 'a', 2)")
        opened.sql("CREATE TABLE single (id BIGINT, n BIGINT NOT NULL, PRIMARY KEY (id))")
        opened.sql("INSERT INTO single VALUES (1, 2)")
        yield opened


@pytest.mark.parametrize(
    ("sql", "parameters", "shown"),
    [
        ("INSERT INTO m VALUES (2, 'a', 3), (1, 'a', 5)", (), "1, 'a'"),
        ("INSERT INTO m VALUES (7, 'a', 3), (8, 'a', 3), (7, 'a', 5)", (), "7, 'a'"),
        ("INSERT INTO m VALUES (2, 'a', 3), (3, 'a', NULL)", (), "NULL"),
        ("INSERT INTO m (n, part, id) VALUES (1, 'q', 5), (1, NULL, 6)", (), "NULL"),
        ("INSERT INTO single VALUES (?, ?)", (1, 7), "?"),
        ("INSERT INTO single VALUES (?, ?)", (9, None), "?"),
        ("INSERT INTO single (n, id) VALUES (1 + 1, 0 + 1)", (), "0 + 1"),
        ("SINK INTO single VALUES (5, 1), (6, CAST(? AS BIGINT))", (None,), "CAST"),
    ],
)
def test_the_value_is_pointed_at(grid: Any, sql: str, parameters: tuple[Any, ...], shown: str) -> None:
    for _ in range(2):  # the second time from the plan cache, and by a shortcut where there is one
        with pytest.raises(ConstraintError) as caught:
            grid.sql(sql, *parameters)
        span = caught.value.span
        assert span is not None
        assert sql[span.start : span.end].startswith(shown)
        assert span.start >= sql.rindex("(", 0, span.start + len("CAST(")) - len("CAST")
    start = {"INSERT INTO m VALUES (7": sql.rfind("(7") + 1, "INSERT INTO single VALUES (?": sql.find("?")}
    for beginning, place in start.items():
        if sql.startswith(beginning) and parameters != (9, None):
            assert span.start == place


def test_rows_that_come_from_a_query_have_no_place(grid: Any) -> None:
    for sql in ("INSERT INTO m SELECT * FROM m", "UPDATE single SET n = NULL WHERE id > 0"):
        with pytest.raises(ConstraintError) as caught:
            grid.sql(sql)
        assert caught.value.span is None
        assert caught.value.text == sql


def test_the_number_of_buckets(grid: Any) -> None:
    sql = "SELECT NTILE(?) OVER (ORDER BY id) FROM m"
    with pytest.raises(SqlError, match="buckets of NTILE must be positive") as caught:
        grid.sql(sql, 0).fetchall()
    assert caught.value.position is not None
    assert caught.value.position.column == sql.index("?") + 1
