"""What is decided before a statement runs, for EXPLAIN: partitions and their owners, and index against direct scan.

Values decide it. Literals are always known, parameters where they are given, the clock once a statement begins; what
waits for a value is left undecided, and EXPLAIN prints it as it is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from remuda.errors import SqlError
from remuda.exec.scan.concrete_bounds import pruned_partitions
from remuda.exec.scan.index_choice import by_candidates, choose_index, choose_order
from remuda.exec.scan.partition_shares import in_plan
from remuda.expr import Column, evaluate_constant, parameters_of
from remuda.plan import physical
from remuda.plan.bounds import bound_expressions
from remuda.plan.explain import UNDECIDED, Decision
from remuda.plan.logical import Operation
from remuda.plan.traits import Convention
from remuda.plan.walk import inputs, walk
from remuda.runtime.placement import place_fragment
from remuda.storage import hash_values, partition_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from remuda.catalog import MapDefinition
    from remuda.expr import Expression
    from remuda.plan.fragments import Fragment, Plan
    from remuda.storage import MapSnapshot

Partitions = set[int]


class Decisions:
    """Decides for one plan; `values` are the stored values of its parameters, None where they were not given."""

    def __init__(self, plan: Plan, values: tuple[Any, ...] | None, snapshots: Mapping[str, MapSnapshot]) -> None:
        self._plan = plan
        self._values = values
        self._snapshots = snapshots
        self._modifications = {id(own): node for node, own in matching_nodes(plan) if isinstance(node, physical.Modify)}

    def of(self, node: Any) -> Decision:
        """Decide for a node of the tree or of a fragment. A value that cannot be computed is left to the execution."""
        try:
            match node:
                case physical.IndexScan():
                    return self._index_scan(node)
                case physical.Union(map_scan=physical.MapScan()):
                    return self._union(node)
                case physical.MapScan() | physical.KeyLookup() | physical.IndexCount():
                    return self._reach(node, self._scanned(node))
                case physical.Modify():
                    # The fragment's own has an exchange below it, the tree's has all that the rows come from.
                    return self._modify(self._modifications.get(id(node), node))
        except SqlError:
            pass
        return UNDECIDED

    def members(self, fragment: Fragment) -> tuple[str, ...] | None:
        """Return the members that run a fragment; None where that is undecided, or another backend runs it."""
        waiting = [scan.pruning.expressions for scan in fragment.scans if scan.pruning is not None]
        waiting += [row for node in walk(fragment.node) if isinstance(node, physical.Values) for row in node.rows]
        if fragment.number == 0 or fragment.convention is Convention.SPARK:
            return None
        if not all(map(self._is_known, waiting)):
            return None
        routed = any(self._plan.fragments[edge].route is physical.Route.HASH for edge in fragment.received)
        try:
            placed = place_fragment(fragment, self._plan.partition_map, self._values or (), routed=routed)
        except SqlError:
            return None
        return tuple(placement.member for placement in placed)

    def owners(self, definition: MapDefinition, partitions: Partitions) -> tuple[str, ...]:
        """Return the members that own partitions of a map."""
        table = self._plan.partition_map
        found = set(in_plan(definition, np.array(sorted(partitions), np.int64), table.partitions).tolist())
        return tuple(member for member, owned in table.owned if not found.isdisjoint(owned))

    def _is_known(self, expressions: Iterable[Expression]) -> bool:
        return self._values is not None or not any(map(parameters_of, expressions))

    def _scanned(self, node: Any) -> Partitions | None:
        """Return the partitions that a scan needs; None where its filter does not say, or its values are not known."""
        pruning = node.pruning
        if pruning is None or not self._is_known(pruning.expressions):
            return None
        found = pruned_partitions(node.map, pruning, self._values or ())
        return set(range(node.map.partitions)) if found is None else set(found.tolist())

    def _reach(self, node: Any, partitions: Partitions | None, **more: Any) -> Decision:
        if partitions is None:
            return Decision(**more)
        is_ours = node.traits.convention is Convention.LOCAL
        members = self.owners(node.map, partitions) if is_ours else None
        return Decision(len(partitions), node.map.partitions, touched=frozenset(partitions), members=members, **more)

    def _index_scan(self, node: physical.IndexScan) -> Decision:
        """Count as the scan itself will: an index tells the number of its entries without reading a row."""
        partitions = self._scanned(node)
        scans = by_candidates(node)
        waiting = [each for scan in scans for bound in scan.bounds for each in bound_expressions(bound)]
        if node.first_rows is not None:
            waiting.append(node.first_rows)
        if (node.scan_cutover is None and node.sort_rule is None) or not self._is_known(waiting):
            return self._reach(node, partitions)
        choose = choose_index if node.sort_rule is None else choose_order
        choice = choose(scans, self._snapshots[node.map.id], self._values or ())
        chosen = choice.scan.index.name if node.candidates else None
        sorts = None if node.sort_rule is None else choice.number > 0
        found = {"entries": choice.entries, "scans": choice.scans, "index": chosen, "sorts": sorts}
        return self._reach(node, partitions, **found)

    def _union(self, node: physical.Union) -> Decision:
        """Count what the index scans would read, all together."""
        scans: tuple[Any, ...] = node.inputs
        found = [self._index_scan(scan).entries for scan in scans]
        if node.scan_cutover is None or None in found:
            return UNDECIDED
        entries = sum(each for each in found if each is not None)
        rows = self._snapshots[scans[0].map.id].rows
        return Decision(entries=entries, scans=entries > node.scan_cutover.entries(rows))

    def _modify(self, node: physical.Modify) -> Decision:
        """Return the partitions of a write: those of the written keys, or of the scan for UPDATE and DELETE."""
        if node.map.replicated:
            return UNDECIDED
        keys = modified_partitioning(node)
        columns = tuple(node.input.columns[ordinal].id for ordinal in keys)
        below = node.input
        if isinstance(below, physical.Values):
            if self._is_known([row[ordinal] for row in below.rows for ordinal in keys]) and not hides_key(node.map):
                rows = ([evaluate_constant(row[each], self._values or ()) for each in keys] for row in below.rows)
                return self._reach(node, {partition_of_row(node.map, row) for row in rows})
            return Decision(min(len(below.rows), node.map.partitions), node.map.partitions, at_most=True)
        if node.operation not in {Operation.UPDATE, Operation.DELETE}:
            return UNDECIDED
        scans = _scans_of(below, columns) or ()
        scanned = [self._scanned(scan) if scan.map.id == node.map.id else None for scan in scans]
        if not scanned or None in scanned:
            return UNDECIDED
        return self._reach(node, set().union(*(each for each in scanned if each is not None)))


def matching_nodes(plan: Plan) -> Iterator[tuple[Any, Any]]:
    """Yield each node of the tree with the node of a fragment that runs for it: for an exchange its receiving end."""

    def align(node: Any, own: Any) -> Iterator[tuple[Any, Any]]:
        yield node, own
        if isinstance(own, physical.Receive):
            own = plan.fragments[own.edge].node
        for child, lower in zip(inputs(node), inputs(own), strict=True):
            yield from align(child, lower)

    return align(plan.tree, plan.root.node)


def modified_partitioning(node: physical.Modify) -> list[int]:
    """Return where a row that is written has its partitioning columns: DELETE has the key alone, others all columns."""
    definition = node.map
    deletes = node.operation is Operation.DELETE
    names = definition.key if deletes else [column.name for column in definition.columns]
    return [list(names).index(name) for name in definition.partitioned_by]


def hides_key(definition: MapDefinition) -> bool:
    """Test whether keys are generated when rows are written, as no column of the user is one."""
    return any(definition.column(name).hidden for name in definition.key)


def partition_of_row(definition: MapDefinition, values: Iterable[Any]) -> int:
    """Return the partition of a row by the stored values of its partitioning columns."""
    types = [definition.column(name).type for name in definition.partitioned_by]
    return partition_of(hash_values(list(values), types), definition.partitions)


def _scans_of(node: Any, columns: tuple[int, ...]) -> list[Any] | None:
    """Return the scans that columns come from; None where they are computed, or looked up for other rows."""
    if isinstance(node, physical.ScanNode):
        return [node]
    if isinstance(node, physical.Project):
        sources = {each.column.id: each.expression for each in node.assignments}
        expressions = [sources[id_] for id_ in columns]
        if not all(isinstance(each, Column) for each in expressions):
            return None
        return _scans_of(node.input, tuple(each.id for each in expressions if isinstance(each, Column)))
    if isinstance(node, physical.Union):
        ordinals = [[column.id for column in node.columns].index(id_) for id_ in columns]
        found: list[Any] = []
        for below, source in zip(node.inputs, node.sources, strict=True):
            scans = _scans_of(below, tuple(source[ordinal].id for ordinal in ordinals))
            if scans is None:
                return None
            found.extend(scans)
        return found
    for below in inputs(node):
        if {*columns} <= {column.id for column in below.columns}:
            return _scans_of(below, columns)
    return None
