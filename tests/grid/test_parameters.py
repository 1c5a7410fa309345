"""Parameters: how many, by name, compared exactly, stored with care."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import remuda
from remuda.catalog import IndexType
from remuda.errors import ErrorCode, SqlError

WANTED = {0: "no parameter is", 1: "1 parameter is"}
GIVEN = {0: "none"}


@pytest.fixture(params=[1, 3], ids=["1 member", "3 members"])
def grid(request: pytest.FixtureRequest) -> Iterator[Any]:
    with remuda.open(members=request.param) as opened:
        opened.sql(
            "CREATE TABLE m (id BIGINT, s SMALLINT, i INTEGER, x DECIMAL(6, 2), d DOUBLE, v VARCHAR, day DATE, "
            "PRIMARY KEY (id))"
        )
        for id_ in range(1, 6):
            day = dt.date(2024, 1, id_)
            opened.sql("INSERT INTO m VALUES (?, ?, ?, ?, ?, ?, ?)", id_, id_, id_, id_, id_ / 2, str(id_), day)
        yield opened


def ids(grid: Any, condition: str, *values: Any) -> list[int]:
    """The same with and without an index, by parameters; and from the cache."""
    text = f"SELECT id FROM m WHERE {condition}"
    found = sorted(row[0] for row in grid.sql(text, *values))
    assert sorted(row[0] for row in grid.sql(text, *values)) == found
    return found


@pytest.mark.parametrize("index", [None, *IndexType.__members__])
def test_comparisons_are_exact(grid: Any, index: str | None) -> None:
    if index is not None:
        for column in ("s", "i", "x"):
            grid.sql(f"CREATE INDEX m_{column} ON m ({column}) TYPE {index}")
    for column in ("id", "s", "i", "x"):
        assert ids(grid, f"{column} = ?", 2) == [2]
        assert ids(grid, f"{column} = ?", 2.0) == [2]
        assert ids(grid, f"{column} = ?", Decimal("2.000")) == [2]
        assert ids(grid, f"{column} = ?", 1.5) == []
        assert ids(grid, f"{column} = ?", Decimal("2.001")) == []
        assert ids(grid, f"{column} = ?", 2**70) == []
        assert ids(grid, f"{column} = ?", None) == []
        assert ids(grid, f"{column} <> ?", 1.5) == [1, 2, 3, 4, 5]
        assert ids(grid, f"{column} > ?", 1.5) == [2, 3, 4, 5]
        assert ids(grid, f"{column} >= ?", Decimal("2.001")) == [3, 4, 5]
        assert ids(grid, f"{column} < ?", 2**70) == [1, 2, 3, 4, 5]
        assert ids(grid, f"{column} > ?", -(2**70)) == [1, 2, 3, 4, 5]
        assert ids(grid, f"{column} > ?", 2**70) == []
        assert ids(grid, f"{column} IN (?, ?, ?)", 1.5, 2, 2**70) == [2]
        assert ids(grid, f"{column} BETWEEN ? AND ?", 1.5, 3.5) == [2, 3]
        assert ids(grid, f"? < {column}", 1.5) == [2, 3, 4, 5]
        assert ids(grid, f"{column} < ?", math.inf) == [1, 2, 3, 4, 5]
        assert ids(grid, f"{column} < ?", math.nan) == [1, 2, 3, 4, 5]


def test_a_number_that_a_double_cannot_hold() -> None:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE big (id BIGINT, PRIMARY KEY (id))")
        for id_ in (2**53, 2**53 + 1):
            grid.sql("INSERT INTO big VALUES (?)", id_)
        assert grid.sql("SELECT id FROM big WHERE id = ?", float(2**53)).fetchall() == [(2**53,)]
        assert grid.sql("SELECT id FROM big WHERE id = ?", 2**53 + 1).fetchall() == [(2**53 + 1,)]


def test_the_number_of_values(grid: Any) -> None:
    for text, expected in (
        ("SELECT id FROM m WHERE id = ?", 1),
        ("SELECT id FROM m WHERE i = ? AND s > ?", 2),
        ("INSERT INTO m (id, s) VALUES (?, ?)", 2),
        ("SELECT id FROM m", 0),
    ):
        for given in range(5):
            if given == expected:
                continue
            for _ in range(2):
                with pytest.raises(
                    SqlError,
                    match=rf"{WANTED.get(expected, expected)}.* expected, {GIVEN.get(given, given)} w\w+ given",
                ) as caught:
                    grid.sql(text, *range(100, 100 + given))
                assert caught.value.code is ErrorCode.DATA_EXCEPTION
    with pytest.raises(SqlError, match="takes no parameters"):
        grid.sql("SHOW TABLES", 1)


def test_named_parameters(grid: Any) -> None:
    text = "SELECT id FROM m WHERE i >= :low AND i <= :high AND (i <> :low OR TRUE)"
    for _ in range(2):
        assert sorted(grid.sql(text, low=2, high=3)) == [(2,), (3,)]
        assert sorted(grid.sql(text, {"high": 3, "low": 3})) == [(3,)]
    for positional, named in (((), {"low": 1}), ((), {}), ((), {"low": 1, "high": 2, "more": 3})):
        with pytest.raises(SqlError, match=r"the parameters are low, high; given are"):
            grid.sql(text, *positional, **named)
    with pytest.raises(SqlError, match=r"the parameters are named \(low, high\)"):
        grid.sql(text, 1, 2)
    with pytest.raises(SqlError, match="there is no parameter named low: the parameters are written"):
        grid.sql("SELECT id FROM m WHERE id = ?", low=1)
    assert grid.sql("INSERT INTO m (id, v) VALUES (:id, :v)", id=9, v="x").update_count == 1
    assert grid.sql("UPDATE m SET v = :v WHERE id = :id", id=9, v="y").update_count == 1
    assert grid.sql("SELECT v FROM m WHERE id = :id", id=9).fetchall() == [("y",)]


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("s", 100_000, "100000 overflows SMALLINT"),
        ("i", 2**31, "overflows INTEGER"),
        ("i", 1.5, "CAST"),
        ("i", True, "not a value of type INTEGER"),
        ("x", 10**6, "overflows"),
        ("x", math.nan, "DECIMAL"),
        ("x", math.inf, "DECIMAL"),
        ("v", b"5", "not a value of type VARCHAR"),
        ("day", "2024-13-01", "DATE"),
        ("day", 5, "DATE"),
        ("d", "x", "DOUBLE"),
        ("d", object(), "DOUBLE"),
    ],
)
def test_what_is_stored_must_fit(grid: Any, column: str, value: Any, message: str) -> None:
    """Through INSERT and UPDATE, on the shortcut and on the long way; each error names the parameter."""
    statements: list[tuple[str, tuple[Any, ...]]] = [
        (f"INSERT INTO m (id, {column}) VALUES (?, ?)", (50, value)),
        (f"INSERT INTO m (id, {column}) VALUES (?, ?), (?, ?)", (50, value, 51, value)),
        (f"SINK INTO m (id, {column}) VALUES (?, ?)", (50, value)),
        (f"UPDATE m SET {column} = ? WHERE id = 1", (value,)),
        (f"UPDATE m SET {column} = ? WHERE id > 0", (value,)),
    ]
    before = grid.sql("SELECT * FROM m ORDER BY id").fetchall()
    for text, values in statements:
        with pytest.raises(SqlError, match=message) as caught:
            grid.sql(text, *values)
        assert caught.value.code is ErrorCode.DATA_EXCEPTION
        assert caught.value.message.startswith("parameter "), caught.value.message
    assert grid.sql("SELECT * FROM m ORDER BY id").fetchall() == before


def test_a_decimal_column_rounds_what_is_stored(grid: Any) -> None:
    for id_, value in ((20, 1.005), (21, Decimal("1.005")), (22, 1.0049)):
        grid.sql("INSERT INTO m (id, x) VALUES (?, ?)", id_, value)
    found = grid.sql("SELECT x FROM m WHERE id >= 20 ORDER BY id").fetchall()
    assert [row.x for row in found] == [Decimal("1.01"), Decimal("1.01"), Decimal("1.00")]


def test_numpy_values_are_values(grid: Any) -> None:
    values = (np.int64(60), np.int16(6), np.int32(6), np.float64(1.5), np.float32(0.5), np.str_("n"))
    grid.sql("INSERT INTO m (id, s, i, x, d, v) VALUES (?, ?, ?, ?, ?, ?)", *values)
    row = grid.sql("SELECT id, s, i, x, d, v FROM m WHERE id = ?", np.int64(60)).fetchone()
    assert row == (60, 6, 6, Decimal("1.50"), 0.5, "n")
    assert [type(value) for value in row] == [int, int, int, Decimal, float, str]


def test_dates_and_times_may_be_written_as_text(grid: Any) -> None:
    assert ids(grid, "day = ?", "2024-01-03") == [3]
    assert ids(grid, "day > ?", dt.date(2024, 1, 3)) == [4, 5]


@pytest.mark.parametrize("value", [object(), [1], {"a": 1}.keys(), 1 + 2j])
def test_values_of_foreign_types_are_refused(grid: Any, value: Any) -> None:
    for text in ("SELECT id FROM m WHERE id = ?", "SELECT id FROM m WHERE v = ?", "INSERT INTO m (id) VALUES (?)"):
        with pytest.raises(SqlError) as caught:
            grid.sql(text, value)
        assert caught.value.code is ErrorCode.DATA_EXCEPTION


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("SELECT ?, v FROM m WHERE id = 1", (Decimal("1.50"),), [(Decimal("1.50"), "1")]),
        ("SELECT ? AS tag", ("x",), [("x",)]),
        ("SELECT ?", (None,), [(None,)]),
        ("SELECT :a, :b", ({"a": 1, "b": dt.date(2024, 1, 31)},), [(1, dt.date(2024, 1, 31))]),
        ("SELECT COALESCE(?, ?)", (None, 2), [(2,)]),
        ("SELECT id FROM m WHERE id < 3 AND (? IS NULL OR v = ?) ORDER BY id", (None, None), [(1,), (2,)]),
        ("SELECT id FROM m WHERE id < 3 AND (? IS NULL OR v = ?) ORDER BY id", ("2", "2"), [(2,)]),
        ("SELECT y, x FROM (VALUES (?, ?)) AS q (x, y)", (1, 2.5), [(2.5, 1)]),
    ],
)
def test_the_value_tells_the_type_where_the_place_does_not(
    grid: Any, text: str, values: tuple[Any, ...], expected: list[Any]
) -> None:
    for _ in range(2):
        assert grid.sql(text, *values).fetchall() == expected


def test_values_of_other_types_for_the_same_text(grid: Any) -> None:
    for value in (1, "x", None, 2.5, dt.datetime(2024, 1, 31), b"\x00", True):
        assert grid.sql("SELECT ? AS given", value).fetchall() == [(value,)]
    with pytest.raises(SqlError, match="1 parameter is expected, none was given"):
        grid.sql("SELECT ? AS given")


@pytest.mark.parametrize(
    ("sql", "values", "number"),
    [
        ("INSERT INTO m (id, i) VALUES (9, ?)", (object(),), 1),
        ("SELECT id FROM m WHERE i = ? AND v = ?", (1.5, object()), 2),
        ("SELECT id FROM m WHERE i = ? AND v = ?", (1.5, 7), 2),
        ("INSERT INTO m (id, s, i) SELECT id + 9, ?, ? FROM m", (1, 2.5), 2),
        ("SELECT ?, ?", (1, object()), 2),
    ],
)
def test_a_value_that_does_not_fit_is_shown_at_its_parameter(
    grid: Any, sql: str, values: tuple[Any, ...], number: int
) -> None:
    with pytest.raises(SqlError) as caught:
        grid.sql(sql, *values).fetchall()
    place = [at for at, character in enumerate(sql) if character == "?"][number - 1]
    assert caught.value.position is not None
    assert caught.value.position.column == place + 1
