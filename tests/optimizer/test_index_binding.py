"""Which predicates an index can serve, what it is bound to, and what remains: behaviour, case by case."""

from __future__ import annotations

import pytest

from remuda.expr import render
from remuda.optimizer.index_binding import bind_index, bind_key
from remuda.optimizer.sargable import find_sargable
from remuda.plan.operator_attributes import describe
from remuda.plan.physical import Direction, IndexScan
from remuda.plan.traits import Traits
from tests.optimizer.maps import define, filter_of, index, scan_of

MAP = define()


def bind_text(condition: str, index_text: str) -> str | None:
    """`bounds; residual` as EXPLAIN writes them; None where the index is unusable."""
    scan = scan_of(f"SELECT id FROM m WHERE {condition}", MAP)
    bound = bind_index(index(index_text), scan.filter, find_sargable(scan.filter))
    if bound is None:
        return None
    node = IndexScan(MAP, bound.index, (), bound.bounds, None, Direction.UNORDERED, None, Traits())
    bounds = describe(node).lines[0]["index"]
    return f"{bounds}; {'-' if bound.residual is None else render(bound.residual)}"


CANDIDATES = [
    ("f = 5", "f = 5"),
    ("5 = f", "f = 5"),
    ("f < 5", "f < 5"),
    ("f <= 5", "f <= 5"),
    ("f > 5", "f > 5"),
    ("f >= 5", "f >= 5"),
    ("5 > f", "f < 5"),
    ("5 >= f", "f <= 5"),
    ("5 < f", "f > 5"),
    ("5 <= f", "f >= 5"),
    ("f = ?", "f = ?0"),
    ("? < f", "f > ?0"),
    ("f = ? + 1", "f = ?0 + 1"),
    ("f = 2 + 3", "f = 5"),
    ("x = ABS(?)", "x = ABS(?0)"),
    ("f = ABS(?)", "f = ABS(?0)"),
    ("f > ABS(?)", "f > ABS(?0)"),
    ("f = ABS(? - 1)", "f = ABS(?0 - 1)"),
    ("f BETWEEN -? AND ABS(?)", "f >= -?0 AND f <= ABS(?1)"),
    ("f BETWEEN ? AND ? + 10", "f >= ?0 AND f <= ?1 + 10"),
    ("1 <= f AND f <= 2", "f >= 1 AND f <= 2"),
    ("f BETWEEN 1 AND ?", "f >= 1 AND f <= ?0"),
    ("f IN (1, 2, ?)", "f IN (1, 2, ?0)"),
    ("f IN (7)", "f = 7"),
    ("f IN (1, NULL)", "f IN (1, NULL)"),
    ("f = 1 OR f = 2 OR f = ?", "f IN (1, 2, ?0)"),
    ("f = 1 OR (f = 2 OR (f = 3 OR f IN (4, 5)))", "f IN (1, 2, 3, 4, 5)"),
    ("f = 1 OR 2 = f OR f IS NULL", "f IN (1, 2, NULL)"),
    ("f IN (1, 2) OR f = 3 OR f IN (4)", "f IN (1, 2, 3, 4)"),
    ("f IS NULL", "f IS NULL"),
    ("f IS NOT NULL", "f IS NOT NULL"),
    ("f < 3000000000", "f IS NOT NULL"),
    ("f <> 1.5", "f IS NOT NULL"),
    ("flag", "flag = TRUE"),
    ("flag IS TRUE", "flag = TRUE"),
    ("flag = TRUE", "flag = TRUE"),
    ("NOT flag", "flag = FALSE"),
    ("flag IS FALSE", "flag = FALSE"),
    ("flag IS NOT TRUE", "flag IN (FALSE, NULL)"),
    ("flag IS NOT FALSE", "flag IN (TRUE, NULL)"),
    ("(f, g) = (1, 2)", "f = 1"),
    ("__key = 7", "id = 7"),
    # A number that the column's type cannot hold: the result stays that of exact comparison.
    ("f > 1.5", "f > 1"),
    ("f >= 1.5", "f > 1"),
    ("f < 1.5", "f <= 1"),
    ("f <= -1.5", "f <= -2"),
    ("f = 1.0", "f = 1"),
    ("x = 1", "x = 1.0"),
    ("day = '2024-02-29'", "day = DATE '2024-02-29'"),
    # Unions of ranges.
    ("f NOT BETWEEN 1 AND 2", "f < 1 OR f > 2"),
    ("f < 3 OR f = 5 OR f > ?", "f < 3 OR f = 5 OR f > ?0"),
    ("f < 3 OR (f > 5 AND f <= 7) OR f IN (8, 9)", "f < 3 OR f > 5 AND f <= 7 OR f IN (8, 9)"),
    ("f < 3 OR f IS NULL", "f < 3 OR f IS NULL"),
    ("f BETWEEN 1 AND 2 OR f BETWEEN ? AND 9", "f >= 1 AND f <= 2 OR f >= ?0 AND f <= 9"),
    ("(f > 1 AND f < 3) OR (f > 7 OR f = 5)", "f > 1 AND f < 3 OR f > 7 OR f = 5"),
    # Prefixes.
    ("s LIKE 'ab%'", "s >= 'ab' AND s < 'ac'"),
    ("starts_with(s, 'ab')", "s >= 'ab' AND s < 'ac'"),
    # A cast that loses nothing is looked through.
    ("CAST(f AS BIGINT) = 5", "f = 5"),
    ("CAST(f AS BIGINT) > 5", "f > 5"),
    ("CAST(f AS DOUBLE) <= 5.5", "f <= 5"),
    ("CAST(f AS DECIMAL(20, 2)) = 5.00", "f = 5"),
    ("CAST(f AS BIGINT) IN (5, 6)", "f IN (5, 6)"),
    ("CAST(f AS BIGINT) IS NULL", "f IS NULL"),
]


