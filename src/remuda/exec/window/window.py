"""Window: every row of the input with what each call is for it."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

import pyarrow as pa

from remuda.exec.aggregate.aggregate_calls import located
from remuda.exec.batch import ArrowBatch, RowBatch, empty_batch, layout_of, positional
from remuda.exec.memory import bytes_of
from remuda.exec.offload import ROWS_OF_PAIRS
from remuda.exec.operator import BlockingExec, Exec
from remuda.exec.sort.ordering import concatenate
from remuda.exec.spill.spilled_partitions import DEEPEST, SpilledPartitions
from remuda.exec.window.window_aggregates import aggregate_over_frames
from remuda.exec.window.window_frames import Frames, RangeOrder, frames_of
from remuda.exec.window.window_functions import NUMBERING, ntile, shifted, value_in_frame
from remuda.exec.window.window_rows import WindowRows, arrange
from remuda.expr import as_array, compile_batch, parameters_of
from remuda.expr.cancellation import check_cancelled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remuda.exec.context import ExecContext
    from remuda.exec.expression_cache import ExpressionCache
    from remuda.exec.spill.spill_folder import SpillFolder
    from remuda.expr import BatchExpression
    from remuda.plan.physical import Window
    from remuda.plan.windows import Frame, WindowCall

BYTES_OF_BOUNDS = 48
"""Six numbers for each row: see `WindowRows`."""
BYTES_OF_VALUE = 8
"""What the value of a call takes; texts are measured when they are there."""


class WindowExec(BlockingExec):
    """Holds all rows, sorts them by partition and order, and computes each call for all of them at once.

    Beyond the limit of memory rows are spilled by the hash of their partition's keys, and come a file at a time.
    """

    def __init__(self, node: Window, source: Exec, code: ExpressionCache) -> None:
        super().__init__(source)
        self._node = node
        self._arguments = code.of(node, _compile)
        layout = layout_of(node.input.columns)
        self._partition = [layout[column.id] for column in node.partition]
        self._holder = self
        """Stands for the memory of this window and of those over its spilled rows, which come one after another."""
        self._level: int | None = 0 if node.partition else None
        """The level of the hash that spreads its rows; None where they cannot be spread."""
        self._begin()

    def _begin(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0
        self._spilled: SpilledPartitions | None = None

    def setup(self, context: ExecContext) -> None:
        super().setup(context)
        self._context = context
        self._parameters = context.parameters

    def consume(self, batch: RowBatch) -> None:
        self._weight.add(ROWS_OF_PAIRS * batch.row_count)
        rows, memory = batch.arrow(), self._context.memory
        if self._spilled is None and memory is not None:
            # Once as they came, and once in order, with the bounds of partitions and peers, and a value of each call.
            size = 2 * bytes_of(rows) + (BYTES_OF_BOUNDS + BYTES_OF_VALUE * len(self._node.calls)) * batch.row_count
            if self._context.spill is None or self._level is None or self._bytes + size <= memory.room(self._holder):
                self._hold(self._bytes + size)
            else:
                self._spill(self._context.spill, memory.limit, self._level)
        if self._spilled is None:
            self._batches.append(rows)
        else:
            self._spilled.add(rows)

    def _hold(self, size: int) -> None:
        self._bytes = size
        self._context.hold(self._holder, "the window", size)

    def _spill(self, folder: SpillFolder, limit: int, level: int) -> None:
        """Spill the rows that are held, and all that come from now on."""
        columns = self._node.input.columns
        self._spilled = SpilledPartitions(folder, columns, self._partition, level=level, limit=limit)
        for batch in self._batches:
            self._spilled.add(batch)
        self._batches = []
        self._hold(0)

    def finish(self) -> RowBatch:
        if self._spilled is not None:
            self._following = self._windows_of(self._spilled, self._level)
        if not self._batches:
            return empty_batch(self._node.columns)
        return self._computed()

    def _windows_of(self, spilled: SpilledPartitions, level: int | None) -> Iterator[RowBatch]:
        """Deliver the windows of the spilled rows, a file at a time."""
        assert level is not None, "rows have been spread"
        size = spilled.finish()
        self._context.activity.decide("spilled: {:,} rows, {:,} bytes", sum(spilled.rows), size)
        for partition, rows in enumerate(spilled.rows):
            if rows:
                window = copy(self)
                window._begin()
                window._following = None
                window._level = level + 1 if rows < sum(spilled.rows) and level < DEEPEST else None
                for batch in spilled.batches(partition):
                    self._context.verify()
                    window.consume(ArrowBatch(self._node.input.columns, batch))
                spilled.close(partition)
                yield window.finish()
                yield from window.following()

    def _computed(self) -> RowBatch:
        node = self._node
        rows = arrange(concatenate(self._batches), node.input.columns, node.partition, node.order)
        self._batches = []
        frames: dict[Frame, Frames] = {}
        arrays: list[pa.Array] = []
        for call, arguments in zip(node.calls, self._arguments, strict=True):
            with located(call.span):
                arrays.append(self._called(call, arguments, rows, frames))
            if self._context.memory is not None:
                beyond = arrays[-1].nbytes - BYTES_OF_VALUE * rows.count
                self._hold(self._bytes + max(beyond, 0))
        return ArrowBatch(node.columns, positional([*rows.batch.columns, *arrays]))

    def _called(
        self, call: WindowCall, evaluate: list[BatchExpression], rows: WindowRows, known: dict[Frame, Frames]
    ) -> pa.Array:
        check_cancelled()
        result = call.column.type.arrow
        if call.function in NUMBERING:
            return pa.array(NUMBERING[call.function](rows), result)
        arguments = [as_array(argument(rows.batch, self._parameters), rows.count) for argument in evaluate]
        match call.function:
            case "ntile":
                given = parameters_of(call.arguments[0]).values()
                values = ntile(rows, arguments[0], next((each.span for each in given), None))
            case "lag" | "lead":
                sign = -1 if call.function == "lag" else 1
                values = shifted(rows, arguments, sign, ignores_nulls=call.ignores_nulls)
            case "first_value" | "last_value" | "nth_value":
                frames = self._frames(call.frame, rows, known)
                number = {"first_value": _first, "nth_value": _second}.get(call.function)
                values = value_in_frame(
                    arguments[0],
                    frames,
                    None if number is None else number(arguments),
                    ignores_nulls=call.ignores_nulls,
                )
            case _:
                frames = self._frames(call.frame, rows, known)
                check_cancelled()
                argument = _plain(arguments[0]) if arguments else None
                argument_type = call.arguments[0].type if arguments else None
                values = aggregate_over_frames(call, argument, argument_type, frames, rows)
        return _plain(values) if _plain(values).type == result else _plain(values).cast(result)

    def _frames(self, frame: Frame, rows: WindowRows, known: dict[Frame, Frames]) -> Frames:
        found = known.get(frame)
        if found is None:
            found = known[frame] = frames_of(rows, frame, self._range_order(), self._parameters)
        return found

    def _range_order(self) -> RangeOrder | None:
        node = self._node
        if len(node.order) != 1:
            return None
        layout = layout_of(node.input.columns)
        return RangeOrder(node.input.columns[layout[node.order[0].column]], node.order[0], layout)


def _first(arguments: list[pa.Array]) -> pa.Array:
    return pa.repeat(pa.scalar(1, pa.int64()), len(arguments[0]))


def _second(arguments: list[pa.Array]) -> pa.Array:
    return arguments[1]


def _plain(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if isinstance(array, pa.DictionaryArray) else array


def _compile(node: Window) -> list[list[BatchExpression]]:
    layout = layout_of(node.input.columns)
    return [[compile_batch(argument, layout) for argument in call.arguments] for call in node.calls]
