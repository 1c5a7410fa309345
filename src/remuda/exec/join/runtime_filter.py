"""The keys by which one side of a join tells the other which rows are wanted at all.

A join that has read one of its sides knows the keys that the other one can match. Where much is done to a row before
it meets the join, it is better to ask first:

    orders JOIN (SELECT item, AVG(n) FROM lines GROUP BY item) USING (item)     40 orders, two million lines
    orders WHERE EXISTS (SELECT ... FROM lines WHERE lines.item = orders.item)  the same

Of the lines only those of forty items are grouped, or held.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.exec.batch import layout_of
from remuda.exec.expression_cache import ExpressionCache
from remuda.exec.operator import Exec, IterationResult, PassingExec
from remuda.exec.selection import SelectedBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from remuda.exec.batch import RowBatch
    from remuda.exec.expression_cache import Compiled
    from remuda.exec.join.join_table import KeyTable
    from remuda.expr import Column


class RuntimeFilter:
    """Told before the first row is asked for; as long as nothing is told, every row is wanted."""

    __slots__ = ("table",)

    def __init__(self) -> None:
        self.table: KeyTable | None = None


class RuntimeFilterExec(PassingExec):
    """Passes on the rows whose key is wanted. `keys` are those of its columns that are the key."""

    def __init__(
        self, source: Exec, columns: tuple[Column, ...], keys: Sequence[Column], wanted: RuntimeFilter
    ) -> None:
        super().__init__(source, columns)
        layout = layout_of(columns)
        self._places = [layout[key.id] for key in keys]
        self._wanted = wanted

    def advance(self) -> IterationResult:
        result = self.source.advance()
        if result is not IterationResult.WAIT:
            self.current_batch = self._kept(self.source.current_batch)
        return result

    def _kept(self, batch: RowBatch) -> RowBatch:
        table = self._wanted.table
        if table is None or not batch.row_count:
            return batch
        rows = batch.arrow()
        return SelectedBatch(batch.columns, rows, table.contains([rows.column(place) for place in self._places]))


class CodeWithin(ExpressionCache):
    """The code of a plan for one side of a join, in which the operator of one node is wrapped."""

    __slots__ = ("_code", "_node", "_wrap")

    def __init__(self, code: ExpressionCache, node: Any, wrap: Callable[[Exec], Exec]) -> None:
        super().__init__()
        self._code = code
        self._node = node
        self._wrap = wrap

    def of(self, node: Any, compile_node: Callable[[Any], Compiled]) -> Compiled:
        return self._code.of(node, compile_node)

    def built(self, node: Any, operator: Exec) -> Exec:
        built = self._code.built(node, operator)
        return self._wrap(built) if node is self._node else built
