"""Aggregates, joins, windows and spools beyond `memory_limit`: the same rows as in memory and as DuckDB's."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import remuda
from remuda.exec.spill.spill_folder import SpillFolder
from remuda.exec.spill.spilled_partitions import FAN_OUT, SpilledPartitions
from remuda.expr import Column
from remuda.types import BIGINT, DOUBLE, VARCHAR
from tests.harness.decisions import forced

ROWS = 20_000
LIMITS = {1: "300kB", 3: "500kB"}
"""By members, which have one limit. Rows of one key cannot be spread over files: those of the most frequent one take
200 kB, beside half of the limit that the other members may hold at the same time."""
QUERIES = {
    "groups": "SELECT k, COUNT(*), SUM(k), MIN(t), MAX(x), SUM(d) FROM {m} GROUP BY k",
    "groups by floating point": "SELECT x, id % 19000, COUNT(*), SUM(k) FROM {m} GROUP BY 1, 2",
    "groups by several keys": "SELECT t, k, d, COUNT(x) FROM {m} GROUP BY t, k, d",
    "groups by computed text": "SELECT t || id % 9000, COUNT(*) FROM {m} GROUP BY 1",
    "calls that hold their rows": (
        "SELECT k, MEDIAN(x), COUNT(DISTINCT t), STRING_AGG(t, '+' ORDER BY id) FROM {m} GROUP BY k"
    ),
    "distinct rows": "SELECT DISTINCT t, d, x FROM {m}",
    "grouping sets": "SELECT k, t, COUNT(*) FROM {m} GROUP BY CUBE (k, t)",
    "join": "SELECT a.id, b.id FROM {m} a JOIN {n} b ON a.k = b.k",
    "join by text": "SELECT a.id, b.id FROM {m} a JOIN {n} b ON a.t = b.t AND a.id % 7 = b.id % 7",
    "join by floating point": "SELECT a.id, b.id FROM {m} a JOIN {n} b ON a.x = b.x AND a.id % 50 = b.id % 40",
    "join where NULL equals NULL": (
        "SELECT a.id, b.id FROM {m} a JOIN {n} b ON a.k IS NOT DISTINCT FROM b.k AND a.id < b.id"
    ),
    "left join with a condition": "SELECT a.id, b.id FROM {m} a LEFT JOIN {n} b ON a.k = b.k AND a.x < b.x",
    "right join": "SELECT a.id, b.id FROM {m} a RIGHT JOIN {n} b ON a.k = b.k AND a.d = b.d",
    "full join": "SELECT a.id, b.id FROM {m} a FULL JOIN {n} b ON a.t = b.t AND a.k = b.k",
    "exists": "SELECT id FROM {m} a WHERE EXISTS (SELECT 1 FROM {n} b WHERE b.k = a.k AND b.id > a.id)",
    "not exists": "SELECT id FROM {m} a WHERE NOT EXISTS (SELECT 1 FROM {n} b WHERE b.t = a.t AND b.d = a.d)",
    "in, as a value": "SELECT id, k IN (SELECT k + 1 FROM {n}) FROM {m}",
    "in, without NULL": "SELECT id, k IN (SELECT k FROM {n} WHERE k IS NOT NULL) FROM {m}",
    "not in": "SELECT id FROM {m} WHERE k NOT IN (SELECT k * 2 FROM {n} WHERE k IS NOT NULL)",
    "correlated in": "SELECT id, k IN (SELECT k FROM {n} b WHERE b.t = a.t) FROM {m} a",
    "scalar sub-query": "SELECT id, (SELECT b.t FROM {n} b WHERE b.id = a.id * 2 + a.k * 0) FROM {m} a",
    "window": (
        "SELECT id, SUM(x) OVER (PARTITION BY k ORDER BY id), RANK() OVER (PARTITION BY t ORDER BY k NULLS FIRST, id)"
        " FROM {m}"
    ),
    "window over floating point": "SELECT id, COUNT(*) OVER (PARTITION BY x) FROM {m}",
    "groups of a join": "SELECT a.id, b.t, COUNT(*) FROM {m} a LEFT JOIN {n} b ON a.k = b.k GROUP BY a.id, b.t",
    "union": "SELECT t, k FROM {m} UNION SELECT t, k FROM {n}",
    "common sub-plan": (
        "WITH c AS (SELECT k, COUNT(*) AS n"
        " FROM {m} GROUP BY k) SELECT p.k, p.n, q.n FROM c p JOIN c q ON p.k = q.k + 1"
    ),
}


def rows(salt: int) -> pa.Table:
    numbers = [number * 7919 % ROWS for number in range(ROWS)]
    special = {0: None, 1: math.nan, 2: -0.0, 3: 0.0, 4: math.inf}
    return pa.table(
        {
            "id": numbers,
            "k": [None if number % (17 + salt) == 0 else number * (31 + salt) % 6_000 for number in numbers],
            "t": [None if number % 23 == 0 else f"text {number * (3 + salt) % 5_000}" for number in numbers],
            "x": pa.array([special.get(number % 50, number % 4_000 / 7) for number in numbers], pa.float64()),
            "d": pa.array([Decimal(number % 400) for number in numbers], pa.decimal128(30, 2)),
        }
    )


@pytest.fixture(scope="module", params=[1, 3], ids=["1 member", "3 members"])
def grid(request: pytest.FixtureRequest) -> Iterator[Any]:
    with remuda.open(members=request.param) as opened:
        for name, salt in (("m", 0), ("n", 1)):
            opened.sql(
                f"CREATE TABLE {name} (id BIGINT, k BIGINT, t VARCHAR, x DOUBLE, d DECIMAL(30, 2), PRIMARY KEY (id))"
            )
            opened.load(name, rows(salt))
        yield opened


@pytest.fixture
def limited(grid: Any, tmp_path: Path) -> Iterator[Any]:
    with grid.session() as session:
        session.sql(f"SET spill_folder = '{tmp_path}'")
        session.sql(f"SET memory_limit = '{LIMITS[len(grid.cluster.members)]}'")
        yield session


@pytest.fixture(scope="module")
def oracle() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.register("m_rows", rows(0))
        connection.register("n_rows", rows(1))
        yield connection


def told(answer: Any) -> Counter[tuple[str, ...]]:
    """Return how often each row comes, as text, whichever of two zeros stands for both."""
    return Counter(tuple(repr(_plain(value)) for value in row) for row in answer)


def _plain(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return value
    return round(float(value), 9) + 0.0


@pytest.mark.parametrize("query", QUERIES)
def test_answer_is_that_of_memory_and_of_duckdb(
    grid: Any, limited: Any, oracle: Any, tmp_path: Path, query: str
) -> None:
    sql = QUERIES[query].format(m="m", n="n")
    answer = told(limited.sql(sql))
    assert answer == told(grid.sql(sql))
    assert answer == told(oracle.sql(QUERIES[query].format(m="m_rows", n="n_rows")).fetchall())
    plan = "".join(str(row[0]) for row in limited.sql(f"EXPLAIN ANALYZE {sql}"))
    assert re.search(r"spilled: [\d,]+ (build |probe )?rows", plan), plan
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT k, MEDIAN(x) FROM m GROUP BY k", r"spilled: ([\d,]+) rows"),
        ("SELECT a.id, b.id FROM m a LEFT JOIN m b ON a.k = b.k AND a.id = b.id", r"spilled: ([\d,]+) probe rows"),
        ("SELECT id, COUNT(*) OVER (PARTITION BY k) FROM m", r"spilled: ([\d,]+) rows"),
    ],
)
def test_all_rows_that_were_spilled_are_told(query: str, told: str) -> None:
    """Also those that came last, for which a file was not written before the end."""
    with forced({"exec.context.SCAN_BATCH_ROWS": 2}), remuda.open() as grid:
        grid.sql("CREATE TABLE m (id BIGINT, k BIGINT, t VARCHAR, x DOUBLE, d DECIMAL(30, 2), PRIMARY KEY (id))")
        grid.load("m", rows(0))
        grid.sql("SET memory_limit = '1MB'")
        plan = "".join(str(row[0]) for row in grid.sql(f"EXPLAIN ANALYZE {query}"))
    found = re.search(told, plan)
    assert found is not None, plan
    assert int(found[1].replace(",", "")) == ROWS, plan


def test_a_join_that_promises_the_order_of_its_left_side_does_not_spill(grid: Any, limited: Any) -> None:
    """Files would destroy the order: the rows come as they should, or the statement fails at the limit."""
    sql = "SELECT a.id, b.id FROM m a JOIN n b ON a.k = b.k ORDER BY a.id, b.id"
    assert [tuple(row) for row in limited.sql(sql)] == [tuple(row) for row in grid.sql(sql)]


def test_a_result_that_is_left_gives_its_files_back(limited: Any, tmp_path: Path) -> None:
    result = limited.sql(QUERIES["join"].format(m="m", n="n"))
    assert result.fetchone() is not None
    assert open_files(tmp_path) > 0
    result.close()
    assert open_files(tmp_path) == 0


def open_files(folder: Path) -> int:
    links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    return sum(str(link.resolve()).startswith(f"{folder}/") for link in links)


def test_rows_of_equal_keys_are_in_one_file_at_every_level() -> None:
    columns = tuple(Column(number, str(number), each) for number, each in enumerate((BIGINT, VARCHAR, DOUBLE)))
    keys = [
        (number % 300 or None, f"t{number % 7}", [0.0, -0.0, math.nan, None][number % 4]) for number in range(5_000)
    ]
    batch = pa.RecordBatch.from_arrays(
        [pa.array(values, column.type.arrow) for values, column in zip(zip(*keys, strict=True), columns, strict=True)],
        names=["0", "1", "2"],
    )
    for level in (0, 1, 15):
        spilled = SpilledPartitions(SpillFolder(), columns, (0, 1, 2), level=level, limit=1_000)
        for start in range(0, batch.num_rows, 700):
            spilled.add(batch.slice(start, 700))
        spilled.finish()
        file_of: dict[tuple[str, ...], int] = {}
        found: Counter[tuple[str, ...]] = Counter()
        for partition in range(FAN_OUT):
            for read in spilled.batches(partition):
                for row in zip(*read.to_pydict().values(), strict=True):
                    key = tuple(repr(_plain(value)) for value in row)
                    assert file_of.setdefault(key, partition) == partition
                    found[key] += 1
        assert found == told(keys)
        assert sum(spilled.rows) == len(keys)
        assert len(set(file_of.values())) > FAN_OUT // 2
