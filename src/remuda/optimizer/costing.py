"""Fills in the estimates of an alternative: its rows, and the cost of everything up to each node.

What a cost means depends on where the rows are: on the coordinator (ROOT) or on every member (REPLICATED) it is the
time there; where the members share the work (PARTITIONED) it is the work of all of them, which an exchange divides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.dataclass import dataclass, replace
from remuda.optimizer.cost import operator_cost, startup_cost, total_cost, wanted_rows
from remuda.plan import physical
from remuda.plan.physical import UNPRICED, Estimate
from remuda.plan.traits import Convention
from remuda.plan.walk import change_inputs, inputs, with_inputs
from remuda.rules.extensions import NO_EXTENSIONS, Extensions

if TYPE_CHECKING:
    from remuda.plan.physical import PhysicalNode


@dataclass(frozen=True, slots=True)
class Costing:
    members: int
    spark_parallelism: int = 2
    cores: int = 1
    """Of this process; what it does on all of them is priced as on one, here as in Spark's tasks."""

    extensions: Extensions = NO_EXTENSIONS

    def extended(self, path: Any) -> Any:
        """Return an access path with the cost that a program has registered for it."""
        cost = self.extensions.cost(path, path.estimate.rows, path.estimate.cost)
        return replace(path, estimate=Estimate(path.estimate.rows, cost, min(cost, path.estimate.startup)))

    def price(self, node: Any, rows: float) -> PhysicalNode:
        """Price the node at the top of a tree; it delivers `rows`, those of its group."""
        if node.estimate is not UNPRICED:
            return node  # type: ignore[no-any-return]
        sources = inputs(node)
        if any(source.estimate is UNPRICED for source in sources):
            node = with_inputs(node, tuple(self._price_below(child, rows) for child in sources))
        return self._with_estimate(node, rows)

    def _price_below(self, node: Any, final_rows: float) -> PhysicalNode:
        """Prices the inner nodes of an alternative: what members send before the coordinator finishes the work."""
        if node.estimate is not UNPRICED:
            return node  # type: ignore[no-any-return]
        node = change_inputs(node, lambda child: self._price_below(child, final_rows))
        below = sum(child.estimate.rows for child in inputs(node))
        everywhere = self.parallelism(node.traits.convention)
        match node:
            case physical.HashAggregate(phase=physical.Phase.PARTIAL):
                rows = min(below, final_rows * everywhere)
            case physical.IndexCount() | physical.Modify():
                rows = float(everywhere)
            case physical.TopN() | physical.Limit():
                rows = min(below, wanted_rows(node) * everywhere)
            case _:
                rows = below
        return self._with_estimate(node, rows)

    def _with_estimate(self, node: Any, rows: float) -> PhysicalNode:
        sources = inputs(node)
        convention = sources[0].traits.convention if sources else Convention.LOCAL
        own = operator_cost(node, rows, members=self.parallelism(node.traits.convention))
        if self.extensions.costs:
            own = self.extensions.cost(node, rows, own)
        if node.traits.convention is Convention.SPARK and _is_done_by_one_thread(node):
            own /= self.cores
        parallelism = self.parallelism(convention)
        cost = total_cost(node, own, parallelism)
        estimate = Estimate(rows, cost, startup_cost(node, cost, parallelism))
        return replace(node, estimate=estimate)  # type: ignore[no-any-return]

    def parallelism(self, convention: Convention) -> int:
        """Return how many members or tasks share the work of a backend."""
        return self.members if convention is Convention.LOCAL else max(self.spark_parallelism, self.members)


def _is_done_by_one_thread(node: Any) -> bool:
    """Test whether in this process one core does what Spark's tasks share: all rows of a group have to meet."""
    match node:
        case physical.Sort() | physical.Window() | physical.StreamingAggregate():
            return True
        case physical.HashAggregate():
            return bool(node.keys) and node.phase is not physical.Phase.PARTIAL
    return False
