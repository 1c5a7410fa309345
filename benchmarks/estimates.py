"""How good estimates are: rows that the planner expects beside rows that there are, as q-errors.

The q-error of an estimate is how many times too high or too low it is; less than one row counts as one. Conditions are
asked of a map with uniform, skewed, correlated and NULL-rich columns; scans and joins are those of TPC-H and TPC-DS.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import remuda
from remuda.types import decimal
from remuda.types.arrow_arrays import decimal_array
from tests.tpcds import tpcds
from tests.tpch import tpch

if TYPE_CHECKING:
    from collections.abc import Iterator

TPCH_SCALE = 0.1
TPCDS_SCALE = 0.05
WORST = 10
"""So many of the worst estimates are printed of the benchmarks' operators."""
READS_ALL = frozenset({"Sort", "TopN", "HashAggregate", "Window", "Spool"})
"""Operators that read their input to its end, however few of their rows are asked for."""
CREATE = """
    CREATE TABLE facts (
        id BIGINT, uniform INTEGER, sparse BIGINT, cust VARCHAR, item INTEGER, region VARCHAR, flag BOOLEAN,
        qty INTEGER, amount DOUBLE, price DECIMAL(10, 2), city INTEGER, country INTEGER, made DATE, at TIMESTAMP,
        note VARCHAR, often_null INTEGER, PRIMARY KEY (id)
    )
"""
INDEXES = (
    "CREATE INDEX facts_amount ON facts (amount) TYPE SORTED",
    "CREATE INDEX facts_cust ON facts (cust) TYPE HASH",
    "CREATE INDEX facts_place ON facts (country, city) TYPE SORTED",
)
WORDS = ("red", "green", "forest", "blue", "misty", "navy", "olive", "plum", "rose", "sandy", "tan", "violet")

CONDITIONS = (
    "uniform = 65", "uniform = 999", "uniform = 5000", "uniform <> 65", "uniform < 10", "uniform <= 0",
    "uniform BETWEEN 99 AND 99", "uniform BETWEEN 100 AND 150", "uniform > 990", "uniform >= 999", "uniform > 2000",
    "uniform IN (1, 2, 3, 500)", "uniform NOT IN (1, 2, 3)", "uniform % 10 = 3", "uniform + 1 = 66",
    "uniform < 10 OR uniform > 990", "uniform = 65 AND qty = 3", "NOT (uniform = 65)", "uniform IS NULL",
    "sparse = 1000", "sparse < 1000000", "sparse BETWEEN 1000000000 AND 2000000000", "sparse > 9990000000",
    "cust = 'C00000'", "cust = 'C00001'", "cust = 'C00010'", "cust = 'C00100'", "cust = 'C01000'", "cust = 'C50000'",
    "cust <> 'C00000'", "cust IN ('C00000', 'C00003', 'C40000')", "cust LIKE 'C0000%'", "cust LIKE 'C1%'",
    "cust LIKE '%7'", "cust LIKE '%00%'", "cust > 'C00005'", "cust < 'C00001'", "cust >= 'C90000'",
    "item = 1", "item = 2", "item = 30", "item = 300", "item = 90000", "item > 10", "item > 50000",
    "item BETWEEN 2 AND 4",
    "region = 'EMEA'", "region = 'APAC'", "region = 'NONE'", "region <> 'EMEA'", "region IN ('APAC', 'LATAM')",
    "region LIKE '%A%'", "upper(region) = 'APAC'", "flag", "NOT flag", "flag IS NOT TRUE",
    "qty = 1", "qty = 99", "qty BETWEEN 99 AND 99", "qty > 90", "qty > 1 AND qty < 4", "qty * 2 = 4",
    "amount > 500", "amount < 1", "amount BETWEEN 10 AND 20", "amount > 5000", "amount > 99999",
    "price > 997.755", "price = 997.75", "price < 0.015", "price BETWEEN 9.995 AND 10.005", "price = 1.005",
    "city = 77", "country = 7", "country = 27 AND city = 77", "country = 27 AND city < 100",
    "country = 27 AND city IN (77, 127, 177)", "country <> 7 AND city <> 77",
    "made = DATE '2024-03-01'", "made >= DATE '2024-12-01'", "made < DATE '2020-02-01'",
    "made BETWEEN DATE '2022-01-01' AND DATE '2022-01-31'", "EXTRACT(YEAR FROM made) = 2023",
    "EXTRACT(MONTH FROM made) = 2", "at >= TIMESTAMP '2024-12-31 00:00:00'",
    "at BETWEEN TIMESTAMP '2024-06-01 00:00:00' AND TIMESTAMP '2024-06-02 00:00:00'",
    "note LIKE 'forest%'", "note LIKE '%forest%'", "note LIKE '%12%'", "note LIKE 'red green%'", "note NOT LIKE 'red%'",
    "length(note) > 16", "often_null IS NULL", "often_null IS NOT NULL", "often_null = 3", "often_null > 90",
    "coalesce(often_null, 0) = 0", "often_null = 3 OR region = 'APAC'",
    "region = 'APAC' AND flag", "cust = 'C00000' AND uniform < 100", "item = 1 OR cust = 'C00000'",
)  # fmt: skip
JOINS = (
    "facts AS a JOIN customers AS b ON a.cust = b.name",
    "facts AS a JOIN customers AS b ON a.cust = b.name WHERE b.grade = 1",
    "(SELECT * FROM facts WHERE uniform < 5) AS a JOIN (SELECT * FROM facts WHERE uniform = 6) AS b ON a.cust = b.cust",
    "(SELECT * FROM facts WHERE uniform < 5) AS a JOIN (SELECT * FROM facts WHERE uniform = 6) AS b USING (qty)",
    "(SELECT * FROM facts WHERE uniform < 2) AS a JOIN facts AS b ON a.often_null = b.id",
    "(SELECT * FROM facts WHERE uniform < 5 AND item < 3) AS a JOIN (SELECT * FROM facts WHERE qty = 9) USING (item)",
)


