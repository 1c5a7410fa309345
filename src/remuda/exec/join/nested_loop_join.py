"""The nested-loop join: compares a left row with every right one, or with those that may match."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.exec.join.build_side_join import JoinExec
from remuda.exec.join.candidate_pairs import CandidateFinder
from remuda.exec.join.join_result import TESTED
from remuda.exec.join.join_table import all_pairs
from remuda.exec.offload import ROWS_OF_PAIRS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow as pa

    from remuda.exec.batch import RowBatch, Tuple
    from remuda.exec.join.join_result import JoinResult
    from remuda.exec.join.join_table import BuildRows


class NestedLoopJoinExec(JoinExec):
    """Compares a left row with every right one, or with those that a branch of the condition finds for it."""

    weight_of_row = ROWS_OF_PAIRS

    def build_table(self, build: BuildRows) -> BuildRows:
        self._rows = build.rows
        self._finder = CandidateFinder(self._code.candidates, build, self._context.parameters, self._context.verify)
        return build

    def row_lookup(self, rows: list[Tuple]) -> Callable[[Tuple], Sequence[Tuple]]:
        return lambda _: rows

    def joined(self, result: JoinResult, left: pa.RecordBatch) -> Iterable[RowBatch]:
        if self._node.kind in TESTED:
            return (result.tested(left, self._finder.find(left).until_settled),)
        if self._code.candidates.branches:
            return result.of(left, self._finder.find(left))
        return result.of(left, self._verified(all_pairs(left.num_rows, self._rows)))
