"""Common sub-plans of a finished plan are computed once: a CTE that is read twice, a view, a domain of outer values.

    Join(A1, Aggregate(A2))  →  Join(Spool #1(A1), Aggregate(SpoolRead #1))   where A1 and A2 are the same plan

Two plans are the same where they differ only in the ids of their columns. The binder gives each reference of a CTE
columns of its own, so that filters can sink into one reference and not into the other; what is still the same after
the search is shared. Only within the root fragment: a spool is kept where it is made, and members that take the rows of
their senders in another order than these send them could wait for each other. Not where volatile functions are: two
calls of random() are two numbers. Not within the step of a recursive query, which is built anew for every round.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from remuda.catalog import IndexDefinition, MapDefinition
from remuda.expr import Call, Case, Cast, Column, is_volatile
from remuda.optimizer.cost import spool_cost
from remuda.plan import physical
from remuda.plan.traits import Convention, Distribution, SortKey
from remuda.plan.walk import change_inputs, inputs, walk, with_inputs
from remuda.types import SqlType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remuda.plan.physical import PhysicalNode

SPOOL_RULE = "share_common_plans"
_WORTH_SHARING = (
    physical.HashJoin
    | physical.NestedLoopJoin
    | physical.LookupJoin
    | physical.HashAggregate
    | physical.StreamingAggregate
    | physical.Window
    | physical.Recursive
)
"""A plan without one of these reads a map, which is about as cheap as reading a spool."""
_MAY_STAND_ABOVE = physical.Project | physical.Filter | physical.Union | physical.RootExchange
_READS_MAP = physical.MapScan | physical.IndexScan | physical.IndexCount | physical.KeyLookup | physical.LookupJoin
MOST_ROWS = 5e6
"""Rows, as far as they are expected, above which a plan is computed again instead of kept."""


class CommonPlans:
    """Shares the common sub-plans of one plan; `fired` is how many spools it has made."""

    def __init__(self) -> None:
        self.fired = 0

    def share(self, tree: PhysicalNode) -> PhysicalNode:
        maps = Counter(node.map.id for node in walk(tree) if isinstance(node, _READS_MAP))
        if not any(count > 1 for count in maps.values()):
            return tree
        keys, counts = _keys(tree)
        if not any(count > 1 for count in counts.values()):
            return tree
        shared = _Sharing(keys, counts).rewrite(tree)
        read = {node.number for node in walk(shared) if isinstance(node, physical.SpoolRead)}
        self.fired = len(read)
        return _without_unread(shared, read)


def _keys(tree: Any) -> tuple[dict[int, Any], Counter[Any]]:
    """Return what is the same for equal plans, by the identity of their nodes, and how often it comes.

    The same node may stand in several places. Only nodes whose shape comes twice are looked at closely.
    """
    nodes = list(_in_root_fragment(tree))
    shapes: dict[int, int] = {}
    _add_shape(tree, shapes)
    count_of_shape = Counter(shapes[id(node)] for node in nodes)
    keys: dict[int, Any] = {}
    for node in {id(node): node for node in nodes}.values():
        if count_of_shape[shapes[id(node)]] > 1 and _can_be_shared(node):
            keys[id(node)] = _key(node, {})
    return keys, Counter(keys[id(node)] for node in nodes if id(node) in keys)


def _in_root_fragment(node: Any) -> Iterator[Any]:
    yield node
    for child in _inputs_in_fragment(node):
        yield from _in_root_fragment(child)


def _inputs_in_fragment(node: Any) -> tuple[Any, ...]:
    """Not what lies below an exchange, nor the step of a recursion."""
    if isinstance(node, physical.ExchangeNode):
        return ()
    return inputs(node)[:1] if isinstance(node, physical.Recursive) else inputs(node)


def _add_shape(node: Any, shapes: dict[int, int]) -> int:
    """A hash that is the same for equal plans."""
    known = shapes.get(id(node))
    if known is None:
        below = tuple(_add_shape(child, shapes) for child in inputs(node))
        read = node.map.id if isinstance(node, _READS_MAP) else None
        known = shapes[id(node)] = hash((type(node).__name__, len(node.columns), read, below))
    return known


def _can_be_shared(node: Any) -> bool:
    estimate = node.estimate
    if estimate.rows > MOST_ROWS or estimate.cost <= spool_cost(estimate.rows, len(node.columns)):
        return False
    if not isinstance(node, _WORTH_SHARING | _MAY_STAND_ABOVE):
        return False
    nodes = list(walk(node))
    if not any(isinstance(each, _WORTH_SHARING) for each in nodes):
        return False
    if any(each.traits.convention is not Convention.LOCAL for each in nodes):
        return False
    made = {each.table for each in nodes if isinstance(each, physical.Recursive)}
    read = {each.table for each in nodes if isinstance(each, physical.WorkingTable)}
    return read <= made and not _has_volatile(node)


def _has_volatile(value: Any) -> bool:
    match value:
        case Call() | Cast() | Case():
            return is_volatile(value)
        case tuple():
            return any(map(_has_volatile, value))
        case MapDefinition() | IndexDefinition() | Column():
            return False
        case _ if is_dataclass(value):
            return any(_has_volatile(getattr(value, each.name)) for each in fields(value) if each.compare)
        case _:
            return False


def _key(value: Any, ids: dict[Any, int]) -> Any:
    """Return a value that is equal for plans that differ in nothing but the ids and names of columns."""
    match value:
        case Column():
            return (_number(value.id, ids), value.type, value.nullable)
        case MapDefinition() | IndexDefinition():
            return (type(value).__name__, value.id)
        case Distribution():
            return (value.kind, tuple(_number(each, ids) for each in value.columns))
        case SortKey():
            return (_number(value.column, ids), value.descending, value.nulls_first)
        case tuple():
            return tuple(_key(each, ids) for each in value)
        case float():
            return (float, repr(value))
        case _ if is_dataclass(value) and not isinstance(value, SqlType):
            parts = [_key(getattr(value, each.name), ids) for each in fields(value) if each.compare]
            if isinstance(value, physical.Recursive | physical.WorkingTable):
                parts = [part for part in parts if part != (int, value.table)]
                parts.append(_number(("table", value.table), ids))
            if isinstance(value, _READS_MAP):
                read = value.map_columns if isinstance(value, physical.LookupJoin) else value.columns
                parts.append(tuple(column.name for column in read))
            return (type(value).__name__, *parts)
        case _:
            return (type(value), value)


def _number(id_: Any, ids: dict[Any, int]) -> int:
    """The ids of columns and working tables counted in the order in which they come."""
    return ids.setdefault(id_, len(ids))


@dataclass(slots=True)
class _Sharing:
    keys: dict[int, Any]
    counts: Counter[Any]
    numbers: dict[Any, int] = field(default_factory=dict)

    def rewrite(self, node: Any) -> Any:
        """The largest common plans first: what is within a copy that is not computed is not looked at."""
        key = self.keys.get(id(node))
        if key is None or self.counts[key] == 1:
            return self._rewrite_below(node)
        known = self.numbers.get(key)
        if known is not None:
            return physical.SpoolRead(known, node.columns, node.traits, estimate=_read(node))
        number = self.numbers[key] = len(self.numbers) + 1
        return physical.Spool(self._rewrite_below(node), number, node.traits, estimate=node.estimate)

    def _rewrite_below(self, node: Any) -> Any:
        below = tuple(self.rewrite(child) for child in _inputs_in_fragment(node))
        return with_inputs(node, (*below, *inputs(node)[len(below) :]))


def _read(node: Any) -> physical.Estimate:
    return physical.Estimate(node.estimate.rows, spool_cost(node.estimate.rows, len(node.columns)))


def _without_unread(node: Any, read: set[int]) -> Any:
    if isinstance(node, physical.Spool) and node.number not in read:
        return _without_unread(node.input, read)
    return change_inputs(node, lambda child: _without_unread(child, read))
