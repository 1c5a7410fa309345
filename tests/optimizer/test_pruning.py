"""Partition pruning: which filters are partition-complete, and how many partitions they leave."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from remuda.catalog import MapDefinition
from remuda.exec.scan.concrete_bounds import pruned_partitions
from remuda.optimizer.pruning import expected_partitions, prune
from remuda.storage import hash_values, partition_of
from tests.optimizer.maps import define, filter_of, scan_of

ID = define()
PAIR = define(key=("a", "b"))
PREFIX = define(key=("a", "id"), partitioned_by=("a",))
TEXT = define(key=("s",))
DAY = define(key=("day",))
NUMBER = define(key=("x",))

NONE: list[tuple[Any, ...]] | None = None

CASES: list[tuple[MapDefinition, str, tuple[Any, ...], list[tuple[Any, ...]] | None]] = [
    (ID, "id = 10 AND s IS NOT NULL", (), [(10,)]),
    (ID, "id IN (1, 2, ?)", (3,), [(1,), (2,), (3,)]),
    (ID, "id IN (1, 2, ?)", (2,), [(1,), (2,)]),
    (ID, "id = 1 OR id = 2", (), [(1,), (2,)]),
    (ID, "id = 1 OR (id = 2 AND x > 5)", (), [(1,), (2,)]),
    (ID, "(id = 1 AND a = 2) OR (id = ? AND (b = 3 OR c = 4))", (7,), [(1,), (7,)]),
    (ID, "id = 1 OR (a = 5 AND (id = 2 OR (id = 3 AND b = 1)))", (), [(1,), (2,), (3,)]),
    (ID, "(id = 1 OR id = 2) AND (a = 1 OR b = 2)", (), [(1,), (2,)]),
    (ID, "id = ? + 1", (4,), [(5,)]),
    (ID, "id = 1.0", (), [(1,)]),
    (ID, "__key = 7", (), [(7,)]),
    (ID, "id = a AND a = 5", (), NONE),  # the types differ, so the constant is not inlined
    (PAIR, "a = b AND b = 5", (), [(5, 5)]),
    (PAIR, "a = 1", (), NONE),
    (PAIR, "a = 1 AND b IN (2, 3)", (), [(1, 2), (1, 3)]),
    (PAIR, "a IN (1, 2) AND b IN (3, 4)", (), [(1, 3), (1, 4), (2, 3), (2, 4)]),
    (PAIR, "(a = 1 AND b = 2) OR (b = 4 AND a = 3)", (), [(1, 2), (3, 4)]),
    (PAIR, "(a = 1 AND b = 2) OR a = 3", (), NONE),
    (PAIR, "(a = 1 OR (a = 2 AND c = 9)) AND (b = 3 OR (b = 4 AND c = 9))", (), [(1, 3), (1, 4), (2, 3), (2, 4)]),
    (PAIR, "__key = (1, 7)", (), [(1, 7)]),
    (PREFIX, "a = 1", (), [(1,)]),
    (PREFIX, "__key = (1, 7)", (), [(1,)]),
    (PREFIX, "id = 7", (), NONE),
    (ID, "a = 1 OR x = 2", (), NONE),
    (ID, "id = 1 OR x = 2", (), NONE),
    (ID, "id <> 1", (), NONE),
    (ID, "id + 1 = 2", (), NONE),
    (ID, "id = ?", (None,), []),
    (ID, "id IN (?, 5)", (None,), [(5,)]),
    (ID, "id BETWEEN 5 AND 8", (), [(5,), (6,), (7,), (8,)]),
    (ID, "id BETWEEN ? AND ?", (8, 5), []),
    (ID, "id BETWEEN ? AND 8", (None,), []),
    (ID, "id >= 5 AND id < 8", (), [(5,), (6,), (7,)]),
    (ID, "id > 5 AND id >= 6 AND id <= ? AND id < 9", (20,), [(6,), (7,), (8,)]),
    (PAIR, "a BETWEEN 1 AND 100 AND b BETWEEN 1 AND 101", (), NONE),
    (PAIR, "a BETWEEN 1 AND 100 AND b BETWEEN 3 AND 2", (), []),
    (ID, "id BETWEEN 1 AND 1000", (), [(number,) for number in range(1, 1001)]),
    (ID, "id BETWEEN 1 AND 2000", (), NONE),
    (ID, "id > 5", (), NONE),
    (ID, "id = 1 OR id BETWEEN 5 AND 6", (), [(1,), (5,), (6,)]),
    (PAIR, "a IN (1, 2) AND b BETWEEN 3 AND 4", (), [(1, 3), (1, 4), (2, 3), (2, 4)]),
    (DAY, "day BETWEEN '2024-02-28' AND '2024-03-01'", (), [(19_781,), (19_782,), (19_783,)]),
    (DAY, "day BETWEEN ? AND ? AND a > 1", (19_781, 19_781), [(19_781,)]),
    (DAY, "day >= '2020-01-01' AND day <= '2024-01-01'", (), NONE),
    (ID, "id = CAST(? AS BIGINT) + 1 AND s LIKE 'a%'", (-4,), [(-3,)]),
    (ID, "id IN (?, ? + 1, 7)", (7, 6), [(7,)]),
    (ID, "id BETWEEN 1 AND 1001", (), NONE),
    (
        PAIR,
        f"a IN ({', '.join(map(str, range(100)))}) AND b BETWEEN 1 AND 100",
        (),
        [(a, b) for a in range(100) for b in range(1, 101)],
    ),
    (PAIR, f"a IN ({', '.join(map(str, range(101)))}) AND b BETWEEN 1 AND 100", (), NONE),
    (PAIR, "a = ? AND b = 2", (None,), []),
    (PAIR, "a = 1 AND b = 2 AND c = 3 OR a = 1 AND b = 2", (), [(1, 2)]),
    (TEXT, "s = 'a'", (), [("a",)]),
    (TEXT, "s BETWEEN 'a' AND 'b'", (), NONE),
    (NUMBER, "x = 0.0", (), [(0.0,)]),
    (NUMBER, "x BETWEEN 1 AND 2", (), NONE),
]


@pytest.mark.parametrize(("definition", "condition", "parameters", "keys"), CASES, ids=[case[1] for case in CASES])
def test_pruned_partitions(
    definition: MapDefinition, condition: str, parameters: tuple[Any, ...], keys: list[tuple[Any, ...]] | None
) -> None:
    pruning = prune(definition, filter_of(condition, definition))
    found = None if pruning is None else pruned_partitions(definition, pruning, parameters)
    if keys is None:
        assert found is None
    else:
        types = [definition.column(name).type for name in definition.partitioned_by]
        expected = sorted({partition_of(hash_values(key, types), definition.partitions) for key in keys})
        assert found is not None
        assert np.array_equal(found, expected)


@pytest.mark.parametrize(
    ("condition", "prunes"),
    [
        ("id BETWEEN 1 AND 1000", True),
        ("id BETWEEN 1 AND 1001", False),
        ("id > 0 AND id < 1001", True),
        ("id > 0 AND id <= 1001", False),
        ("id > 0 AND id <= 5000 AND id < 9", True),
        ("id BETWEEN ? AND 5000", True),
        ("id BETWEEN 5000 AND 1", True),
        ("id BETWEEN 1 AND 5000 AND id IN (7, 8)", True),
        ("id = 1 OR id BETWEEN 1 AND 5000", False),
    ],
)
def test_a_range_of_literals_that_prunes_nothing_is_not_in_the_plan(condition: str, prunes: bool) -> None:
    assert (prune(ID, filter_of(condition, ID)) is not None) is prunes


@pytest.mark.parametrize(
    ("condition", "prunes"),
    [
        ("a BETWEEN 1 AND 100 AND b BETWEEN 1 AND 100", True),
        ("a BETWEEN 1 AND 100 AND b BETWEEN 1 AND 101", False),
        ("a BETWEEN 1 AND 1000 AND b IN (1, 2, ?, 4, 5, 6, 7, 8, 9, 10)", True),
        ("a BETWEEN 1 AND 1000 AND b IN (1, 2, ?, 4, 5, 6, 7, 8, 9, 10, 11)", False),
        ("a BETWEEN 1 AND 1000 AND b BETWEEN 1 AND ?", True),
        ("(a BETWEEN 1 AND 1000 AND b IN (1, 2, 3, 4, 5, 6)) OR (a BETWEEN 5 AND 1000 AND b IN (7, 8, 9))", True),
        (
            "(a BETWEEN 1 AND 1000 AND b IN (1, 2, 3, 4, 5, 6)) OR (a BETWEEN 5 AND 1000 AND b IN (7, 8, 9, 10, 11))",
            False,
        ),
    ],
)
def test_combinations_of_literals_that_prune_nothing_are_not_in_the_plan(condition: str, prunes: bool) -> None:
    assert (prune(PAIR, filter_of(condition, PAIR)) is not None) is prunes


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("id BETWEEN 5 AND 8", 4),
        ("id > 5 AND id < 106", 100),
        ("id BETWEEN 1 AND 1000", 271),
        ("id BETWEEN 3 AND 2", 1),
    ],
)
def test_ranges_of_literals_are_counted_for_costs(condition: str, expected: float) -> None:
    assert expected_partitions(prune(ID, filter_of(condition, ID)), 271) == expected


def test_a_replicated_map_is_never_pruned() -> None:
    definition = define(replicated=True)
    assert prune(definition, filter_of("id = 1", definition)) is None
    assert prune(ID, None) is None


ABOVE = [
    "SELECT * FROM (SELECT id AS k, a FROM m) AS t WHERE k = 7",
    "SELECT * FROM (SELECT id, a FROM m ORDER BY a) AS t WHERE id = 7",
    "SELECT id, COUNT(*) FROM m GROUP BY id HAVING id = 7",
    "SELECT * FROM (SELECT DISTINCT id, a FROM m) AS t WHERE id = 7",
    "SELECT a FROM m WHERE id = 7 ORDER BY b LIMIT 3",
    "SELECT COUNT(*) FROM (SELECT id FROM m WHERE a > 1) AS t WHERE id = 7",
    "WITH t AS (SELECT id, a FROM m) SELECT a FROM t WHERE id = 7",
    "SELECT * FROM (SELECT id, RANK() OVER (PARTITION BY id ORDER BY a) AS place FROM m) AS t WHERE id = 7",
    "SELECT RANK() OVER (ORDER BY a) FROM m WHERE id = 7",
    "SELECT * FROM (SELECT id + 0 AS n, id FROM m ORDER BY a) AS t WHERE id = 7 AND n > 1 LIMIT 2",
    "SELECT MAX(a) FROM m WHERE id = 7 AND (a = 1 OR b = 2)",
    "DELETE FROM m WHERE id = 7",
    "UPDATE m SET a = 1 WHERE id = 7",
]


@pytest.mark.parametrize("text", ABOVE)
def test_a_filter_above_other_operators_prunes_the_scan(text: str) -> None:
    pruning = prune(ID, scan_of(text, ID).filter)
    assert pruning is not None
    found = pruned_partitions(ID, pruning, ())
    assert found is not None
    assert len(found) == 1


def test_a_filter_does_not_move_below_a_limit() -> None:
    scan = scan_of("SELECT * FROM (SELECT id FROM m LIMIT 10) AS t WHERE id = 7", ID)
    assert scan.filter is None


@pytest.mark.timeout(20)
def test_many_alternatives_of_other_columns_do_not_make_planning_slow() -> None:
    """Only an OR whose every branch says something of a partitioning column can make a filter partition-complete."""
    condition = " AND ".join(f"(a = {number} OR b = {number})" for number in range(14))
    filter_ = filter_of(condition, ID)
    assert prune(ID, filter_) is None
    assert prune(PAIR, filter_of(condition, PAIR)) is None


def test_an_alternative_too_many_prunes_nothing() -> None:
    condition = " AND ".join(
        f"({' OR '.join(f'({name} = {n} AND c = {n})' for n in range(40))})" for name in ("a", "b")
    )
    assert prune(PAIR, filter_of(condition, PAIR)) is None
