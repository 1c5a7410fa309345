"""The filter of a scan: which columns are read, which rows pass, which columns are delivered."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from remuda.exec.batch import ArrowBatch, TupleBatch, layout_of
from remuda.exec.scan.frame_of_reference import encoded_comparison
from remuda.exec.scan.zone_ranges import ZoneRanges
from remuda.exec.selection import SelectedBatch
from remuda.expr import Column, Expression, Parameters, can_fail, columns_of, compile_row, conjuncts
from remuda.expr.evaluate.mask import compile_mask

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy as np

    from remuda.catalog import MapDefinition
    from remuda.exec.batch import RowBatch
    from remuda.exec.scan.frame_of_reference import EncodedComparison
    from remuda.expr.evaluate.mask import Mask
    from remuda.plan.physical import IndexScan, KeyLookup, MapScan
    from remuda.storage import Segment


class ScanFilter:
    """`names` and `positions` are the columns to read: those delivered, then those that only the filter needs."""

    def __init__(self, definition: MapDefinition, columns: tuple[Column, ...], predicate: Expression | None) -> None:
        """Made once for a plan: see `ExpressionCache`."""
        delivered = {column.id for column in columns}
        extra = [column for id_, column in columns_of(predicate).items() if id_ not in delivered]
        read = (*columns, *extra)
        self.columns = columns
        self.names = [column.name for column in read]
        self.positions = [definition.position(column.name) for column in read]
        self._width = len(columns)
        self._all_delivered = not extra
        layout = layout_of(read)
        self._parts = [] if predicate is None else _parts(predicate, layout)
        self.zones = ZoneRanges(predicate)
        self._row_predicate = None if predicate is None else compile_row(predicate, layout)
        self._deliver = None if not extra else _picker(self._width)

    def apply_to_arrow(self, batch: pa.RecordBatch, parameters: Parameters) -> RowBatch:
        if not self._parts or batch.num_rows == 0:
            return ArrowBatch(self.columns, self._delivered(batch))
        return SelectedBatch(self.columns, self._delivered(batch), self.passing(batch, parameters))

    def keep_passing(
        self, batch: pa.RecordBatch, origins: np.ndarray, parameters: Parameters
    ) -> tuple[pa.RecordBatch, np.ndarray]:
        """Return the delivered columns of the rows that pass, and of what each row comes with the same ones."""
        if not self._parts or batch.num_rows == 0:
            return self._delivered(batch), origins
        passing = self.passing(batch, parameters)
        return self._delivered(batch).filter(pa.array(passing)), origins[passing]

    def apply_to_segment(self, segment: Segment, first: int, batch: pa.RecordBatch, parameters: Parameters) -> RowBatch:
        """Apply the filter to consecutive rows of a segment from `first` on, none of them deleted."""
        if not self._parts or batch.num_rows == 0:
            return ArrowBatch(self.columns, self._delivered(batch))
        passing = self.passing_in_segment(segment, first, batch, parameters)
        return SelectedBatch(self.columns, self._delivered(batch), passing)

    def passing(self, batch: pa.RecordBatch, parameters: Parameters) -> np.ndarray:
        """Return whether each row passes; there is a filter."""
        return _all(mask(batch, parameters) for _, mask in self._parts)

    def passing_in_segment(
        self, segment: Segment, first: int, batch: pa.RecordBatch, parameters: Parameters
    ) -> np.ndarray:
        """Return the same of consecutive rows of a segment from `first` on, none of them deleted."""
        return _all(self._passing_parts(segment, first, batch, parameters))

    def _passing_parts(
        self, segment: Segment, first: int, batch: pa.RecordBatch, parameters: Parameters
    ) -> Iterator[np.ndarray]:
        for comparison, mask in self._parts:
            passing = None
            if comparison is not None:
                passing = comparison.passing(segment, first, first + batch.num_rows, parameters)
            yield mask(batch, parameters) if passing is None else passing

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


def whole_filter(node: MapScan | IndexScan) -> ScanFilter:
    """Compile the whole filter of a scan, for a scan that reads rows without an index."""
    return ScanFilter(node.map, node.columns, node.filter)


def residual_filter(node: IndexScan | KeyLookup) -> ScanFilter:
    """Compile the part of a filter that the index, or the key, does not answer."""
    return ScanFilter(node.map, node.columns, node.residual)


def _parts(predicate: Expression, layout: dict[int, int]) -> list[tuple[EncodedComparison | None, Mask]]:
    """Compile the conjuncts of a filter; one that can be an error for some row stays whole: see `compile_mask`."""
    if can_fail(predicate):
        return [(None, compile_mask(predicate, layout))]
    return [(encoded_comparison(each), compile_mask(each, layout)) for each in conjuncts(predicate)]


def _all(parts: Iterable[np.ndarray]) -> np.ndarray:
    first, *others = parts
    for other in others:
        first &= other
    return first


def _picker(width: int) -> Any:
    return itemgetter(slice(0, width))
