"""Rows: tuples with names."""

from __future__ import annotations

import copy
import datetime as dt
import pickle

import pytest

import remuda
from remuda.errors import SqlError
from remuda.grid.rows import FEW_ROWS, Row, row_class


def row(names: tuple[str, ...], *values: object) -> Row:
    return row_class(names)(values)


def test_a_row_is_a_tuple() -> None:
    made = row(("id", "Name"), 1, "x")
    assert made == (1, "x")
    assert hash(made) == hash((1, "x"))
    identity, name = made
    assert (identity, name) == (1, "x")
    assert made[0] == made[-2] == 1
    assert made[:1] == (1,)
    assert sorted([row(("a",), 2), row(("a",), 1)]) == [(1,), (2,)]
    assert isinstance(made, tuple)


def test_values_by_name() -> None:
    made = row(("id", "Name"), 1, "x")
    assert (made.id, made["id"], made["ID"]) == (1, 1, 1)
    assert (made.Name, made["Name"], made["name"], made.name) == ("x", "x", "x", "x")
    with pytest.raises(KeyError, match="nothing"):
        made["nothing"]
    assert not hasattr(made, "nothing")
    with pytest.raises(AttributeError):
        made.id = 5  # type: ignore[attr-defined]
    assert made._asdict() == {"id": 1, "Name": "x"}
    assert repr(made) == "Row(id=1, Name='x')"


def test_a_name_that_is_there_twice_means_its_first_column() -> None:
    made = row(("a", "b", "a"), 1, 2, 3)
    assert made.a == made["a"] == 1
    assert tuple(made) == (1, 2, 3)
    for convert in (made.asdict, made._asdict, lambda: dict(made)):
        with pytest.raises(SqlError, match="two columns are called a"):
            convert()


def test_an_exact_name_comes_before_one_in_other_case() -> None:
    made = row(("ID", "id"), 1, 2)
    assert (made["ID"], made["id"]) == (1, 2)
    assert (made.ID, made.id) == (1, 2)
    assert row(("ID", "x"), 1, 2)["Id"] == 1


@pytest.mark.parametrize(
    "name",
    ["COUNT(*)", "", "a b", "class", "1", "keys", "asdict", "__len__", "__class__", "_fields", "_ordinals", "_asdict"],
)
def test_names_that_are_no_attributes_are_keys_all_the_same(name: str) -> None:
    made = row((name, "other"), 1, 2)
    assert made[name] == 1
    assert (len(made), tuple(made), made.other) == (2, (1, 2), 2)
    assert made.index(2) == 1
    assert made.count(1) == 1
    assert made._asdict() == made.asdict() == dict(made) == {name: 1, "other": 2}
    assert pickle.loads(pickle.dumps(made)) == made
    assert "other=2" in repr(made)


@pytest.mark.parametrize("name", ["count", "index", "Count"])
def test_a_column_takes_the_place_of_a_method_of_tuples(name: str) -> None:
    """As a field of a `namedtuple` does. Other rows keep the methods."""
    made = row((name, "other"), 1, 2)
    assert getattr(made, name) == getattr(made, name.lower()) == made[name] == 1
    assert dict(made) == made.asdict() == {name: 1, "other": 2}
    assert (tuple(made), made == (1, 2), 2 in made, pickle.loads(pickle.dumps(made))) == ((1, 2), True, True, (1, 2))
    assert (row(("a",), 5).count(5), row(("a",), 5).index(5)) == (1, 0)


def test_pickle_and_copy_keep_the_names() -> None:
    made = row(("id", "COUNT(*)"), 1, [2])
    for again in (pickle.loads(pickle.dumps(made)), copy.copy(made), copy.deepcopy(made)):
        assert again == made
        assert type(again) is type(made)
        assert again.id == 1
        assert again["COUNT(*)"] == [2]


def test_rows_of_a_query() -> None:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE m (id BIGINT, Amount DOUBLE, PRIMARY KEY (id))")
        grid.sql("INSERT INTO m VALUES (1, 2.5)")
        made = grid.sql("SELECT id, amount, amount * 2, id AS id FROM m").fetchone()
        assert made is not None
        assert (made.id, made.Amount, made["amount"], made[2]) == (1, 2.5, 2.5, 5.0)
        assert [pickle.loads(pickle.dumps(each)) for each in grid.sql("SELECT * FROM m")] == [(1, 2.5)]


@pytest.mark.parametrize("count", [1, FEW_ROWS, FEW_ROWS + 1, 50])
def test_dates_and_times_are_converted_in_few_rows_and_in_many(count: int) -> None:
    day = dt.datetime(2024, 1, 1, 12, 30)
    with remuda.open() as grid:
        grid.sql("CREATE TABLE m (id BIGINT, t TIMESTAMP, d DATE, s VARCHAR, PRIMARY KEY (id))")
        expected = [(id_, None if id_ % 3 == 1 else day, day.date(), "x") for id_ in range(count)]
        for values in expected:
            grid.sql("INSERT INTO m VALUES (?, ?, ?, ?)", *values)
        for _ in range(2):
            assert grid.sql("SELECT * FROM m ORDER BY id").fetchall() == expected
            assert list(grid.sql("SELECT * FROM m ORDER BY id")) == expected
            grid.checkpoint()
