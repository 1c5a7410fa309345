"""IN of rows, ANY and ALL are what SQL's definition says of each pair of rows, NULLs and empty sub-queries included.

DuckDB evaluates the definition: true where some pair is, unknown where none is and some pair is unknown. It is asked so
because DuckDB itself has no correlated IN of rows.
"""

from __future__ import annotations

from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import remuda

SIZES = (0, 1, 4, 40, 400)
OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
TYPES = {"a": pa.int64(), "b": pa.int64(), "c": pa.int64(), "d": pa.float64(), "s": pa.string()}
SQL_TYPES = {"a": "BIGINT", "b": "BIGINT", "c": "BIGINT", "d": "DOUBLE", "s": "VARCHAR"}
VALUES: dict[str, tuple[Any, ...]] = {
    "a": tuple(range(12)),
    "b": tuple(range(4)),
    "c": tuple(range(3)),
    "d": (-1.5, 0.0, 0.5, 2.0, float("nan")),
    "s": ("", "a", "ab", "b", "ß"),
}


def random_table(random: Random, rows: int, nulls: float) -> pa.Table:
    columns = {
        name: pa.array([None if random.random() < nulls else random.choice(values) for _ in range(rows)], TYPES[name])
        for name, values in VALUES.items()
    }
    return pa.table({"id": pa.array(range(rows), pa.int64()), **columns})


def random_predicate(random: Random) -> tuple[str, str]:
    """The predicate, and its definition."""
    kind = random.choice(("row in", "row in", "row not in", "any", "all", "exists"))
    if kind.startswith("row"):
        columns = random.sample(["a", "b", "c", "d", "s"], random.choice((1, 2, 2, 3)))
        lefts = [
            f"l.{name}" if random.random() < 0.9 else f"(l.{name} || '')" * (name == "s") or f"l.{name} + 1"
            for name in columns
        ]
        rights = [f"r.{name}" for name in columns]
        where = random_where(random)
        pair = " AND ".join(f"{left} = {right}" for left, right in zip(lefts, rights, strict=True))
        negated = kind == "row not in"
        left = lefts[0] if len(lefts) == 1 else f"({', '.join(lefts)})"
        return (
            f"{left} {'NOT ' * negated}IN (SELECT {', '.join(rights)} FROM r{where})",
            f"{'NOT ' * negated}{definition(pair, where)}",
        )
    name, operator = random.choice(["a", "d", "s"]), random.choice(OPERATORS)
    other = random.choice(["a", "b"]) if name == "a" else name
    where = random_where(random)
    if kind == "exists":
        condition = f"{where} AND " if where else " WHERE "
        exists = f"EXISTS (SELECT 1 FROM r{condition}l.{name} {operator} r.{other})"
        return exists, exists
    if kind == "any":
        return (
            f"l.{name} {operator} ANY (SELECT r.{other} FROM r{where})",
            definition(f"l.{name} {operator} r.{other}", where),
        )
    return (
        f"l.{name} {operator} ALL (SELECT r.{other} FROM r{where})",
        f"NOT {definition(f'NOT (l.{name} {operator} r.{other})', where)}",
    )


def random_where(random: Random) -> str:
    conditions = ("", "", "r.c = l.c", "r.b = l.b AND r.c = l.c", "r.c < l.c", "r.a > 5", "r.a IS NOT NULL",
                  "r.c = l.c AND r.b <> l.b", "r.a > 99", "r.b IS NOT DISTINCT FROM l.b", "l.c = 1")  # fmt: skip
    chosen = random.choice(conditions)
    return f" WHERE {chosen}" if chosen else ""


def definition(pair: str, where: str) -> str:
    condition = f"{where} AND " if where else " WHERE "
    return (
        f"(CASE WHEN EXISTS (SELECT 1 FROM r{condition}({pair})) THEN TRUE "
        f"WHEN EXISTS (SELECT 1 FROM r{condition}(({pair}) IS NULL)) THEN NULL ELSE FALSE END)"
    )


def query(random: Random, predicate: str, shape: int) -> str:
    match shape:
        case 0:
            return f"SELECT l.id, {predicate} FROM l ORDER BY l.id"
        case 1:
            return f"SELECT l.id FROM l WHERE {predicate} ORDER BY l.id"
        case 2:
            return f"SELECT l.id FROM l WHERE NOT ({predicate}) ORDER BY l.id"
        case 3:
            return f"SELECT l.id FROM l WHERE {predicate} OR l.b = 2 ORDER BY l.id"
        case _:
            return f"SELECT l.id FROM l WHERE l.b = 2 AND ({predicate}) IS NULL ORDER BY l.id"


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("seed", [*range(5), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(5, 100))])
def test_definition(seed: int, members: int) -> None:
    random = Random(seed)
    with remuda.open(members=members) as grid, duckdb.connect() as oracle:
        for name in ("l", "r"):
            table = random_table(random, random.choice(SIZES), random.choice((0.0, 0.02, 0.3)))
            oracle.register(f"rows_{name}", table)
            oracle.execute(f"CREATE TABLE {name} AS SELECT * FROM rows_{name}")
            columns = ", ".join(f"{column} {type_}" for column, type_ in SQL_TYPES.items())
            grid.sql(f"CREATE TABLE {name} (id BIGINT, {columns}, PRIMARY KEY (id))")
            grid.load(name, table)
        for _ in range(20):
            predicate, defined = random_predicate(random)
            shape = random.randrange(5)
            sql = query(random, predicate, shape)
            expected = oracle.execute(query(random, defined, shape)).fetchall()
            assert [tuple(row) for row in grid.sql(sql)] == expected, sql
