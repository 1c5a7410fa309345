"""Dynamic lookups: scans look up the keys of a join where these are few, and the answers stay those of DuckDB."""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import remuda
from remuda.optimizer import cost

ROWS = 3_000
TABLES = {
    "s": "CREATE TABLE s (id BIGINT, region VARCHAR, ref BIGINT, word VARCHAR, x DOUBLE, PRIMARY KEY (id))",
    "b": "CREATE TABLE b (id BIGINT, kind INTEGER, y BIGINT, PRIMARY KEY (id))",
    "c": "CREATE TABLE c (a BIGINT, n VARCHAR, y BIGINT, PRIMARY KEY (n, a)) PARTITION BY (a)",
    "d": "CREATE TABLE d (id BIGINT, ref BIGINT, x DOUBLE, y BIGINT, PRIMARY KEY (id))",
}
INDEXES = (
    "CREATE INDEX s_region ON s (region) TYPE HASH",
    "CREATE INDEX d_ref ON d (ref) TYPE HASH",
    "CREATE INDEX d_x ON d (x, y) TYPE SORTED",
)
QUERIES = (
    "SELECT s.id, b.y FROM s JOIN b ON s.ref = b.id WHERE s.region = ?",
    "SELECT s.id, b.y FROM s JOIN b ON s.ref = b.id AND b.kind < s.id % 7 WHERE s.region = ?",
    "SELECT s.id, b.y FROM s LEFT JOIN b ON s.ref = b.id AND b.kind > 1 WHERE s.region = ?",
    "SELECT COUNT(*), SUM(b.y) FROM s JOIN b ON s.ref = b.id WHERE s.region = ? AND b.y % 2 = 0",
    "SELECT b.id FROM b WHERE b.id IN (SELECT ref FROM s WHERE region = ?)",
    "SELECT b.id FROM b WHERE EXISTS (SELECT 1 FROM s WHERE s.ref = b.id AND s.id > b.y AND s.region = ?)",
    "SELECT s.id FROM s WHERE s.region = ? AND NOT EXISTS (SELECT 1 FROM b WHERE b.id = s.ref AND b.kind = 1)",
    "SELECT s.id, c.y FROM s JOIN c ON s.ref = c.a AND s.word = c.n WHERE s.region = ?",
    "SELECT s.id, c.y FROM s JOIN c ON s.ref = c.a WHERE s.region = ?",
    "SELECT s.id, d.y FROM s JOIN d ON s.ref = d.ref WHERE s.region = ?",
    "SELECT s.id, d.y FROM s JOIN d ON s.x = d.x WHERE s.region = ?",
    "SELECT s.id, d.y FROM s JOIN d ON s.ref IS NOT DISTINCT FROM d.ref WHERE s.region = ?",
    "SELECT s.id, d.y FROM s JOIN d ON s.ref IS NOT DISTINCT FROM d.ref AND s.ref = d.ref WHERE s.region = ?",
    "SELECT s.id, d.y FROM s JOIN d ON s.ref = d.ref AND s.id IS NOT DISTINCT FROM d.ref WHERE s.region = ?",
    "SELECT s.id, g.z FROM s JOIN (SELECT ref, SUM(y) AS z FROM d GROUP BY ref) g USING (ref) WHERE s.region = ?",
    "SELECT s.id, b.y, d.y FROM s JOIN b ON s.ref = b.id JOIN d ON d.ref = b.id WHERE s.region = ?",
    "SELECT s.id, d.y FROM s RIGHT JOIN d ON s.ref = d.ref WHERE d.y = 5 AND (s.region = ? OR s.id IS NULL)",
)
VALUES = ("few", "many", "one", "none", None)


def tables() -> dict[str, pa.Table]:
    chance = np.random.default_rng(58)
    regions = chance.choice(["many", "more"], ROWS)
    regions[:9], regions[9] = "few", "one"
    ref = chance.integers(0, ROWS, ROWS)
    floats = np.where(ref % 5 == 0, np.nan, ref / 4)
    floats[ref % 7 == 0] = -0.0
    words = np.array([f"w{each % 5}" for each in ref])
    some_null = pa.array(ref, mask=ref % 11 == 0)
    number = np.arange(ROWS)
    return {
        "s": pa.table({"id": number, "region": regions, "ref": some_null, "word": words, "x": floats}),
        "b": pa.table({"id": number[::2], "kind": (number[::2] % 5).astype(np.int32), "y": number[::2] * 3}),
        "c": pa.table({"a": number, "n": [f"w{each % 5}" for each in number], "y": number}),
        "d": pa.table({"id": number, "ref": some_null, "x": np.where(ref % 7 == 0, 0.0, floats), "y": number % 50}),
    }


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("limit", [0, 4, 1 << 40, None], ids=["never", "few keys", "always", "as it pays"])
def test_answers_are_those_of_duckdb(members: int, limit: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans are made once for a text and run with values that select none, few and many rows, on both sides."""
    if limit is not None:
        monkeypatch.setattr(cost, "dynamic_lookup_cutover", lambda *_: (limit, limit))
    monkeypatch.setattr(cost, "FORK_ROWS", 500)
    with remuda.open(members=members, partitions=31) as grid, duckdb.connect(config={"threads": 1}) as other:
        fill(grid)
        for name, table in tables().items():
            other.register(f"{name}_loaded", table)
            other.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_loaded")
        for database in (grid.sql, other.execute):
            database("DELETE FROM b WHERE id % 10 = 4")
            database("UPDATE d SET y = y + 1000 WHERE id % 13 = 0")
            database("INSERT INTO b VALUES (100001, 1, 1), (4, 2, 2)")
        for text in QUERIES:
            for value in VALUES:
                expected = Counter(map(comparable, other.execute(text, [value]).fetchall()))
                assert Counter(map(comparable, grid.sql(text, value))) == expected, (text, value)


def fill(grid: Any) -> None:
    for name, table in tables().items():
        grid.sql(TABLES[name])
        grid.load(name, table)
    for index in INDEXES:
        grid.sql(index)


def comparable(row: Any) -> tuple[Any, ...]:
    return tuple("NaN" if value != value else value for value in row)


def test_reports_what_was_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "dynamic_lookup_cutover", lambda *_: (20, 100))
    monkeypatch.setattr("remuda.grid.planner.value_bounds", lambda *_: ())  # which has a lookup join for few
    with remuda.open() as grid:
        fill(grid)
        text = "EXPLAIN ANALYZE SELECT COUNT(*) FROM s JOIN {} WHERE s.region = ?"
        by_key, by_index = text.format("b ON s.ref = b.id"), text.format("d USING (ref)")
        for value, of_key, of_index in (
            ("few", "dynamic lookup: 8 keys", "dynamic lookup: 8 keys, "),
            ("many", "dynamic lookup: not used", "dynamic lookup: not used"),
        ):
            assert of_key in explained(grid, by_key, value)
            assert of_index in explained(grid, by_index, value)


def explained(grid: Any, text: str, value: str) -> str:
    return " ".join(" ".join(row[0] for row in grid.sql(text, value)).split())