@dataclass(frozen=True, slots=True)
class Estimated:
    text: str
    expected: float
    actual: int

    @property
    def error(self) -> float:
        expected, actual = max(1.0, self.expected), max(1, self.actual)
        return max(expected / actual, actual / expected)


def show(rows: int) -> None:
    with remuda.open() as grid:
        fill(grid, rows)
        conditions = [estimate(grid, f"facts WHERE {condition}", condition) for condition in CONDITIONS]
        joins = [estimate(grid, join, join) for join in JOINS]
    print(f"\nestimates of {rows:,} rows{'':<53} {'expected':>12} {'actual':>12} {'q-error':>9}")
    for each in (*conditions, *joins):
        _line(each)
    summarise("conditions and joins", [*conditions, *joins])
    with tempfile.TemporaryDirectory() as folder:
        _show_operators("TPC-H", list(_tpch(Path(folder))))
    try:
        _show_operators("TPC-DS", list(_tpcds()))
    except tpcds.NotInstalledError as error:
        print(f"TPC-DS: {error}")


def fill(grid: Any, rows: int) -> None:
    """Load the map; the last rows are written one statement later, so that there is a segment and a memtable."""
    grid.sql(CREATE)
    grid.sql("CREATE TABLE customers (name VARCHAR, grade INTEGER, PRIMARY KEY (name))")
    grid.load(
        "customers", pa.table({"name": [f"C{n:05}" for n in range(100_000)], "grade": _int32(np.arange(100_000) % 5)})
    )
    grid.load("facts", table(rows))
    for index in INDEXES:
        grid.sql(index)
    grid.sql(
        f"INSERT INTO facts SELECT id + {rows}, uniform, sparse, cust, item, region, flag, qty, amount, price, city, "
        "country, made, at, note, often_null FROM facts WHERE id < 1000"
    )


def table(rows: int) -> pa.Table:
    random = np.random.default_rng(17)
    skewed = np.minimum(random.zipf(1.1, rows) - 1, 99_999)
    regions = random.choice(["EMEA", "AMER", "LATAM", "APAC"], rows, p=[0.7, 0.25, 0.0499, 0.0001])
    city = random.integers(0, 1_000, rows)
    words = [random.choice(WORDS, rows) for _ in range(2)]
    days = random.integers(18_262, 20_089, rows).astype(np.int32)
    cents = random.integers(0, 100_000, rows)
    seconds = random.integers(1_704_067_200, 1_735_689_600, rows)
    return pa.table(
        {
            "id": np.arange(rows),
            "uniform": _int32(random.integers(0, 1_000, rows)),
            "sparse": random.integers(0, 10_000_000_000, rows),
            "cust": [f"C{number:05}" for number in skewed.tolist()],
            "item": _int32(np.minimum(random.zipf(1.3, rows), 100_000)),
            "region": regions,
            "flag": random.random(rows) < 0.0005,
            "qty": _int32(np.minimum(random.geometric(0.3, rows), 99)),
            "amount": random.exponential(100.0, rows),
            "price": decimal_array(cents.view(np.uint64), cents >> 63, decimal(10, 2), None),
            "city": _int32(city),
            "country": _int32(city % 50),
            "made": pa.array(days).view(pa.date32()),
            "at": pa.array(seconds * 1_000_000).view(pa.timestamp("us")),
            "note": [f"{one} {two} {number}" for one, two, number in zip(*words, range(rows), strict=True)],
            "often_null": pa.array(random.integers(0, 100, rows).astype(np.int32), mask=random.random(rows) < 0.95),
        }
    )


