"""Estimates over every type and its edge values: planning never raises, shares lie in [0, 1], all else is finite.

The answers are compared with those of DuckDB as well: what is estimated also decides how a query is done.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from random import Random
from typing import Any

import duckdb
import pytest

import remuda
from remuda.errors import SqlError
from remuda.optimizer.estimates.selectivity import of_map, selectivity
from remuda.plan import logical
from remuda.plan.walk import walk
from remuda.rules.normalize.normalize import normalize
from remuda.rules.normalize.trim import trim_columns
from remuda.sql import Query, bind, parse
from tests.harness.databases import DuckDatabase

EDGES: dict[str, tuple[str, ...]] = {
    "TINYINT": ("-128", "-127", "0", "126", "127"),
    "SMALLINT": ("-32768", "-1", "0", "32766", "32767"),
    "INTEGER": ("-2147483648", "-2147483647", "-1", "0", "1", "2147483646", "2147483647"),
    "BIGINT": (
        "-9223372036854775808",
        "-9223372036854775807",
        "-9007199254740993",
        "0",
        "9007199254740993",
        "9223372036854775806",
        "9223372036854775807",
    ),
    "REAL": ("-3.4e38", "-1e-45", "-0.0", "0.0", "1.5", "3.4e38", "Infinity", "-Infinity", "NaN"),
    "DOUBLE": (
        "-1.7976931348623157e308",
        "-5e-324",
        "-0.0",
        "0.0",
        "5e-324",
        "1.0",
        "1.0000000000000002",
        "1.7976931348623157e308",
        "Infinity",
        "-Infinity",
        "NaN",
    ),
    "DECIMAL(38, 0)": ("-" + "9" * 38, "-" + "9" * 37 + "8", "0", "1", "9" * 37 + "8", "9" * 38),
    "DECIMAL(38, 37)": ("-9." + "9" * 37, "-0." + "0" * 36 + "1", "0", "0." + "0" * 36 + "1", "9." + "9" * 37),
    "DECIMAL(9, 2)": ("-9999999.99", "-0.01", "0.00", "0.01", "9999999.99"),
    "DATE": ("0001-01-01", "0001-01-02", "1969-12-31", "1970-01-01", "9999-12-30", "9999-12-31"),
    "TIME": ("00:00:00", "00:00:00.000001", "12:00:00", "23:59:59.999999"),
    "TIMESTAMP": ("0001-01-01 00:00:00", "1969-12-31 23:59:59.999999", "2000-01-01 00:00:00", "9999-12-31 23:59:59"),
    "VARCHAR": ("", "a", "A", "ab", "\U0010ffff", "ü", "z" * 300, "zz"),
    "BOOLEAN": ("true", "false"),
}
NUMBERS = tuple(type_ for type_ in EDGES if not type_.startswith(("REAL", "DATE", "TIME", "VARCHAR", "BOOLEAN")))
"""Types of which DuckDB compares any two as Remuda does, if it does: a REAL beside a DECIMAL is a REAL there."""
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "IS NOT DISTINCT FROM", "IS DISTINCT FROM")


def literal(type_: str, value: str) -> str:
    return f"CAST('{value}' AS {type_})"


class Estimates:
    """Random queries over one map of every type and, where the types fit, joins of it with itself."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.columns = {f"c{number}": type_ for number, type_ in enumerate(EDGES)}
        self.narrow = random.random() < 0.3
        """Whether each column has two values only, of all its edges."""

    def definitions(self) -> list[str]:
        columns = ", ".join(f"{name} {type_}" for name, type_ in self.columns.items())
        statements = [
            f"CREATE TABLE {name} (id BIGINT, {columns}, PRIMARY KEY (id))" for name in ("e", "one", "none", "other")
        ]
        kinds = self.random.sample(sorted(self.columns), 4)
        statements += [
            f"CREATE INDEX e_{name} ON e ({name}) TYPE {kind}"
            for name, kind in zip(kinds, ("SORTED", "SORTED", "HASH", "SORTED"), strict=True)
        ]
        for name, count in (("e", self.random.choice((2, 5, 60))), ("one", 1), ("other", 8)):
            rows = ", ".join(f"({number}, {', '.join(map(self._value, EDGES))})" for number in range(count))
            statements.append(f"INSERT INTO {name} VALUES {rows}")
        return statements

    def _value(self, type_: str, nulls: float = 0.15) -> str:
        if self.random.random() < nulls:
            return "NULL"
        edges = EDGES[type_]
        return literal(type_, self.random.choice(edges[-2:] if self.narrow else edges))

    def condition(self, table: str = "e", depth: int = 2) -> str:
        name = self.random.choice(tuple(self.columns))
        type_, column = self.columns[name], f"{table}.{name}"
        one, two = self._value(type_, 0.02), self._value(type_, 0.02)
        negated = self.random.choice(("", "NOT "))
        forms = [
            f"{column} {self.random.choice(COMPARISONS)} {one}",
            f"{column} {self.random.choice(COMPARISONS)} {one}",
            f"{one} {self.random.choice(COMPARISONS)} {column}",
            f"{column} {negated}BETWEEN {one} AND {two}",
            f"{column} > {one} AND {column} <= {two}",
            f"{column} {negated}IN ({one}, {two}, {self._value(type_)})",
            f"{column} IS {negated}NULL",
            f"{column} = {table}.{name}",
        ]
        if type_ == "VARCHAR":
            forms.append(f"{column} LIKE '{self.random.choice(('', 'a', 'z', 'ü'))}%'")
        if depth:
            connector = self.random.choice(("AND", "OR"))
            forms.append(f"({self.condition(table, depth - 1)} {connector} {self.condition(table, depth - 1)})")
            forms.append(f"NOT ({self.condition(table, depth - 1)})")
        return self.random.choice(forms)

    def _compared_with(self, name: str) -> str:
        """Return a column that this one may be joined with: of another type only where both are numbers."""
        if self.columns[name] not in NUMBERS:
            return name
        return self.random.choice([other for other, type_ in self.columns.items() if type_ in NUMBERS])

    def query(self) -> str:
        name = self.random.choice(tuple(self.columns))
        table = self.random.choice(("e", "e", "e", "one", "none"))
        where = f"WHERE {self.condition(table)}"
        kind = self.random.choice(("JOIN", "LEFT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"))
        other = f"other.{name}"
        nested = f"WHERE {self.condition('other', 1)}"
        grouped, key = self._compared_with(name), f"{table}.{name}"
        groups = f"(SELECT {grouped} AS k, COUNT(*) FROM other GROUP BY 1) AS g"
        joined = f"{table} {kind} other ON {table}.{name} = {other} AND {self.condition('other', 1)}"
        return self.random.choice(
            (
                f"SELECT id FROM {table} {where}",
                f"SELECT COUNT(*) FROM {table} {where}",
                f"SELECT {name}, COUNT(*) FROM {table} {where} GROUP BY {name}",
                f"SELECT {table}.id FROM {joined} {where}",
                f"SELECT {table}.id FROM {table} {kind} {groups} ON {key} = g.k",
                f"SELECT id FROM {table} WHERE {name} IN (SELECT {other} FROM other {nested})",
                f"SELECT id FROM {table} {where} ORDER BY {name}, id LIMIT 3",
            )
        )


