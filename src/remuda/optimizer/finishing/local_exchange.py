"""Local exchanges: which scans of a finished plan the workers of a member share, and what each of them reduces.

    HashAggregate final                HashAggregate complete     before
      LocalExchange                      Project
        HashAggregate partial              HashJoin
          Project                            MapScan orders
            HashJoin                         MapScan items
              MapScan orders
              LocalExchange
                MapScan items

An operator that takes all rows of its input in any order gets them through a local exchange where the input is a chain
over a scan (`checker.scan_of_chain`). An aggregate whose calls split is done in parts below it and merged above it, and
so are the first rows of an order.

Whether the workers really share a scan depends on its rows at execution. A map of too few rows has no exchange at all:
it would say nothing of how the plan runs. The plan is stale when such a map has grown (`Plan.row_limits`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from remuda.dataclass import replace
from remuda.optimizer import cost
from remuda.plan import physical
from remuda.plan.aggregates import AGGREGATES, partial_type
from remuda.plan.checker import TAKES_ANY_ORDER, reads_ahead, scan_of_chain
from remuda.plan.physical import Phase
from remuda.plan.traits import Convention
from remuda.plan.walk import change_inputs, inputs, walk, with_inputs
from remuda.rules.implement.implement_sort import rows_needed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from remuda.catalog import MapDefinition, MapStatistics
    from remuda.expr import Column
    from remuda.types import SqlType


class Placed(NamedTuple):
    """The plan, the rule as often as it fired, and the maps that were too small for it, with the rows it needs."""

    tree: physical.Root
    fired: tuple[str, ...] = ()
    outgrown_at: tuple[tuple[MapDefinition, int], ...] = ()


def place_local_exchanges(
    tree: physical.Root,
    statistics: Mapping[str, MapStatistics],
    new_column: Callable[[str, SqlType], Column],
    disabled: frozenset[str],
) -> Placed:
    """Put a local exchange below every operator that takes the rows of a large scan in any order."""
    rule = place_local_exchanges.__name__
    if rule in disabled:
        return Placed(tree)
    read = {node.map.id: node.map for node in walk(tree) if isinstance(node, physical.MapScan)}
    large = {id_ for id_ in read if statistics[id_].rows >= cost.FORK_ROWS}
    small = tuple((definition, cost.FORK_ROWS) for id_, definition in read.items() if id_ not in large)
    if not large:
        return Placed(tree, (), small)
    placing = _Placing(large, new_column)
    placed: Any = placing.rewrite(tree)
    return Placed(placed, (rule,) * placing.fired, small)


class _Placing:
    """`large` are the ids of the maps whose scans are shared."""

    def __init__(self, large: set[str], new_column: Callable[[str, SqlType], Column]) -> None:
        self._large = large
        self._new_column = new_column
        self.fired = 0

    def rewrite(self, node: Any) -> Any:
        if not isinstance(node, TAKES_ANY_ORDER):
            return change_inputs(node, self.rewrite)
        sources = inputs(node)
        new = [self.rewrite(source) for source in sources]
        for ordinal, source in enumerate(sources):
            if not _passes_on(node, ordinal) and self._is_large(source):
                self.fired += 1
                if len(new) == 1:
                    return self._exchanged(node, new[0])
                new[ordinal] = _exchange(new[ordinal])
        return with_inputs(node, tuple(new))

    def _is_large(self, node: Any) -> bool:
        scan = scan_of_chain(node)
        return scan is not None and scan.map.id in self._large and scan.traits.convention is Convention.LOCAL

    def _exchanged(self, node: Any, source: Any) -> Any:
        """Put the operator over workers, each of which does as much of it as can be merged."""
        match node:
            case physical.HashAggregate(phase=Phase.COMPLETE | Phase.PARTIAL) if all(
                call.splits for call in node.calls
            ):
                return self._aggregated(node, source)
            case physical.TopN():
                enough = rows_needed(node)
                assert enough is not None
                traits = replace(source.traits, collation=node.collation)
                lower = replace(node, input=source, count=enough, offset=None, traits=traits, bound=None)
                rows = min(source.estimate.rows, cost.wanted_rows(lower))
                lower = replace(lower, estimate=replace(node.estimate, rows=rows))
                return replace(node, input=_exchange(lower))
        return with_inputs(node, (_exchange(source),))

    def _aggregated(self, node: physical.HashAggregate, source: Any) -> physical.HashAggregate:
        states = node.states if node.phase is Phase.PARTIAL else self._states(node)
        distribution = source.traits.distribution
        if not {column.id for column in node.keys}.issuperset(distribution.columns):
            distribution = replace(distribution, columns=())
        lower = replace(
            node,
            input=source,
            states=states,
            phase=Phase.PARTIAL,
            traits=replace(source.traits, distribution=distribution),
        )
        rule = physical.PartialRule(cost.SAMPLE_ROWS, cost.PARTIAL_GROUP_ROWS, cost.PARTIAL_FEW_GROUPS)
        exchange = replace(_exchange(lower), partial_rule=rule if node.keys else None)
        phase = Phase.INTERMEDIATE if node.phase is Phase.PARTIAL else Phase.FINAL
        return replace(node, input=exchange, states=states, phase=phase)

    def _states(self, node: physical.HashAggregate) -> tuple[tuple[Column, ...], ...]:
        return tuple(
            tuple(
                self._new_column(f"{call.column.name}.{function}", partial_type(function, call))
                for function in AGGREGATES[call.function].partials
            )
            for call in node.calls
        )


def _passes_on(node: Any, ordinal: int) -> bool:
    """Return whether rows of this input go through a join batch by batch: they are shared where its own rows are."""
    is_join = isinstance(node, physical.HashJoin | physical.NestedLoopJoin)
    return is_join and ordinal == 0 and not reads_ahead(node)


def _exchange(source: Any) -> physical.LocalExchange:
    """Workers deliver in no order."""
    traits = replace(source.traits, collation=())
    return physical.LocalExchange(source, cost.FORK_ROWS, traits, estimate=source.estimate)
