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
from remuda.optimizer.cost import is_worth_spooling, spool_cost
from remuda.plan import physical
from remuda.plan.traits import Convention, Distribution, SortKey
from remuda.plan.walk import change_inputs, inputs, walk, with_inputs
from remuda.types import SqlType

if TYPE_CHECKING:
    from collections.abc import Iterator

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


class CommonPlans:
    """Shares the common sub-plans of one plan; `fired` is how many spools it has made."""

    def __init__(self) -> None:
        self.fired = 0

    def share(self, tree: physical.Root) -> physical.Root:
        maps = Counter(node.map.id for node in walk(tree) if isinstance(node, _READS_MAP))
        if not any(count > 1 for count in maps.values()):
            return tree
        keys = _common_keys(tree)
        if not keys:
            return tree
        shared: Any = _Sharing(keys).rewrite(tree)
        read = {node.number for node in walk(shared) if isinstance(node, physical.SpoolRead)}
        self.fired = len(read)
        result: physical.Root = _without_unread(shared, read)
        return result


def _common_keys(tree: Any) -> dict[int, Any]:
    """Return what is the same for equal plans, by the identity of their nodes, for plans that come twice.

    The same node may stand in several places. Only nodes whose shape comes twice are looked at closely, the largest
    first; what lies within a second copy will not be computed and is not looked at.
    """
    summaries: dict[int, _Summary] = {}
    _summarize(tree, summaries)
    by_shape: dict[tuple[int, int], list[Any]] = {}
    for node in _in_root_fragment(tree):
        summary = summaries[id(node)]
        if summary.is_worth and isinstance(node, _WORTH_SHARING | _MAY_STAND_ABOVE):
            by_shape.setdefault((-summary.size, summary.shape), []).append(node)
    keys: dict[int, Any] = {}
    copies: set[int] = set()
    for _, nodes in sorted(by_shape.items()):
        alive = [node for node in nodes if id(node) not in copies]
        if len(alive) < 2 or not _can_be_shared(alive[0]):
            continue
        firsts: dict[Any, Any] = {}
        found = [(node, _key(node, {})) for node in alive]
        counts = Counter(key for _, key in found)
        for node, key in found:
            if counts[key] == 1:
                continue
            keys[id(node)] = key
            if firsts.setdefault(key, node) is not node:
                copies.update(id(each) for each in walk(node))
    return keys


@dataclass(frozen=True, slots=True)
class _Summary:
    """What is known of a plan at a glance; `shape` is a hash that is the same for equal plans."""

    shape: int
    size: int
    is_worth: bool


def _summarize(node: Any, summaries: dict[int, _Summary]) -> _Summary:
    known = summaries.get(id(node))
    if known is None:
        below = [_summarize(child, summaries) for child in inputs(node)]
        read = node.map.id if isinstance(node, _READS_MAP) else None
        shape = hash((type(node).__name__, len(node.columns), read, *(each.shape for each in below)))
        is_worth = isinstance(node, _WORTH_SHARING) or any(each.is_worth for each in below)
        known = summaries[id(node)] = _Summary(shape, 1 + sum(each.size for each in below), is_worth)
    return known


def _in_root_fragment(node: Any) -> Iterator[Any]:
    yield node
    for child in _inputs_in_fragment(node):
        yield from _in_root_fragment(child)


def _inputs_in_fragment(node: Any) -> tuple[Any, ...]:
    """Not what lies below an exchange, nor the step of a recursion."""
    if isinstance(node, physical.ExchangeNode):
        return ()
    return inputs(node)[:1] if isinstance(node, physical.Recursive) else inputs(node)


def _can_be_shared(node: Any) -> bool:
    if not is_worth_spooling(node):
        return False
    nodes = list(walk(node))
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
        case _:
            return any(_has_volatile(getattr(value, name)) for name in _compared_fields(type(value)))


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
        case _ if names := _compared_fields(type(value)):
            parts = [_key(getattr(value, name), ids) for name in names]
            if isinstance(value, physical.Recursive | physical.WorkingTable):
                parts = [part for part in parts if part != (int, value.table)]
                parts.append(_number(("table", value.table), ids))
            if isinstance(value, _READS_MAP):
                read = value.map_columns if isinstance(value, physical.LookupJoin) else value.columns
                parts.append(tuple(column.name for column in read))
            return (type(value).__name__, *parts)
        case _:
            return (type(value), value)


_FIELDS: dict[type, tuple[str, ...]] = {SqlType: ()}
"""The fields by which values of a type are equal, as far as they were asked for; SQL types are compared as they are."""


def _compared_fields(type_: type) -> tuple[str, ...]:
    """Return the fields by which values of a plan's type are equal; none of a plain value."""
    known = _FIELDS.get(type_)
    if known is None:
        names = tuple(each.name for each in fields(type_) if each.compare) if is_dataclass(type_) else ()
        known = _FIELDS.setdefault(type_, names)
    return known


def _number(id_: Any, ids: dict[Any, int]) -> int:
    """The ids of columns and working tables counted in the order in which they come."""
    return ids.setdefault(id_, len(ids))


@dataclass(slots=True)
class _Sharing:
    keys: dict[int, Any]
    numbers: dict[Any, int] = field(default_factory=dict)

    def rewrite(self, node: Any) -> Any:
        """The largest common plans first: what is within a copy that is not computed is not looked at."""
        key = self.keys.get(id(node))
        if key is None:
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
