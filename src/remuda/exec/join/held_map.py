"""What a lookup join compiles once, and the map that it holds where looking up would cost more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.exec.batch import empty_batch, layout_of
from remuda.exec.join.join_result import JoinExpressions, JoinResult
from remuda.exec.join.join_table import BuildRows, JoinTable
from remuda.exec.join.row_join import RowJoin
from remuda.exec.scan.scan_filter import ScanFilter
from remuda.exec.sort.ordering import concatenate
from remuda.expr import Column, compile_batch, compile_row
from remuda.plan.physical import NestedLoopJoin, Values

if TYPE_CHECKING:
    import pyarrow as pa

    from remuda.exec.context import ExecContext
    from remuda.plan.physical import LookupJoin


class LookupExpressions:
    """What is compiled once. Fetched rows have the key's columns too, behind those that are delivered."""

    def __init__(self, node: LookupJoin) -> None:
        names = node.map.key if node.index is None else node.index.columns[: len(node.keys)]
        delivered = {column.name: ordinal for ordinal, column in enumerate(node.map_columns)}
        extra = [name for name in names if name not in delivered]
        added = tuple(Column(-2 - number, name, node.map.column(name).type) for number, name in enumerate(extra))
        fetched = (*node.map_columns, *added)
        ordinals = {column.name: ordinal for ordinal, column in enumerate(fetched)}
        self.key_ordinals = [ordinals[name] for name in names]
        self.key_types = [node.map.column(name).type for name in names]
        self.rows = ScanFilter(node.map, fetched, node.filter)
        layout = layout_of(node.input.columns)
        self.key_arrays = [compile_batch(key, layout) for key in node.keys]
        self.key_rows = [compile_row(key, layout) for key in node.keys]
        # The shape of the join, whichever way its pairs are found.
        right = Values(fetched, (), node.traits)
        self.shape = NestedLoopJoin(node.kind, node.input, right, node.condition, None, None, node.traits)
        self.join = JoinExpressions(self.shape)
        self.row_join = RowJoin(self.shape)


class HeldMap:
    """Rows of the map by their keys, and what makes joined rows of them: for one batch, or for all that follow."""

    def __init__(self, code: LookupExpressions, batches: list[pa.RecordBatch], context: ExecContext) -> None:
        build = BuildRows(concatenate(batches) if batches else empty_batch(code.rows.columns).arrow())
        rights = [build.batch.column(ordinal) for ordinal in code.key_ordinals]
        self.table = JoinTable(rights, code.key_types, [False] * len(rights))
        self.result = JoinResult(code.shape, code.join, build, context.parameters)
