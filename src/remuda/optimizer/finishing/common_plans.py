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
from dataclasses import field
from typing import TYPE_CHECKING, Any

from remuda.catalog import IndexDefinition, MapDefinition
from remuda.dataclass import dataclass
from remuda.expr import Call, Case, Cast, Column, is_volatile
from remuda.optimizer.canonical import READS_MAP, Numbering, Shape, canonical_key, compared_fields, shape_of
from remuda.optimizer.cost import is_cheaper_once, spool_cost
from remuda.plan import physical
from remuda.plan.traits import Convention
from remuda.plan.walk import change_inputs, inputs, walk, with_inputs

if TYPE_CHECKING:
    from collections.abc import Iterator

SPOOL_RULE = "share_common_plans"
_COMPUTES = (
    physical.HashJoin
    | physical.MergeJoin
    | physical.NestedLoopJoin
    | physical.LookupJoin
    | physical.HashAggregate
    | physical.StreamingAggregate
    | physical.Window
    | physical.Recursive
)
_WORTH_SHARING = _COMPUTES | physical.MapScan
"""A plan without one of these finds rows by an index, which is about as cheap as reading a spool."""
_MAY_STAND_ABOVE = physical.Project | physical.Filter | physical.Union | physical.RootExchange


class CommonPlans:
    """Shares the common sub-plans of one plan; `fired` is how many spools it has made."""

    def __init__(self) -> None:
        self.fired = 0

    def share(self, tree: physical.Root) -> physical.Root:
        maps = Counter(node.map.id for node in walk(tree) if isinstance(node, READS_MAP))
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
    shapes: dict[int, Shape] = {}
    by_shape: dict[Shape, list[Any]] = {}
    for node in _in_root_fragment(tree):
        if isinstance(node, _WORTH_SHARING | _MAY_STAND_ABOVE):
            by_shape.setdefault(shape_of(node, shapes), []).append(node)
    keys: dict[int, Any] = {}
    copies: set[int] = set()
    for _, nodes in sorted(by_shape.items(), key=lambda item: -item[0].size):
        alive = [node for node in nodes if id(node) not in copies]
        if len(alive) < 2 or not _can_be_shared(alive[0]):
            continue
        only_scans = not any(isinstance(each, _COMPUTES) for each in walk(alive[0]))
        firsts: dict[Any, Any] = {}
        found = [(node, canonical_key(node, Numbering())) for node in alive]
        counts = Counter(key for _, key in found)
        for node, key in found:
            if not is_cheaper_once(node, counts[key], only_scans=only_scans):
                continue
            keys[id(node)] = key
            if firsts.setdefault(key, node) is not node:
                copies.update(id(each) for each in walk(node))
    return keys


def _in_root_fragment(node: Any) -> Iterator[Any]:
    yield node
    for child in _inputs_in_fragment(node):
        yield from _in_root_fragment(child)


def _inputs_in_fragment(node: Any) -> tuple[Any, ...]:
    """Return the inputs within the fragment: none below an exchange, nor the step of a recursion."""
    if isinstance(node, physical.ExchangeNode):
        return ()
    return inputs(node)[:1] if isinstance(node, physical.Recursive) else inputs(node)


def _can_be_shared(node: Any) -> bool:
    """Test whether a plan may be kept for another reader: it is not volatile and no part of a recursion."""
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
        case _:
            return any(_has_volatile(getattr(value, name)) for name in compared_fields(type(value)))


@dataclass(slots=True)
class _Sharing:
    keys: dict[int, Any]
    numbers: dict[Any, int] = field(default_factory=dict)

    def rewrite(self, node: Any) -> Any:
        """Share common plans, the largest first: plans within a copy that is not computed are skipped."""
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
