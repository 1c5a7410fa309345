"""The plan of a lookup, without a memo: one map, one filter, and nothing above it but a projection.

Such queries are most of what an application asks, and there is little to search: the cheapest access path wins. The
plan is the one that the search would find.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.dataclass import replace
from remuda.optimizer.access_paths import access_paths
from remuda.optimizer.costing import Costing
from remuda.optimizer.sargable import find_sargable
from remuda.plan import logical, physical
from remuda.plan.bounds import Points
from remuda.plan.traits import ROOT, Convention, Traits
from remuda.rules.explore.explore import split_disjunction
from remuda.rules.implement.implement_relational import project_over

if TYPE_CHECKING:
    from remuda.catalog import MapStatistics

AT_ROOT = Traits(Convention.LOCAL, ROOT)


def plan_lookup(
    tree: logical.Root,
    statistics: dict[str, MapStatistics],
    members: int,
    partitions: int | None = None,
    *,
    pruning: bool,
) -> physical.Root | None:
    """Plan a query that is a lookup by equality; return None for any other."""
    scan, project = _parts(tree)
    if scan is None or not _is_lookup(scan):
        return None
    known = statistics[scan.map.id]
    costing = Costing(members)
    paths = access_paths(scan, AT_ROOT, (Convention.LOCAL,), known, pruned=pruning, partitions=partitions)
    best: Any = min(paths, key=lambda path: path.estimate.cost)
    rows = best.estimate.rows

    def projected(source: Any) -> Any:
        return source if project is None else costing.price(project_over(source, project), rows)

    def at_root(source: Any) -> Any:
        return costing.price(physical.RootExchange(source, AT_ROOT), rows)

    if members == 1 or scan.map.replicated:
        top = projected(best)
    else:
        # What is projected away need not travel; what is computed may be wider than what it is computed from.
        top = min((at_root(projected(best)), projected(at_root(best))), key=lambda node: node.estimate.cost)
    root = costing.price(physical.Root(top, tree.columns, tree.names, replace(AT_ROOT)), rows)
    assert isinstance(root, physical.Root)
    return root


def _parts(tree: logical.Root) -> tuple[logical.Scan | None, logical.Project | None]:
    if tree.collation:
        return None, None
    match tree.input:
        case logical.Scan() as scan:
            return scan, None
        case logical.Project(input=logical.Scan() as scan) as project:
            return scan, project
    return None, None


def _is_lookup(scan: logical.Scan) -> bool:
    """Test for a lookup by an equality of a key column or of a column that leads an index."""
    if scan.filter is None or split_disjunction(scan) is not None:
        return False
    named = {*scan.map.key, *(index.columns[0] for index in scan.map.indexes)}
    predicates = find_sargable(scan.filter)
    return any(
        isinstance(predicate.bound, Points) and predicate.bound.is_single
        for name in named
        for predicate in predicates.get(name, ())
    )
