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


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("UPDATE single SET n = NULL WHERE id > 0", "NULL"),
        ("UPDATE single SET n = NULL WHERE id = 1", "NULL"),
        ("UPDATE m SET n = NULLIF(n, 2) WHERE part = 'a'", "NULLIF(n, 2"),
        ("UPDATE single SET N = q.x FROM (SELECT NULLIF(id, 1) AS x FROM m) q", "q.x"),
        ("INSERT INTO m SELECT id, part, 7 FROM m", "id, part"),
        ("INSERT INTO m (n, part, id) SELECT 7, part, id + 0 FROM m", "part, id + 0"),
        ("INSERT INTO single (id, n) SELECT id + 10, NULLIF(n, 2) FROM m", "NULLIF(n, 2"),
        ("SINK INTO single SELECT 7, NULLIF(n, 2) FROM m", "NULLIF(n, 2"),
        ("INSERT INTO m SELECT * FROM m", "m"),
        ("INSERT INTO m SELECT 5, 'a', 1 UNION ALL SELECT * FROM m", "m"),
        ("INSERT INTO single VALUES (1, 1), (9, NULL) ON CONFLICT DO NOTHING", "single"),
        ("INSERT INTO single VALUES (8, NULL) ON CONFLICT DO NOTHING", "NULL"),
        ("INSERT INTO single VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET n = NULL", "single"),
    ],
)
def test_what_gave_the_value_is_pointed_at_or_else_the_map(grid: Any, sql: str, shown: str) -> None:
    for _ in range(2):
        with pytest.raises(ConstraintError) as caught:
            grid.sql(sql)
        span = caught.value.span
        assert span is not None
        assert sql[span.start : span.end] == shown
        assert span.start == sql.index(f" {shown}") + 1


def test_the_number_of_buckets(grid: Any) -> None:
    sql = "SELECT NTILE(?) OVER (ORDER BY id) FROM m"
    with pytest.raises(SqlError, match="buckets of NTILE must be positive") as caught:
        grid.sql(sql, 0).fetchall()
    assert caught.value.position is not None
    assert caught.value.position.column == sql.index("?") + 1
