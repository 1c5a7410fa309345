"""Into how many partitions a plan divides rows: as many as the most finely divided of its maps has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.plan import logical
from remuda.plan.walk import walk

if TYPE_CHECKING:
    from remuda.catalog import MapDefinition


def plan_partitions(tree: logical.LogicalNode) -> int | None:
    """Return the number for a bound tree; None where it reads no partitioned map."""
    scans = (node for node in walk(tree) if isinstance(node, logical.Scan))
    return max((scan.map.partitions for scan in scans if not scan.map.replicated), default=None)


def is_divided_as(definition: MapDefinition, partitions: int | None) -> bool:
    """Tell whether a partitioned map has the plan's partitions: only then rows of equal keys are where rows that are
    sent by a hash of these keys are, and where those of another such map are. None: all maps have the plan's."""
    return not definition.replicated and partitions in {None, definition.partitions}
