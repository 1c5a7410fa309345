"""The map face: calls that read before they write, and lookups of many keys, under threads and after a crash."""

from __future__ import annotations

import datetime as dt
import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import remuda
from remuda.errors import SqlError

CREATE = (
    "CREATE TABLE m (id BIGINT, n BIGINT, i TINYINT, x DOUBLE, p DECIMAL(20, 2), s VARCHAR NOT NULL, d DATE, "
    "PRIMARY KEY (id))"
)
VALUE = {"n": 5, "i": 1, "x": 0.5, "p": Decimal("1.25"), "s": "a", "d": dt.date(2024, 2, 29)}


@pytest.fixture(params=["log", "segment"])
def m(request: pytest.FixtureRequest) -> Iterator[Any]:
    with remuda.open() as grid:
        grid.sql(CREATE)
        grid.map("m").set(1, VALUE)
        if request.param == "segment":
            grid.checkpoint()
        yield grid.map("m")


# update


def test_an_update_changes_the_named_columns_only(m: Any) -> None:
    assert m.update(1, {"n": 6, "S": "b"})
    assert m[1].asdict() == {**VALUE, "n": 6, "s": "b"}
    assert m.update(1, {"d": None, "id": 1})
    assert m[1].asdict() == {**VALUE, "n": 6, "s": "b", "d": None}
    assert m.update(1, {})
    assert not m.update(2, {"n": 1})
    assert not m.update(None, {"n": 1})
    assert len(m) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nothing": 1}, "unknown column: nothing"),
        ({"n": "many"}, "many"),
        ({"i": 1000}, "1000"),
        ({"s": None}, "s"),
        ({"id": 2}, "another key"),
        ({5: 1}, "the name of a column is text"),
        ((1, 2), "a mapping"),
    ],
)
def test_an_update_that_is_refused_changes_nothing(m: Any, changes: Any, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        m.update(1, changes)
    assert m[1].asdict() == VALUE


# the key inside the value


def test_the_key_may_stand_in_the_value(m: Any) -> None:
    m.set(1, {"id": 1, **VALUE, "n": 7})
    assert m[1].n == 7
    assert m.put(2, {"ID": 2, "s": "x"}) is None
    assert m.put_if_absent(3, {"id": 3, "s": "x"}) is None
    m.put_all({4: {"id": 4, "s": "x"}})
    assert sorted(m) == [1, 2, 3, 4]
    for write in (m.set, m.put, m.put_if_absent, m.replace):
        with pytest.raises(SqlError, match="another key"):
            write(5, {"id": 6, "s": "x"})
    with pytest.raises(SqlError, match="another key"):
        m.put_all({5: {"id": 5, "s": "x"}, 6: {"id": 7, "s": "x"}})
    assert sorted(m) == [1, 2, 3, 4]


def test_a_key_of_several_columns_may_stand_in_the_value() -> None:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE k (a BIGINT, b VARCHAR, v BIGINT, PRIMARY KEY (a, b))")
        k = grid.map("k")
        k.set((1, "x"), {"a": 1, "b": "x", "v": 5})
        k.set((1, "y"), {"b": "y", "v": 6})
        assert k[1, "x"] == k.get((1, "x")) == (5,)
        assert k[1, "y"].v == 6
        with pytest.raises(SqlError, match="another key"):
            k.set((1, "x"), {"a": 1, "b": "y", "v": 5})
        assert k.update((1, "x"), {"a": 1, "v": 9})
        assert k.increment((1, "x"), "v", 2) == 11


# increment


@pytest.mark.parametrize(
    ("column", "by", "total"),
    [
        ("n", 1, 6),
        ("N", -10, -5),
        ("n", 2**62, 5 + 2**62),
        ("i", 126, 127),
        ("x", 0.25, 0.75),
        ("x", 2, 2.5),
        ("p", 1, Decimal("2.25")),
        ("p", Decimal("999999999999999998.74"), Decimal("999999999999999999.99")),
        ("p", 0.75, Decimal("2.00")),
    ],
)
def test_an_increment_is_exact(m: Any, column: str, by: Any, total: Any) -> None:
    assert m.increment(1, column, by) == total
    assert m[1][column] == total
    assert m[1].asdict() == {**VALUE, column.lower(): total}


@pytest.mark.parametrize(
    ("column", "by", "message"),
    [
        ("n", 2**63 - 1, "BIGINT"),
        ("i", 127, "TINYINT"),
        ("i", 1000, "TINYINT"),
        ("n", 0.5, "BIGINT"),
        ("n", True, "truth value"),
        ("n", None, "NULL"),
        ("n", "1", "1"),
        ("p", Decimal("0.001"), "digits"),
        ("p", Decimal(999999999999999999), "DECIMAL"),
        ("s", 1, "only numbers"),
        ("d", 1, "only numbers"),
        ("nothing", 1, "unknown column"),
        ("id", 1, "unknown column"),
        (5, 1, "is text"),
    ],
)
def test_an_increment_that_is_refused_changes_nothing(m: Any, column: Any, by: Any, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        m.increment(1, column, by)
    assert m[1].asdict() == VALUE


def test_an_increment_of_nothing(m: Any) -> None:
    with pytest.raises(KeyError):
        m.increment(2, "n")
    m.update(1, {"n": None})
    with pytest.raises(SqlError, match="is NULL"):
        m.increment(1, "n")


# replace


def test_replace_compares_and_sets(m: Any) -> None:
    other = {**VALUE, "n": 9}
    assert not m.replace(1, other, VALUE)
    assert m.replace(1, VALUE, other)
    assert m[1].asdict() == other
    assert not m.replace(1, VALUE, other)
    assert not m.replace(2, VALUE, other)
    m.update(1, {"x": math.nan, "d": None})
    assert m.replace(1, {**other, "x": math.nan, "d": None}, VALUE), "NaN is NaN, and NULL NULL"
    assert m.replace(1, other) == tuple(VALUE.values())
    assert m.replace(2, other) is None
    assert len(m) == 1


# threads


def run_in_threads(work: Callable[[int], None], threads: int = 4) -> None:
    errors: list[Exception] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except Exception as error:  # noqa: BLE001  (told by the assertion below)
            errors.append(error)

    started = [threading.Thread(target=guarded, args=(number,)) for number in range(threads)]
    for each in started:
        each.start()
    for each in started:
        each.join()
    assert not errors


@pytest.mark.parametrize("durable", [False, True], ids=["memory", "folder"])
def test_no_change_is_lost_between_threads(tmp_path: Path, durable: bool) -> None:
    """Every thread changes the same rows, each in its own way, while a checkpoint now and then moves them."""
    rounds = 150
    with remuda.open(tmp_path / "store" if durable else None, durability="os") as grid:
        grid.sql("CREATE TABLE c (id BIGINT, total BIGINT, a BIGINT, b BIGINT, swapped BIGINT, PRIMARY KEY (id))")
        c = grid.map("c")
        c.set(1, (0, 0, 0, 0))
        won: list[int] = []

        def work(number: int) -> None:
            column = "ab"[number % 2]
            for at in range(rounds):
                c.increment(1, "total", number + 1)
                if number < 2:
                    c.update(1, {column: at + 1})
                while True:
                    old = c[1]
                    if c.replace(1, old, {**old.asdict(), "swapped": old.swapped + 1}):
                        break
                if c.put_if_absent(1000 + at, (number, 0, 0, 0)) is None:
                    won.append(at)
                if at % 50 == 0:
                    grid.checkpoint()

        run_in_threads(work)
        assert c[1] == (rounds * 10, rounds, rounds, rounds * 4)
        assert sorted(won) == list(range(rounds)), "of each key one thread was the first"
    if durable:
        with remuda.open(tmp_path / "store") as grid:
            assert grid.map("c")[1] == (rounds * 10, rounds, rounds, rounds * 4)
            assert len(grid.map("c")) == rounds + 1


def test_many_keys_are_read_at_one_snapshot() -> None:
    """A writer changes all rows at once, again and again: no reader sees some of them changed."""
    with remuda.open() as grid:
        grid.sql("CREATE TABLE c (id BIGINT, n BIGINT, PRIMARY KEY (id))")
        grid.load("c", pa.table({"id": range(200), "n": [0] * 200}))
        c, stop = grid.map("c"), threading.Event()
        keys = {count: list(range(count)) for count in (5, 200)}

        def write() -> None:
            for number in range(1, 400):
                c.put_all(dict.fromkeys(range(200), (number,)))
            stop.set()

        def read(number: int) -> None:
            if number == 0:
                write()
            while not stop.is_set():
                found = c.get_all(keys[5 if number == 1 else 200])
                assert len({row.n for row in found.values()}) == 1

        run_in_threads(read, 3)


# crash

WRITER = """
import sys, remuda
grid = remuda.open(sys.argv[1])
grid.sql("CREATE TABLE IF NOT EXISTS c (id BIGINT, n BIGINT, a BIGINT, s VARCHAR, PRIMARY KEY (id))")
c = grid.map("c")
c.put_if_absent(1, (0, 0, "kept"))
number = c[1].n
while True:
    number += 1
    assert c.increment(1, "n") == number
    assert c.update(1, {"a": number})
    assert c.put_if_absent(1000 + number, (number, 0, "x")) is None
    assert c.replace(1000 + number, (number, 0, "x"), (number, 1, "x"))
    if number % 100 == 0:
        grid.checkpoint()
    print(number, flush=True)
"""


@pytest.mark.timeout(300)
def test_acknowledged_changes_survive_sigkill(tmp_path: Path) -> None:
    for _ in range(6):
        acknowledged = run_until_killed(tmp_path / "store")
        with remuda.open(tmp_path / "store") as grid:
            c = grid.map("c")
            n, a, s = c[1]
            assert acknowledged <= n <= acknowledged + 1
            assert a in {n, n - 1}
            assert s == "kept"
            for number in range(1, acknowledged + 1):
                assert c[1000 + number] == (number, 1, "x")
            # What the killed process was in the middle of is finished, so that the next one finds whole rounds.
            c.update(1, {"a": n})
            c.set(1000 + n, (n, 1, "x"))


def run_until_killed(folder: Path) -> int:
    """Return the last number that was acknowledged."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(["src", *sys.path])}
    child = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert child.stdout is not None
    lines = [child.stdout.readline() for _ in range(random.randint(1, 150))]
    time.sleep(random.random() * 0.01)
    child.send_signal(signal.SIGKILL)
    lines += list(child.stdout)
    child.wait()
    child.stdout.close()
    return int([line for line in lines if line.endswith("\n")][-1])


# get_all

KEYS: dict[str, tuple[str, Callable[[int], Any]]] = {
    "BIGINT": ("k", lambda n: n * 7919 - 10**6),
    "INTEGER": ("k", lambda n: n * 31 - 5000),
    "TINYINT": ("k", lambda n: n % 250 - 125),
    "VARCHAR": ("k", lambda n: f"key {n}"),
    "DOUBLE": ("k", lambda n: math.nan if n == 7 else n / 4 - 50),
    "DECIMAL(12, 2)": ("k", lambda n: Decimal(n) / 4),
    "DATE": ("k", lambda n: dt.date(2000, 1, 1) + dt.timedelta(n)),
    "TIMESTAMP": ("k", lambda n: dt.datetime(1969, 12, 1) + dt.timedelta(hours=n)),
    "BIGINT, VARCHAR": ("a, b", lambda n: (n, f"{n % 3}")),
}


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("seed", range(3))
def test_get_all_is_as_many_gets(kind: str, seed: int) -> None:
    """Rows in several segments, deleted ones, newer ones in the log; keys that are there, twice, or not at all."""
    chosen = random.Random(seed)
    names, key_of = KEYS[kind]
    columns = ", ".join(
        f"{name} {sql_type}"
        for name, sql_type in zip(names.split(", "), kind.split(", ", names.count(",")), strict=True)
    )
    with remuda.open() as grid:
        grid.sql(f"CREATE TABLE m ({columns}, n BIGINT, t TIMESTAMP, s VARCHAR, PRIMARY KEY ({names}))")
        m = grid.map("m")
        for _ in range(chosen.randint(1, 4)):
            for number in chosen.sample(range(240), 120):
                if chosen.random() < 0.25:
                    m.delete(key_of(number))
                else:
                    text = chosen.choice(["", "x", f"text {number}", None])
                    m.set(
                        key_of(number), (chosen.choice([number, None]), dt.datetime(2024, 1, 1, 1, number % 60), text)
                    )
            if chosen.random() < 0.8:
                grid.checkpoint()
        for count in (0, 1, 5, 11, 12, 13, 100, 400):
            keys = [key_of(chosen.randrange(240)) for _ in range(count)]
            expected = [(key, found) for key in keys if (found := m.get(key)) is not None]
            found = m.get_all(iter(keys))
            assert list(found.items()) == list(dict(expected).items())
            assert all(type(row) is type(m[key]) for key, row in found.items())
        assert m.get_all([None if names == "k" else (1, None)] * 20) == {}


def test_get_all_says_what_is_wrong_with_a_key(m: Any) -> None:
    many = list(range(20))
    for wrong in ("x", 2**70, True, 1.5):
        with pytest.raises(SqlError):
            m.get(wrong)
        with pytest.raises(SqlError):
            m.get_all([*many, wrong])
    assert m.get_all([*many, 1.0, Decimal(1), None]) == {1: m[1]}
    with pytest.raises(SqlError, match="keys are given as a list"):
        m.get_all(5)
