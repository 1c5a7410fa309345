"""How a query is done: operators that exist as code, each with the traits it delivers and what it is expected to cost.

These nodes are the body of a `Plan`: plain data that pickles and travels to the members and tasks that run it.
"""

from remuda.plan.estimate import UNPRICED, Estimate
from remuda.plan.physical_aggregates import HashAggregate, Phase, StreamingAggregate
from remuda.plan.physical_exchanges import (
    BroadcastExchange,
    ExchangeNode,
    HashExchange,
    Receive,
    RootExchange,
    Route,
    Send,
)
from remuda.plan.physical_joins import HashJoin, LookupJoin, NestedLoopJoin
from remuda.plan.physical_orders import Sort, TopN, Window
from remuda.plan.physical_recursion import Recursive, WorkingTable
from remuda.plan.physical_results import Modify, Root
from remuda.plan.physical_rows import Expand, Filter, Limit, Project, Series, Union, Values
from remuda.plan.physical_scans import Direction, IndexCount, IndexScan, KeyLookup, MapScan, ScanNode
from remuda.plan.physical_spools import Spool, SpoolRead

__all__ = [
    "UNPRICED",
    "BroadcastExchange",
    "Direction",
    "Estimate",
    "ExchangeNode",
    "Expand",
    "Filter",
    "HashAggregate",
    "HashExchange",
    "HashJoin",
    "IndexCount",
    "IndexScan",
    "KeyLookup",
    "Limit",
    "LookupJoin",
    "MapScan",
    "Modify",
    "NestedLoopJoin",
    "Phase",
    "PhysicalNode",
    "Project",
    "Receive",
    "Recursive",
    "Root",
    "RootExchange",
    "Route",
    "ScanNode",
    "Send",
    "Series",
    "Sort",
    "Spool",
    "SpoolRead",
    "StreamingAggregate",
    "TopN",
    "Union",
    "Values",
    "Window",
    "WorkingTable",
]

PhysicalNode = (
    MapScan
    | IndexScan
    | IndexCount
    | KeyLookup
    | Values
    | Filter
    | Project
    | HashAggregate
    | StreamingAggregate
    | Sort
    | TopN
    | Limit
    | HashJoin
    | NestedLoopJoin
    | LookupJoin
    | Union
    | Window
    | Expand
    | Series
    | Recursive
    | WorkingTable
    | Spool
    | SpoolRead
    | RootExchange
    | HashExchange
    | BroadcastExchange
    | Modify
    | Root
    | Send
    | Receive
)
"""The closed set of them, for those who distinguish all."""
