"""From a plan node to the operator that runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

from remuda.exec.aggregate import HashAggregateExec
from remuda.exec.code import Code
from remuda.exec.exchange import MergingReceiveExec, ReceiveExec, SendExec
from remuda.exec.filter import FilterExec
from remuda.exec.index_scan import IndexScanExec
from remuda.exec.key_lookup import KeyLookupExec
from remuda.exec.limit import LimitExec
from remuda.exec.map_scan import MapScanExec
from remuda.exec.modify import ModifyExec
from remuda.exec.project import ProjectExec
from remuda.exec.root import RootExec
from remuda.exec.sort import SortExec, TopNExec
from remuda.exec.values import ValuesExec
from remuda.plan import physical

if TYPE_CHECKING:
    from remuda.exec.operator import Exec


def build_operator(node: Any, code: Code | None = None) -> Exec:
    """Operators have state: a tree is built anew for every execution. `code` keeps what need not be made anew."""
    code = code or Code()
    tree: physical.PhysicalNode = node
    match tree:
        case physical.MapScan():
            return MapScanExec(tree, code)
        case physical.IndexScan():
            return IndexScanExec(tree, code)
        case physical.KeyLookup():
            return KeyLookupExec(tree, code)
        case physical.Values():
            return ValuesExec(tree, code)
        case physical.Filter():
            return FilterExec(tree, build_operator(tree.input, code), code)
        case physical.Project():
            return ProjectExec(tree, build_operator(tree.input, code), code)
        case physical.HashAggregate():
            return HashAggregateExec(tree, build_operator(tree.input, code))
        case physical.Sort():
            return SortExec(tree, build_operator(tree.input, code))
        case physical.TopN():
            return TopNExec(tree, build_operator(tree.input, code))
        case physical.Limit():
            return LimitExec(tree, build_operator(tree.input, code))
        case physical.Modify():
            return ModifyExec(tree, build_operator(tree.input, code))
        case physical.Root():
            return RootExec(tree, build_operator(tree.input, code))
        case physical.Send():
            return SendExec(tree, build_operator(tree.input, code))
        case physical.Receive():
            return MergingReceiveExec(tree) if tree.collation else ReceiveExec(tree)
        case physical.RootExchange():
            raise AssertionError("an exchange is split into send and receive before execution")
        case _:
            assert_never(tree)
