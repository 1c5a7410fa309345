"""Running queries: cancel, timeout, early close, errors from far, a closed grid; on one member and three."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import remuda
from remuda.errors import ErrorCode, SqlError
from remuda.exec import ExecContext
from remuda.exec.offload import RowBudget
from remuda.exec.relational.modify import ModifyExec
from remuda.exec.sort.sort import SortExec
from remuda.exec.window.window import WindowExec
from remuda.expr import Column, Parameters
from remuda.runtime import local
from remuda.runtime.execution import Execution, QueryState
from remuda.runtime.offload_pool import OffloadPool
from remuda.types import BIGINT
from tests.exec.scripted import ScriptedExec, batch_of
from tests.runtime.quiet import PATIENCE, rows_read, wait_until_quiet, wait_until_reading

ROWS = 150_000


@pytest.fixture(params=[1, 3], ids=["1 member", "3 members"])
def grid(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Scans read few rows at a time here, so that they take seconds and thousands of batches."""
    monkeypatch.setattr(local, "ExecContext", functools.partial(ExecContext, scan_batch_rows=16))
    with remuda.open(members=request.param) as opened:
        opened.sql("CREATE TABLE m (id BIGINT, n BIGINT, PRIMARY KEY (id))")
        opened.load("m", pa.table({"id": range(ROWS), "n": [number % 10 for number in range(ROWS)]}))
        yield opened


ENDLESS = "SELECT COUNT(*) FROM m a JOIN m b ON a.n <> b.n + 3"
"""Twenty thousand million pairs: it ends only if it is ended."""


def test_a_query_ends_when_its_time_is_over(grid: Any) -> None:
    grid.sql("SET timeout = 0.05")
    with pytest.raises(SqlError, match=r"timeout of 0.05 s") as caught:
        grid.sql(ENDLESS).fetchall()
    assert caught.value.code is ErrorCode.TIMEOUT
    grid.sql("SET timeout = off")
    assert grid.sql("SELECT COUNT(*) FROM m WHERE id = 5").fetchall() == [(1,)]


def test_a_statement_that_writes_times_out_and_writes_nothing(grid: Any) -> None:
    grid.sql("SET timeout = 0.05")
    with pytest.raises(SqlError) as caught:
        grid.sql("UPDATE m SET n = 100 WHERE n <> 3")
    assert caught.value.code is ErrorCode.TIMEOUT
    grid.sql("SET timeout = off")
    assert grid.sql("SELECT id FROM m WHERE id < 10 AND n = 100").fetchall() == []
    assert grid.sql("UPDATE m SET n = 100 WHERE id = 5").update_count == 1


def test_cancel_from_another_thread(grid: Any) -> None:
    """The reader learns that its result is not whole: it gets an error, never an end."""
    result = grid.sql(ENDLESS)
    outcome: list[Any] = []

    def read() -> None:
        try:
            outcome.append(result.fetchall())
        except SqlError as error:
            outcome.append(error.code)

    reader = threading.Thread(target=read)
    reader.start()
    wait_until_reading(result._execution)
    assert not outcome
    result.close()
    reader.join(PATIENCE)
    assert outcome == [ErrorCode.CANCELLED_BY_USER]
    wait_until_quiet(grid, result._execution)


def test_many_cancelled_readers_never_see_an_end(grid: Any) -> None:
    """The moment of the close varies from before the first batch to the middle of the scan."""

    def close_later(result: Any, rows: int) -> None:
        wait_until_reading(result._execution, rows)
        result.close()

    for number in range(12):
        result = grid.sql(ENDLESS)
        closer = threading.Thread(target=close_later, args=(result, number * 200))
        closer.start()
        with pytest.raises(SqlError) as caught:
            result.fetchall()
        assert caught.value.code is ErrorCode.CANCELLED_BY_USER
        closer.join()


def test_a_result_closed_early_stops_its_fragments(grid: Any) -> None:
    result = grid.sql("SELECT id FROM m WHERE n <> 3")
    assert result.fetchone() is not None
    result.close()
    wait_until_quiet(grid, result._execution)
    assert rows_read(result._execution) < ROWS
    with pytest.raises(SqlError) as caught:
        result.fetchone()
    assert caught.value.code is ErrorCode.CANCELLED_BY_USER


def test_a_reader_that_pauses_holds_its_senders_back(grid: Any) -> None:
    result = grid.sql("SELECT id FROM m")
    assert result.fetchone() is not None
    wait_until_quiet(grid, result._execution)
    assert rows_read(result._execution) < ROWS / 10, "nobody reads on, and still the scan goes on"
    assert len(result.fetchall()) == ROWS - 1


def test_a_limit_stops_its_input(grid: Any) -> None:
    result = grid.sql("SELECT id FROM m WHERE n <> 3 LIMIT 5")
    assert len(result.fetchall()) == 5
    wait_until_quiet(grid, result._execution)
    assert rows_read(result._execution) < ROWS / 10


