"""XXHASH64 is Spark's, as recorded from a real one; with PMOD it tells the partition of a row."""

from __future__ import annotations

import json

import pytest

import remuda
from remuda.errors import SqlError
from remuda.expr import Column, Literal, Parameters, call
from remuda.types import BIGINT, INTEGER, VARCHAR, SqlType
from tests.expr.evaluation import evaluate_batch, evaluate_row, record_batch
from tests.storage.spark_hash import VECTORS, from_json

CASES = json.loads(VECTORS.read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(kind for kind, _, _ in case["types"]))
def test_hashes_are_those_of_spark(case: dict[str, list[list[object]]]) -> None:
    types = [SqlType.named(str(name), precision, scale) for name, precision, scale in case["types"]]  # type: ignore[arg-type]
    columns = [Column(number, "c", type_) for number, type_ in enumerate(types)]
    rows = [tuple(from_json(type_, value) for type_, value in zip(types, row, strict=True)) for row in case["rows"]]
    expression = call("xxhash64", *columns)
    assert expression is not None
    layout = {column.id: column.id for column in columns}
    expected = [(int, hashed) for hashed in case["hashes"]]
    assert [evaluate_row(expression, layout, row, ()) for row in rows] == expected
    for dictionaries in (False, True):
        batch = record_batch(tuple(types), rows, dictionaries=dictionaries)
        assert evaluate_batch(expression, layout, batch, Parameters()) == expected


def test_constants_are_hashed_as_columns_are() -> None:
    column, constant = Column(0, "c", VARCHAR), Literal(7, INTEGER)
    mixed, both = call("xxhash64", column, constant), call("xxhash64", Literal("a", VARCHAR), constant)
    assert mixed is not None
    assert both is not None
    batch = record_batch((VARCHAR,), [("a",), (None,)], dictionaries=True)
    expected = [evaluate_row(mixed, {0: 0}, row, ()) for row in (("a",), (None,))]
    assert evaluate_batch(mixed, {0: 0}, batch, Parameters()) == expected
    assert evaluate_row(both, {}, (), ()) == expected[0]


def test_it_tells_the_partition_of_a_row() -> None:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE m (name VARCHAR, number INT, PRIMARY KEY (name, number))")
        grid.sql("INSERT INTO m SELECT 'n' || s.i, s.i FROM generate_series(1, 500) AS s(i)")
        counted = grid.sql("SELECT pmod(xxhash64(name, number), 271) AS p, COUNT(*) FROM m GROUP BY 1").fetchall()
        shown = grid.sql("SHOW PARTITIONS").fetchall()
    assert dict(map(tuple, counted)) == {
        row["partition"]: row["rows"] for row in shown if row["map"] == "m" and row["rows"]
    }


def test_a_bare_parameter_has_no_type_to_be_hashed_by() -> None:
    with remuda.open() as grid, pytest.raises(SqlError, match="type of this parameter cannot be told"):
        grid.sql("SELECT 1 WHERE 5 = xxhash64(?)", 5)


@pytest.mark.parametrize(
    ("left", "right", "expected"), [(-7, 3, 2), (7, 3, 1), (-7, -3, -1), (7, -3, 1), (-(2**63), 271, 3)]
)
def test_pmod_is_what_spark_computes(left: int, right: int, expected: int) -> None:
    expression = call("pmod", Literal(left, BIGINT), Literal(right, BIGINT))
    assert expression is not None
    assert evaluate_row(expression, {}, (), ()) == (int, expected)
    column = call("pmod", Column(0, "c", BIGINT), Literal(right, BIGINT))
    assert column is not None
    batch = record_batch((BIGINT,), [(left,), (None,)], dictionaries=False)
    assert evaluate_batch(column, {0: 0}, batch, Parameters()) == [(int, expected), (type(None), None)]
