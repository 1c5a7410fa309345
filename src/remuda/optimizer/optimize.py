"""From a bound logical tree to a physical one: rewrite, logical and physical optimisation, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.dataclass import dataclass
from remuda.optimizer.fast_path import plan_lookup
from remuda.optimizer.finishing.common_expressions import SHARE_RULE, CommonExpressions
from remuda.optimizer.finishing.common_plans import SPOOL_RULE, CommonPlans
from remuda.optimizer.finishing.dynamic_pruning import prune_scans_by_keys
from remuda.optimizer.finishing.local_exchange import place_local_exchanges
from remuda.optimizer.finishing.row_limits import row_limits
from remuda.optimizer.finishing.runtime_decisions import decide_at_runtime
from remuda.optimizer.memo import Memo
from remuda.optimizer.search import Search
from remuda.plan import logical, physical
from remuda.plan.checker import check_logical, check_physical
from remuda.plan.traits import Convention
from remuda.plan.walk import walk
from remuda.rules.decorrelate.decorrelate import decorrelate
from remuda.rules.extensions import NO_EXTENSIONS, Extensions
from remuda.rules.normalize.normalize import RuleStep, RuleTrace, normalize
from remuda.rules.normalize.trim import trim_columns

if TYPE_CHECKING:
    from collections.abc import Callable

    from remuda.catalog import MapDefinition, MapStatistics
    from remuda.expr import Column
    from remuda.plan.fragments import RowLimits


FAST_PATH = plan_lookup.__name__
"""Disabled like a rule, so that the search can be watched on a lookup too."""


@dataclass(frozen=True, slots=True)
class OptimizerSettings:
    """What a plan is made for, beside the query and the catalog."""

    members: int = 1
    conventions: tuple[Convention, ...] = (Convention.LOCAL,)
    disabled_rules: frozenset[str] = frozenset()
    partitions: int | None = None
    """Into how many partitions the plan divides rows; None where all maps have as many."""
    partition_pruning: bool = True
    spark_parallelism: int = 2
    """How many times the cores of this process Spark's executors have."""
    cores: int = 1
    """How many cores this process has, as far as that decides between it and Spark."""
    tasks_write: bool = False
    """Whether tasks of Spark may write segments into the folder of the store."""
    extensions: Extensions = NO_EXTENSIONS
    """The rules and costs that the program has added."""
    checked: bool = False
    """Whether the tree is checked after every rule, as in tests; a finished plan always is."""
    recorded: bool = False
    """Whether every rewrite is kept, for EXPLAIN (STEPS)."""


@dataclass(frozen=True, slots=True)
class Optimized:
    tree: physical.Root
    normalized: logical.Root
    memo: Memo
    fired: tuple[str, ...]
    row_limits: tuple[RowLimits, ...] = ()
    """The numbers of rows of each map between which it is a good plan."""
    steps: tuple[RuleStep, ...] = ()
    """The rewrites of the logical tree, where they were recorded."""
    search_rules: tuple[str, ...] = ()
    """The rules by which the search found the plan, each once."""


def optimize(
    tree: logical.Root,
    next_column: int,
    statistics: Callable[[MapDefinition], MapStatistics],
    settings: OptimizerSettings,
) -> Optimized:
    extensions = settings.extensions
    trace = RuleTrace(settings.disabled_rules, settings.checked, settings.recorded, extensions=extensions)
    joined, next_column = decorrelate(tree, next_column)
    trace.record(decorrelate.__name__, tree, joined)
    trimmed = trim_columns(joined)
    trace.record(trim_columns.__name__, joined, trimmed)
    normalized = normalize(trimmed, trace)
    check_logical(normalized)
    known = {node.map.id: statistics(node.map) for node in walk(normalized) if isinstance(node, logical.Scan)}
    if settings.conventions == (Convention.LOCAL,) and FAST_PATH not in settings.disabled_rules and not extensions:
        found = plan_lookup(
            normalized, known, settings.members, settings.partitions, pruning=settings.partition_pruning
        )
        if found is not None:
            placed = place_local_exchanges(found, known, lambda *_: _no_column(), settings.disabled_rules)
            check_physical(placed.tree, members=settings.members, partitions=settings.partitions)
            fired = (*trace.fired, FAST_PATH, *placed.fired)
            return Optimized(placed.tree, normalized, Memo(known), fired, row_limits(placed, known))
    search = Search(
        settings.members,
        settings.conventions,
        known,
        next_column,
        settings.disabled_rules,
        pruning=settings.partition_pruning,
        spark_parallelism=settings.spark_parallelism,
        cores=settings.cores,
        extensions=extensions,
        partitions=settings.partitions,
        tasks_write=settings.tasks_write,
    )
    best = search.run(normalized)
    rules = search.rules_of(best)
    if SHARE_RULE not in settings.disabled_rules:
        common = CommonExpressions(search.new_column, search.costing, search.reduced_scan)
        best = common.share(best)
        rules.extend([SHARE_RULE] * common.fired)
    if SPOOL_RULE not in settings.disabled_rules:
        plans = CommonPlans()
        best = plans.share(best)
        rules.extend([SPOOL_RULE] * plans.fired)
    unpruned = frozenset() if settings.partition_pruning else frozenset({prune_scans_by_keys.__name__})
    best, decided = decide_at_runtime(best, settings.disabled_rules | unpruned)
    rules.extend(decided)
    placed = place_local_exchanges(best, known, search.new_column, settings.disabled_rules)
    check_physical(placed.tree, members=settings.members, partitions=settings.partitions)
    rules.extend(placed.fired)
    steps, chosen = tuple(trace.steps), tuple(dict.fromkeys(rules))
    fired = (*trace.fired, *rules)
    return Optimized(placed.tree, normalized, search.memo, fired, row_limits(placed, known), steps, chosen)


def _no_column() -> Column:
    raise AssertionError("a lookup has no aggregate, which alone needs columns of its own")
