"""From a bound logical tree to a physical one: rewrite, logical and physical optimisation, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from remuda.optimizer.search import Search
from remuda.plan import logical, physical
from remuda.plan.checker import check_logical, check_physical
from remuda.plan.traits import Convention
from remuda.plan.walk import walk
from remuda.rules.normalize import RuleTrace, normalize
from remuda.rules.trim import trim_columns

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.catalog import MapDefinition, MapStatistics
    from remuda.optimizer.memo import Memo


@dataclass(frozen=True, slots=True)
class OptimizerSettings:
    """What a plan is made for, beside the query and the catalog."""

    members: int = 1
    conventions: tuple[Convention, ...] = (Convention.LOCAL,)
    disabled_rules: frozenset[str] = frozenset()
    partition_pruning: bool = True
    checked: bool = False
    """Whether the tree is checked after every rule, as in tests; a finished plan always is."""


@dataclass(frozen=True, slots=True)
class Optimized:
    tree: physical.Root
    normalized: logical.Root
    memo: Memo
    fired: tuple[str, ...]


def optimize(
    tree: logical.Root,
    next_column: int,
    statistics: Callable[[MapDefinition], MapStatistics],
    settings: OptimizerSettings,
) -> Optimized:
    trace = RuleTrace(settings.disabled_rules, settings.checked)
    normalized = normalize(trim_columns(tree), trace)
    check_logical(normalized)
    known = {node.map.id: statistics(node.map) for node in walk(normalized) if isinstance(node, logical.Scan)}
    search = Search(
        settings.members,
        settings.conventions,
        known,
        next_column,
        settings.disabled_rules,
        pruning=settings.partition_pruning,
    )
    best = search.run(normalized)
    check_physical(best, members=settings.members)
    return Optimized(best, normalized, search.memo, (*trace.fired, *search.rules_of(best)))
