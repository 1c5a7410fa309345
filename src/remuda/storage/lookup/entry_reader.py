"""From entries of an index, which stand side by side, to their rows, which lie anywhere.

Rows are in no cache, so what counts is how often memory is waited for: few rows are read one by one, the columns of
more by numpy, which waits for many places at once; and a column that the index itself holds is read there, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from remuda.storage.index.sorted_index import SortedIndex
from remuda.storage.lookup.generated_readers import row_reader, rows_reader
from remuda.storage.segment.block_guard import view_of

if TYPE_CHECKING:
    from remuda.storage.lookup.row_projection import RowProjection
    from remuda.storage.segment.block_guard import Array
    from remuda.storage.segment.deletion_vector import DeletionVector
    from remuda.storage.segment.segment import Index, Segment

FEW_ENTRIES = 6
"""Up to so many rows are read one by one (measured, at ten million rows of which few are in a cache)."""

Rows = Iterable[Any]
EntryReader = Callable[[int, int, int], Rows]
"""From a span of an index and a length of the log to the rows that are live at it."""


def entry_reader(segment: Segment, index: Index, hidden: DeletionVector, form: RowProjection) -> EntryReader:
    if isinstance(index, SortedIndex) and index.numbers is not None and index.first_column in form.columns:
        return _reader_with_numbers(segment, index, index.numbers, hidden, form)
    positions, places = index.positions, view_of(index.positions)
    row_at, rows_at = row_reader(segment, form), rows_reader(segment, form)

    def read(low: int, high: int, length: int) -> Rows:
        marks = hidden.view
        if high - low == 1:
            position = places[low]
            return (row_at(position),) if marks is None or marks[position] > length else ()
        if high - low <= FEW_ENTRIES:
            few = places[low:high]
            return map(row_at, few if marks is None else [position for position in few if marks[position] > length])
        # numpy would convert any other kind of number anew for each column.
        many = positions[low:high].astype(np.intp)
        return rows_at(many if marks is None else many[np.asarray(marks).take(many) > length])

    return read


def _reader_with_numbers(
    segment: Segment, index: SortedIndex, numbers: Array, hidden: DeletionVector, form: RowProjection
) -> EntryReader:
    """`entry_reader` where the index has the values of a wanted column."""
    positions, places, values = index.positions, view_of(index.positions), view_of(numbers)
    row_at = row_reader(segment, form, index.first_column)
    rows_at = rows_reader(segment, form, index.first_column)

    def read(low: int, high: int, length: int) -> Rows:
        marks = hidden.view
        if high - low == 1:
            position = places[low]
            return (row_at(position, values[low]),) if marks is None or marks[position] > length else ()
        if high - low <= FEW_ENTRIES:
            few = places[low:high]
            if marks is None:
                return map(row_at, few, values[low:high])
            live = [place for place, position in enumerate(few, low) if marks[position] > length]
            return [row_at(places[place], values[place]) for place in live]
        many, found = positions[low:high].astype(np.intp), numbers[low:high]
        if marks is None:
            return rows_at(many, found)
        shown = np.asarray(marks).take(many) > length
        return rows_at(many[shown], found[shown])

    return read
