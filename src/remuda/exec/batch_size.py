"""How many rows a scan reads at once, so that the batches which a fragment hands over have a bounded size."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

from remuda.exec.memory import bytes_held
from remuda.plan.physical import Filter, LocalExchange, MapScan, Project

if TYPE_CHECKING:
    from remuda.exec.batch import RowBatch
    from remuda.exec.context import ExecContext

BATCH_BYTES = 4 << 20
"""What a batch should take that waits in a channel: a fraction of a channel's bound, and far more than a hand-over
costs."""
FIRST_ROWS = 32_768
"""Rows of the first batch, which tells how much a row takes: a text may have any length."""
FEWEST_ROWS = 1_024


class BatchSizer:
    """Adapts `scan_batch_rows` of a fragment to the bytes of the batches that come of the rows read.

    Narrow rows, or those of which a filter leaves few, are read as many at once as ever; wide rows fewer. Only a scan
    whose rows are handed over one batch at a time begins with few: the scans below an aggregate or a join's build side
    are read before the first batch is known.
    """

    def __init__(self, context: ExecContext, node: Any) -> None:
        self._context = context
        self._most_rows = context.scan_batch_rows
        self._lock = Lock()
        if _passes_scan_on(node):
            context.scan_batch_rows = min(FIRST_ROWS, self._most_rows)
        self.restart()

    def restart(self) -> None:
        """Forget the rows that were read until now."""
        self._rows_before = self._context.activity.rows_read
        self._bytes = 0

    def adapt(self, batch: RowBatch) -> None:
        """Take into account that the rows read came to a batch of this size as well."""
        with self._lock:
            self._bytes += bytes_held(batch)
            read = self._context.activity.rows_read - self._rows_before
            if read:
                wanted = max(FEWEST_ROWS, read * BATCH_BYTES // max(self._bytes, 1))
                self._context.scan_batch_rows = min(wanted, self._most_rows)


def _passes_scan_on(node: Any) -> bool:
    while isinstance(node, Filter | Project | LocalExchange):
        node = node.input
    return isinstance(node, MapScan)
