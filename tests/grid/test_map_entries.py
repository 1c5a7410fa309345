"""The key-value face of a map beyond single keys: conditional writes, iteration, conditions, indexes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import remuda
from remuda.errors import SqlError


@pytest.fixture(params=[1, 3])
def grid(request: pytest.FixtureRequest) -> Iterator[Any]:
    with remuda.open(members=request.param) as opened:
        opened.sql('CREATE TABLE m (id BIGINT, name VARCHAR, "odd name" INTEGER, PRIMARY KEY (id))')
        opened.sql("CREATE TABLE pair (v BIGINT, a VARCHAR, b INTEGER, PRIMARY KEY (a, b))")
        yield opened


def test_conditional_writes(grid: Any) -> None:
    m = grid.map("m")
    assert m.put_if_absent(1, ("x", 1)) is None
    assert m.put_if_absent(1, ("y", 2)) == ("x", 1)
    assert m.replace(2, ("z", 3)) is None
    assert 2 not in m
    assert m.replace(1, ("z", 3)) == ("x", 1)
    m.set(1, {"name": "w"})
    assert m[1] == ("w", None)
    assert (m.delete(1), m.delete(1), m.delete(None)) == (True, False, False)
    assert m.is_empty()


def test_put_if_absent_lets_one_thread_win(grid: Any) -> None:
    m = grid.map("m")
    winners: list[int] = []

    def race(number: int) -> None:
        for key in range(200):
            if m.put_if_absent(key, (str(number), number)) is None:
                winners.append(key)

    threads = [threading.Thread(target=race, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(winners) == list(range(200))


def test_many_keys(grid: Any) -> None:
    m = grid.map("m")
    m.put_all({key: (f"n{key}", key) for key in range(10)})
    assert m.get_all([3, 99, 4]) == {3: ("n3", 3), 4: ("n4", 4)}
    assert (m.size(), len(m), m.contains_key(3), m.contains_key(30)) == (10, 10, True, False)
    assert sorted(m) == sorted(m.keys()) == list(range(10))
    assert sorted(m.values()) == sorted((f"n{key}", key) for key in range(10))
    assert dict(m.items()) == dict(m.entries()) == {key: (f"n{key}", key) for key in range(10)}
    m.clear()
    assert (list(m), len(m)) == ([], 0)


def test_conditions_are_sql(grid: Any) -> None:
    m = grid.map("m")
    m.put_all({key: (f"n{key}", key * 10) for key in range(10)})
    assert sorted(m.keys('"odd name" > ?', 60)) == [7, 8, 9]
    assert [value.name for value in m.values("id = 4")] == ["n4"]
    assert dict(m.items("name IN (?, ?)", "n1", "n2")) == {1: ("n1", 10), 2: ("n2", 20)}
    with pytest.raises(SqlError, match="unknown column: nme"):
        list(m.keys("nme = 'x'"))


def test_keys_of_several_columns(grid: Any) -> None:
    pair = grid.map("pair")
    pair.put_all({("x", 1): (10,), ("x", 2): (20,)})
    assert sorted(pair) == [("x", 1), ("x", 2)]
    assert dict(pair.items("v > 10")) == {("x", 2): (20,)}
    assert pair.get_all([("x", 1), ("y", 1)]) == {("x", 1): (10,)}


def test_iteration_holds_a_snapshot(grid: Any) -> None:
    m = grid.map("m")
    m.put_all({key: (None, key) for key in range(100)})
    keys = m.keys()
    first = next(keys)
    m.clear()
    assert sorted([first, *keys]) == list(range(100))


def test_add_index(grid: Any) -> None:
    m = grid.map("m")
    m.put_all({key: (f"n{key}", key) for key in range(1000)})
    assert m.add_index("name", "HASH") == "m_name_hash"
    assert m.add_index(["odd name"], name="odd") == "odd"
    assert "using m_name_hash (HASH)" in grid.explain("SELECT id FROM m WHERE name = 'n1'")
    assert list(m.keys("name = ?", "n7")) == [7]
    with pytest.raises(SqlError, match="SORTED or HASH"):
        m.add_index("name", "TREE")
    with pytest.raises(SqlError, match="exists already"):
        m.add_index("name", "HASH")