@pytest.mark.parametrize(("condition", "bound"), CANDIDATES, ids=[case[0] for case in CANDIDATES])
def test_a_candidate_for_a_sorted_index(condition: str, bound: str) -> None:
    column = bound.partition(" ")[0]
    residual = "g = 2" if "g)" in condition else "-"
    assert bind_text(condition, f"SORTED({column})") == f"{bound}; {residual}"
    is_range = any(operator in bound for operator in ("<", ">", "NOT NULL"))
    assert bind_text(condition, f"HASH({column})") == (None if is_range else f"{bound}; {residual}")


NOT_CANDIDATES = [
    "f <> 5",
    "5 <> f",
    "f IS DISTINCT FROM 5",
    "f = g + 1",
    "f = RANDOM()",
    "f * 1 = 5",
    "f IN (1, 2) OR g = 3",
    "f NOT IN (5, 6)",
    "NOT f = 5",
    "f = a",
    "f < a + 1",
    "f + 1 = 5",
    "-f = 5",
    "f = 1 OR g = 2",
    "f = 1 OR f = a",
    "f = 1 OR flag",
    "CAST(f AS SMALLINT) = 5",
    "CAST(id AS DOUBLE) = 5",
    "s LIKE '%b'",
    "s LIKE '_b'",
    "s NOT LIKE 'a%'",
    "s ILIKE 'a%'",
    "f < 3 OR g > 5",
    "f < 3 OR (f > 5 AND g = 1)",
    "CAST(f AS VARCHAR) = '5'",
    "f IN (1, a)",
]


@pytest.mark.parametrize("condition", NOT_CANDIDATES)
def test_what_no_index_serves(condition: str) -> None:
    assert bind_text(condition, "SORTED(f)") is None
    assert bind_text(condition, "HASH(f)") is None


