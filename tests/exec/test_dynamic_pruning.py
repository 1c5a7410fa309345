"""Dynamic partition pruning: scans read the partitions of a join's keys, and the answers stay those of DuckDB."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import remuda
from remuda.optimizer import cost
from remuda.storage import hash_values, partition_of
from remuda.types import BIGINT

PARTITIONS = 31
CREATE = {
    "l": "CREATE TABLE l (a BIGINT, b BIGINT, x BIGINT, PRIMARY KEY (a, b)) PARTITION BY (a)",
    "t": "CREATE TABLE t (s VARCHAR, d DATE, n BIGINT, PRIMARY KEY (s, d))",
    "k": "CREATE TABLE k (id BIGINT, a BIGINT, s VARCHAR, d DATE, PRIMARY KEY (id))",
    "e": "CREATE TABLE e (id BIGINT, a BIGINT, PRIMARY KEY (id))",
}
JOINS = (
    "SELECT l.b, l.x, v.n FROM l JOIN (VALUES (1), (2), (2), (NULL), (999)) AS v (n) ON l.a = v.n",
    "SELECT b, x FROM l WHERE a IN (SELECT a FROM k)",
    "SELECT b, x FROM l WHERE a IN (SELECT a FROM k WHERE id < ?)",
    "SELECT b, x FROM l WHERE a IN (SELECT a FROM e)",
    "SELECT b, x FROM l WHERE x % 2 = 0 AND EXISTS (SELECT 1 FROM k WHERE k.a = l.a AND k.id < l.x)",
    "SELECT l.a, COUNT(*), SUM(l.x) FROM l JOIN k ON l.a = k.a GROUP BY l.a",
    "SELECT k.id, g.total FROM k JOIN (SELECT a, SUM(x) AS total FROM l GROUP BY a) AS g ON g.a = k.a",
    "SELECT l.x, k.id FROM l RIGHT JOIN k ON l.a = k.a AND k.id < ?",
    "SELECT l.x, k.id FROM k LEFT JOIN l ON l.a = k.a",
    "SELECT l.x FROM l WHERE a NOT IN (SELECT a FROM k WHERE a IS NOT NULL)",
    "SELECT l.x, k.id FROM l LEFT JOIN k ON l.a = k.a",
    "SELECT l.x, k.id FROM l JOIN k ON l.a = k.a AND l.x + 1 = k.id",
    "SELECT t.n, k.id FROM t JOIN k ON t.s = k.s AND t.d = k.d",
    "SELECT t.n, k.id FROM t JOIN k ON t.s = k.s",
    "SELECT l.x, k.id FROM l JOIN k ON l.a IS NOT DISTINCT FROM k.a",
    "SELECT p.x, q.x FROM l AS p JOIN l AS q ON p.a = q.a WHERE q.x < ?",
    "SELECT l.x FROM l JOIN (VALUES (1, 98), (2, 5), (NULL, 3), (3, NULL)) AS v (n, m) ON l.a = v.n AND l.b = v.m",
    "SELECT l.x, v.m FROM l JOIN (VALUES (1, 98), (3, NULL)) AS v (n, m) ON l.a = v.n + 1 AND l.x <> v.m",
    "SELECT b, x FROM l WHERE a IN (VALUES (1), (NULL), (40))",
    "SELECT b, x FROM l WHERE (a, b) IN (VALUES (1, 98), (1, 1), (NULL, 2))",
    "SELECT b, x FROM l WHERE a NOT IN (VALUES (1), (40))",
    "SELECT l.x, w.x FROM l JOIN (VALUES (7), (1)) AS v (n) ON l.a = v.n JOIN l AS w ON w.a = l.x AND w.b = 5",
    "SELECT l.x, v.n FROM (VALUES (7), (NULL), (1000)) AS v (n) LEFT JOIN l ON l.a = v.n AND l.b = v.n",
    "SELECT t.n FROM t JOIN (VALUES ('s1', DATE '1970-01-02'), ('s2', NULL)) AS v (s, d) ON t.s = v.s AND t.d = v.d",
    "SELECT COUNT(*) FROM l JOIN (VALUES (CAST(NULL AS BIGINT)), (NULL)) AS v (n) ON l.a = v.n",
    "SELECT COUNT(*), v.n FROM l JOIN (VALUES (?), (1)) AS v (n) ON l.a = v.n GROUP BY v.n",
)


def keys_of(chance: random.Random) -> list[int | None]:
    """Some twice, some that the map does not have, some NULL."""
    return [chance.choice([None, 1, 1, *range(100, 104), *range(60)]) for _ in range(20)]


def data_of(chance: random.Random, rows: int) -> dict[str, pa.Table]:
    days = pa.array([chance.randrange(5) for _ in range(20)], pa.int32()).cast(pa.date32())
    return {
        "l": pa.table({"a": [i % 97 for i in range(rows)], "b": range(rows), "x": range(rows)}),
        "t": pa.table(
            {
                "s": [f"s{i % 40}" for i in range(200)],
                "d": pa.array([i // 40 for i in range(200)], pa.int32()).cast(pa.date32()),
                "n": range(200),
            }
        ),
        "k": pa.table(
            {
                "id": range(20),
                "a": pa.array(
                    [chance.choice([None, 1, 1, *range(100, 104), *range(60)]) for _ in range(20)], pa.int64()
                ),
                "s": pa.array([chance.choice([None, *(f"s{i}" for i in range(60))]) for _ in range(20)]),
                "d": days,
            }
        ),
        "e": pa.table({"id": pa.array([], pa.int64()), "a": pa.array([], pa.int64())}),
    }


@pytest.fixture(params=[0, None], ids=["always pruned", "as it pays"])
def range_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int | None:
    """Both sides of what is decided at execution, with scans that workers share."""
    if request.param is not None:
        monkeypatch.setattr(cost, "PRUNED_RANGE_ROWS", request.param)
    monkeypatch.setattr(cost, "FORK_ROWS", 500)
    return request.param


@pytest.mark.parametrize("members", [1, 3, 5])
def test_answers_are_those_of_duckdb(members: int, range_rows: int | None) -> None:
    chance = random.Random(members)
    for rows in (0, 50, 3_000):
        tables = data_of(chance, rows)
        with (
            remuda.open(members=members, partitions=PARTITIONS) as grid,
            duckdb.connect(config={"threads": 1}) as other,
        ):
            for name, table in tables.items():
                grid.sql(CREATE[name])
                grid.load(name, table)
                other.register(name, table)
            for text in JOINS:
                values = [7] * text.count("?")
                expected = Counter(other.execute(text, values).fetchall())
                for switch in ("on", "off"):
                    grid.sql(f"SET partition_pruning = {switch}")
                    assert Counter(map(tuple, grid.sql(text, *values))) == expected, (rows, switch, text)
            grid.sql("SET partition_pruning = on")
            if rows == 3_000:
                assert ("dynamic pruning: not used" in plan_of(grid, JOINS[1])) is (range_rows is None)


def plan_of(grid: Any, text: str) -> str:
    return "\n".join(row[0] for row in grid.sql("EXPLAIN ANALYZE " + text))


@pytest.mark.parametrize("members", [1, 3])
def test_partitions_that_are_left_out_are_not_read(members: int) -> None:
    rows = 300_000
    with remuda.open(members=members) as grid:
        grid.sql(CREATE["l"])
        grid.sql(CREATE["e"])
        grid.load("l", pa.table({"a": [i // 10 for i in range(rows)], "b": range(rows), "x": range(rows)}))
        grid.sql("INSERT INTO e VALUES (1, 5), (2, 5), (3, NULL)")
        for text, partitions in (
            ("SELECT * FROM l JOIN (VALUES (1), (2)) AS v (n) ON l.a = v.n", 2),
            ("SELECT * FROM l WHERE a IN (SELECT a FROM e)", 1),
        ):
            found = plan_of(grid, text)
            assert "dynamic pruning: a of runtime filter #1" in found
            assert f"dynamic pruning: {partitions} of " in found
            assert f"rows read={rows}" not in found
        for id_ in range(10, 200):
            grid.sql("INSERT INTO e VALUES (?, ?)", id_, id_)
        found = plan_of(grid, "SELECT * FROM l WHERE a IN (SELECT a FROM e)")
        assert "dynamic pruning: not used for" in found, "so many batches would cost more than they save"
        assert f"rows read={rows}" in found
        grid.sql("SET partition_pruning = off")
        assert "dynamic pruning" not in plan_of(grid, "SELECT * FROM l JOIN (VALUES (1), (2)) AS v (n) ON l.a = v.n")


@pytest.mark.parametrize(
    ("text", "values", "keys"),
    [
        ("SELECT x FROM l JOIN (VALUES (1), (2)) AS v (n) ON l.a = v.n", (), [1, 2]),
        ("SELECT x FROM l JOIN (VALUES (1), (NULL)) AS v (n) ON l.a = v.n + 4", (), [5]),
        ("SELECT x FROM l JOIN (VALUES (?), (3)) AS v (n) ON l.a = v.n", (8,), [8, 3]),
        ("SELECT x FROM l JOIN (VALUES (1, 1), (2, 99)) AS v (n, m) ON l.a = v.n AND l.b = v.m", (), [1, 2]),
        ("SELECT x FROM l WHERE a IN (VALUES (7), (7), (NULL))", (), [7]),
        ("SELECT x FROM l WHERE (a, b) IN (VALUES (7, 7), (7, 8))", (), [7]),
        ("SELECT x FROM l JOIN (VALUES (NULL), (NULL::BIGINT)) AS v (n) ON l.a = v.n", (), []),
    ],
)
@pytest.mark.parametrize("index", [False, True])
def test_members_without_partitions_of_written_keys_take_no_part(
    text: str, values: tuple[int, ...], keys: list[int], index: bool
) -> None:
    """The reads of every member, by hash join, by lookup of the key and by an index, beside a plain model."""
    rows = 5_000
    with remuda.open(members=5, partitions=PARTITIONS) as grid:
        grid.sql(CREATE["l"])
        if index:
            grid.sql("CREATE INDEX l_a ON l (a) TYPE SORTED")
        grid.load("l", pa.table({"a": [i % 97 for i in range(rows)], "b": range(rows), "x": range(rows)}))
        owners = grid.cluster.partition_table.owners_of(PARTITIONS)
        wanted = {owners[partition_of(hash_values((key,), [BIGINT]), PARTITIONS)] for key in keys}
        for each in (text, text + " ORDER BY x LIMIT 7"):
            assert members_asked(grid, each, values) == wanted
        grid.sql("SET partition_pruning = off")
        if keys:
            assert len(members_asked(grid, text, values)) == 5


def members_asked(grid: Any, text: str, values: tuple[int, ...]) -> set[str]:
    before = {member.id: member.fragments_run for member in grid.cluster.members}
    grid.sql(text, *values).fetchall()
    return {member.id for member in grid.cluster.members if member.fragments_run > before[member.id]}
