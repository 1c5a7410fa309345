"""The key-value face of a map."""

from __future__ import annotations

import datetime as dt
import math
import threading
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

import remuda
from remuda.errors import ErrorCode, RemudaError, SqlError


@pytest.fixture
def grid() -> Iterator[Any]:
    with remuda.open() as opened:
        opened.sql("CREATE TABLE m (id BIGINT, name VARCHAR, day DATE, PRIMARY KEY (id))")
        opened.sql("CREATE TABLE pair (v BIGINT, a VARCHAR, b INTEGER, PRIMARY KEY (a, b))")
        yield opened


DAY = dt.date(2024, 2, 29)


def test_put_and_get(grid: Any) -> None:
    m = grid.map("M")
    assert m.name == "m"
    assert (m.get(1), m.get(1, "none"), len(m), 1 in m) == (None, "none", 0, False)
    assert m.put(1, {"name": "x", "DAY": DAY}) is None
    assert m.put(1, ("y", None)) == ("x", DAY)
    m[2] = {"name": "z"}
    assert (m[1], m[2].name, m.get(2)["day"], len(m), 2 in m) == (("y", None), "z", None, 2, True)
    assert grid.sql("SELECT * FROM m ORDER BY id").fetchall() == [(1, "y", None), (2, "z", None)]
    with pytest.raises(KeyError):
        m[3]


def test_remove_gives_what_was_there(grid: Any) -> None:
    m = grid.map("m")
    m.put_all({1: ("x", DAY), 2: ("y", None)})
    assert m.remove(1) == ("x", DAY)
    assert m.remove(1) is None
    del m[2]
    with pytest.raises(KeyError):
        del m[2]
    assert len(m) == 0


def test_put_all_is_all_or_nothing(grid: Any) -> None:
    m = grid.map("m")
    m.put_all([(1, ("x", None)), (2, ("y", None)), (1, ("z", None))])
    assert (m[1].name, len(m)) == ("z", 2)
    with pytest.raises(SqlError):
        m.put_all({3: ("x", None), 4: (5, None)})
    with pytest.raises(SqlError, match="must not be NULL"):
        m.put_all([(5, ("x", None)), (None, ("x", None))])
    assert len(m) == 2


def test_keys_of_several_columns(grid: Any) -> None:
    pair = grid.map("pair")
    pair.put(("x", 1), {"v": 5})
    pair[("x", 2)] = (6,)
    assert (pair[("x", 1)], pair.get(("x", 2)).v, ("x", 1) in pair, ("x", 3) in pair) == ((5,), 6, True, False)
    assert pair.remove(("x", 1)) == (5,)
    assert grid.sql("SELECT v, a, b FROM pair").fetchall() == [(6, "x", 2)]


@pytest.mark.parametrize("key", ["xy", 5, ("x",), ("x", 1, 2), None])
def test_a_key_of_several_columns_is_a_tuple(grid: Any, key: Any) -> None:
    pair = grid.map("pair")
    for use in (pair.get, pair.remove, pair.__contains__, lambda key: pair.put(key, (1,)), pair.__delitem__):
        with pytest.raises(SqlError, match="the key is a tuple of a, b") as caught:
            use(key)
        assert caught.value.code is ErrorCode.DATA_EXCEPTION
    assert len(pair) == 0


def test_no_row_has_a_null_key(grid: Any) -> None:
    m, pair = grid.map("m"), grid.map("pair")
    m.put(1, ("x", None))
    for which, key in ((m, None), (pair, ("x", None)), (pair, (None, None))):
        assert which.get(key) is None
        assert key not in which
        assert which.remove(key) is None
        with pytest.raises(SqlError, match="must not be NULL"):
            which.put(key, {})


@pytest.mark.parametrize("value", [5, "ab", None, ("x",), ("x", None, 1), {"nam": "x"}, {"id": 2}, b"xy"])
def test_values_that_are_none(grid: Any, value: Any) -> None:
    m = grid.map("m")
    for use in (lambda: m.put(1, value), lambda: m.put_all({1: value}), lambda: m.__setitem__(1, value)):
        with pytest.raises(SqlError) as caught:
            use()
        assert caught.value.code is ErrorCode.DATA_EXCEPTION
    assert len(m) == 0