BINDINGS = [
    ("a = 1 AND b > 2 AND b < 4", "SORTED(a, b)", "a = 1, b > 2 AND b < 4; -"),
    ("a = 1 AND b > 2 AND b < 4", "SORTED(a, c)", "a = 1; b > 2 AND b < 4"),
    ("a = 1 AND b > 2 AND b < 4", "SORTED(b)", "b > 2 AND b < 4; a = 1"),
    ("a = 1 AND b > 2 AND b < 4", "SORTED(b, a)", "b > 2 AND b < 4; a = 1"),
    ("a = 1 AND b > 2 AND b < 4", "SORTED(c, a)", None),
    ("a = 1 AND b > 2 AND b < 4", "HASH(a, b)", None),
    ("a = 1 AND b > 2 AND b < 4", "HASH(a)", "a = 1; b > 2 AND b < 4"),
    ("a = 1 AND c = 2", "SORTED(a, b, c)", "a = 1; c = 2"),
    ("a = 1 AND c = 2", "HASH(a, b, c)", None),
    ("a = 1 AND b = 2 AND c = 3", "SORTED(a, b, c)", "a = 1, b = 2, c = 3; -"),
    ("c = 3 AND b = 2 AND a = 1", "HASH(a, b, c)", "a = 1, b = 2, c = 3; -"),
    ("a > 1 AND b > 2", "SORTED(a, b)", "a > 1; b > 2"),
    ("f = ? AND f > ?", "SORTED(f)", "f = ?0; f > ?1"),
    ("f > ? AND f = ?", "SORTED(f)", "f = ?1; f > ?0"),
    ("(f = ? OR f = ?) AND f > ?", "SORTED(f)", "f IN (?0, ?1); f > ?2"),
    ("f IN (1, 2) AND f = 3", "SORTED(f)", "f = 3; f IN (1, 2)"),
    ("a = 1 AND (b = 2 OR b = 3)", "SORTED(a, b)", "a = 1, b IN (2, 3); -"),
    ("a = 1 AND (b = 2 OR b = 3)", "HASH(a, b)", "a = 1, b IN (2, 3); -"),
    ("(a = 1 OR a = 2) AND b = 3", "SORTED(a, b)", "a IN (1, 2); b = 3"),
    ("(a = 1 OR a = 2) AND b = 3", "HASH(a, b)", None),
    ("(a = 1 AND b = 2) OR a = 3", "SORTED(a, b)", None),
    ("f = 1 OR g = 2", "SORTED(f)", None),
    ("f = 1 AND f = 2", "SORTED(f)", "f = 1; f = 2"),
    # Preference: an equality, a union of equalities, ranges, a union of ranges.
    ("f IN (1, 2) AND (f < 3 OR f > 5)", "SORTED(f)", "f IN (1, 2); f < 3 OR f > 5"),
    (
        "f > 0 AND f IN (1, 2) AND f = 2 AND (f < 3 OR f > 5)",
        "SORTED(f)",
        "f = 2; f > 0 AND f IN (1, 2) AND (f < 3 OR f > 5)",
    ),
    ("f BETWEEN 1 AND a", "SORTED(f)", "f >= 1; f <= a"),
    ("f IS NULL AND f > 1", "SORTED(f)", "f IS NULL; f > 1"),
    ("f IS NOT NULL AND (f < 3 OR f > 5)", "SORTED(f)", "f IS NOT NULL; f < 3 OR f > 5"),
    # Binding stops behind the first column that is not a single equality.
    ("a IN (1, 2) AND b IN (3, 4)", "SORTED(a, b)", "a IN (1, 2); b IN (3, 4)"),
    ("a IS NOT NULL AND b = 3", "SORTED(a, b)", "a IS NOT NULL; b = 3"),
    ("(a < 1 OR a > 2) AND b = 3", "SORTED(a, b)", "a < 1 OR a > 2; b = 3"),
    ("a = 1 AND b = 2 AND c > 3", "SORTED(a, b, c)", "a = 1, b = 2, c > 3; -"),
    ("a = 1 AND b > 2 AND c = 3", "SORTED(a, b, c)", "a = 1, b > 2; c = 3"),
    # HASH of several columns needs all of them, the last may be a union.
    ("a = 1", "HASH(a, b)", None),
    ("a = 1 AND b = 2 AND c IN (3, 4)", "HASH(a, b, c)", "a = 1, b = 2, c IN (3, 4); -"),
    ("a = 1 AND b IN (2, 3) AND c = 4", "HASH(a, b, c)", None),
    ("f > 1 AND f = 2", "HASH(f)", "f = 2; f > 1"),
    ("f > 1", "HASH(f)", None),
    ("(a, b) = (1, 2)", "SORTED(a, b)", "a = 1, b = 2; -"),
    ("(a, b) = (1, 2)", "HASH(a, b)", "a = 1, b = 2; -"),
    ("(a, b) = (1, ?) AND c = 3", "SORTED(b)", "b = ?0; a = 1 AND c = 3"),
    ("f > 1 AND f > ? AND f <= 9", "SORTED(f)", "f > 1 AND f > ?0 AND f <= 9; -"),
    ("f > 1 AND f IS NOT NULL", "SORTED(f)", "f > 1; -"),
    ("a IS NULL AND b = 1", "SORTED(a, b)", "a IS NULL, b = 1; -"),
    ("a IS NULL AND b = 1", "HASH(a, b)", "a IS NULL, b = 1; -"),
    ("a = 1 AND x * 2 > 3", "SORTED(a)", "a = 1; x * 2.0 > 3.0"),
    ("a = b AND b = 5", "SORTED(a, b)", "a = 5, b = 5; -"),
    ("f = 1 AND f = 1", "SORTED(f)", "f = 1; -"),
    ("s LIKE 'ab%c'", "SORTED(s)", "s >= 'ab' AND s < 'ac'; s LIKE 'ab%c'"),
    ("s LIKE 'ab_'", "SORTED(s)", "s >= 'ab' AND s < 'ac'; s LIKE 'ab_'"),
    ("s LIKE ?", "SORTED(s)", "s as ?0 begins; s LIKE ?0"),
    ("s LIKE ?", "HASH(s)", None),
    ("s LIKE 'a%' AND s > 'ab'", "SORTED(s)", "s >= 'a' AND s > 'ab' AND s < 'b'; -"),
    ("a = 1 AND s LIKE 'ab%'", "SORTED(a, s)", "a = 1, s >= 'ab' AND s < 'ac'; -"),
    ("(f < 3 OR f > 5) AND f < 9", "SORTED(f)", "f < 9; f < 3 OR f > 5"),
    ("a = 1 AND (b < 3 OR b > 5)", "SORTED(a, b)", "a = 1, b < 3 OR b > 5; -"),
]


