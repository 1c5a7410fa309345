"""How a query is done: operators that exist as code, each with the traits it delivers and what it is expected to cost.

These nodes are the body of a `Plan`: plain data that pickles and travels to the members and tasks that run it.
"""

from remuda.plan.physical.aggregates import HashAggregate, Phase, StreamingAggregate
from remuda.plan.physical.estimate import UNPRICED, Estimate
from remuda.plan.physical.exchanges import (
    BroadcastExchange,
    ExchangeNode,
    HashExchange,
    Receive,
    RootExchange,
    Route,
    Send,
)
from remuda.plan.physical.joins import HashJoin, LookupJoin, NestedLoopJoin
from remuda.plan.physical.node import PhysicalNode
from remuda.plan.physical.orders import Sort, TopN, Window
from remuda.plan.physical.recursion import Recursive, WorkingTable
from remuda.plan.physical.results import Modify, Root
from remuda.plan.physical.rows import Expand, Filter, Limit, Project, Series, Union, Values
from remuda.plan.physical.scans import Direction, IndexCount, IndexScan, KeyLookup, MapScan, ScanNode

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
    "StreamingAggregate",
    "TopN",
    "Union",
    "Values",
    "Window",
    "WorkingTable",
]