def check_estimates(grid: Any, text: str) -> None:
    query = parse(text)
    assert isinstance(query, Query)
    planner = grid.default_session.planner()
    for node in walk(planner.plan(text, query).tree):
        estimate = getattr(node, "estimate", None)
        if estimate is not None:
            assert 0.0 <= estimate.rows < math.inf, (text, node)
            assert 0.0 <= estimate.cost < math.inf, (text, node)
    bound = bind(query, grid.store.catalog, grid.search_path)
    for node in walk(normalize(trim_columns(bound.tree))):
        if isinstance(node, logical.Scan):
            share = selectivity(node.filter, of_map(grid.store.map(node.map).statistics()))
            assert 0.0 <= share <= 1.0, (text, share)


def comparable(rows: Iterable[Iterable[Any]]) -> list[str]:
    """Sorted. Which zero, -0.0 or 0.0, stands for a group of both is not defined."""
    return sorted(repr([value + 0.0 if isinstance(value, float) else value for value in row]) for row in rows)


def check(seed: int, count: int) -> int:
    random = Random(seed)
    generator = Estimates(random)
    oracle = DuckDatabase()
    compared = 0
    with remuda.open(members=random.choice((1, 1, 3))) as grid:
        for statement in generator.definitions():
            oracle.execute(statement, [])
            grid.sql(statement)
        for number in range(count):
            if number == count // 2:
                grid.checkpoint()
            text = generator.query()
            check_estimates(grid, text)
            try:
                expected = comparable(oracle.query(text, []))
            except duckdb.Error:
                continue
            assert comparable(grid.sql(text)) == expected, text
            compared += 1
    oracle.close()
    return compared


