"""From a parsed query to a plan: bind, optimise, split."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from remuda.dataclass import dataclass
from remuda.grid.settings import Engine
from remuda.optimizer import Optimized, OptimizerSettings, optimize
from remuda.optimizer.value_classes import value_bounds
from remuda.plan import logical, physical
from remuda.plan.fragments import Plan, ValueBounds, split
from remuda.plan.partitioning import plan_partitions
from remuda.plan.result_column import ResultColumn
from remuda.plan.traits import Convention
from remuda.plan.walk import walk
from remuda.rules.extensions import NO_EXTENSIONS, Extensions
from remuda.sql import BoundQuery, Query, bind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from remuda.catalog import Catalog, MapDefinition, MapStatistics, SearchPath
    from remuda.cluster import PartitionTable
    from remuda.grid.plan_cache import PlanScope
    from remuda.grid.settings import Settings
    from remuda.plan.partition_map import PartitionMap
    from remuda.storage import Store


@dataclass(frozen=True, slots=True)
class Planner:
    """Everything that a plan depends on beside the query; made anew for each planning, so that it is one moment's."""

    store: Store
    catalog: Catalog
    search_path: SearchPath
    partition_table: PartitionTable
    settings: Settings
    has_spark: bool
    disabled_rules: frozenset[str] = frozenset()
    checked: bool = False
    recorded: bool = False
    spark_parallelism: int = 2
    cores: int = 1
    extensions: Extensions = NO_EXTENSIONS

    @property
    def scope(self) -> PlanScope:
        """What sessions must agree on to share these plans."""
        return (self.search_path, *self.settings.of_plans)

    def plan(
        self,
        text: str,
        query: Query,
        literals: Mapping[int, Any] | None = None,
        expected: tuple[Any, ...] = (),
    ) -> Plan:
        """Plan a query; some parameters may be `literals`, and estimates take all to be what is `expected`."""
        bound = bind(query, self.catalog, self.search_path, literals, expected)
        return self.finish(text, bound, self.optimize(bound))

    def optimize(self, bound: BoundQuery, conventions: tuple[Convention, ...] | None = None) -> Optimized:
        """Optimize for the backends that the settings allow, or for those that are given."""
        partition_map = self._partition_map(bound)
        settings = OptimizerSettings(
            members=len(partition_map.members),
            partitions=partition_map.partitions,
            conventions=conventions or self._conventions(),
            disabled_rules=self.disabled_rules,
            partition_pruning=self.settings.partition_pruning,
            spark_parallelism=self.spark_parallelism,
            cores=self.cores,
            tasks_write=self.store.path is not None and self.store.remote is None and not self.store.read_only,
            extensions=self.extensions,
            checked=self.checked,
            recorded=self.recorded,
        )
        return optimize(bound.tree, bound.next_column, self._statistics, settings)

    def finish(self, text: str, bound: BoundQuery, optimized: Optimized) -> Plan:
        tree = optimized.tree
        columns = tuple(
            ResultColumn(name, column.type, column.nullable)
            for name, column in zip(tree.names, tree.columns, strict=True)
        )
        reading = physical.ScanNode | physical.LookupJoin | physical.Modify
        maps = {node.map.id: node.map for node in walk(tree) if isinstance(node, reading)}
        return Plan(
            sql=text,
            tree=tree,
            fragments=split(tree),
            parameters=bound.parameters,
            parameter_names=bound.parameter_names,
            columns=columns,
            maps=tuple(maps.values()),
            partition_map=self._partition_map(bound),
            modifies=bound.modifies,
            reads_clock=bound.reads_clock,
            views=bound.views,
            row_limits=optimized.row_limits,
            value_bounds=self.value_bounds(bound, optimized),
            cacheable=bound.cacheable,
        )

    def value_bounds(self, bound: BoundQuery, optimized: Optimized) -> tuple[ValueBounds, ...]:
        """Return the conditions by whose values the query has several plans; none for one that writes."""
        if not bound.parameters or bound.modifies is not None:
            return ()
        scans = [node for node in walk(optimized.normalized) if isinstance(node, logical.Scan)]
        return value_bounds(optimized.normalized, {node.map.id: self._statistics(node.map) for node in scans})

    def _partition_map(self, bound: BoundQuery) -> PartitionMap:
        return self.partition_table.partition_map(plan_partitions(bound.tree))

    def _conventions(self) -> tuple[Convention, ...]:
        match self.settings.engine:
            case Engine.SPARK:
                return (Convention.SPARK,)
            case Engine.AUTO if self.has_spark:
                return (Convention.LOCAL, Convention.SPARK)
            case _:
                return (Convention.LOCAL,)

    def _statistics(self, definition: MapDefinition) -> MapStatistics:
        return self.store.map(definition).statistics()
