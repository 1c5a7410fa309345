"""Hash aggregation: complete, or partial on the members and final on the initiator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from remuda.exec.aggregate_kernels import StateSpec, average, group
from remuda.exec.batch import ArrowBatch, RowBatch, layout_of, positional
from remuda.exec.operator import BlockingExec, Exec
from remuda.plan.aggregates import AGGREGATES, partial_type
from remuda.plan.physical import Phase

if TYPE_CHECKING:
    from remuda.plan.physical import HashAggregate

ROWS_AT_ONCE = 1_048_576
"""Input is grouped in steps of this many rows: fewer steps leave fewer groups to be merged again."""


class HashAggregateExec(BlockingExec):
    """Input batches are grouped into states; states are merged with each other; states become results.

    With DISTINCT all rows must be grouped in one step, as the states of two steps cannot be merged.
    """

    def __init__(self, node: HashAggregate, source: Exec) -> None:
        super().__init__(source)
        self._node = node
        layout = layout_of(node.input.columns)
        self._keys = [layout[column.id] for column in node.keys]
        self._at_once = any(call.distinct for call in node.calls)
        self._specs = _merging_specs(node, layout) if node.phase is Phase.FINAL else _state_specs(node, layout)
        offset = len(node.keys)
        self._merge_specs = [
            StateSpec(function, offset + number, spec.type)
            for number, (function, spec) in enumerate(zip(_merge_functions(node), self._specs, strict=True))
        ]
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = 0
        self._states: pa.RecordBatch | None = None

    def consume(self, batch: RowBatch) -> None:
        self._waiting.append(batch.arrow())
        self._waiting_rows += batch.row_count
        if self._waiting_rows >= ROWS_AT_ONCE and not self._at_once:
            self._group_waiting()

    def _group_waiting(self) -> None:
        states = group(_as_table(self._waiting), self._keys, self._specs)
        self._waiting, self._waiting_rows = [], 0
        if self._states is None:
            self._states = states
        else:
            both = pa.Table.from_batches([self._states, states])
            self._states = group(both, range(len(self._keys)), self._merge_specs)

    def finish(self) -> RowBatch:
        if self._waiting:
            self._group_waiting()
        states = self._states
        if states is None:
            states = self._states_of_nothing()
        if self._node.phase is Phase.PARTIAL:
            return ArrowBatch(self._node.columns, states)
        return ArrowBatch(self._node.columns, self._results(states))

    def _states_of_nothing(self) -> pa.RecordBatch:
        """No groups; but without keys there is one, of no rows."""
        types = [column.type.arrow for column in self._node.input.columns]
        nothing = pa.table([pa.array([], type_) for type_ in types], names=[str(n) for n in range(len(types))])
        if not self._keys:
            return group(nothing, [], self._specs)
        arrays = [nothing.column(place).combine_chunks() for place in self._keys]
        return positional([*arrays, *(pa.array([], spec.type.arrow) for spec in self._specs)])

    def _results(self, states: pa.RecordBatch) -> pa.RecordBatch:
        arrays = list(states.columns[: len(self._keys)])
        place = len(self._keys)
        for call in self._node.calls:
            if call.function == "avg":
                arrays.append(average(states.column(place), states.column(place + 1), call.column.type))
            else:
                state = states.column(place)
                is_count = call.function == "count"
                arrays.append(pc.fill_null(state, 0) if is_count else state)
            place += len(AGGREGATES[call.function].partials)
        return positional(arrays)


def _state_specs(node: HashAggregate, layout: dict[int, int]) -> list[StateSpec]:
    """From rows to states."""
    return [
        StateSpec(
            function,
            None if call.argument is None else layout[call.argument.id],
            partial_type(function, call),
            call.distinct,
        )
        for call in node.calls
        for function in AGGREGATES[call.function].partials
    ]


def _merging_specs(node: HashAggregate, layout: dict[int, int]) -> list[StateSpec]:
    """From the states that members sent to merged states."""
    columns = [column for state in node.states for column in state]
    return [
        StateSpec(function, layout[column.id], column.type)
        for function, column in zip(_merge_functions(node), columns, strict=True)
    ]


def _merge_functions(node: HashAggregate) -> list[str]:
    return [function for call in node.calls for function in AGGREGATES[call.function].merges]


def _as_table(batches: list[pa.RecordBatch]) -> pa.Table:
    """Batches as one table: strings that are dictionaries in some batches only are decoded, else they get one."""
    columns: list[pa.ChunkedArray] = []
    for place in range(batches[0].num_columns):
        parts = [batch.column(place) for batch in batches]
        if len({part.type for part in parts}) > 1:
            parts = [part.dictionary_decode() if pa.types.is_dictionary(part.type) else part for part in parts]
        column = pa.chunked_array(parts)
        columns.append(column.unify_dictionaries() if pa.types.is_dictionary(column.type) else column)
    return pa.table(columns, names=[str(number) for number in range(len(columns))])
