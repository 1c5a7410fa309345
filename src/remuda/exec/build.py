"""From a plan node to the operator that runs it.

Each arm imports its operator: a process imports those of the plans that it runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

from remuda.exec.expression_cache import ExpressionCache
from remuda.exec.relational.project import ProjectExec, RootExec
from remuda.exec.relational.values import ValuesExec
from remuda.plan import physical

if TYPE_CHECKING:
    from remuda.exec.operator import Exec


def build_operator(node: Any, code: ExpressionCache | None = None) -> Exec:
    """Build the operators of a tree, which have state, for one execution. `code` keeps what was compiled."""
    code = ExpressionCache() if code is None else code
    return code.built(node, _build(node, code))


def _build(node: Any, code: ExpressionCache) -> Exec:
    tree: physical.PhysicalNode = node
    match tree:
        case physical.MapScan():
            from remuda.exec.scan.map_scan import MapScanExec

            return MapScanExec(tree, code)
        case physical.IndexScan(direction=physical.Direction.UNORDERED):
            from remuda.exec.scan.index_scan import IndexScanExec

            return IndexScanExec(tree, code)
        case physical.IndexScan():
            from remuda.exec.scan.ordered_index_scan import OrderedIndexScanExec

            return OrderedIndexScanExec(tree, code)
        case physical.IndexCount():
            from remuda.exec.scan.index_scan import IndexCountExec

            return IndexCountExec(tree)
        case physical.KeyLookup():
            from remuda.exec.scan.key_lookup import KeyLookupExec

            return KeyLookupExec(tree, code)
        case physical.Values():
            return ValuesExec(tree, code)
        case physical.Filter():
            from remuda.exec.relational.filter import FilterExec

            return FilterExec(tree, build_operator(tree.input, code), code)
        case physical.Project():
            return ProjectExec(tree, build_operator(tree.input, code), code)
        case physical.HashAggregate(input=physical.LocalExchange(input=physical.HashAggregate() as partial) as below):
            from remuda.exec.aggregate.aggregate import HashAggregateExec
            from remuda.exec.parallel import LocalExchangeExec

            exchange = LocalExchangeExec(below, build_operator(partial.input, code))
            aggregate = HashAggregateExec(tree, code.built(below, exchange), partial, below.partial_rule)
            exchange.merge_by(aggregate, lambda part: code.built(partial, part))
            return aggregate
        case physical.HashAggregate():
            from remuda.exec.aggregate.aggregate import HashAggregateExec

            return HashAggregateExec(tree, build_operator(tree.input, code))
        case physical.StreamingAggregate():
            from remuda.exec.aggregate.streaming_aggregate import StreamingAggregateExec

            return StreamingAggregateExec(tree, build_operator(tree.input, code))
        case physical.Sort():
            from remuda.exec.sort.sort import SortExec

            return SortExec(tree, build_operator(tree.input, code))
        case physical.TopN(input=physical.LocalExchange(input=physical.TopN() as partial) as below):
            from remuda.exec.parallel import LocalExchangeExec
            from remuda.exec.sort.sort import TopNExec

            exchange = LocalExchangeExec(below, build_operator(partial.input, code))
            top = TopNExec(tree, code.built(below, exchange))
            exchange.merge_by(top, lambda part: code.built(partial, part))
            return top
        case physical.TopN():
            from remuda.exec.sort.sort import TopNExec

            return TopNExec(tree, build_operator(tree.input, code))
        case physical.Limit():
            from remuda.exec.relational.limit import LimitExec

            return LimitExec(tree, build_operator(tree.input, code))
        case physical.Modify():
            from remuda.exec.relational.modify import ModifyExec, PrepareExec

            return (ModifyExec if tree.commits else PrepareExec)(tree, build_operator(tree.input, code))
        case physical.Commit():
            from remuda.exec.relational.modify import CommitExec

            return CommitExec(tree, build_operator(tree.input, code))
        case physical.Root(input=physical.LocalExchange() as below) if _is_light(below.input):
            from remuda.exec.parallel import LocalExchangeExec

            exchange = LocalExchangeExec(below, build_operator(below.input, code), read_by_user=True)
            return RootExec(tree, code.built(below, exchange))
        case physical.Root():
            return RootExec(tree, build_operator(tree.input, code))
        case physical.LocalExchange():
            from remuda.exec.parallel import LocalExchangeExec

            return LocalExchangeExec(tree, build_operator(tree.input, code))
        case physical.Send(input=physical.LocalExchange() as below):
            from remuda.exec.exchange.exchange import SendExec
            from remuda.exec.parallel import LocalExchangeExec

            exchange = LocalExchangeExec(below, build_operator(below.input, code), sent=True)
            return SendExec(tree, code.built(below, exchange))
        case physical.Send():
            from remuda.exec.exchange.exchange import SendExec

            return SendExec(tree, build_operator(tree.input, code))
        case physical.Receive():
            from remuda.exec.exchange.exchange import MergingReceiveExec, ReceiveExec

            return MergingReceiveExec(tree) if tree.collation else ReceiveExec(tree)
        case physical.HashJoin():
            from remuda.exec.join.hash_join import build_join

            return build_join(tree, build_operator(tree.left, code), build_operator(tree.right, code), code)
        case physical.RuntimeFilter():
            from remuda.exec.join.runtime_filter import RuntimeFilterExec

            return RuntimeFilterExec(tree, build_operator(tree.input, code))
        case physical.MergeJoin():
            from remuda.exec.join.merge_join import MergeJoinExec

            return MergeJoinExec(tree, build_operator(tree.left, code), build_operator(tree.right, code), code)
        case physical.NestedLoopJoin():
            from remuda.exec.join.nested_loop_join import NestedLoopJoinExec

            return NestedLoopJoinExec(tree, build_operator(tree.left, code), build_operator(tree.right, code), code)
        case physical.Union():
            from remuda.exec.relational.union import UnionExec
            from remuda.exec.scan.map_scan import MapScanExec
            from remuda.exec.scan.union_choice import UnionChoiceExec

            union = UnionExec(tree, [build_operator(source, code) for source in tree.inputs])
            scan = tree.map_scan
            return union if scan is None else UnionChoiceExec(tree, union, MapScanExec(scan, code), code)
        case physical.Expand():
            from remuda.exec.relational.expand import ExpandExec

            return ExpandExec(tree, build_operator(tree.input, code), code)
        case physical.Series():
            from remuda.exec.relational.series import SeriesExec

            return SeriesExec(tree, build_operator(tree.input, code), code)
        case physical.Recursive():
            from remuda.exec.relational.recursive import RecursiveExec

            first, step = tree.inputs
            return RecursiveExec(tree, build_operator(first, code), lambda: build_operator(step, code))
        case physical.WorkingTable():
            from remuda.exec.relational.recursive import WorkingTableExec

            return WorkingTableExec(tree)
        case physical.Spool():
            from remuda.exec.relational.spool import SpoolExec

            return SpoolExec(tree, build_operator(tree.input, code))
        case physical.SpoolRead():
            from remuda.exec.relational.spool import SpoolReadExec

            return SpoolReadExec(tree)
        case physical.Window():
            from remuda.exec.window.window import WindowExec

            return WindowExec(tree, build_operator(tree.input, code), code)
        case physical.LookupJoin():
            from remuda.exec.join.lookup_join import LookupJoinExec

            return LookupJoinExec(tree, build_operator(tree.input, code), code)
        case physical.RootExchange() | physical.HashExchange() | physical.BroadcastExchange():
            raise AssertionError("an exchange is split into send and receive before execution")
        case _:
            assert_never(tree)


def _is_light(node: Any) -> bool:
    """Return whether workers do all that takes time, so that the reader of the result can take their batches itself."""
    while isinstance(node, physical.Filter | physical.Project):
        node = node.input
    return isinstance(node, physical.MapScan)
