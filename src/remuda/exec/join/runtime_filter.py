"""Runtime filters: the keys of one side of a hash join drop rows of the other, before these are grouped or held.

The plan says where (`place_runtime_filters`): a `HashJoin` with `runtime_keys` fills the filter that a `RuntimeFilter`
of the same number, below the side that is read second, asks. They find each other in the context of their fragment.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from remuda.exec.batch import empty_batch, layout_of, positional
from remuda.exec.join.join_table import KeyTable
from remuda.exec.keys.key_interner import KeyInterner
from remuda.exec.memory import bytes_held
from remuda.exec.operator import Exec, IterationResult, PassingExec, UnaryExec
from remuda.exec.selection import NEARLY_ALL, SelectedBatch, materialized
from remuda.exec.sort.ordering import concatenate
from remuda.types.column_hash import hash_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remuda.exec.batch import RowBatch
    from remuda.exec.context import ExecContext
    from remuda.expr import Column
    from remuda.plan import physical


class FilterKeys:
    """The keys of one side of a join, once they are known; until then, or where they are too many, all rows pass."""

    __slots__ = ("_keys", "_make_table", "_node", "number", "table")

    def __init__(self, node: physical.RuntimeKeys, make_table: type[KeyTable] = KeyTable) -> None:
        self._node = node
        self._make_table = make_table
        self.number = node.number
        self.table: KeyTable | None = None
        self._keys: pa.RecordBatch | None = None

    def fill(self, batches: Sequence[RowBatch], columns: tuple[Column, ...], context: ExecContext) -> None:
        """Make the filter of all rows of the side that is read first, unless they are too many."""
        node = self._node
        rows = sum(batch.row_count for batch in batches)
        if rows > node.most_rows:
            context.activity.decide(f"runtime filter #{node.number}: not made of {{}} rows", rows)
            return
        layout = layout_of(columns)
        own = [getattr(key, node.side.value) for key in node.keys]
        full = [batch.arrow() for batch in batches if batch.row_count] or [empty_batch(columns).arrow()]
        keys = concatenate([positional([batch.column(layout[key.id]) for key in own]) for batch in full])
        self._keys = keys
        self.table = self._make_table(keys.columns, [key.type for key in own], [key.null_safe for key in node.keys])
        context.activity.decide(f"runtime filter #{node.number}: {{}} keys of {{}} rows", self.table.count, rows)

    def partitions(self, rule: physical.DynamicPruning, count: int) -> np.ndarray | None:
        """Return the partitions, out of so many, in which keys lie, ascending; None where that is not worth knowing."""
        if self._keys is None or self.table is None or self.table.count > rule.most_keys:
            return None
        # A partitioning column is never NULL.
        keys = self._keys.select(list(rule.key_ordinals)).drop_null()
        types = [self._node.keys[ordinal].left.type for ordinal in rule.key_ordinals]
        return np.unique(hash_columns(keys.columns, types) % count)

    def distinct(self, ordinals: Sequence[int], most: int) -> list[pa.Array] | None:
        """Return every different key of these columns without a NULL; None where there are too many, or no filter."""
        if self._keys is None or self.table is None:
            return None
        if len(ordinals) == len(self._node.keys) and self.table.count - 1 > most:  # one of them may be NULL
            return None
        types = [self._node.keys[ordinal].left.type for ordinal in ordinals]
        present = self._keys.select(list(ordinals)).drop_null()
        _, first = np.unique(KeyInterner(types).intern(present.columns), return_index=True)
        return present.take(pa.array(first)).columns if len(first) <= most else None


class RuntimeFilterExec(PassingExec):
    """Passes the rows whose key is in the filter.

    Where nearly all of a batch pass, all do: the join drops the few others, and copying the many would cost more than
    it saves (a key that is NULL in 2 % of five million rows, grouped below the join: 75 ms of processor time against
    57).
    """

    def __init__(self, node: physical.RuntimeFilter, source: Exec) -> None:
        super().__init__(source, node.columns)
        layout = layout_of(node.columns)
        self._node = node
        self._ordinals = [layout[key.id] for key in node.keys]

    def setup(self, context: ExecContext) -> None:
        self._keys = context.runtime_filters[self._node.number]
        super().setup(context)

    def advance(self) -> IterationResult:
        result = self.source.advance()
        if result is not IterationResult.WAIT:
            self.current_batch = self._filtered(self.source.current_batch)
        return result

    def _filtered(self, batch: RowBatch) -> RowBatch:
        table = self._keys.table
        if table is None or not batch.row_count:
            return batch
        rows = batch.arrow()
        passing = SelectedBatch(batch.columns, rows, table.contains([rows.column(each) for each in self._ordinals]))
        return batch if passing.row_count > NEARLY_ALL * batch.row_count else passing


class SpooledProbeExec(UnaryExec):
    """The left side of a join, read ahead as far as its rows make a filter for the right side, then delivered.

    A join holds its right side. Of an inner join that is the smaller one; EXISTS has no choice, and would hold all rows
    of a large map for a few outer rows.
    """

    def __init__(self, node: physical.HashJoin, source: Exec) -> None:
        super().__init__(source)
        assert node.runtime_keys is not None
        self._columns = node.left.columns
        self._most_rows = node.runtime_keys.most_rows
        self._spooled: deque[RowBatch] = deque()
        self._rows = self._bytes = 0
        self._source_done = False
        self._is_read = False

    def setup(self, context: ExecContext) -> None:
        super().setup(context)
        self._context = context

    def read_ahead(self, keys: FilterKeys) -> bool:
        """Read as many rows as a filter is made of, and fill it; False where the source has to wait."""
        while not self._is_read:
            result = self.source.advance()
            if result is IterationResult.WAIT:
                return False
            self._spool(materialized(self.source.current_batch))
            self._source_done = result is IterationResult.FETCHED_DONE
            if self._source_done or self._rows > self._most_rows:
                self._is_read = True
                keys.fill(self._spooled, self._columns, self._context)
        return True

    def _spool(self, batch: RowBatch) -> None:
        self._spooled.append(batch)
        self._rows += batch.row_count
        if self._context.memory is not None:
            self._bytes += bytes_held(batch)
            self._context.hold(self, "the join", self._bytes)

    def advance(self) -> IterationResult:
        """Deliver what was read ahead, and then what is left."""
        if not self._spooled:
            result = self.source.advance()
            if result is not IterationResult.WAIT:
                self.current_batch = self.source.current_batch
            return result
        self.current_batch = self._spooled.popleft()
        return IterationResult.FETCHED_DONE if self._source_done and not self._spooled else IterationResult.FETCHED
