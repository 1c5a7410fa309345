"""Batches without columns still have rows: nothing that is done to them loses one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import remuda
from remuda.exec.batch import ArrowBatch, TupleBatch, positional, slice_batch, without_columns
from remuda.exec.selection import SelectedBatch, gather
from remuda.exec.sort.ordering import concatenate


def test_rows_are_kept_in_both_forms() -> None:
    tuples, arrow = TupleBatch((), [()] * 5), ArrowBatch((), without_columns(5))
    for batch in (tuples, arrow):
        assert batch.row_count == 5
        assert list(batch.tuples()) == [()] * 5
        assert batch.arrow().num_rows == 5
        assert batch.row(2).tuples() == ((),)
        assert slice_batch(batch, 1, 3).row_count == 3
    assert positional([], 4).num_rows == 4


@pytest.mark.parametrize("chosen", [0, 1, 500, 999, 1_000])
def test_rows_are_chosen(chosen: int) -> None:
    condition = np.arange(1_000) < chosen
    assert gather(without_columns(1_000), condition, chosen).num_rows == chosen
    assert SelectedBatch((), without_columns(1_000), condition).tuples() == [()] * chosen


def test_rows_are_put_together() -> None:
    assert concatenate([without_columns(2), without_columns(0), without_columns(3)]).num_rows == 5


@pytest.fixture(scope="module", params=[1, 3], ids=["1 member", "3 members"])
def grid(request: pytest.FixtureRequest) -> Iterator[Any]:
    with remuda.open(members=request.param, partitions=7) as opened:
        opened.sql("CREATE TABLE t (id BIGINT, n BIGINT, PRIMARY KEY (id))")
        opened.sql("INSERT INTO t VALUES (1, 2), (3, 4)")
        opened.sql("CREATE TABLE e (id BIGINT, PRIMARY KEY (id))")
        yield opened


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT (SELECT COUNT(*) FROM t)", [(2,)]),
        ("SELECT 1 WHERE EXISTS (SELECT 1 FROM t)", [(1,)]),
        ("SELECT 1 WHERE EXISTS (SELECT 1 FROM e)", []),
        ("SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM e)", [(1,)]),
        ("SELECT COUNT(*) FROM t WHERE EXISTS (SELECT 1) AND n > 0", [(2,)]),
        ("SELECT COUNT(*) FROM t WHERE NOT EXISTS (SELECT 1)", [(0,)]),
        ("SELECT 3 HAVING COUNT(*) > 0", [(3,)]),
        ("SELECT COUNT(*)", [(1,)]),
        ("SELECT COUNT(*) WHERE FALSE", [(0,)]),
        ("SELECT 3 FROM t HAVING TRUE", [(3,)]),
        ("SELECT COUNT(*) FROM (SELECT 1) a, (SELECT 2) b, t", [(2,)]),
        ("SELECT COUNT(*) FROM t a, t b", [(4,)]),
        ("SELECT COUNT(*) FROM t a, e b", [(0,)]),
        ("SELECT COUNT(*) FROM (SELECT 1 FROM t UNION ALL SELECT 2 FROM t) u", [(4,)]),
        ("SELECT COUNT(*) FROM (SELECT n FROM t LIMIT 1) u", [(1,)]),
        ("SELECT COUNT(*) FROM t LEFT JOIN e ON TRUE", [(2,)]),
        ("SELECT COUNT(*) FROM e RIGHT JOIN t ON TRUE", [(2,)]),
        ("SELECT COUNT(*) FROM e FULL JOIN t ON FALSE", [(2,)]),
        ("SELECT COUNT(*) FROM (SELECT 1) a JOIN t ON TRUE JOIN (SELECT 2) b ON TRUE", [(2,)]),
        ("SELECT COUNT(*) OVER () FROM (SELECT 1) a", [(1,)]),
        ("SELECT COUNT(*) FROM (SELECT DISTINCT 1 FROM t) u", [(1,)]),
        ("SELECT COUNT(*), (SELECT COUNT(*) FROM e) FROM t", [(2, 0)]),
    ],
)
def test_queries_that_read_no_column(grid: Any, sql: str, expected: list[tuple[Any, ...]]) -> None:
    assert grid.sql(sql).fetchall() == expected
    assert grid.sql(sql).to_arrow().num_rows == len(expected)
