"""Window: every row of the input with what each call is for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from remuda.exec.aggregate.aggregate_calls import located
from remuda.exec.batch import ArrowBatch, RowBatch, empty_batch, layout_of, positional
from remuda.exec.memory import bytes_of
from remuda.exec.offload import ROWS_OF_PAIRS
from remuda.exec.operator import BlockingExec, Exec
from remuda.exec.sort.ordering import concatenate
from remuda.exec.window.window_aggregates import aggregate_over_frames
from remuda.exec.window.window_frames import Frames, RangeOrder, frames_of
from remuda.exec.window.window_functions import NUMBERING, ntile, shifted, value_in_frame
from remuda.exec.window.window_rows import WindowRows, arrange
from remuda.expr import as_array, compile_batch, parameters_of
from remuda.expr.cancellation import check_cancelled

if TYPE_CHECKING:
    from remuda.exec.context import ExecContext
    from remuda.exec.expression_cache import ExpressionCache
    from remuda.expr import BatchExpression
    from remuda.plan.physical import Window
    from remuda.plan.windows import Frame, WindowCall

BYTES_OF_BOUNDS = 48
"""Six numbers for each row: see `WindowRows`."""


class WindowExec(BlockingExec):
    """Holds all rows, sorts them by partition and order, and computes each call for all of them at once."""

    def __init__(self, node: Window, source: Exec, code: ExpressionCache) -> None:
        super().__init__(source)
        self._node = node
        self._arguments = code.of(node, _compile)
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0

    def setup(self, context: ExecContext) -> None:
        super().setup(context)
        self._context = context
        self._parameters = context.parameters

    def consume(self, batch: RowBatch) -> None:
        self._batches.append(batch.arrow())
        self._weight.add(ROWS_OF_PAIRS * batch.row_count)
        if self._context.memory is not None:
            # Once as they came, and once in order, with the bounds of partitions and peers.
            self._bytes += 2 * bytes_of(self._batches[-1]) + BYTES_OF_BOUNDS * batch.row_count
            self._context.hold(self, "the window", self._bytes)

    def finish(self) -> RowBatch:
        if not self._batches:
            return empty_batch(self._node.columns)
        node = self._node
        rows = arrange(concatenate(self._batches), node.input.columns, node.partition, node.order)
        self._batches = []
        frames: dict[Frame, Frames] = {}
        arrays: list[pa.Array] = []
        for call, arguments in zip(node.calls, self._arguments, strict=True):
            with located(call.span):
                arrays.append(self._called(call, arguments, rows, frames))
            if self._context.memory is not None:
                self._bytes += arrays[-1].nbytes
                self._context.hold(self, "the window", self._bytes)
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
