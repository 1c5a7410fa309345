"""Statements that write: they see the state before themselves, they are all or nothing, and none is lost."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

import remuda
from remuda.errors import ErrorCode, SqlError
from tests.harness.threads import run_together


@pytest.fixture(params=[1, 3], ids=["1 member", "3 members"])
def grid(request: pytest.FixtureRequest) -> Iterator[Any]:
    with remuda.open(members=request.param) as opened:
        opened.sql("CREATE TABLE m (id BIGINT, n BIGINT, PRIMARY KEY (id))")
        opened.sql("CREATE INDEX m_n ON m (n) TYPE SORTED")
        for id_ in range(10):
            opened.sql("INSERT INTO m VALUES (?, ?)", id_, id_)
        yield opened


def contents(grid: Any) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in grid.sql("SELECT id, n FROM m ORDER BY id")]


def test_update_sees_the_state_before_the_statement(grid: Any) -> None:
    """Otherwise a row moved along the index would be met again."""
    assert grid.sql("UPDATE m SET n = n + 1 WHERE n >= 0").update_count == 10
    assert contents(grid) == [(id_, id_ + 1) for id_ in range(10)]
    assert grid.sql("UPDATE m SET n = n + 5 WHERE n BETWEEN 1 AND 10").update_count == 10
    assert contents(grid) == [(id_, id_ + 6) for id_ in range(10)]


def test_update_may_use_the_columns_it_changes(grid: Any) -> None:
    grid.sql("CREATE TABLE swap (id BIGINT, a BIGINT, b BIGINT, PRIMARY KEY (id))")
    grid.sql("INSERT INTO swap VALUES (1, 10, 20), (2, 30, 40)")
    for where in ("id = 1", "a > 0"):
        grid.sql(f"UPDATE swap SET a = b, b = a WHERE {where}")
    assert grid.sql("SELECT a, b FROM swap ORDER BY id").fetchall() == [(10, 20), (40, 30)]


def test_delete_and_insert_again(grid: Any) -> None:
    assert grid.sql("DELETE FROM m WHERE n < 5").update_count == 5
    assert grid.sql("INSERT INTO m VALUES (0, 100), (1, 101)").update_count == 2
    assert contents(grid) == [(0, 100), (1, 101), *((id_, id_) for id_ in range(5, 10))]


@pytest.mark.parametrize("text", ["INSERT INTO m VALUES (20, 1), (5, 1)", "INSERT INTO m VALUES (20, 1), (20, 2)"])
@pytest.mark.parametrize("folded", [False, True])
def test_an_insert_with_a_duplicate_changes_nothing(grid: Any, text: str, folded: bool) -> None:
    if folded:
        grid.checkpoint()
    before = contents(grid)
    for _ in range(2):
        with pytest.raises(SqlError, match="key") as caught:
            grid.sql(text)
        assert caught.value.code is ErrorCode.DATA_EXCEPTION
    with pytest.raises(SqlError):
        grid.sql("INSERT INTO m VALUES (?, ?)", 5, 1)
    assert contents(grid) == before
    assert len(grid.map("m")) == 10


def test_an_update_that_fails_half_way_changes_nothing(grid: Any) -> None:
    before = contents(grid)
    for text in ("UPDATE m SET n = 10 / (n - 5) WHERE n >= 0", "UPDATE m SET n = n * 4611686018427387904 WHERE n > 0"):
        with pytest.raises(SqlError) as caught:
            grid.sql(text)
        assert caught.value.code is ErrorCode.DATA_EXCEPTION
    assert contents(grid) == before


def test_keys_are_not_updated_and_not_null(grid: Any) -> None:
    for text in ("UPDATE m SET id = 5 WHERE n = 1", "INSERT INTO m VALUES (NULL, 1)", "SINK INTO m VALUES (NULL, 1)"):
        with pytest.raises(SqlError):
            grid.sql(text)
    assert len(contents(grid)) == 10


def test_a_reader_keeps_its_snapshot() -> None:
    with remuda.open() as grid:
        grid.sql("CREATE TABLE m (id BIGINT, n BIGINT, PRIMARY KEY (id))")
        grid.load("m", pa.table({"id": range(200_000), "n": [1] * 200_000}))
        result = grid.sql("SELECT n FROM m")
        first = result.fetchone()
        grid.sql("UPDATE m SET n = 2 WHERE n = 1")
        grid.checkpoint()
        grid.sql("DELETE FROM m WHERE id < 1000")
        assert first == (1,)
        assert {row[0] for row in result.fetchall()} == {1}
        assert grid.sql("SELECT COUNT(*), MIN(n) FROM m").fetchall() == [(199_000, 2)]


def test_no_update_is_lost(grid: Any) -> None:
    """16 threads add to the same rows, by key, by keys and by a condition, while others read sums and fold the log."""
    for id_ in range(10):
        grid.sql("UPDATE m SET n = 0 WHERE id = ?", id_)
    added = [0] * 16

    def work(number: int) -> None:
        chance = random.Random(number)
        for _ in range(40):
            match number % 4:
                case 0:
                    count = grid.sql("UPDATE m SET n = n + 1 WHERE id = ?", chance.randrange(10)).update_count
                case 1:
                    ids = chance.sample(range(10), 2)
                    count = grid.sql("UPDATE m SET n = n + 1 WHERE id IN (?, ?)", *ids).update_count
                case 2:
                    count = grid.sql("UPDATE m SET n = n + 1 WHERE n >= ?", 0).update_count
                case _:
                    count = 0
                    rows = grid.sql("SELECT COUNT(*), SUM(n) FROM m").fetchall()
                    assert rows[0][0] == 10
                    if chance.random() < 0.2:
                        grid.checkpoint()
            added[number] += count

    run_together(*(partial(work, number) for number in range(16)))
    total = grid.sql("SELECT SUM(n) FROM m").fetchone()
    assert int(total[0]) == sum(added)
    assert sum(added) == 4 * 40 * (1 + 2 + 10)


def test_of_concurrent_inserts_of_one_key_one_wins(grid: Any) -> None:
    won: list[int] = []
    refused: list[ErrorCode] = []

    def work(number: int) -> None:
        for id_ in range(100, 150):
            try:
                grid.sql("INSERT INTO m VALUES (?, ?)", id_, number)
                won.append(id_)
            except SqlError as error:
                refused.append(error.code)

    run_together(*(partial(work, number) for number in range(8)))
    assert set(refused) == {ErrorCode.DATA_EXCEPTION}
    assert sorted(won) == list(range(100, 150))


def test_a_sum_over_moved_money_never_changes(grid: Any) -> None:
    """Each statement is seen whole or not at all: the update of two rows at once keeps their sum."""
    grid.sql("UPDATE m SET n = 100 WHERE n >= 0")
    done = threading.Event()

    def work(number: int) -> None:
        if number == 0:
            for turn in range(150):
                one, other = turn % 10, (turn + 3) % 10
                text = "UPDATE m SET n = CASE WHEN id = ? THEN n + 7 ELSE n - 7 END WHERE id IN (?, ?)"
                assert grid.sql(text, one, one, other).update_count == 2
            done.set()
            return
        while not done.is_set():
            assert [int(row[0]) for row in grid.sql("SELECT SUM(n) FROM m")] == [1_000]

    try:
        run_together(*(partial(work, number) for number in range(4)))
    finally:
        done.set()


def test_a_map_without_a_key(grid: Any) -> None:
    grid.sql("CREATE TABLE log (text VARCHAR)")

    def work(number: int) -> None:
        for turn in range(30):
            assert grid.sql("INSERT INTO log VALUES (?), (?)", f"{number}-{turn}", "same").update_count == 2

    run_together(*(partial(work, number) for number in range(4)))
    assert grid.sql("SELECT COUNT(*) FROM log").fetchall() == [(240,)]
    assert [column.name for column in grid.sql("SELECT * FROM log").columns] == ["text"]
    assert grid.sql("DELETE FROM log WHERE text = 'same'").update_count == 120
