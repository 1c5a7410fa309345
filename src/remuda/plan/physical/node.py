"""The closed set of physical nodes, for those who distinguish all of them."""

from __future__ import annotations

from remuda.plan.physical.aggregates import HashAggregate, StreamingAggregate
from remuda.plan.physical.exchanges import BroadcastExchange, HashExchange, Receive, RootExchange, Send
from remuda.plan.physical.joins import HashJoin, LookupJoin, NestedLoopJoin
from remuda.plan.physical.orders import Sort, TopN, Window
from remuda.plan.physical.recursion import Recursive, WorkingTable
from remuda.plan.physical.results import Modify, Root
from remuda.plan.physical.rows import Expand, Filter, Limit, Project, Series, Union, Values
from remuda.plan.physical.scans import IndexCount, IndexScan, KeyLookup, MapScan

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
    | RootExchange
    | HashExchange
    | BroadcastExchange
    | Modify
    | Root
    | Send
    | Receive
)
