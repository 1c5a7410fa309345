"""DECIMAL columns compared with numbers of any digits: the rows that Python's exact numbers give, by every access path.

The binder rounds such a number to the column's scale and turns the operator where needed; an operator turned the wrong
way shows at the neighbours of the number, which are therefore among the stored values.
"""

from __future__ import annotations

from decimal import Context, Decimal
from operator import eq, ge, gt, le, lt, ne
from random import Random
from typing import Any

import pytest

import remuda

OPERATORS = {"=": eq, "<>": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
TYPES = [(1, 0), (2, 2), (5, 2), (10, 2), (18, 4), (19, 0), (38, 10), (38, 38)]
INDEXES = ["", "SORTED", "HASH"]


EXACT = Context(prec=100)
"""Python's own arithmetic rounds to 28 digits. Only the numbers of the test are made with more: the engine is not."""


class Numbers:
    """Stored values of a DECIMAL(precision, scale) with the ends of the type, and numbers of any digits beside them."""

    def __init__(self, seed: int, precision: int, scale: int) -> None:
        self._random = Random(seed)
        self._scale = scale
        self._greatest = 10**precision - 1
        units = {0, 1, -1, self._greatest, -self._greatest}
        units |= {self._random.randint(-self._greatest, self._greatest) for _ in range(6)}
        units |= {unit + step for unit in tuple(units) for step in (-1, 1) if abs(unit + step) <= self._greatest}
        self.stored = sorted(Decimal(unit).scaleb(-scale, EXACT) for unit in units)

    def asked(self) -> Decimal:
        """A stored value or one close to it, with up to three digits more; sometimes beyond the ends of the type."""
        near = self._random.choice(self.stored)
        more = self._random.choice([0, 0, 1, 3])
        if self._scale + more > 38 or len(near.as_tuple().digits) + more > 38:
            more = 0
        step = Decimal(self._random.choice([-11, -10, -5, -1, 0, 1, 5, 10, 11])).scaleb(-self._scale - more, EXACT)
        return EXACT.add(near, step) if self._random.random() < 0.9 else EXACT.multiply(near, Decimal(10))


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize(("precision", "scale"), TYPES)
def test_comparisons_are_exact(precision: int, scale: int, index: str) -> None:
    numbers = Numbers(precision * 100 + scale, precision, scale)
    with remuda.open() as grid:
        grid.sql(f"CREATE TABLE m (id BIGINT, d DECIMAL({precision}, {scale}), PRIMARY KEY (id))")
        if index:
            grid.sql(f"CREATE INDEX by_d ON m (d) TYPE {index}")
        rows = [*enumerate(numbers.stored), (-1, None)]
        for id_, value in rows:
            grid.sql("INSERT INTO m VALUES (?, ?)", id_, value)
        grid.sql(f"CREATE TABLE keyed (d DECIMAL({precision}, {scale}), PRIMARY KEY (d))")
        for value in numbers.stored:
            grid.sql("INSERT INTO keyed VALUES (?)", value)
        for _ in range(20):
            _compare(grid, numbers, rows)
        for _ in range(3):
            _compare_widened(grid, numbers, precision, scale)


def _compare(grid: Any, numbers: Numbers, rows: list[tuple[int, Decimal | None]]) -> None:
    value, other = numbers.asked(), numbers.asked()
    if max(len(each.as_tuple().digits) for each in (value, other)) > 38:
        return
    low, high = min(value, other), max(value, other)
    present = [(id_, stored) for id_, stored in rows if stored is not None]
    for operator, meaning in OPERATORS.items():
        expected = sorted(id_ for id_, stored in present if meaning(stored, value))
        for condition in (f"d {operator} {value:f}", f"{value:f} {MIRRORED[operator]} d", f"d {operator} '{value:f}'"):
            assert _ids(grid, condition) == expected, condition
        assert _ids(grid, f"d {operator} ?", value) == expected, (operator, value)
        # A DOUBLE is compared as a DOUBLE, also where several of the column's values are the same one.
        double = float(value)
        as_doubles = sorted(id_ for id_, stored in present if meaning(float(stored), double))
        assert _ids(grid, f"d {operator} ?", double) == as_doubles, (operator, double)
        # NULL stays NULL, so its negation keeps no row either.
        expected = sorted(id_ for id_, stored in present if not meaning(stored, value))
        assert _ids(grid, f"NOT (d {operator} {value:f})") == expected, (operator, value)
        unknown = f"(d {operator} {value:f}) IS NULL"
        assert _ids(grid, unknown) == [-1], unknown
        kept = sorted(stored for _, stored in present if meaning(stored, value))
        assert sorted(row.d for row in grid.sql(f"SELECT d FROM keyed WHERE d {operator} {value:f}")) == kept
    for condition, holds in (
        (f"d IN ({value:f}, {other:f})", lambda stored: stored in (value, other)),
        (f"d NOT IN ({value:f}, {other:f})", lambda stored: stored not in (value, other)),
        (f"d BETWEEN {low:f} AND {high:f}", lambda stored: low <= stored <= high),
        (f"d NOT BETWEEN {low:f} AND {high:f}", lambda stored: not low <= stored <= high),
    ):
        assert _ids(grid, condition) == sorted(id_ for id_, stored in present if holds(stored)), condition
    expected = sorted(id_ for id_, stored in present if low <= stored <= high)
    assert _ids(grid, "d BETWEEN ? AND ?", low, high) == expected, (low, high)


def _ids(grid: Any, condition: str, *values: Any) -> list[int]:
    return sorted(row.id for row in grid.sql(f"SELECT id FROM m WHERE {condition}", *values))


def test_whole_numbers_are_compared_exactly_with_a_real() -> None:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE m (id BIGINT, d REAL, PRIMARY KEY (id))")
        grid.sql("INSERT INTO m VALUES (1, 16777216), (2, 16777218), (3, 0.1)")
        for value in (2**24 + 1, float(2**24 + 1), Decimal(2**24 + 1)):
            assert _ids(grid, "d = ?", value) == []
            assert _ids(grid, "d < ?", value) == [1, 3]
            assert _ids(grid, "d IN (?, ?)", value, 0.1) == [3]


@pytest.mark.parametrize(
    ("condition", "bounds"),
    [
        ("d > 997.755", "d > 997.75"),
        ("d >= 997.755", "d > 997.75"),
        ("d < -0.001", "d <= -0.01"),
        ("d <= 997.755", "d <= 997.75"),
        ("d <> 997.755", "d IS NOT NULL"),
        ("d IN (997.755, 1.5, 2)", "d IN (1.50, 2.00)"),
        ("d BETWEEN 1.001 AND 1.999", "d > 1.00 AND d <= 1.99"),
    ],
)
def test_the_rewritten_comparison_uses_the_index(condition: str, bounds: str) -> None:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE m (id BIGINT, d DECIMAL(10, 2), PRIMARY KEY (id))")
        grid.sql("CREATE INDEX by_d ON m (d) TYPE SORTED")
        plan = "\n".join(row.plan for row in grid.sql(f"EXPLAIN SELECT id FROM m WHERE {condition}"))
        assert f"index: {bounds} " in plan, plan


def test_a_number_with_more_digits_prunes_partitions() -> None:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE keyed (d DECIMAL(10, 2), PRIMARY KEY (d))")
        plan = "\n".join(row.plan for row in grid.sql("EXPLAIN SELECT d FROM keyed WHERE d IN (1.505, 1.5)"))
        assert "KeyLookup" in plan, plan
        plan = "\n".join(row.plan for row in grid.sql("EXPLAIN SELECT d FROM keyed WHERE d = 1.505"))
        assert "0 rows" in plan, plan


def _compare_widened(grid: Any, numbers: Numbers, precision: int, scale: int) -> None:
    """Compare with parameters of more digits and with numbers in floating point: by index, key and pruning."""
    value = numbers.asked()
    digits = min(38, scale + 3, 38 - (precision - scale))
    wide = f"CAST(? AS DECIMAL(38, {digits}))"
    fits = len(value.as_tuple().digits) <= 38 and -value.as_tuple().exponent <= digits  # type: ignore[operator]
    fits = fits and abs(value) < 10 ** (38 - digits)
    floating = float(value)
    converted = grid.sql("SELECT id, d, CAST(d AS DOUBLE) FROM m WHERE d IS NOT NULL").fetchall()
    for operator, meaning in OPERATORS.items():
        if fits:
            expected = sorted(id_ for id_, stored, _ in converted if meaning(stored, value))
            assert _ids(grid, f"d {operator} {wide}", value) == expected, (operator, value)
            assert _ids(grid, f"{wide} {MIRRORED[operator]} d", value) == expected, (operator, value)
            kept = sorted(stored for _, stored, _ in converted if meaning(stored, value))
            found = grid.sql(f"SELECT d FROM keyed WHERE d {operator} {wide}", value)
            assert sorted(row.d for row in found) == kept, (operator, value)
        expected = sorted(id_ for id_, _, number in converted if meaning(number, floating))
        written = f"CAST('{floating!r}' AS DOUBLE)"
        assert _ids(grid, f"d {operator} {written}") == expected, (operator, floating)
        assert _ids(grid, f"{written} {MIRRORED[operator]} d") == expected, (operator, floating)
        kept = sorted(stored for _, stored, number in converted if meaning(number, floating))
        found = grid.sql(f"SELECT d FROM keyed WHERE d {operator} {written}")
        assert sorted(row.d for row in found) == kept, (operator, floating)


@pytest.mark.parametrize(
    ("condition", "values", "bound"),
    [
        ("d > CAST(? AS DECIMAL(20, 10))", (Decimal("997.755"),), "direct scan above"),
        ("d = CAST(? AS INTEGER)", (997,), "direct scan above"),
        ("d > 997.755e0", (), "d >= 997.7"),
        ("d BETWEEN 997.745e0 AND 997.755e0", (), "d >= 997.7"),
        ("d > ?", (997.755,), "d >= 997.7"),
    ],
)
def test_indexes_serve_numbers_of_more_digits(condition: str, values: tuple[Any, ...], bound: str) -> None:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE m (id BIGINT, d DECIMAL(10, 2), PRIMARY KEY (id))")
        grid.load("m", {"id": list(range(100_000)), "d": [Decimal(unit) / 100 for unit in range(100_000)]})
        grid.sql("CREATE INDEX by_d ON m (d) TYPE SORTED")
        plan = "\n".join(line for (line,) in grid.sql(f"EXPLAIN SELECT id FROM m WHERE {condition}", *values))
        assert "IndexScan" in plan
        assert bound in plan


def test_pruning_and_keys_serve_numbers_of_more_digits() -> None:
    with remuda.open(members=3) as grid:
        grid.sql("CREATE TABLE k (d DECIMAL(10, 2), id BIGINT, PRIMARY KEY (d, id)) PARTITION BY (d)")
        grid.load("k", {"id": list(range(5_000)), "d": [Decimal(unit) / 100 for unit in range(5_000)]})
        text = "SELECT id FROM k WHERE d = CAST(? AS DECIMAL(20, 4))"
        plan = "\n".join(line for (line,) in grid.sql(f"EXPLAIN {text}", Decimal("7.25")))
        assert "partitions: 1 of 271" in plan
        assert grid.sql(text, Decimal("7.25")).fetchall() == [(725,)]
        assert grid.sql(text, Decimal("7.2501")).fetchall() == []
        assert grid.sql(f"{text} AND id = 725", Decimal("7.2501")).fetchall() == [], "the key is rounded, not the value"
        assert grid.sql(f"{text} AND id = 725", Decimal("7.25")).fetchall() == [(725,)]