@pytest.mark.parametrize("seed", range(4))
def test_estimates_of_edge_values(seed: int) -> None:
    assert check(seed, 40) > 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 130))
def test_many_estimates_of_edge_values(seed: int) -> None:
    assert check(seed, 150) > 75


def test_numbers_of_any_two_types_are_joined() -> None:
    """A DECIMAL meets the NaN and the infinite ends of a DOUBLE, which Python does not compare with it."""
    numbers = [type_ for type_ in EDGES if type_ in {*NUMBERS, "REAL"}]
    with remuda.open() as grid:
        for number, type_ in enumerate(numbers):
            grid.sql(f"CREATE TABLE t{number} (id INTEGER, v {type_}, PRIMARY KEY (v))")
            values = {value + 0.0 if isinstance(value, float) else value for value in _edges_of(grid, type_)}
            for id_, value in enumerate(values):
                grid.sql(f"INSERT INTO t{number} VALUES (?, ?)", id_, value)
        for one, other in itertools.product(range(len(numbers)), repeat=2):
            text = f"SELECT x.id, y.id FROM t{one} x JOIN t{other} y ON x.v = y.v"
            check_estimates(grid, text)
            rows, others = (grid.sql(f"SELECT v, id FROM t{each}").fetchall() for each in (one, other))
            expected = [(id_, its_id) for value, id_ in rows for it, its_id in others if _are_equal(value, it)]
            assert sorted(map(tuple, grid.sql(text))) == sorted(expected), (numbers[one], numbers[other])


def _edges_of(grid: Any, type_: str) -> list[Any]:
    return [grid.sql(f"SELECT {literal(type_, value)}").fetchone()[0] for value in EDGES[type_]]


def _are_equal(one: Any, other: Any) -> bool:
    """Say whether numbers are equal: exact ones by their value, and as DOUBLEs where one is floating."""
    if isinstance(one, float) or isinstance(other, float):
        one, other = float(one), float(other)
    return bool(one == other) or (one != one and other != other)


RANGES = (
    "v > 9223372036854775806",
    "v BETWEEN -9223372036854775807 AND 9223372036854775807",
    "v NOT BETWEEN -9223372036854775807 AND 9223372036854775807",
    "d < -1.7976931348623157e308",
    "d BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308",
    "d > CAST('Infinity' AS DOUBLE)",
    "d >= CAST('NaN' AS DOUBLE)",
)


@pytest.mark.parametrize("condition", RANGES)
def test_ranges_that_no_double_tells_apart(condition: str) -> None:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE t (id BIGINT, v BIGINT, d DOUBLE, PRIMARY KEY (id))")
        values = [2**63 - 1, 2**63 - 2, -(2**63) + 1, None, 2**63 - 3]
        doubles = [1.7976931348623157e308, -1.7976931348623157e308, math.inf, -math.inf, math.nan]
        grid.map("t").put_all(dict(enumerate(zip(values, doubles, strict=True))))
        check_estimates(grid, f"SELECT id FROM t WHERE {condition}")
        check_estimates(grid, f"SELECT id FROM t WHERE NOT ({condition})")


def test_the_rows_of_a_great_many_joins_are_finite() -> None:
    sources = ", ".join(f"generate_series(1, 1000000000000000000) AS s{number}" for number in range(25))
    with remuda.open() as grid:
        check_estimates(grid, f"SELECT 1 FROM {sources} LIMIT 1")


def test_a_parameter_beyond_its_column_is_estimated() -> None:
    """Such a value is planned as a literal of a type of its own."""
    with remuda.open() as grid:
        grid.sql("CREATE TABLE t (id BIGINT, v INTEGER, PRIMARY KEY (id))")
        grid.sql("CREATE INDEX t_v ON t (v) TYPE SORTED")
        grid.sql("INSERT INTO t VALUES (1, 2147483647), (2, -2147483648), (3, NULL)")
        for value in (2**63, -(2**63) - 1, 10**37, 1e300, math.inf):
            for comparison, beyond in (("<", value > 0), (">", value < 0)):
                try:
                    found = grid.sql(f"SELECT id FROM t WHERE v {comparison} ?", value).fetchall()
                except SqlError:
                    continue
                assert len(found) == 2 * beyond
