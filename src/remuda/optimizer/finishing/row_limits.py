"""Between how many rows of its maps a plan is good: statistics change, and a plan is kept by the cache.

A join planned when a map had one row may be a nested loop; with 500,000 rows it must not be. Key lookups are the same
whatever a map has, so that a plan of nothing else has no limits.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from remuda.optimizer import cost
from remuda.plan import physical
from remuda.plan.fragments import RowLimits
from remuda.plan.walk import walk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from remuda.catalog import MapStatistics
    from remuda.optimizer.finishing.local_exchange import Placed


def row_limits(placed: Placed, statistics: Mapping[str, MapStatistics]) -> tuple[RowLimits, ...]:
    """Return the limits of every map whose number of rows the plan was chosen by."""
    forked = {definition.id: rows for definition, rows in placed.outgrown_at}
    counted = physical.MapScan | physical.IndexScan | physical.LookupJoin
    maps = {node.map.id: node.map for node in walk(placed.tree) if isinstance(node, counted)}
    if maps:
        # One plan for all of them: a map that is asked for keys may be the one to scan when it is smaller.
        others = (node for node in walk(placed.tree) if isinstance(node, physical.KeyLookup))
        maps |= {node.map.id: node.map for node in others}
    limits = []
    for id_, definition in maps.items():
        rows = statistics[id_].rows
        least = rows // cost.PLAN_GROWTH if rows > cost.SMALL_MAP else 0
        most = max(rows, cost.SMALL_MAP) * cost.PLAN_GROWTH
        limits.append(RowLimits(definition, least, int(min(most, forked.get(id_, math.inf)))))
    return tuple(limits)
