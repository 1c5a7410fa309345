"""Operators over input that a test spells out: batch boundaries, batch forms, and waits in between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from remuda.exec import ArrowBatch, Exec, ExecContext, IterationResult, RowBatch, TupleBatch
from remuda.exec.batch import arrow_schema, empty_batch
from remuda.exec.selection import SelectedBatch
from remuda.expr import Column, Parameters
from remuda.plan.physical import Values
from remuda.plan.traits import Traits

Rows = list[tuple[Any, ...]]

WAIT = IterationResult.WAIT
FETCHED = IterationResult.FETCHED
DONE = IterationResult.FETCHED_DONE

FORMS = ("tuples", "arrow", "dictionary")
"""How a batch holds its rows: as tuples, as Arrow columns, as Arrow columns whose strings are dictionaries."""

SELECTED = "selected"
"""A further form: the rows that a selection mask keeps of twice as many."""

SHAPES: dict[str, Sequence[int | None]] = {
    "one batch": (1_000,),
    "one by one": (1,),
    "two by two": (2,),
    "four, exactly full": (4,),
    "empty batches": (0, 3, 0),
    "waits": (None, 2, None, None, 0, 1),
}
"""How the input is cut: sizes, used in turn until the rows are gone; None is a WAIT."""


class ScriptedExec(Exec):
    """Plays a list of batches and WAITs, the last batch with FETCHED_DONE, and checks how it is used."""

    def __init__(self, columns: tuple[Column, ...], script: Sequence[RowBatch | IterationResult]) -> None:
        self._script = list(script)
        if not self._script or isinstance(self._script[-1], IterationResult):
            self._script.append(empty_batch(columns))
        self.is_set_up = False
        self.advanced = 0

    def setup(self, context: ExecContext) -> None:  # noqa: ARG002
        self.is_set_up = True

    def advance(self) -> IterationResult:
        assert self.is_set_up, "an operator is set up before it is advanced"
        assert self.advanced < len(self._script), "an operator is not advanced after its end"
        step = self._script[self.advanced]
        self.advanced += 1
        if isinstance(step, IterationResult):
            return step
        self.current_batch = step
        return DONE if self.advanced == len(self._script) else FETCHED


def batch_of(columns: tuple[Column, ...], rows: Rows, form: str = "tuples") -> RowBatch:
    if form == "tuples":
        return TupleBatch(columns, rows)
    arrow = TupleBatch(columns, rows).arrow()
    if form == "dictionary":
        arrays = [array.dictionary_encode() if pa.types.is_string(array.type) else array for array in arrow.columns]
        arrow = pa.RecordBatch.from_arrays(arrays, names=arrow_schema(columns).names)
    if form == SELECTED:
        whole = TupleBatch(columns, [row for each in rows for row in (each, rows[0])]).arrow()
        return SelectedBatch(columns, whole, np.arange(2 * len(rows)) % 2 == 0)
    return ArrowBatch(columns, arrow)


def script(
    columns: tuple[Column, ...], rows: Rows, shape: Sequence[int | None] = (1_000,), form: str = "tuples"
) -> list[RowBatch | IterationResult]:
    steps: list[RowBatch | IterationResult] = []
    first = turn = 0
    while first < len(rows):
        size = shape[turn % len(shape)]
        turn += 1
        if size is None:
            steps.append(WAIT)
            continue
        steps.append(batch_of(columns, rows[first : first + size], form))
        first += size
    return steps


def source_node(columns: tuple[Column, ...]) -> Values:
    """What stands below an operator in its plan; the operator's input is scripted instead."""
    return Values(columns, (), Traits())


def context(*parameters: Any, types: tuple[Any, ...] = (), **rest: Any) -> ExecContext:
    return ExecContext(Parameters(parameters, types), rest.pop("snapshots", {}), **rest)


def drain(operator: Exec, given: ExecContext | None = None) -> Rows:
    """All rows of an operator. A batch must stay as it is until the operator is advanced again."""
    operator.setup(given or context())
    rows: Rows = []
    for _ in range(100_000):
        result = operator.advance()
        if result is WAIT:
            continue
        batch = operator.current_batch
        tuples = list(batch.tuples())
        assert len(tuples) == batch.row_count == batch.arrow().num_rows
        assert [batch.row(index)[0] for index in range(min(2, len(tuples)))] == [row[0] for row in tuples[:2]] or any(
            row[0] != row[0] for row in tuples[:2]
        )
        assert operator.current_batch is batch
        rows.extend(tuples)
        if result is DONE:
            return rows
    raise AssertionError("the operator does not end")
