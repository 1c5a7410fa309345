"""Statements in coroutines: the event loop goes on, cancelling a task cancels its statement, timeouts hold."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import remuda
from remuda.errors import ErrorCode, SqlError

ROWS = 200_000
ENDLESS = "SELECT COUNT(*) FROM m a, m b WHERE a.id * 7 + b.id = -1"
"""A nested loop over 40 thousand million pairs."""


@pytest.fixture
def grid() -> Iterator[Any]:
    with remuda.open() as opened:
        opened.sql("CREATE TABLE m (id BIGINT, n BIGINT, PRIMARY KEY (id))")
        opened.load("m", pa.table({"id": range(ROWS), "n": [number % 7 for number in range(ROWS)]}))
        yield opened


async def ticks(stop: asyncio.Event) -> int:
    """Count how often the loop comes round."""
    count = 0
    while not stop.is_set():
        await asyncio.sleep(0.001)
        count += 1
    return count


def test_values_names_and_every_way_of_reading(grid: Any) -> None:
    async def ask() -> None:
        assert (await grid.sql_async("SELECT n FROM m WHERE id = ?", 8)).fetchall() == [(1,)]
        assert (await grid.sql_async("SELECT n FROM m WHERE id = :id", id=9)).fetchone() == (2,)
        assert (await grid.session().sql_async("SELECT COUNT(*) FROM m", timeout=60)).fetchall() == [(ROWS,)]
        assert (await grid.sql_async("SELECT id FROM m")).df()["id"].sum() == ROWS * (ROWS - 1) // 2
        assert (await grid.sql_async("UPDATE m SET n = 100 WHERE id < 5")).update_count == 5
        assert (await grid.sql_async("CREATE TABLE other (k BIGINT, PRIMARY KEY (k))")).update_count == 0
        found = [row.id async for row in await grid.sql_async("SELECT id FROM m WHERE n = 100 ORDER BY id")]
        assert found == [0, 1, 2, 3, 4]
        lazy = [row.id async for row in grid.sql("SELECT id FROM m")]
        assert sorted(lazy) == list(range(ROWS))

    asyncio.run(ask())


def test_the_result_is_complete_when_it_is_returned(grid: Any) -> None:
    """It outlives its session, and its timeout does not count while it is read."""

    async def ask() -> Any:
        session = grid.session()
        result = await session.sql_async("SELECT id FROM m ORDER BY id", timeout=5)
        session.close()
        return result

    result = asyncio.run(ask())
    assert result._execution is None
    assert result.peek(1) == [(0,)]
    assert len(result.fetchall()) == ROWS


def test_many_statements_at_once(grid: Any) -> None:
    async def ask() -> list[Any]:
        results = await asyncio.gather(*[grid.sql_async("SELECT n FROM m WHERE id = ?", id_) for id_ in range(200)])
        return [result.fetchone().n for result in results]

    assert asyncio.run(ask()) == [number % 7 for number in range(200)]


def test_writes_with_a_deadline_do_not_wait_for_each_other_for_ever(grid: Any) -> None:
    """Each takes a second thread for its deadline: more of them than there are threads must still end."""

    async def write() -> int:
        texts = [f"UPDATE m SET n = n + 1 WHERE id % 50 = {number}" for number in range(40)]
        results = await asyncio.gather(*[grid.sql_async(text, timeout=120) for text in texts])
        return sum(result.update_count for result in results)

    assert asyncio.run(write()) == 40 * ROWS // 50


def test_the_loop_goes_on_while_a_statement_runs(grid: Any) -> None:
    async def ask() -> int:
        stop = asyncio.Event()
        counting = asyncio.create_task(ticks(stop))
        with pytest.raises(SqlError, match="longer than its timeout") as caught:
            await grid.sql_async(ENDLESS, timeout=1.0)
        assert caught.value.code is ErrorCode.TIMEOUT
        stop.set()
        return await counting

    assert asyncio.run(ask()) > 1, "a loop that waits for the statement counts nothing meanwhile"


def test_cancelling_the_task_cancels_the_statement(grid: Any) -> None:
    async def ask() -> None:
        task = asyncio.create_task(grid.sql_async(ENDLESS))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(grid.sql_async(ENDLESS), 0.3)

    asyncio.run(ask())
    wait_until(
        lambda: not grid.default_session._results or all(result.closed for result in grid.default_session._results)
    )


def test_a_statement_that_waits_for_a_thread_is_cancelled_at_once(grid: Any) -> None:
    async def ask() -> None:
        tasks = [asyncio.create_task(grid.sql_async(ENDLESS)) for _ in range(60)]
        await asyncio.sleep(0.2)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert all(task.cancelled() for task in tasks)
        assert (await grid.sql_async("SELECT COUNT(*) FROM m")).fetchone() == (ROWS,)

    asyncio.run(ask())


def wait_until(condition: Any) -> None:
    while not condition():
        time.sleep(0.01)


def test_a_write_that_is_cancelled_is_done_or_not_done_at_all(grid: Any) -> None:
    async def ask(delay: float) -> None:
        task = asyncio.create_task(grid.sql_async("UPDATE m SET n = n + 1000000"))
        await asyncio.sleep(delay)
        task.cancel()
        await asyncio.wait([task])

    raised = 0
    for delay in (0.0, 0.01, 0.05, 0.2, 1.0):
        before = grid.sql("SELECT MAX(n) FROM m").fetchone()[0] // 1_000_000
        asyncio.run(ask(delay))
        after = grid.sql("SELECT MIN(n), MAX(n) FROM m").fetchone()
        assert after[0] // 1_000_000 == after[1] // 1_000_000, "all rows or none"
        raised += after[1] // 1_000_000 - before
    assert raised <= 5


def test_mistakes_are_told_as_by_sql(grid: Any) -> None:
    async def ask(text: Any, *values: Any, **options: Any) -> None:
        await grid.sql_async(text, *values, **options)

    for arguments, options, message in (
        (("SELECT nothing FROM m",), {}, "nothing"),
        ((5,), {}, "a statement is text"),
        (("SELECT 1",), {"timeout": -1}, "timeout must be"),
        (("SELECT n FROM m WHERE id = ?",), {}, "expected"),
    ):
        with pytest.raises(SqlError, match=message):
            asyncio.run(ask(*arguments, **options))
    grid.close()
    with pytest.raises(SqlError, match="the grid is closed"):
        asyncio.run(ask("SELECT 1"))
