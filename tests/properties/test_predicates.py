"""The model itself: known truths, and DuckDB's opinion on random predicates."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties.grids import canonical
from tests.properties.predicates import (
    And,
    Between,
    Compare,
    In,
    IsNull,
    Not,
    Or,
    Truth,
    Value,
    compare,
    conjunction,
    disjunction,
    negation,
    predicates,
    to_sql,
    truth,
)
from tests.properties.schemas import Column, Schema, rows, schemas

A = Column("a", "INTEGER")
SCHEMA = Schema((A,), ("a",), ())


@pytest.mark.parametrize("left", [True, False, None])
@pytest.mark.parametrize("right", [True, False, None])
def test_de_morgan_holds_for_three_values(left: Truth, right: Truth) -> None:
    assert negation(conjunction([left, right])) == disjunction([negation(left), negation(right)])


def test_unknown_is_not_false() -> None:
    null_in = In(A, (Value(1, False), Value(None, False)))
    assert truth(null_in, SCHEMA, (1,)) is True
    assert truth(null_in, SCHEMA, (2,)) is None
    assert truth(Not(null_in), SCHEMA, (2,)) is None
    assert truth(IsNull(A), SCHEMA, (None,)) is True
    assert truth(Between(A, Value(None, False), Value(1, False)), SCHEMA, (5,)) is False
    assert compare(2**53 + 1, "=", float(2**53)) is False


def test_text_and_parameters_come_in_the_same_order() -> None:
    predicate = Or(
        (And((Compare(A, "<", Value(1, True), flipped=True), In(A, (Value(2, True), Value(3, False))))), IsNull(A))
    )
    assert to_sql(predicate) == ("((? > a) AND (a IN (?, 3))) OR (a IS NULL)", [1, 2])


@given(st.data())
def test_duckdb_agrees_with_the_model(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    stored = data.draw(rows(schema, max_size=15))
    predicate = data.draw(predicates(schema))
    text, parameters = to_sql(predicate)
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        connection.execute(schema.create("data"))
        for row in stored:
            connection.execute(f"INSERT INTO data VALUES ({', '.join('?' for _ in row)})", list(row))
        found = connection.execute(f"SELECT * FROM data WHERE {text}", parameters).fetchall()
    assert canonical(found) == canonical(row for row in stored if truth(predicate, schema, row) is True)