@pytest.mark.parametrize(("condition", "index_text", "expected"), BINDINGS, ids=[f"{c} by {i}" for c, i, _ in BINDINGS])
def test_what_an_index_serves_of_a_condition(condition: str, index_text: str, expected: str | None) -> None:
    assert bind_text(condition, index_text) == expected


def test_no_filter_binds_nothing() -> None:
    assert find_sargable(None) == {}
    assert bind_index(index("SORTED(f)"), None, {}) is None


KEYS = [
    ("id = 5", ("id",), "-"),
    ("id = 5 AND a > 1", ("id",), "a > 1"),
    ("id IN (1, 2)", ("id",), "-"),
    ("__key = (1, 2)", ("a", "b"), "-"),
    ("b = 2 AND a IN (1, 3) AND c = 4", ("a", "b"), "c = 4"),
    ("a = 1", ("a", "b"), None),
    ("id > 5", ("id",), None),
    ("id = 5 OR a = 1", ("id",), None),
]


@pytest.mark.parametrize(("condition", "key", "residual"), KEYS, ids=[case[0] for case in KEYS])
def test_what_a_key_serves_of_a_condition(condition: str, key: tuple[str, ...], residual: str | None) -> None:
    filter_ = filter_of(condition, define(key=key))
    found = bind_key(key, filter_, find_sargable(filter_))
    if residual is None:
        assert found is None
    else:
        assert found is not None
        assert len(found[0]) == len(key)
        assert ("-" if found[1] is None else render(found[1])) == residual
