"""Work for a reader who has left is given up in the middle of a batch: by counting what is still done, not by time."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import remuda
from remuda.errors import ErrorCode, SqlError
from remuda.exec import ArrowBatch, ExecContext, IterationResult
from remuda.exec.batch import ROWS_AT_ONCE as ROWS_AT_A_TIME
from remuda.exec.batch import positional
from remuda.exec.join import build_side_join, hash_join, join_table
from remuda.exec.offload import RowBudget
from remuda.exec.relational.recursive import RecursiveExec
from remuda.exec.sort.ordering import concatenate
from remuda.expr import Column, Parameters
from remuda.expr.cancellation import CancelledError, cancelled_by, check_cancelled
from remuda.expr.evaluate import by_rows as by_rows_module
from remuda.expr.evaluate.by_rows import ROWS_AT_ONCE, by_rows
from remuda.expr.function import Signature
from remuda.grid.statement_writer import RowsOfFragment
from remuda.runtime.execution import Execution, QueryState
from remuda.runtime.offload_pool import OffloadPool
from remuda.runtime.scheduler import FragmentTask
from remuda.types import BIGINT
from tests.exec.scripted import ScriptedExec

if TYPE_CHECKING:
    from collections.abc import Callable


class LeftError(Exception):
    """The reader has gone."""


def leave_after(count: int) -> Callable[[], None]:
    asked = iter(range(count))

    def check() -> None:
        if next(asked, None) is None:
            raise LeftError

    return check


def test_a_function_of_each_row_is_not_called_for_one_who_has_left() -> None:
    called: list[int] = []
    kernel = by_rows(lambda value: called.append(value) or value + 1, Signature((BIGINT,), BIGINT))
    values = pa.array(range(ROWS_AT_ONCE * 5 + 3))
    assert kernel(values).to_pylist() == list(range(1, ROWS_AT_ONCE * 5 + 4))
    called.clear()
    with pytest.raises(LeftError), cancelled_by(leave_after(2)):
        kernel(values)
    assert len(called) == 2 * ROWS_AT_ONCE


def test_pieces_keep_nulls_and_the_value_that_stands_for_all_rows() -> None:
    kernel = by_rows(lambda one, other: one * other, Signature((BIGINT, BIGINT), BIGINT))
    values = [None if number % 3 == 0 else number for number in range(ROWS_AT_ONCE * 2 + 1)]
    found = kernel(pa.array(values, pa.int64()), pa.scalar(2, pa.int64()))
    assert found.to_pylist() == [None if value is None else value * 2 for value in values]
    assert kernel(pa.array([], pa.int64()), pa.scalar(2, pa.int64())).to_pylist() == []


def test_each_thread_asks_for_its_own_query_and_for_none_afterwards() -> None:
    def another() -> None:
        check_cancelled()
        other.append("went on")

    other: list[str] = []
    with cancelled_by(leave_after(0)):
        thread = threading.Thread(target=another)
        thread.start()
        thread.join()
        with cancelled_by(None):
            check_cancelled()
        with pytest.raises(CancelledError):
            check_cancelled()
    check_cancelled()
    assert other == ["went on"]


class AskingExec(ScriptedExec):
    """Asks whether to go on, as a kernel would, after something has happened to the query."""

    def __init__(self, happens: Callable[[], None]) -> None:
        super().__init__((), ())
        self.is_set_up = True
        self._happens = happens
        self.went_on = False

    def advance(self) -> IterationResult:
        self._happens()
        check_cancelled()
        self.went_on = True
        return super().advance()


def test_a_fragment_of_a_cancelled_query_is_left_in_the_middle() -> None:
    state = QueryState()
    operator = AskingExec(state.cancel)
    failed: list[BaseException] = []
    state.fail = failed.append  # type: ignore[method-assign]
    FragmentTask(operator, state).run()
    assert not operator.went_on
    assert [error.code for error in failed if isinstance(error, SqlError)] == [ErrorCode.CANCELLED_BY_USER]


def test_so_is_a_root_fragment_that_has_moved_or_never_may() -> None:
    moved, fixed = RowBudget(movable=True), RowBudget()
    moved.add(1_000_000)
    for weight in (moved, fixed):
        state, threads = QueryState(), OffloadPool()
        operator = AskingExec(state.cancel)
        with pytest.raises(SqlError, match="cancelled"):
            Execution(operator, state, [], weight, threads).next_batch()
        threads.close()
        assert not operator.went_on


def test_rows_that_are_written_become_objects_in_pieces() -> None:
    column = Column(1, "n", BIGINT)
    part = RowsOfFragment.__new__(RowsOfFragment)
    part._context = ExecContext(Parameters((), ()), {}, check=leave_after(2))
    part.held = [ArrowBatch((column,), positional([pa.array(range(ROWS_AT_A_TIME * 4))]))]
    written: deque[Any] = deque()
    with pytest.raises(LeftError):
        written.extend(part.tuples())
    assert len(written) == 2 * ROWS_AT_A_TIME


def test_rows_that_a_recursion_has_to_know_become_objects_in_pieces() -> None:
    column = Column(1, "n", BIGINT)
    operator = RecursiveExec.__new__(RecursiveExec)
    operator._seen = set()
    operator._context = ExecContext(Parameters((), ()), {}, check=leave_after(2))
    batch = ArrowBatch((column,), positional([pa.array(range(ROWS_AT_A_TIME * 4))]))
    with pytest.raises(LeftError):
        operator._new_rows(batch)
    assert len(operator._seen) == 2 * ROWS_AT_A_TIME


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_keys_are_counted_piece_by_piece(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_table, "COUNTED_AT_ONCE", size)
    numbers = np.array([0, 2, 2, 1, 0, 2, 2], np.int32)
    assert join_table._counted(numbers, 4).tolist() == [2, 1, 4, 0]
    assert join_table._counted(numbers[:0], 4).tolist() == [0, 0, 0, 0]


def test_a_join_whose_reader_has_left_makes_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    table = join_table.JoinTable
    with remuda.open() as grid:
        grid.sql("CREATE TABLE m (id BIGINT, n BIGINT, PRIMARY KEY (id))")
        grid.load("m", pa.table({"id": range(30_000), "n": range(30_000)}))
        result: Any = None

        def hold(self: Any, *arguments: Any) -> None:
            made.append(1)
            table.__init__(self, *arguments)

        def close_first(batches: Any) -> Any:
            result.close()
            return concatenate(batches)

        monkeypatch.setattr(build_side_join, "concatenate", close_first)
        monkeypatch.setattr(hash_join, "JoinTable", type("Table", (table,), {"__init__": hold}))
        result = grid.sql("SELECT a.n, b.n FROM m a JOIN m b ON a.id = b.n + 1")
        with pytest.raises(SqlError):
            result.to_arrow()
    assert made == []


@pytest.mark.parametrize(
    "expression", ["strftime(day, '%A')", "TRY_CAST(strftime(day, '%A') AS DATE)", "CAST(strftime(day, '%Y') AS INT)"]
)
def test_a_kernel_does_not_take_the_cancel_for_an_error_of_its_own(
    expression: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a place in the SQL text, as an overflow has, nor NULL."""
    with remuda.open() as grid:
        grid.sql("CREATE TABLE m (id BIGINT, day DATE, PRIMARY KEY (id))")
        days = pa.array(range(30_000), pa.int32()).cast(pa.date32())
        grid.load("m", pa.table({"id": range(30_000), "day": days}))
        result = grid.sql(f"SELECT {expression} FROM m")
        asked: list[int] = []

        def close_in_the_middle() -> None:
            asked.append(1)
            if len(asked) == 2:
                result.close()
            check_cancelled()

        monkeypatch.setattr(by_rows_module, "check_cancelled", close_in_the_middle)
        with pytest.raises(SqlError) as caught:
            result.to_arrow()
    assert caught.value.code is ErrorCode.CANCELLED_BY_USER
    assert caught.value.span is None