def _int32(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return values.astype(np.int32)


def estimate(grid: Any, relation: str, text: str) -> Estimated:
    """Compare the rows that a relation is expected to have with those that it has."""
    query = f"SELECT 1 FROM {relation}"
    (plan,) = grid.sql(f"EXPLAIN (FORMAT JSON) {query}").fetchall()
    (found,) = grid.sql(f"SELECT COUNT(*) FROM {relation}").fetchall()
    return Estimated(text, json.loads(plan[0])["plan"]["estimated_rows"], found[0])


def _tpch(folder: Path) -> Iterator[Estimated]:
    tpch.generate(folder, TPCH_SCALE)
    with remuda.open() as grid:
        tpch.create_tables(grid)
        tpch.load(grid, folder)
        for number, text in tpch.QUERIES.items():
            yield from operators(grid, f"Q{number}", text)


def _tpcds() -> Iterator[Estimated]:
    folder = tpcds.prepare(TPCDS_SCALE)
    with remuda.open() as grid:
        tpcds.load(grid, folder)
        for number in tpcds.queries():
            yield from operators(grid, f"Q{number}", tpcds.text_of(folder, number))


def operators(grid: Any, name: str, text: str) -> Iterator[Estimated]:
    """Yield the scans and the joins of a query; not those of which a LIMIT reads a part of the rows."""
    (plan,) = grid.sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {text}").fetchall()
    yield from _read_operators(name, json.loads(plan[0])["plan"], in_part=False)


def _read_operators(name: str, node: dict[str, Any], *, in_part: bool) -> Iterator[Estimated]:
    kind, inputs = node["operator"], node.get("inputs", [])
    is_measured = "actual" in node and not in_part and not _is_unread(node) and not _is_narrowed(node)
    if kind.endswith(("Scan", "Join", "Lookup")) and is_measured:
        details = " ".join(node["details"])
        yield Estimated(f"{name} {node['description']} {details}", node["estimated_rows"], node["actual"]["rows"])
    for ordinal, below in enumerate(inputs):
        stops = kind == "Limit" or (kind == "TopN" and below["operator"].endswith("Scan"))
        is_held = kind in READS_ALL or (kind == "HashJoin" and ordinal == 1)
        yield from _read_operators(name, below, in_part=stops or (in_part and not is_held))


def _is_unread(node: dict[str, Any]) -> bool:
    """Whether an operator, or one below it, delivered nothing because it was not asked: the other side was empty."""
    actual = node.get("actual")
    is_scan = node["operator"] == "MapScan" and not _is_narrowed(node)
    if actual is not None and is_scan and not actual["rows_read"]:
        return True
    return any(map(_is_unread, node.get("inputs", ())))


def _is_narrowed(node: dict[str, Any]) -> bool:
    """Whether the keys of a join told a scan what to read of its map: it was not estimated to read so little."""
    decisions = node.get("actual", {}).get("decisions", ())
    return any(each.startswith("dynamic ") and "not used" not in each for each in decisions)


def summarise(name: str, estimated: list[Estimated]) -> None:
    errors = np.array([each.error for each in estimated])
    middle, most, worst = np.quantile(errors, [0.5, 0.9, 1.0])
    good = np.mean(errors < 4)
    print(
        f"  {name}: {len(errors)} estimates, median {middle:.2f}, 90 % up to {most:.2f}, worst {worst:,.0f}; "
        f"{good:.0%} below 4",
        flush=True,
    )


def _show_operators(name: str, estimated: list[Estimated]) -> None:
    summarise(f"scans of {name}", [each for each in estimated if "Join " not in each.text])
    summarise(f"joins of {name}", [each for each in estimated if "Join " in each.text])
    for each in sorted(estimated, key=lambda one: -one.error)[:WORST]:
        _line(each)


def _line(each: Estimated) -> None:
    print(f"  {each.text[:72]:<72} {each.expected:>14,.0f} {each.actual:>12,} {each.error:>9,.1f}")
