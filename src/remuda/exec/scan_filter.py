"""The part that all scans share: which columns are read, which rows are kept, which columns are passed on."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from remuda.exec.batch import ArrowBatch, TupleBatch, layout_of
from remuda.exec.chosen import ChosenBatch
from remuda.exec.zone_ranges import ZoneRanges
from remuda.expr import Column, Expression, Parameters, columns_of, compile_row
from remuda.expr.truth import compile_truth

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from remuda.catalog import MapDefinition
    from remuda.exec.batch import RowBatch


class ScanFilter:
    """`names` and `positions` are the columns to read: those delivered, then those that only the filter needs."""

    def __init__(self, definition: MapDefinition, columns: tuple[Column, ...], predicate: Expression | None) -> None:
        """Made once for a plan: see `Code`."""
        delivered = {column.id for column in columns}
        extra = [column for id_, column in columns_of(predicate).items() if id_ not in delivered]
        read = (*columns, *extra)
        self.columns = columns
        self.names = [column.name for column in read]
        self.positions = [definition.position(column.name) for column in read]
        self._width = len(columns)
        self._all_delivered = not extra
        layout = layout_of(read)
        self._truth = None if predicate is None else compile_truth(predicate, layout)
        self.zones = ZoneRanges(predicate)
        self._row_predicate = None if predicate is None else compile_row(predicate, layout)
        self._deliver = None if not extra else _picker(self._width)

    def apply_to_arrow(self, batch: pa.RecordBatch, parameters: Parameters) -> RowBatch:
        if self._truth is None or batch.num_rows == 0:
            return ArrowBatch(self.columns, self._delivered(batch))
        return ChosenBatch(self.columns, self._delivered(batch), self._truth(batch, parameters))

    def apply_to_tuples(self, tuples: Sequence[tuple[Any, ...]], parameters: Parameters) -> RowBatch:
        passes = self._row_predicate
        if passes is not None:
            values = parameters.values
            tuples = [row for row in tuples if passes(row, values)]
        if self._deliver is not None:
            deliver = self._deliver
            tuples = [deliver(row) for row in tuples]
        return TupleBatch(self.columns, tuples)

    def _delivered(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch if self._all_delivered else batch.select(list(range(self._width)))


def _picker(width: int) -> Any:
    return itemgetter(slice(0, width))
