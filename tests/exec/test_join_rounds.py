"""Joins that ask whether a row has a match: candidates come in rounds, and repeated right rows are held once."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import remuda
from remuda.exec.join.join_table import FIRST_ROUND, PAIRS_AT_ONCE, BuildRows, distinct_rows, in_rounds
from remuda.types import BIGINT, VARCHAR


def test_all_pairs_come_as_long_as_nothing_is_settled() -> None:
    random = np.random.default_rng(3)
    counts = random.integers(0, 2_000, 500)
    starts = np.cumsum(counts) - counts
    rows = random.permutation(int(counts.sum()))
    found: set[tuple[int, int]] = set()
    for pairs in in_rounds(starts, counts, rows, np.zeros(500, np.bool_)):
        assert pairs.left is not None
        assert (np.diff(pairs.left) >= 0).all()
        assert len(pairs.right) <= PAIRS_AT_ONCE
        found.update(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))
    expected = {(left, int(rows[starts[left] + each])) for left in range(500) for each in range(counts[left])}
    assert found == expected


def test_a_row_that_is_settled_has_no_further_candidate() -> None:
    """Of 1,000 rows with 1,000 candidates each, 8 are tried of each, and all of the one that none of them settles."""
    counts, settled = np.full(1_000, 1_000), np.zeros(1_000, np.bool_)
    evaluated = 0
    for pairs in in_rounds(np.zeros(1_000, np.intp), counts, np.arange(1_000), settled):
        evaluated += len(pairs.right)
        settled[pairs.left_positions()] = True
        settled[7] = False
    assert evaluated == 1_000 * FIRST_ROUND + 1_000 - FIRST_ROUND


def test_repeated_rows_are_held_once() -> None:
    batch = pa.RecordBatch.from_arrays(
        [pa.array([1, 1, None, None, 1, 1, 1]), pa.array(["a", "b", "a", "a", "a", None, None]), pa.array(range(7))],
        names=["0", "1", "2"],
    )
    fewer = distinct_rows(BuildRows(batch), [0, 1], [BIGINT, VARCHAR])
    assert fewer.rows == 7, "more than half of them are different"
    twice = pa.Table.from_batches([batch, batch]).combine_chunks().to_batches()[0]
    fewer = distinct_rows(BuildRows(twice), [0, 1], [BIGINT, VARCHAR])
    assert fewer.batch.column(2).to_pylist() == [0, 1, 2, 5]


QUERIES = (
    "SELECT COUNT(*), SUM(l.id) FROM t AS l WHERE EXISTS (SELECT 1 FROM t AS r WHERE r.k = l.k AND r.w <> l.w)",
    "SELECT COUNT(*), SUM(l.id) FROM t AS l WHERE NOT EXISTS (SELECT 1 FROM t AS r WHERE r.k = l.k AND r.w <> l.w)",
    "SELECT COUNT(*), SUM(l.id) FROM t AS l WHERE EXISTS (SELECT 1 FROM t AS r WHERE r.k = l.k AND r.x < l.x - 3990)",
    "SELECT COUNT(*), SUM(l.id) FROM t AS l WHERE NOT EXISTS (SELECT 1 FROM t AS r WHERE r.k = l.k AND r.x > l.x)",
    "SELECT l.x >= ALL (SELECT x FROM t AS r WHERE r.k = l.k) AS m, COUNT(*) FROM t AS l GROUP BY m ORDER BY m",
    "SELECT l.w <> ANY (SELECT w FROM t AS r WHERE r.k = l.k) AS m, COUNT(*) FROM t AS l GROUP BY m ORDER BY m",
    "SELECT l.d < ANY (SELECT d FROM t AS r WHERE r.k = l.k) AS m, COUNT(*) FROM t AS l GROUP BY m ORDER BY m",
    "SELECT COUNT(*) FROM t AS l WHERE EXISTS (SELECT 1 FROM t AS r WHERE r.x + l.x = 3999 * 2 AND r.w <> l.k)",
    "SELECT COUNT(*) FROM t AS l WHERE NOT EXISTS (SELECT 1 FROM t AS r WHERE r.x > l.x AND r.k > l.k)",
)


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("nulls", [False, True])
def test_few_values_of_many_rows(*, members: int, nulls: bool) -> None:
    """4,000 rows of 4 keys: 4 million pairs, of which each row needs a few. DuckDB has the same answers."""
    random = np.random.default_rng(5)
    rows = 4_000

    def column(values: np.ndarray) -> pa.Array:
        return pa.array(values, mask=random.random(rows) < 0.01 if nulls else None)

    w = random.integers(0, 3, rows)
    k = np.where(w == 2, 3, random.integers(0, 3, rows))
    table = pa.table(
        {
            "id": np.arange(rows),
            "k": column(k),
            "w": column(np.where(k == 3, 1, w)),
            "x": column(random.permutation(rows)),
            "d": column(random.choice([0.0, -0.0, 1.5, np.nan], rows)),
        }
    )
    with remuda.open(members=members) as grid, duckdb.connect(config={"threads": 1}) as oracle:
        oracle.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
        oracle.register("rows", table)
        oracle.execute("CREATE TABLE t AS FROM rows")
        grid.sql("CREATE TABLE t (id BIGINT, k BIGINT, w BIGINT, x BIGINT, d DOUBLE, PRIMARY KEY (id))")
        grid.load("t", table)
        for sql in QUERIES:
            expected: list[Any] = oracle.execute(sql).fetchall()
            assert [tuple(row) for row in grid.sql(sql)] == expected, sql