def test_errors_of_values_and_keys_say_what_is_wrong(grid: Any) -> None:
    m = grid.map("m")
    with pytest.raises(SqlError, match=r"unknown column: nam(.|\n)*Did you mean \"name\""):
        m.put(1, {"nam": "x"})
    with pytest.raises(SqlError, match=r"2 values are expected \(name, day\), 1 is given"):
        m.put(1, ("x",))
    with pytest.raises(SqlError, match="overflows BIGINT"):
        m.get(2**63)
    with pytest.raises(SqlError, match="not a value of type BIGINT"):
        m.get("1")
    with pytest.raises(SqlError, match="unknown table: nothing"):
        grid.map("nothing")


def test_a_map_of_keys_alone() -> None:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE k (id BIGINT, PRIMARY KEY (id))")
        k = grid.map("k")
        k.put(1, {})
        k[2] = ()
        assert (k[1], k.get(2), 1 in k, 3 in k, len(k)) == ((), (), True, False, 2)
        assert k.remove(1) == ()
        assert k.get(1) is None


def test_zeros_and_nans_are_found_by_their_equals() -> None:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE f (x DOUBLE, n BIGINT, PRIMARY KEY (x))")
        f = grid.map("f")
        f.put(0.0, (1,))
        f.put(-0.0, (2,))
        f.put(math.nan, (3,))
        f.put(math.copysign(math.nan, -1), (4,))
        for _ in range(2):
            assert (len(f), f[0.0], f[-0.0], f[float("nan")]) == (2, (2,), (2,), (4,))
            assert grid.sql("SELECT n FROM f WHERE x = ?", -0.0).fetchall() == [(2,)]
            assert grid.sql("SELECT n FROM f WHERE x = ?", float("nan")).fetchall() == [(4,)]
            grid.checkpoint()


def test_a_map_that_was_dropped(grid: Any) -> None:
    m = grid.map("m")
    m.put(1, ("x", None))
    grid.sql("DROP TABLE m")
    grid.sql("CREATE TABLE m (id BIGINT, PRIMARY KEY (id))")
    for use in (lambda: m.get(1), lambda: m.put(1, ("x", None)), lambda: m.remove(1), lambda: 1 in m):
        with pytest.raises(SqlError, match="the map m was dropped") as caught:
            use()
        assert caught.value.code is ErrorCode.MAP_DESTROYED


def test_the_face_and_sql_see_the_same(grid: Any) -> None:
    m = grid.map("m")
    m.put(1, ("x", None))
    grid.sql("UPDATE m SET name = 'y' WHERE id = 1")
    assert m[1].name == "y"
    grid.sql("CREATE INDEX m_name ON m (name) TYPE HASH")
    m.put(2, ("y", None))
    assert sorted(grid.sql("SELECT id FROM m WHERE name = 'y'").fetchall()) == [(1,), (2,)]
    grid.sql("DELETE FROM m WHERE id = 1")
    assert 1 not in m


def test_put_returns_each_old_value_once(grid: Any) -> None:
    """Two threads that exchange values lose none: what one is given back, the other has put."""
    m = grid.map("m")
    m.put(1, ("start", None))
    given: list[str] = []

    def exchange(number: int) -> None:
        for turn in range(200):
            given.append(m.put(1, (f"{number}-{turn}", None)).name)

    threads = [threading.Thread(target=exchange, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    given.append(m[1].name)
    assert sorted(given) == sorted(["start", *(f"{number}-{turn}" for number in range(4) for turn in range(200))])


def test_a_map_of_a_closed_grid_is_not_written(grid: Any) -> None:
    m = grid.map("m")
    m.put(1, ("x", None))
    grid.close()
    with pytest.raises(RemudaError, match="closed"):
        m.put(2, ("x", None))


def test_what_pandas_has_for_a_missing_value_is_null(grid: Any) -> None:
    """NaT calls itself a datetime, and its distance from another one is a number that is none."""
    grid.sql("CREATE TABLE seen (id BIGINT, n INTEGER, at TIMESTAMP, zoned TIMESTAMP WITH TIME ZONE, PRIMARY KEY (id))")
    seen = grid.map("seen")
    for key, missing in enumerate((pd.NaT, pd.NA)):
        seen.set(key, (missing, missing, missing))
        grid.sql("SINK INTO seen VALUES (?, ?, ?, ?)", key + 10, missing, missing, missing)
        assert seen[key] == seen[key + 10] == (None, None, None)
        assert grid.sql("SELECT id FROM seen WHERE at = ?", missing).fetchall() == []
        with pytest.raises(SqlError, match="NULL"):
            seen.set(missing, (1, None, None))
