"""A union of index scans of one map, or one scan of the map: decided by exact counts of entries.

region = ? OR cust = ?      'APAC' and 4711: 100 and 5 entries, by the indexes
                            'EMEA' and 0: 700,000 and 180,000 entries, by one scan of the map
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.exec.operator import Exec, IterationResult
from remuda.exec.scan.index_choice import by_candidates, choose_index

if TYPE_CHECKING:
    from remuda.exec.context import ExecContext
    from remuda.exec.expression_cache import ExpressionCache
    from remuda.exec.scan.map_scan import MapScanExec
    from remuda.plan.physical import Union


class UnionChoiceExec(Exec):
    """Sets up and runs one of two operators that deliver the same rows."""

    def __init__(self, node: Union, union: Exec, map_scan: MapScanExec, code: ExpressionCache) -> None:
        self._node = node
        self._union = union
        self._map_scan = map_scan
        self._code = code

    def setup(self, context: ExecContext) -> None:
        cutover = self._node.scan_cutover
        assert cutover is not None
        entries = self._count_entries(context)
        scans = entries > cutover.entries(context.snapshot(self._map_id).rows)
        if scans:
            context.activity.decide("full scan: {} entries", entries)
        self._chosen: Exec = self._map_scan if scans else self._union
        self._chosen.setup(context)

    @property
    def _map_id(self) -> str:
        assert self._node.map_scan is not None
        return self._node.map_scan.map.id

    def _count_entries(self, context: ExecContext) -> int:
        """Count the entries that the index scans would read, each by the best of its indexes."""
        snapshot, values = context.snapshot(self._map_id), context.parameters.values
        scans = (self._code.of(scan, by_candidates) for scan in self._node.inputs)
        return sum(choose_index(each, snapshot, values).entries for each in scans)

    def advance(self) -> IterationResult:
        result = self._chosen.advance()
        self.current_batch = self._chosen.current_batch
        return result