def test_an_error_in_a_fragment_reaches_the_reader_and_stops_the_others(grid: Any) -> None:
    result = grid.sql("SELECT 100 / (id - 75000) FROM m")
    with pytest.raises(SqlError, match="division by zero") as caught:
        result.fetchall()
    assert caught.value.code is ErrorCode.DATA_EXCEPTION
    assert "SELECT 100 / (id - 75000) FROM m\n         ^^^^^" in str(caught.value)
    wait_until_quiet(grid, result._execution)
    with pytest.raises(SqlError, match="division by zero"):
        result.fetchone()


def test_an_error_at_the_root_stops_the_fragments(grid: Any) -> None:
    """The final division happens on the coordinator, while members still send."""
    result = grid.sql("SELECT 1 / (id - id) FROM (SELECT id FROM m LIMIT 3) AS t")
    with pytest.raises(SqlError, match="division by zero"):
        result.fetchall()
    wait_until_quiet(grid, result._execution)
    assert rows_read(result._execution) < ROWS / 2


def test_a_grid_that_closes_ends_its_running_queries(grid: Any) -> None:
    """What was not computed yet cannot be read any more: an error, not a reader that waits for ever."""
    result = grid.sql("SELECT id FROM m WHERE n <> 3")
    result.fetchone()
    grid.close()
    outcome: list[Any] = []

    def read() -> None:
        try:
            outcome.append(len(result.fetchall()))
        except SqlError as error:
            outcome.append(error.message)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(PATIENCE)
    assert outcome == ["the grid is closed"]


@pytest.mark.parametrize("sql", ["SELECT id FROM m ORDER BY n", "SELECT SUM(n) OVER (ORDER BY id) FROM m"])
def test_timeout_that_passes_while_an_operator_finishes(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a handful of rows it finishes in the reader's thread, which looks at the time when it is done."""
    with remuda.open() as grid:
        grid.sql("CREATE TABLE m (id BIGINT, n BIGINT, PRIMARY KEY (id))")
        grid.sql("INSERT INTO m VALUES (1, 2), (3, 4)")
        for operator in (SortExec, WindowExec):
            monkeypatch.setattr(operator, "finish", lambda self, finish=operator.finish: slowly(finish, self))
        grid.sql("SET timeout = 0.05")
        with pytest.raises(SqlError) as caught:
            grid.sql(sql).fetchall()
        assert caught.value.code is ErrorCode.TIMEOUT


def test_a_statement_that_has_written_does_not_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time is over as soon as it has written: the clock is put forward then."""
    with remuda.open() as grid:
        grid.sql("CREATE TABLE m (id BIGINT, n BIGINT, PRIMARY KEY (id))")
        grid.sql("INSERT INTO m VALUES (1, 2), (3, 4)")
        finish, clock = ModifyExec.finish, time.monotonic

        def finish_late(operator: ModifyExec) -> Any:
            finished = finish(operator)
            monkeypatch.setattr(time, "monotonic", lambda: clock() + 2 * PATIENCE)
            return finished

        monkeypatch.setattr(ModifyExec, "finish", finish_late)
        grid.sql(f"SET timeout = {PATIENCE}")
        assert grid.sql("UPDATE m SET n = n + 1 WHERE n > 0").update_count == 2
        assert clock() + PATIENCE < time.monotonic()


def slowly(finish: Any, operator: Any) -> Any:
    finished = finish(operator)
    time.sleep(0.1)
    return finished


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError(), "the memory of the process does not suffice"),
        (pa.lib.ArrowMemoryError("malloc of size 7001000000 failed"), "the memory of the process does not suffice"),
        (pa.ArrowInvalid("Take operation overflowed binary array capacity"), "more text than an array can hold"),
    ],
)
def test_what_is_too_large_is_an_error_of_the_data(error: Exception, message: str) -> None:
    state = QueryState()
    state.fail(error)
    assert isinstance(state.error, SqlError)
    assert message in state.error.message
    assert state.error.__cause__ is error


def finished_execution() -> tuple[Execution, QueryState]:
    """One whose root has delivered its last batch, while a fragment that it did not need still runs."""
    column = Column(1, "id", BIGINT)
    root, state = ScriptedExec((column,), [batch_of((column,), [(1,)])]), QueryState()
    root.setup(ExecContext(Parameters(()), {}))
    execution = Execution(root, state, [], RowBudget(movable=True), OffloadPool())
    batch = execution.next_batch()
    assert batch is not None
    assert batch.row_count == 1
    return execution, state


def test_a_fragment_that_is_told_to_stop_after_the_last_row_is_no_error() -> None:
    execution, state = finished_execution()
    with pytest.raises(SqlError) as told:
        state.check()
    state.fail(told.value)  # as the scheduler does
    assert execution.next_batch() is None


def test_what_the_reader_says_after_the_last_row_is_its_end() -> None:
    execution, _ = finished_execution()
    execution.fail(SqlError(ErrorCode.TIMEOUT, "too late"))
    with pytest.raises(SqlError, match="too late"):
        execution.next_batch()
